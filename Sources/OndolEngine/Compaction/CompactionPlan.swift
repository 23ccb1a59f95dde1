// What the picker hands to the job: which segments to merge, and where the result belongs. Values
// without files, so that policy is tested as tables.

/// Sizes that decide when and what is compacted. In bytes, but for the count.
struct CompactionPolicy: Sendable {
  /// The lowest level is so many times as large as what is lowered into it at once.
  static let ratio: UInt64 = 8
  /// A merge that can be done in pieces takes about so many segments of the lowest level at once.
  private static let segmentsPerPiece: UInt64 = 8

  /// Flushed runs above which they are merged.
  var runLimit: Int
  /// What a memtable comes to.
  var memtableSize: UInt64
  /// Levels up to this size are merged with all that was flushed at once.
  var baseSize: UInt64
  /// A shard with fewer raw bytes than this is one run after every flush.
  var smallSize: UInt64
  /// Raw bytes of one segment.
  var segmentSize: UInt64

  init(_ options: EngineOptions) {
    runLimit = options.runLimit
    segmentSize = UInt64(options.segmentSize)
    smallSize = UInt64(options.smallShardSize)
    memtableSize = UInt64(options.memtableSize)
    baseSize = UInt64(max(options.segmentSize, options.runLimit * options.memtableSize))
  }

  /// The same of a major compaction, which may be asked for where there is little room.
  var majorPieceSize: UInt64 { 2 * segmentSize }

  /// Raw bytes of a merge that need not be larger.
  var pieceSize: UInt64 { Self.segmentsPerPiece * segmentSize }
}

/// One compaction.
struct CompactionPlan: Sendable, Equatable {
  enum Purpose: Sendable, Equatable {
    /// Flushed runs have become many.
    case flushedRuns
    /// What was flushed is worth merging with the lowest level, or on its way there.
    case lowering
    /// Deletions hide rows below them.
    case tombstones
    /// Rows of dropped keyspaces are in the way.
    case droppedRows
    /// Most of a value file is dead.
    case deadValues
    /// The shard is to be one run.
    case major
    /// The file is sealed otherwise than new ones are.
    case otherKey
  }

  var purpose: Purpose
  /// What to merge, newest first; each with some or all of a run's segments.
  var inputs: [RunState]
  var outputLevel: Int
  /// The run of the result in level 0, where a segment is rewritten in its place; 0 for a new one.
  var outputRun: UInt64 = 0
  /// Whether rows may lie below that tombstones must go on hiding.
  var keepsTombstones: Bool
  /// The segments change their level and no byte is written.
  var isMove = false
  /// Keys at which segments of the result end, ascending.
  var cuts: [[UInt8]] = []

  /// Whether it is done for the sake of the space that it gives back.
  var freesSpace: Bool {
    switch purpose {
    case .tombstones, .droppedRows, .deadValues: true
    case .flushedRuns, .lowering, .major, .otherKey: false
    }
  }

  var segments: [SegmentMetadata] { inputs.flatMap(\.segments) }
  var sizeBytes: UInt64 { inputs.reduce(0) { $0 + $1.sizeBytes } }
  var rawBytes: UInt64 { segments.reduce(0) { $0 + $1.rawBytes } }

  /// The edit that puts `outputs` in the place of the inputs.
  func changes(shard: Int, outputs: RunOutput) -> [ManifestChange] {
    let isNewRun = outputLevel == 0 && outputRun == 0
    let run = isNewRun ? outputs.segments.first?.number.rawValue ?? 0 : outputRun
    return segments.map { .dropSegment(shard: shard, number: $0.number) }
      + outputs.changes(shard: shard, level: outputLevel, run: run)
  }
}
