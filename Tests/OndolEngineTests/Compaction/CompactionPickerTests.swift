// The compaction policy as tables and as a property: what is planned for a given shard, and that
// carrying out plans ends, keeps every row's newest version on top, and leaves levels in shape.

import OndolTestKit
import Testing

@testable import OndolEngine

private func key(_ number: Int) -> [UInt8] {
  (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
}

/// A segment with keys from `first` to `last` and a row of ten bytes for each.
private func segment(
  _ number: UInt64, _ first: Int, _ last: Int, tombstones: UInt64 = 0, size: UInt64? = nil
) -> SegmentMetadata {
  let rows = UInt64(last - first + 1)
  return SegmentMetadata(
    number: FileNumber(rawValue: number), salt: 0, sizeBytes: size ?? rows * 10,
    footerChecksum: 0, minKey: key(first), maxKey: key(last), entries: rows,
    tombstones: tombstones, rawBytes: (size ?? rows * 10) * 2,
    minSequence: SequenceNumber(rawValue: number), maxSequence: SequenceNumber(rawValue: number))
}

private func shard(_ levels: [Int: [SegmentMetadata]]) throws(MalformedBytes) -> ShardState {
  var shard = ShardState()
  for (level, segments) in levels {
    for segment in segments {
      try shard.add(segment, level: level, run: segment.number.rawValue)
    }
  }
  return shard
}

private func policy(runLimit: Int = 2, baseSize: UInt64 = 10_000) -> CompactionPolicy {
  var policy = CompactionPolicy(EngineOptions())
  policy.runLimit = runLimit
  policy.baseSize = baseSize
  policy.smallSize = 0
  policy.segmentSize = 1_000
  return policy
}

private func numbers(_ plan: CompactionPlan?) -> [UInt64] {
  plan?.segments.map(\.number.rawValue) ?? []
}

@Suite struct `The compaction picker` {
  private let picker = CompactionPicker(policy: policy())

  @Test func `has nothing to do for few runs`() throws {
    #expect(picker.next(ShardState()) == nil)
    #expect(picker.next(try shard([0: [segment(1, 0, 9), segment(2, 0, 9)]])) == nil)
    #expect(picker.next(try shard([6: [segment(1, 0, 99)]])) == nil)
  }

  @Test func `merges all flushed runs with what they overlap in the lowest level`() throws {
    let plan = picker.next(
      try shard([
        0: [segment(11, 20, 29), segment(12, 25, 40), segment(13, 22, 23)],
        6: [segment(1, 0, 19), segment(2, 21, 30), segment(3, 40, 50), segment(4, 51, 60)],
      ]))
    #expect(numbers(plan) == [13, 12, 11, 2, 3])
    #expect(plan?.outputLevel == 6)
    #expect(plan?.keepsTombstones == false)
    #expect(plan?.isMove == false)
  }

  @Test func `merges flushed runs into a small level once the lowest is large`() throws {
    let plan = picker.next(
      try shard([
        0: [segment(11, 0, 9), segment(12, 0, 9), segment(13, 0, 9)],
        6: [segment(1, 0, 99, size: 10_001)],
      ]))
    #expect(plan?.outputLevel == 5)
    #expect(numbers(plan) == [13, 12, 11])
    #expect(plan?.keepsTombstones == true, "they hide rows below")
  }

  @Test func `lowers the segment that costs least from a level that is full`() throws {
    let plan = picker.next(
      try shard([
        5: [segment(11, 0, 99, size: 3_000), segment(12, 200, 299, size: 3_000)],
        6: [segment(1, 0, 250, size: 20_000), segment(2, 251, 900, size: 1_000)],
      ]))
    #expect(numbers(plan) == [11, 1])
    #expect(plan?.outputLevel == 6)
    #expect(plan?.purpose == .fullLevel)
  }

  @Test func `moves what overlaps nothing without reading it`() throws {
    let state = try shard([
      5: [segment(11, 0, 99, size: 3_000), segment(12, 200, 299, size: 3_000)],
      6: [segment(1, 150, 250, size: 20_000)],
    ])
    let plan = try #require(picker.next(state))
    #expect(numbers(plan) == [11])
    #expect(plan.isMove)
    #expect(
      plan.changes(shard: 0, outputs: RunOutput(segments: plan.segments)).count == 2,
      "one segment out, and in again")
  }

  @Test func `does not move tombstones to where they should vanish`() throws {
    let plan = picker.next(
      try shard([
        5: [segment(11, 0, 99, tombstones: 1, size: 8_000)],
        6: [segment(1, 150, 250, size: 20_000)],
      ]))
    #expect(numbers(plan) == [11])
    #expect(plan?.isMove == false)
    #expect(plan?.keepsTombstones == false)
  }

  @Test func `sinks deletions that hide much, however few runs there are`() throws {
    let below = segment(1, 0, 999)
    let few = try shard([0: [segment(11, 0, 99, tombstones: 50)], 6: [below]])
    #expect(picker.next(few) == nil)
    let many = try shard([0: [segment(11, 0, 399, tombstones: 400, size: 100)], 6: [below]])
    #expect(numbers(picker.next(many)) == [11, 1])
    let large = segment(1, 0, 999, size: 20_000)
    let rich = try shard([5: [segment(11, 0, 9, tombstones: 6)], 6: [large]])
    #expect(picker.next(rich)?.purpose == .tombstones)
    #expect(numbers(picker.next(rich)) == [11, 1])
  }

  @Test func `counts a level's tombstones as the rows they hide`() throws {
    let levels = { (tombstones: UInt64) in
      try shard([
        5: [segment(11, 0, 99, tombstones: tombstones, size: 1_000), segment(12, 500, 999)],
        6: [segment(1, 0, 999, size: 60_000)],
      ])
    }
    #expect(picker.next(try levels(10)) == nil)
    #expect(numbers(picker.next(try levels(70))) == [11, 1], "70 rows of 60 bytes are too many")
  }

  @Test func `writes segments anew that have rows of dropped keyspaces`() throws {
    var dropped = DroppedKeyspaces()
    dropped.insert(5, before: FileNumber(rawValue: 10))
    let keyspaces = { (first: Int, last: Int, number: UInt64) in
      segment(number, first, last)
    }
    let old = try shard([6: [keyspaces(1, 3, 8), keyspaces(4, 9, 9)]])
    let plan = picker.next(old, dropped: dropped)
    #expect(numbers(plan) == [9])
    #expect(plan?.outputLevel == 6)
    let new = try shard([6: [keyspaces(1, 3, 8), keyspaces(4, 9, 10)]])
    #expect(picker.next(new, dropped: dropped) == nil, "written after the drop")
  }

  @Test func `settles into one run, and leaves alone what nothing overlaps`() throws {
    #expect(picker.settling(ShardState()) == nil)
    #expect(picker.settling(try shard([0: [segment(1, 0, 9)]])) == nil)
    let plan = picker.settling(
      try shard([
        0: [segment(11, 20, 29)], 4: [segment(12, 22, 35)],
        6: [segment(1, 0, 19), segment(2, 21, 30), segment(3, 40, 50)],
      ]))
    #expect(numbers(plan) == [11, 12, 2])
    #expect(plan?.outputLevel == 6)
    #expect(plan?.keepsTombstones == false)
    let hiding = try shard([5: [segment(11, 0, 9, tombstones: 1)]])
    #expect(numbers(picker.settling(hiding)) == [11], "tombstones with nothing below")
  }

  @Test func `waits longer before it settles what costs much`() throws {
    func patience(lowest size: UInt64) -> Int64 {
      SettleRule.patience(
        for: CompactionPlan(
          purpose: .settling,
          inputs: [
            RunState(level: 0, id: 1, segments: [segment(11, 0, 9, size: 10)]),
            RunState(level: 6, id: 0, segments: [segment(1, 0, 9, size: size)]),
          ], outputLevel: 6, keepsTombstones: false))
    }
    #expect(patience(lowest: 100) == SettleRule.quiet)
    #expect(patience(lowest: 10_000) == 62 * SettleRule.quiet)
    #expect(patience(lowest: 1 << 40) == 3_600_000_000)
  }
}

