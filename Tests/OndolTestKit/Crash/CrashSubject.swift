// What a crash test needs of a store, and no more. The engine is one; the tests of the crash test
// have a tiny one whose mistakes are known.

package import OndolEngine

/// The rows of a store, or of the model of one.
package typealias Rows = [[UInt8]: [UInt8]]

/// A row put (with a value) or deleted (without).
package struct Change: Sendable, Hashable {
  package var key: [UInt8]
  package var value: [UInt8]?

  package init(key: [UInt8], value: [UInt8]?) {
    self.key = key
    self.value = value
  }
}

extension Rows {
  mutating func apply(_ changes: [Change]) {
    for change in changes {
      self[change.key] = change.value
    }
  }
}

/// Where a commit stands among all commits.
package struct CommitPlace: Sendable, Hashable {
  /// Later than that of every commit before. Where the store makes no commits of its own the first
  /// commit has 1, and there are no gaps.
  package var sequence: UInt64
  /// Later than that of every commit before.
  package var time: Int64

  package init(sequence: UInt64, time: Int64) {
    self.sequence = sequence
    self.time = time
  }
}

/// An invariant of the store that its subject found broken. Unlike other errors, nothing that went
/// wrong with the disk is an excuse for it.
package struct BrokenInvariant: Error, Sendable, CustomStringConvertible {
  package var description: String

  package init(_ description: String) {
    self.description = description
  }
}

/// An open store.
package protocol CrashSubject: Sendable {
  /// Whether the store makes commits that nobody asked for, so that the sequences of those asked
  /// for have gaps.
  var makesCommitsOfItsOwn: Bool { get }

  /// Applies all of `changes` or none, and returns when that has survived what `durability` says.
  func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws -> CommitPlace

  /// How many commits are visible, and everything there is then. Throws `BrokenInvariant` when what
  /// there is cannot be.
  func contents() async throws -> (sequence: UInt64, rows: Rows)

  /// Makes all acknowledged commits survive a power cut.
  func synchronize() async throws

  /// Moves what is in memory into files; all acknowledged commits survive a power cut afterwards.
  func flush() async throws

  /// Flushes, and merges what can be merged.
  func settle() async throws

  /// Ends in good order; all acknowledged commits survive a power cut afterwards.
  func close() async throws

  /// Looks at what must hold in a store that has been opened where nothing fails, and may write.
  /// Throws `BrokenInvariant` where it does not.
  func verify() async throws
}

extension CrashSubject {
  package var makesCommitsOfItsOwn: Bool { false }

  package func verify() async throws {}
}

/// How small the limits of a store are, so that little work makes it do everything. All but the
/// count are in bytes.
package struct SubjectOptions: Sendable, Hashable {
  package var shardCount: Int
  package var memtableSize: Int
  package var logSize: Int
  package var manifestSize: Int
  package var segmentSize: Int
  package var blockSize: Int
  /// Bytes of `.memory` commits that may wait to be written.
  package var deferredBytes: Int
  package var runLimit: Int
  /// Whether commits that are alone sync on their own thread.
  package var callersSync: Bool
  package var smallShardSize: Int
  package var valueThreshold: Int
  package var valueFileSize: Int
  /// Bytes of logs that are kept for whoever follows the database; nil when none are.
  package var historySize: Int?
  /// Bytes of one frame of the manifest.
  package var manifestFrameSize: Int

  package init(
    shardCount: Int, memtableSize: Int, logSize: Int, manifestSize: Int, segmentSize: Int,
    blockSize: Int, deferredBytes: Int, runLimit: Int, callersSync: Bool = true,
    smallShardSize: Int = 0,
    valueThreshold: Int = 300, valueFileSize: Int = 4 << 10, historySize: Int? = nil,
    manifestFrameSize: Int = 4 << 20
  ) {
    self.shardCount = shardCount
    self.memtableSize = memtableSize
    self.logSize = logSize
    self.manifestSize = manifestSize
    self.segmentSize = segmentSize
    self.blockSize = blockSize
    self.deferredBytes = deferredBytes
    self.runLimit = runLimit
    self.callersSync = callersSync
    self.smallShardSize = smallShardSize
    self.valueThreshold = valueThreshold
    self.valueFileSize = valueFileSize
    self.historySize = historySize
    self.manifestFrameSize = manifestFrameSize
  }
}

extension EngineOptions {
  /// Options of so small limits.
  init(_ options: SubjectOptions) {
    self.init()
    shardCount = options.shardCount
    memtableSize = options.memtableSize
    logSize = options.logSize
    manifestSize = options.manifestSize
    segmentSize = options.segmentSize
    blockSize = options.blockSize
    deferredBytes = options.deferredBytes
    runLimit = options.runLimit
    callersSync = options.callersSync
    smallShardSize = options.smallShardSize
    valueThreshold = options.valueThreshold
    valueFileSize = options.valueFileSize
    manifestFrameSize = options.manifestFrameSize
    // So that files come to lie behind a border within one workload.
    keyChangeMargin = 96
    historyRetention = options.historySize.map {
      HistoryRetention(microseconds: .max, bytes: UInt64($0))
    }
    cacheSize = 1 << 20
  }
}

/// Opens the store in a world, and makes it where there is none.
package typealias OpenSubject =
  @Sendable (Environment, SubjectOptions) async throws -> any CrashSubject
