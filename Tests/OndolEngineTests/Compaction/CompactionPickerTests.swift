// The compaction policy as tables: what is planned for a given shard.

import OndolTestKit
import Testing

@testable import OndolEngine

private func shard(_ levels: [Int: [SegmentMetadata]]) throws(MalformedBytes) -> ShardState {
  var shard = ShardState()
  for (level, segments) in levels {
    for segment in segments {
      try shard.add(segment, level: level, run: segment.number.rawValue)
    }
  }
  return shard
}

func tablePolicy(runLimit: Int = 2, baseSize: UInt64 = 10_000) -> CompactionPolicy {
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
  private let picker = CompactionPicker(policy: tablePolicy())

  @Test func `has nothing to do for few runs`() throws {
    #expect(picker.next(ShardState()) == nil)
    #expect(picker.next(try shard([0: [tableSegment(1, 0, 9), tableSegment(2, 0, 9)]])) == nil)
    #expect(picker.next(try shard([6: [tableSegment(1, 0, 99)]])) == nil)
  }

  @Test func `merges all flushed runs with what they overlap in the lowest level`() throws {
    let plan = picker.next(
      try shard([
        0: [tableSegment(11, 20, 29), tableSegment(12, 25, 40), tableSegment(13, 22, 23)],
        6: [
          tableSegment(1, 0, 19), tableSegment(2, 21, 30), tableSegment(3, 40, 50),
          tableSegment(4, 51, 60),
        ],
      ]))
    #expect(numbers(plan) == [13, 12, 11, 2, 3])
    #expect(plan?.outputLevel == 6)
    #expect(plan?.keepsTombstones == false)
    #expect(plan?.isMove == false)
  }

  @Test func `merges flushed runs among themselves once the lowest level is large`() throws {
    let plan = picker.next(
      try shard([
        0: [tableSegment(11, 0, 9), tableSegment(12, 0, 9), tableSegment(13, 0, 9)],
        6: [tableSegment(1, 0, 99, size: 10_001)],
      ]))
    #expect(plan?.outputLevel == 0)
    #expect(numbers(plan) == [13, 12, 11])
    #expect(plan?.keepsTombstones == true, "they hide rows below")
  }

  @Test func `has the oldest flushed run go down by an edit once it is an eighth of the rest`()
    throws
  {
    let levels = { (size: UInt64) in
      try shard([
        0: [tableSegment(11, 0, 99, size: size), tableSegment(12, 0, 9)],
        6: [tableSegment(1, 0, 99, size: 16_000)],
      ])
    }
    #expect(picker.next(try levels(1_999)) == nil)
    let plan = picker.next(try levels(2_000))
    #expect(numbers(plan) == [11])
    #expect(plan?.outputLevel == 5)
    #expect(plan?.isMove == true)
  }

  @Test func `lowers the segment that costs least from the level above the lowest`() throws {
    let plan = picker.next(
      try shard([
        5: [tableSegment(11, 0, 99, size: 3_000), tableSegment(12, 200, 299, size: 3_000)],
        6: [tableSegment(1, 0, 250, size: 20_000), tableSegment(2, 251, 900, size: 1_000)],
      ]))
    #expect(numbers(plan) == [11, 1])
    #expect(plan?.outputLevel == 6)
    #expect(plan?.purpose == .lowering)
  }

  @Test func `moves what overlaps nothing without reading it`() throws {
    let state = try shard([
      5: [tableSegment(11, 0, 99, size: 3_000), tableSegment(12, 200, 299, size: 3_000)],
      6: [tableSegment(1, 150, 250, size: 20_000)],
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
        5: [tableSegment(11, 0, 99, tombstones: 1, size: 8_000)],
        6: [tableSegment(1, 150, 250, size: 20_000)],
      ]))
    #expect(numbers(plan) == [11])
    #expect(plan?.isMove == false)
    #expect(plan?.keepsTombstones == false)
  }

  @Test func `sinks deletions that hide much, however few runs there are`() throws {
    let below = tableSegment(1, 0, 999)
    let few = try shard([0: [tableSegment(11, 0, 99, tombstones: 50)], 6: [below]])
    #expect(picker.next(few) == nil)
    let many = try shard([0: [tableSegment(11, 0, 399, tombstones: 400, size: 100)], 6: [below]])
    #expect(numbers(picker.next(many)) == [11, 1])
    let rich = try shard([6: [tableSegment(1, 0, 99), tableSegment(2, 200, 209, tombstones: 6)]])
    #expect(picker.next(rich)?.purpose == .tombstones)
    #expect(numbers(picker.next(rich)) == [2])
  }

  @Test func `counts a flushed run's tombstones as the rows they hide`() throws {
    let levels = { (tombstones: UInt64) in
      try shard([
        0: [tableSegment(11, 0, 99, tombstones: tombstones, size: 1_000)],
        6: [tableSegment(1, 0, 999, size: 60_000)],
      ])
    }
    #expect(picker.next(try levels(100)) == nil)
    #expect(numbers(picker.next(try levels(110))) == [11], "110 rows of 60 bytes are an eighth")
  }

  @Test func `writes segments anew that have rows of dropped keyspaces`() throws {
    var dropped = DroppedKeyspaces()
    dropped.insert(5, before: FileNumber(rawValue: 10))
    let keyspaces = { (first: Int, last: Int, number: UInt64) in
      tableSegment(number, first, last)
    }
    let old = try shard([6: [keyspaces(1, 3, 8), keyspaces(4, 9, 9)]])
    let plan = picker.next(old, dropped: dropped)
    #expect(numbers(plan) == [9])
    #expect(plan?.outputLevel == 6)
    let new = try shard([6: [keyspaces(1, 3, 8), keyspaces(4, 9, 10)]])
    #expect(picker.next(new, dropped: dropped) == nil, "written after the drop")
  }

  @Test func `merges all into one run, and leaves alone what nothing overlaps`() throws {
    #expect(picker.majorCompaction(ShardState()) == nil)
    #expect(picker.majorCompaction(try shard([0: [tableSegment(1, 0, 9)]])) == nil)
    let plan = picker.majorCompaction(
      try shard([
        0: [tableSegment(11, 20, 29)], 4: [tableSegment(12, 22, 35)],
        6: [tableSegment(1, 0, 19), tableSegment(2, 21, 30), tableSegment(3, 40, 50)],
      ]))
    #expect(numbers(plan) == [11, 12])
    #expect(plan?.outputLevel == 4, "one step after the other")
    #expect(plan?.keepsTombstones == true)
    let next = picker.majorCompaction(
      try shard([
        4: [tableSegment(13, 20, 35)],
        6: [tableSegment(1, 0, 19), tableSegment(2, 21, 30), tableSegment(3, 40, 50)],
      ]))
    #expect(numbers(next) == [13, 2])
    #expect(next?.outputLevel == 6)
    #expect(next?.keepsTombstones == false)
    let hiding = try shard([5: [tableSegment(11, 0, 9, tombstones: 1)]])
    #expect(numbers(picker.majorCompaction(hiding)) == [11], "tombstones with nothing below")
  }

  @Test func `merges all of a large shard a piece at a time`() throws {
    let lowest = (0..<40).map { tableSegment(UInt64(1 + $0), $0 * 100, $0 * 100 + 99, size: 2_000) }
    let state = try shard([0: [tableSegment(90, 0, 3_999, size: 4_000)], 6: lowest])
    let first = try #require(picker.majorCompaction(state))
    #expect(numbers(first) == [90], "it is cut up first")
    #expect(first.outputLevel == 5)
    #expect(first.cuts == (1..<40).map { tableKey($0 * 100) })
    let second = picker.majorCompaction(
      try shard([5: [tableSegment(91, 0, 199), tableSegment(92, 250, 290)], 6: lowest]))
    #expect(numbers(second) == [91, 1, 2], "what costs least for its size")
  }

  @Test func `waits longer before it merges what costs much, and leaves what is too dear`() throws {
    let patience = { (upper: UInt64, lower: UInt64) in
      MajorCompactionRule.patience(
        for: MajorCompactionEstimate(
          try shard([
            0: [tableSegment(11, 0, 9, size: upper)], 6: [tableSegment(1, 0, 9, size: lower)],
          ])))
    }
    #expect(try patience(10, 100) == MajorCompactionRule.quiet)
    #expect(try patience(10, 500) == 3 * MajorCompactionRule.quiet)
    #expect(try patience(10, 10_000) == nil)
    #expect(try patience(10 << 20, 1 << 38) == nil)
  }

  @Test func `tidies what is new when a major compaction would be too dear`() throws {
    let plan = picker.tidying(
      try shard([
        0: [
          tableSegment(11, 0, 9, size: 9_000), tableSegment(12, 0, 9, size: 100),
          tableSegment(13, 0, 9, size: 90),
        ],
        6: [tableSegment(1, 0, 9, size: 1 << 30)],
      ]))
    #expect(numbers(plan) == [13, 12], "the oldest is too large beside them")
    #expect(plan?.outputLevel == 0)
  }
}
