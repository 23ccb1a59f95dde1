// What the picker passes to the job: the segments to merge and the place of the result. Plans are
// values without files, so that tests can describe policy as tables.

/// Sizes that decide when to compact and how much. They are in bytes, except for the count.
struct CompactionPolicy: Sendable {
  /// The size ratio between the lowest level and what sinks into it at once.
  static let ratio: UInt64 = 8
  /// A merge that can be split takes about this many segments of the lowest level at once.
  private static let segmentsPerPiece: UInt64 = 8

  /// The flushed runs are merged when there are more than this many.
  var runLimit: Int
  /// The size of a full memtable.
  var memtableSize: UInt64
  /// Levels up to this size are merged with all flushed runs at once.
  var baseSize: UInt64
  /// A shard with fewer raw bytes than this becomes one run after every flush.
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

  /// The piece size for a major compaction, which may be requested when disk space is low.
  var majorPieceSize: UInt64 { 2 * segmentSize }

  /// Raw bytes of a merge that can be split into pieces.
  var pieceSize: UInt64 { Self.segmentsPerPiece * segmentSize }
}

/// One compaction.
struct CompactionPlan: Sendable, Equatable {
  enum Purpose: Sendable, Equatable {
    /// There are too many flushed runs.
    case flushedRuns
    /// Flushed data is large enough to merge with the lowest level, or is on its way there.
    case lowering
    /// Deletions hide rows below them.
    case tombstones
    /// Rows of dropped keyspaces take up space.
    case droppedRows
    /// Most of a value file is dead.
    case deadValues
    /// The shard is to become one run.
    case major
    /// The file is encrypted differently from new files.
    case otherKey
  }

  var purpose: Purpose
  /// What to merge, newest first. Each entry has some or all segments of a run.
  var inputs: [RunState]
  var outputLevel: Int
  /// The run of the result in level 0 if a segment is rewritten in place; 0 for a new run.
  var outputRun: UInt64 = 0
  /// Whether older rows may exist below that the tombstones must continue to hide.
  var keepsTombstones: Bool
  /// Whether the segments only change their level, without any byte being written.
  var isMove = false
  /// Keys at which segments of the result end, in ascending order.
  var cuts: [[UInt8]] = []

  /// Whether the purpose of the compaction is to free space.
  var freesSpace: Bool {
    switch purpose {
    case .tombstones, .droppedRows, .deadValues: true
    case .flushedRuns, .lowering, .major, .otherKey: false
    }
  }

  var segments: [SegmentMetadata] { inputs.flatMap(\.segments) }
  var sizeBytes: UInt64 { inputs.reduce(0) { $0 + $1.sizeBytes } }
  var rawBytes: UInt64 { segments.reduce(0) { $0 + $1.rawBytes } }

  /// The edit that replaces the inputs with `outputs`.
  func changes(shard: Int, outputs: RunOutput) -> [ManifestChange] {
    let isNewRun = outputLevel == 0 && outputRun == 0
    let run = isNewRun ? outputs.segments.first?.number.rawValue ?? 0 : outputRun
    return segments.map { .dropSegment(shard: shard, number: $0.number) }
      + outputs.changes(shard: shard, level: outputLevel, run: run)
  }
}