/// A shard without files: each key's newest sequence, and whether it is a tombstone.
private struct Model {
  struct Row: Equatable {
    var sequence: UInt64
    var isTombstone: Bool
  }

  var shard = ShardState()
  var rows: [UInt64: [Int: Row]] = [:]
  var nextFile: UInt64 = 1
  var bytesWritten: UInt64 = 0

  /// What a reader sees of `number`, newest run first.
  func read(_ number: Int) -> Row? {
    for run in shard.runs {
      for segment in run.segments {
        if let row = rows[segment.number.rawValue]?[number] { return row }
      }
    }
    return nil
  }

  mutating func write(_ run: [Int: Row], into level: Int, id: UInt64?) throws(MalformedBytes) {
    let sorted = run.keys.sorted()
    var start = 0
    let first = nextFile
    while start < sorted.count {
      let part = sorted[start..<min(start + 100, sorted.count)]
      start = part.endIndex
      guard let least = part.first, let greatest = part.last else { return }
      let tombstones = part.count { run[$0]?.isTombstone == true }
      var metadata = segment(
        nextFile, least, greatest, tombstones: UInt64(tombstones),
        size: UInt64(part.count * 20 - tombstones * 15))
      metadata.entries = UInt64(part.count)
      let sequences = part.compactMap { run[$0]?.sequence }
      metadata.minSequence = SequenceNumber(rawValue: sequences.min() ?? 0)
      metadata.maxSequence = SequenceNumber(rawValue: sequences.max() ?? 0)
      rows[nextFile] = run.filter { part.contains($0.key) }
      bytesWritten += metadata.sizeBytes
      try shard.add(metadata, level: level, run: id ?? first)
      nextFile += 1
    }
  }

