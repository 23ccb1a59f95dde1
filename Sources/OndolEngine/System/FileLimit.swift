// The number of file descriptors that databases use. A process has a limit for all of its
// descriptors, by default 256 or 1,024 on most systems. All databases together use half of it for
// reads. A database with its own limit uses that, and none ever needs more than a few dozen.

internal import COndol

/// Counts file descriptors.
package enum FileLimit {
  /// The smallest limit that a database can be opened with.
  package static let minimum = 64
  /// The largest number without an explicit limit. More files than that are rarely read in turn.
  private static let mostUnasked = 4_096
  /// Reserved for the lock, the logs, the manifest, and the files that flushes, merges and uploads
  /// write.
  private static let forWriting = 32

  /// Half of the process's limit, within bounds.
  package static var ofProcess: Int {
    min(max(ondol_file_limit() / 2, minimum), mostUnasked)
  }

  /// Raises the process's limit of open files as far as the system allows, for a program with many
  /// open databases. It must be called before the first database is opened. Returns the new limit.
  package static func raise() -> Int { ondol_raise_file_limit() }

  /// The number of files open for reads under `limit`.
  static func forReads(of limit: Int?) -> Int {
    max(limit ?? ofProcess, minimum) - forWriting
  }
}
