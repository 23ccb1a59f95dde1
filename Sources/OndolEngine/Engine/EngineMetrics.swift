// What the engine can tell of itself without reading a file: sizes from the view and the manifest's
// numbers, sums from its counters. For people and tools that look; nothing is decided by it.

/// Sizes, counts and sums as of one moment.
package struct EngineMetrics: Sendable {
  /// One level of one shard.
  package struct Level: Sendable, Equatable {
    /// 0 for flushed runs.
    package var number: Int
    package var runs = 0
    package var segments = 0
    /// Rows, tombstones among them.
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
    /// Levels that hold something, uppermost first.
    package var levels: [Level]
    /// Bytes of value files, and how many of them no row points to any more.
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
  /// Blocks that made room for others.
  package var blockEvictions: Int
  /// Blocks that were looked at to find those.
  package var blockExaminations: Int
  /// Bytes that deletions not yet carried out hide, as far as the sizes of rows tell.
  package var reclaimableBytes: UInt64
  package var pins: PinnedFiles
  /// What flushes and merges have found damaged since the database was opened, and go around.
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