  mutating func carryOut(_ plan: CompactionPlan) throws(MalformedBytes) {
    var merged: [Int: Row] = [:]
    for run in plan.inputs {
      for segment in run.segments {
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
    try write(merged, into: plan.outputLevel, id: plan.outputRun)
  }
}

@Suite struct `Plans carried out` {
  @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as [UInt64])
  func `end, never show an old row, and bound what is stored`(seed: UInt64) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let picker = CompactionPicker(
      policy: policy(runLimit: 1 + random.below(4), baseSize: UInt64(500 + random.below(4_000))))
    var model = Model()
    var truth: [Int: Model.Row] = [:]
    let keys = 200 + random.below(2_000)
    for round in 1...120 {
      var flushed: [Int: Model.Row] = [:]
      let start = random.below(keys)
      for step in 0..<(20 + random.below(60)) {
        let number = random.chance(1, in: 2) ? random.below(keys) : (start + step) % keys
        let isTombstone = round % 10 > 6 && random.chance(2, in: 3)
        flushed[number] = Model.Row(sequence: UInt64(round), isTombstone: isTombstone)
      }
      truth.merge(flushed) { $1 }
      try model.write(flushed, into: 0, id: nil)
      var steps = 0
      while let plan = picker.next(model.shard) {
        try model.carryOut(plan)
        steps += 1
        try #require(steps < 500, "SEED=\(seed) round \(round): \(plan)")
      }
      #expect(model.shard.levelZero.count <= picker.policy.runLimit, "SEED=\(seed)")
      for number in stride(from: random.below(7), to: keys, by: 7) {
        let found = model.read(number)
        let isRight =
          found == truth[number] || (found == nil && truth[number]?.isTombstone == true)
        try #require(isRight, "SEED=\(seed) round \(round) key \(number)")
      }
    }
    while let plan = picker.settling(model.shard) { try model.carryOut(plan) }
    let alive = truth.values.count { !$0.isTombstone }
    #expect(model.shard.runs.count <= 1, "SEED=\(seed)")
    #expect(model.shard.segments.reduce(0) { $0 + $1.entries } == UInt64(alive), "SEED=\(seed)")
  }

  /// In a load the bytes written grow as the bytes loaded, times the few levels that there are.
  @Test func `write a little for each byte loaded`() throws {
    var random = OndolTestKit.SeededRandom(seed: 1)
    let picker = CompactionPicker(policy: policy(runLimit: 8, baseSize: 16_000))
    var model = Model()
    var loaded: UInt64 = 0
    for round in 1...400 {
      var flushed: [Int: Model.Row] = [:]
      for _ in 0..<100 {
        flushed[random.below(1 << 30)] = Model.Row(sequence: UInt64(round), isTombstone: false)
      }
      loaded += UInt64(flushed.count) * 20
      try model.write(flushed, into: 0, id: nil)
      while let plan = picker.next(model.shard) { try model.carryOut(plan) }
    }
    #expect(model.bytesWritten < 16 * loaded, "\(model.bytesWritten) for \(loaded)")
  }
}
