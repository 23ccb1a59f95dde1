// A shard without files, on which plans are executed as a job would. The picker's property tests
// compare its contents with the written rows.

@testable import OndolEngine

func tableKey(_ number: Int) -> [UInt8] {
  (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
}

/// A segment with keys from `first` to `last` and a row of ten bytes for each.
func tableSegment(
  _ number: UInt64, _ first: Int, _ last: Int, tombstones: UInt64 = 0, size: UInt64? = nil
) -> SegmentMetadata {
  let rows = UInt64(last - first + 1)
  return SegmentMetadata(
    number: FileNumber(rawValue: number), salt: 0, sizeBytes: size ?? rows * 10,
    footerChecksum: 0, minKey: tableKey(first), maxKey: tableKey(last), entries: rows,
    tombstones: tombstones, rawBytes: (size ?? rows * 10) * 2,
    minSequence: SequenceNumber(rawValue: number), maxSequence: SequenceNumber(rawValue: number))
}

/// A policy with numbers that fit on a line.
func tablePolicy(runLimit: Int = 2, baseSize: UInt64 = 10_000) -> CompactionPolicy {
  var policy = CompactionPolicy(EngineOptions())
  policy.runLimit = runLimit
  policy.baseSize = baseSize
  policy.smallSize = 0
  policy.segmentSize = 1_000
  return policy
}

/// Each segment's rows: a key's sequence, and whether it is a tombstone.
struct ShardModel {
  struct Row: Equatable {
    var sequence: UInt64
    var isTombstone: Bool
  }

  /// A reader's result.
  enum Answer: Equatable {
    case row(Row)
    case absent
    /// The answer may be in a damaged segment.
    case damaged
  }

  struct WrongPlan: Error, CustomStringConvertible {
    var description: String
  }

  /// The largest number of rows in a segment.
  static let segmentRows = 100

  var shard = ShardState()
  var rows: [UInt64: [Int: Row]] = [:]
  var damaged: Set<FileNumber> = []
  var nextFile: UInt64 = 1
  var bytesWritten: UInt64 = 0

  /// Returns what a reader sees of `number`, newest run first.
  func read(_ number: Int) -> Answer {
    for run in shard.runs {
      for segment in run.segments {
        guard damaged.contains(segment.number) else {
          if let row = rows[segment.number.rawValue]?[number] { return .row(row) }
          continue
        }
        if KeySpan(segment).overlaps(tableSegment(0, number, number)) { return .damaged }

      }
    }
    return .absent
  }

  /// Writes rows as the segments of a run, none of which crosses a cut.
  mutating func write(
    _ run: [Int: Row], into level: Int, id: UInt64?, cuts: [[UInt8]] = []
  ) throws {
    let first = nextFile
    var part: [Int] = []
    var cuts = cuts[...]
    for number in run.keys.sorted() {
      var ends = part.count == Self.segmentRows
      while let cut = cuts.first, !tableKey(number).lexicographicallyPrecedes(cut) {
        cuts.removeFirst()
        ends = true
      }
      if ends {
        try writeSegment(part, of: run, into: level, id: id ?? first)
        part = []
      }
      part.append(number)
    }
    try writeSegment(part, of: run, into: level, id: id ?? first)
  }

  private mutating func writeSegment(
    _ part: [Int], of run: [Int: Row], into level: Int, id: UInt64
  ) throws {
    guard let least = part.first, let greatest = part.last else { return }
    let tombstones = part.count { run[$0]?.isTombstone == true }
    var metadata = tableSegment(
      nextFile, least, greatest, tombstones: UInt64(tombstones),
      size: UInt64(part.count * 20 - tombstones * 15))
    metadata.entries = UInt64(part.count)
    let sequences = part.compactMap { run[$0]?.sequence }
    metadata.minSequence = SequenceNumber(rawValue: sequences.min() ?? 0)
    metadata.maxSequence = SequenceNumber(rawValue: sequences.max() ?? 0)
    rows[nextFile] = run.filter { part.contains($0.key) }
    bytesWritten += metadata.sizeBytes
    try shard.add(metadata, level: level, run: id)
    nextFile += 1
  }

  /// Replaces the inputs of `plan` with its result.
  mutating func carryOut(_ plan: CompactionPlan) throws {
    var merged: [Int: Row] = [:]
    for run in plan.inputs {
      for segment in run.segments {
        guard !damaged.contains(segment.number) else {
          throw WrongPlan(description: "takes damaged segment \(segment.number.rawValue)")
        }
        merged.merge(rows[segment.number.rawValue] ?? [:]) { old, _ in old }
      }
    }
    for segment in plan.segments { _ = shard.drop(segment.number) }
    if plan.isMove {
      for segment in plan.segments {
        try shard.add(segment, level: plan.outputLevel, run: plan.outputRun)
      }
      return
    }
    if !plan.keepsTombstones { merged = merged.filter { !$0.value.isTombstone } }
    let isNewRun = plan.outputLevel == 0 && plan.outputRun == 0
    // As in a job, all rows of a merge count as belonging to all its inputs' sequences.
    let sequences = plan.segments.map(\.maxSequence)
    let first = nextFile
    try write(
      merged, into: plan.outputLevel, id: isNewRun ? nil : plan.outputRun, cuts: plan.cuts)
    guard plan.outputLevel == 0, let newest = sequences.max() else { return }
    for number in first..<nextFile { try widen(FileNumber(rawValue: number), to: newest) }
  }

  private mutating func widen(_ number: FileNumber, to newest: SequenceNumber) throws {
    for run in shard.runs {
      for segment in run.segments where segment.number == number {
        var segment = segment
        segment.maxSequence = newest
        _ = shard.drop(number)
        try shard.add(segment, level: run.level, run: run.id)
      }
    }
  }
}
