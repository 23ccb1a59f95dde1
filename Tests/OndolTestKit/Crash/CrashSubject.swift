// The requirements of a crash test on a store, and no more. The engine is one. The tests of the
// crash test have a tiny one with known mistakes.

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

/// The place of a commit among all commits.
package struct CommitPlace: Sendable, Hashable {
  /// Greater than that of every earlier commit. If the store makes no commits of its own, the first
  /// commit has 1, and there are no gaps.
  package var sequence: UInt64
  /// Later than that of every earlier commit.
  package var time: Int64

  package init(sequence: UInt64, time: Int64) {
    self.sequence = sequence
    self.time = time
  }
}

/// A broken invariant of the store, which its subject found. Unlike other errors, no failure of the
/// disk excuses it.
package struct BrokenInvariant: Error, Sendable, CustomStringConvertible {
  package var description: String

  package init(_ description: String) {
    self.description = description
  }
}

/// An open store.
package protocol CrashSubject: Sendable {
  /// Whether the store makes commits of its own, so that the sequences of requested commits have
  /// gaps.
  var makesCommitsOfItsOwn: Bool { get }

  /// Applies all of `changes` or none, and returns when they have the requested durability.
  func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws -> CommitPlace

  /// Returns the number of visible commits and the whole contents. Throws `BrokenInvariant` for
  /// impossible contents.
  func contents() async throws -> (sequence: UInt64, rows: Rows)

  /// Makes all acknowledged commits survive a power cut.
  func synchronize() async throws

  /// Moves rows from memory into files. All acknowledged commits then survive a power cut.
  func flush() async throws

  /// Flushes, and merges everything that can be merged.
  func settle() async throws

  /// Ends in good order. All acknowledged commits then survive a power cut.
  func close() async throws

  /// Checks the invariants of a store that was opened where nothing fails, and may write. Throws
  /// `BrokenInvariant` for a broken one.
  func verify() async throws
}

extension CrashSubject {
  package var makesCommitsOfItsOwn: Bool { false }

  package func verify() async throws {}
}

/// The limits of a store, so small that little work makes it do everything. All except the count
/// are in bytes.
package struct SubjectOptions: Sendable, Hashable {
  package var shardCount: Int
  package var memtableSize: Int
  package var logSize: Int
  package var manifestSize: Int
  package var segmentSize: Int
  package var blockSize: Int
  /// The bytes of `.memory` commits that may wait to be written.
  package var deferredBytes: Int
  package var runLimit: Int
  /// Whether single commits sync on their own thread.
  package var callersSync: Bool
  package var smallShardSize: Int
  package var valueThreshold: Int
  package var valueFileSize: Int
  /// The bytes of logs to keep for followers; nil for none.
  package var historySize: Int?
  /// The bytes of one frame of the manifest.
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
  /// Options with such small limits.
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
    // So that files pass a border within one workload.
    keyChangeMargin = 96
    historyRetention = options.historySize.map {
      HistoryRetention(microseconds: .max, bytes: UInt64($0))
    }
    cacheSize = 1 << 20
  }
}

/// Opens the store in a world, and creates it if it does not exist.
package typealias OpenSubject =
  @Sendable (Environment, SubjectOptions) async throws -> any CrashSubject
