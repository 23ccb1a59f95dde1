// How many descriptors databases take. A process has so many for everything it does, 256 or 1,024
// by default on most systems; all databases together take half of them for reads, one that was told
// a number takes its own, and none ever needs more than a few dozen.

internal import COndol

/// Counts descriptors.
package enum FileLimit {
  /// The fewest that a database can be opened with.
  package static let minimum = 64
  /// The most it takes when it is not told a number: more files than that are seldom read in turn.
  private static let mostUnasked = 4_096
  /// What is left for the lock, the logs, the manifest, and the files that flushes, merges and
  /// uploads write.
  private static let forWriting = 32

  /// Half of what the process may have open, within bounds.
  package static var ofProcess: Int {
    min(max(ondol_file_limit() / 2, minimum), mostUnasked)
  }

  /// Raises what the process may have open as far as the system lets it, for a program that will
  /// have many databases open; to be called before the first one is. Answers with the new limit.
  package static func raise() -> Int { ondol_raise_file_limit() }

  /// How many files for reads are open at once under `limit`.
  static func forReads(of limit: Int?) -> Int {
    max(limit ?? ofProcess, minimum) - forWriting
  }
}
