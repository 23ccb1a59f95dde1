// Upkeep: compaction on request, and the database's metrics. Both go straight to the engine;
// nothing here touches documents.

internal import OndolEngine

/// How far a compaction has come.
public struct CompactionProgress: Sendable, Hashable {
  /// Bytes merged so far, before compression.
  public var completedBytes: UInt64
  /// All bytes to merge.
  public var totalBytes: UInt64

  /// From 0 to 1.
  public var fraction: Double {
    totalBytes == 0 ? 1 : Double(completedBytes) / Double(totalBytes)
  }
}

/// Sizes and counts of a database as of one moment. Sums count from the time it was opened.
public struct DatabaseMetrics: Sendable, Hashable {
  /// Commits since the database was opened.
  public var commits: Int
  /// A histogram of commit times, from a sample of one commit in sixteen. Element `n` counts the
  /// commits that took 2ⁿ to 2ⁿ⁺¹ nanoseconds, including the time they waited for other commits.
  /// There are 64 elements.
  public var commitLatency: [Int]
  /// Bytes of the segments and value files that reads use.
  public var fileBytes: UInt64
  /// Bytes of rows that are in memory and, apart from the log, not yet in files.
  public var memoryBytes: Int
  /// Bytes of cached blocks, filters and indexes, and of rows in memory, which count against the
  /// same budget.
  public var cachedBytes: Int
  /// Cache misses: blocks that reads and compactions read from files.
  public var blockLoads: Int
  /// Blocks that the cache evicted to make room for others. Many evictions while reads return few
  /// documents mean that the cache is too small for what is read.
  public var blockEvictions: Int
  /// Bytes that a compaction would free, estimated from deletions and large values. Overwritten
  /// small rows are not counted.
  public var reclaimableBytes: UInt64
  /// The largest number of runs that a read must look into; 1 in a database at rest.
  public var runs: Int
  /// Commits that a write stall delayed because flushes and merges had fallen behind.
  public var delayedCommits: Int
  /// How long these commits waited in total.
  public var delay: Duration
  /// Bytes that compactions read.
  public var compactionBytesRead: UInt64
  /// Bytes that compactions wrote.
  public var compactionBytesWritten: UInt64
  /// Bytes of replaced files that stay on disk because reads under way still use them.
  public var pinnedBytes: UInt64
  /// How long ago the oldest view that a read still uses was replaced or made; zero when all reads
  /// use the newest view.
  public var oldestReadAge: Duration
  /// The names of the reads that hold that view, where they have names.
  public var oldestReadOwners: [String]
  /// Listeners on documents, queries and aggregates. Each listener counts, even when several listen
  /// to equal queries.
  public var listeners: Int
  /// Changes that listeners have not taken yet. Their number is bounded, however slow the listeners
  /// are.
  public var pendingChanges: Int
  /// Damage that merges have found since the database was opened, one sentence for each file.
  /// Merges leave a damaged file alone, and writes continue. Reads of damaged data throw
  /// `.dataLoss`. `verify` checks everything.
  public var damage: [String]
}

extension Database {
  /// Writes all rows in memory to files and merges the files, so that deleted and overwritten
  /// documents take no space and a read looks into one run. It then removes blobs that nothing
  /// holds and whose lease has ended. Writes and reads continue meanwhile.
  ///
  /// When the task is cancelled, this throws `.cancelled`, and whatever was merged until then stays
  /// merged.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: the most bytes to merge in a second, for a device that also does other
  ///     work; nil for as fast as possible.
  ///   - progress: called from time to time, and once at the end.
  /// - Throws: `.cancelled`; `.invalidArgument` when `bytesPerSecond` is not positive; `.internal`
  ///   or `.resourceExhausted` when a system call fails.
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

  /// Sizes, counts, and the readers that keep space from being freed.
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
