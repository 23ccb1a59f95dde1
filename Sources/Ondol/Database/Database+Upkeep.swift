// Keeping house: compaction on request, and what the database can tell of itself. Both go straight
// to the engine; nothing here touches documents.

internal import OndolEngine

/// How far a compaction is.
public struct CompactionProgress: Sendable, Hashable {
  /// Bytes merged so far, before compression.
  public var completedBytes: UInt64
  /// All bytes there are to merge.
  public var totalBytes: UInt64

  /// From 0 to 1.
  public var fraction: Double {
    totalBytes == 0 ? 1 : Double(completedBytes) / Double(totalBytes)
  }
}

/// Sizes and counts of a database as of one moment. Sums are since it was opened.
public struct DatabaseMetrics: Sendable, Hashable {
  /// Commits since the database was opened.
  public var commits: Int
  /// How long commits took, of a sample of one in sixteen: element `n` counts those of 2ⁿ to
  /// 2ⁿ⁺¹ nanoseconds, with the time they waited for others. 64 elements.
  public var commitLatency: [Int]
  /// Bytes of the files of rows and of large values that reads use.
  public var fileBytes: UInt64
  /// Bytes of rows that are in memory and, but for the log, not yet in files.
  public var memoryBytes: Int
  /// Bytes of blocks, filters and indexes that are cached, and of rows in memory, which count
  /// against the same budget.
  public var cachedBytes: Int
  /// Blocks that were read from files because they were not cached, by reads and by compactions.
  public var blockLoads: Int
  /// Blocks that left the cache to make room for others. Many beside few documents read: the cache
  /// is small for what is read.
  public var blockEvictions: Int
  /// Bytes that a compaction would give back, as far as deletions and large values tell;
  /// overwritten small rows are not counted.
  public var reclaimableBytes: UInt64
  /// The most sorted runs a read must look into; 1 in a database at rest.
  public var runs: Int
  /// Commits that had to wait because the storage was behind, and how long.
  public var delayedCommits: Int
  /// How long these commits waited in all.
  public var delay: Duration
  /// Bytes that compactions read.
  public var compactionBytesRead: UInt64
  /// Bytes that compactions wrote.
  public var compactionBytesWritten: UInt64
  /// Bytes of replaced files that reads still going on keep.
  public var pinnedBytes: UInt64
  /// How long ago the oldest picture that somebody still reads was replaced or made; zero when all
  /// read the newest.
  public var oldestReadAge: Duration
  /// Who holds that picture, as far as its holders have names.
  public var oldestReadOwners: [String]
  /// Those who listen to documents, queries and aggregates; equal queries count as often as they
  /// are listened to.
  public var listeners: Int
  /// Changes that listeners have not asked for yet: bounded, however slow they are.
  public var pendingChanges: Int
  /// What merges have found damaged since the database was opened, a sentence for each file. They
  /// leave such a file alone, and writing goes on; reads of what is damaged throw `.dataLoss`.
  /// `verify` looks for more.
  public var damage: [String]
}

extension Database {
  /// Writes everything from memory to files and merges the files, so that deleted and overwritten
  /// documents take no space and reads look into one run. Then bytes of blobs go that nobody holds
  /// and that need not be kept any more. Writes and reads go on meanwhile.
  ///
  /// When the task is cancelled this throws `.cancelled`; what was merged by then stays so.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: how much is merged in a second at most, for a device that others need,
  ///     too; nil for as fast as it goes.
  ///   - progress: called from time to time, and once at the end.
  /// - Throws: `.cancelled`; `.invalidArgument` when `bytesPerSecond` is not positive; `.internal`
  ///   or `.resourceExhausted` when the system refuses.
  /// - Complexity: O(bytes in the database), all of which may be read and written once.
  public func compact(
    bytesPerSecond: Int? = nil, progress: (CompactionProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try refuseInTransaction("compact")
    if let bytesPerSecond, bytesPerSecond <= 0 {
      throw DatabaseError(.invalidArgument, "bytesPerSecond must be positive")
    }
    try await rethrowing { () async throws(EngineError) in
      let rate = bytesPerSecond.map { UInt64(clamping: $0) }
      try await engine.compact(bytesPerSecond: rate) { done, total in
        progress(CompactionProgress(completedBytes: done, totalBytes: total))
      }
    }
    if !engine.isReadOnly { _ = try await contents.reclaimer.reclaim() }
  }

  /// Sizes, counts, and who keeps space from being freed.
  ///
  /// - Complexity: O(files). No file is read.
  public var metrics: DatabaseMetrics {
    let engine = engine.metrics
    return DatabaseMetrics(
      commits: commitTimes.count, commitLatency: commitTimes.latency,
      fileBytes: engine.shards.reduce(0) { $0 + $1.bytes },
      memoryBytes: engine.shards.reduce(0) { $0 + $1.memtableBytes },
      cachedBytes: engine.cachedBytes, blockLoads: engine.blockLoads,
      blockEvictions: engine.blockEvictions, reclaimableBytes: engine.reclaimableBytes,
      runs: engine.shards.map(\.runs).max() ?? 0, delayedCommits: engine.totals.delays,
      delay: .microseconds(engine.totals.delayMicroseconds),
      compactionBytesRead: engine.totals.compactionBytesRead,
      compactionBytesWritten: engine.totals.compactionBytesWritten,
      pinnedBytes: engine.pins.bytes, oldestReadAge: .microseconds(engine.pins.ageMicroseconds),
      oldestReadOwners: engine.pins.owners, listeners: observers.count,
      pendingChanges: observers.pendingCount, damage: engine.damage.map { "\($0)" })
  }
}
