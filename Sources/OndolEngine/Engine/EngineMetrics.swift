// Metrics of the engine that need no file: sizes from the view and the manifest's numbers, sums
// from its counters. For people and tools; no decision depends on them.

/// Sizes, counts and sums as of one moment.
package struct EngineMetrics: Sendable {
  /// One level of one shard.
  package struct Level: Sendable, Equatable {
    /// 0 for flushed runs.
    package var number: Int
    package var runs = 0
    package var segments = 0
    /// Rows, including tombstones.
    package var rows: UInt64 = 0
    package var tombstones: UInt64 = 0
    /// Bytes in files.
    package var bytes: UInt64 = 0
    /// Bytes of keys and values before compression.
    package var rawBytes: UInt64 = 0
  }

  package struct Shard: Sendable, Equatable {
    package var memtableRows: Int
    package var memtableBytes: Int
    /// Non-empty levels, uppermost first.
    package var levels: [Level]
    /// Bytes of value files, and the part of them that no row points to any more.
    package var valueBytes: UInt64
    package var deadValueBytes: UInt64

    package var runs: Int { levels.reduce(0) { $0 + $1.runs } }
    /// Bytes of all files.
    package var bytes: UInt64 { levels.reduce(valueBytes) { $0 + $1.bytes } }
  }

  package var shards: [Shard]
  package var sequence: SequenceNumber
  package var cachedBytes: Int
  /// Blocks read from files, by reads and by compactions.
  package var blockLoads: Int
  /// Blocks that the cache evicted.
  package var blockEvictions: Int
  /// Blocks that eviction examined to find those.
  package var blockExaminations: Int
  /// Bytes that pending deletions will free, estimated from the sizes of rows.
  package var reclaimableBytes: UInt64
  package var pins: PinnedFiles
  /// Damage that flushes and merges have found since the database was opened and that they avoid.
  package var damage: [EngineError]
  package var totals: UpkeepTotals

  init(_ storage: Storage) {
    let (view, sequence) = storage.views.snapshot
    self.sequence = sequence
    cachedBytes = storage.cache.usedBytes
    blockLoads = storage.cache.loadCount
    blockEvictions = storage.cache.evictionCount
    blockExaminations = storage.cache.examinationCount
    shards = view.shards.map(Shard.init)
    reclaimableBytes = shards.reduce(0) { $0 + Self.hiddenBytes($1) }
    pins = storage.views.live.pins(beside: view.shards.map(\.state))
    damage = storage.damaged.current(in: view.shards.map(\.state))
    totals = storage.counters.current
  }

  private static func hiddenBytes(_ shard: Shard) -> UInt64 {
    guard let lowest = shard.levels.last, lowest.rows > 0 else { return shard.deadValueBytes }
    let tombstones = shard.levels.reduce(0) { $0 + $1.tombstones }
    return shard.deadValueBytes + min(lowest.bytes, tombstones * (lowest.bytes / lowest.rows))
  }
}

extension EngineMetrics.Shard {
  init(_ shard: ShardView) {
    let memtables = ([shard.active] + shard.sealed).filter { !$0.isEmpty }
    memtableRows = memtables.reduce(0) { $0 + $1.rows }
    memtableBytes = memtables.reduce(0) { $0 + $1.sizeBytes }
    valueBytes = shard.state.valueFiles.values.reduce(0) { $0 + $1.sizeBytes }
    deadValueBytes = shard.state.deadValueBytes
    levels = []
    for run in shard.state.runs {
      if levels.last?.number != run.level { levels.append(EngineMetrics.Level(number: run.level)) }
      levels[levels.count - 1].add(run)
    }
  }
}

extension EngineMetrics.Level {
  fileprivate mutating func add(_ run: RunState) {
    runs += 1
    segments += run.segments.count
    for segment in run.segments {
      rows += segment.entries
      tombstones += segment.tombstones
      bytes += segment.sizeBytes
      rawBytes += segment.rawBytes
    }
  }
}
