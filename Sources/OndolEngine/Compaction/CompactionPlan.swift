// What the picker hands to the job: which segments to merge, and where the result belongs. Values
// without files, so that policy is tested as tables.

/// Sizes that decide when and what is compacted. In bytes, but for the count.
struct CompactionPolicy: Sendable {
  /// How much larger each level is than the one above.
  static let ratio: UInt64 = 8

  /// Flushed runs above which they are merged into the levels.
  var runLimit: Int
  /// A level up to this size needs no smaller one above it.
  var baseSize: UInt64
  /// A shard with less than this is one run after every flush.
  var smallSize: UInt64
  /// Raw bytes of one segment.
  var segmentSize: UInt64

  init(_ options: EngineOptions) {
    runLimit = options.runLimit
    segmentSize = UInt64(options.segmentSize)
    smallSize = UInt64(options.smallShardSize)
    baseSize = UInt64(max(options.segmentSize, options.runLimit * options.memtableSize))
  }
}

/// One compaction.
struct CompactionPlan: Sendable, Equatable {
  enum Purpose: Sendable, Equatable {
    /// Flushed runs have become many.
    case flushedRuns
    /// A level has outgrown its size.
    case fullLevel
    /// Deletions hide rows below them.
    case tombstones
    /// Rows of dropped keyspaces are in the way.
    case droppedRows
    /// Most of a value file is dead.
    case deadValues
    /// The shard is to be one run.
    case settling
  }

  var purpose: Purpose
  /// What to merge, newest first; each with some or all of a run's segments.
  var inputs: [RunState]
  var outputLevel: Int
  /// The run of the result in level 0, where a segment is rewritten in its place.
  var outputRun: UInt64 = 0
  /// Whether rows may lie below that tombstones must go on hiding.
  var keepsTombstones: Bool
  /// The segments change their level and no byte is written.
  var isMove = false

  var segments: [SegmentMetadata] { inputs.flatMap(\.segments) }
  var sizeBytes: UInt64 { inputs.reduce(0) { $0 + $1.sizeBytes } }
  var rawBytes: UInt64 { segments.reduce(0) { $0 + $1.rawBytes } }

  /// The edit that puts `outputs` in the place of the inputs.
  func changes(shard: Int, outputs: RunOutput) -> [ManifestChange] {
    segments.map { .dropSegment(shard: shard, number: $0.number) }
      + outputs.changes(shard: shard, level: outputLevel, run: outputRun)
  }
}
