// Scripts of the compaction policy: a shard, and its plan. Segments are written as
// NUMBER:FIRST-LAST followed by ",size=" and ",tombstones=", newest runs on top:
//
//   next                         the most urgent plan
//   quiet, tidy                  the plan for a shard without writes; the one if it costs too much
//   patience                     how many times the shortest quiet must last
//   0 11:20-29 12:25-40
//   6 1:0-19,size=3000           "40*1:0-99" are 40 of them, one after another

import OndolTestKit
import Testing

@testable import OndolEngine

private struct CompactionTable {
  private let step: GoldenScript.Step

  init(_ step: GoldenScript.Step) { self.step = step }

  func run() throws -> String {
    let picker = CompactionPicker(policy: tablePolicy())
    let shard = try shard()
    switch step.name {
    case "next": return describe(picker.next(shard, dropped: dropped))
    case "quiet": return describe(picker.majorCompaction(shard, dropped: dropped))
    case "tidy": return describe(picker.tidying(shard))
    case "patience":
      let patience = MajorCompactionRule.patience(for: MajorCompactionEstimate(shard))
      return patience.map { "\($0 / MajorCompactionRule.quiet)" } ?? "never"
    default: throw step.unknown
    }
  }

  /// "dropped=5@10": keyspace 5 was dropped when the next file number was 10.
  private var dropped: DroppedKeyspaces {
    var dropped = DroppedKeyspaces()
    let numbers = (step.settings["dropped"] ?? "").split(separator: "@").compactMap { UInt64($0) }
    if numbers.count == 2 {
      dropped.insert(UInt32(numbers[0]), before: FileNumber(rawValue: numbers[1]))
    }
    return dropped
  }

  private func shard() throws -> ShardState {
    var shard = ShardState()
    for line in step.lines {
      let words = line.split(separator: " ")
      guard let level = Int(words[0]) else { throw BrokenInvariant("no level in '\(line)'") }
      for word in words.dropFirst() {
        for segment in try segments(String(word)) {
          try shard.add(segment, level: level, run: segment.number.rawValue)
        }
      }
    }
    return shard
  }

  private func segments(_ text: String) throws -> [SegmentMetadata] {
    let parts = text.split(separator: ",")
    var numbers = parts[0].split { "*:-".contains($0) }.compactMap { Int($0) }
    if numbers.count == 3 { numbers.insert(1, at: 0) }
    guard numbers.count == 4 else { throw BrokenInvariant("'\(text)' is no segment") }
    let width = numbers[3] - numbers[2] + 1
    func value(_ name: String) -> UInt64? {
      parts.first { $0.hasPrefix(name + "=") }.flatMap { UInt64($0.dropFirst(name.count + 1)) }
    }
    return (0..<numbers[0]).map { place in
      tableSegment(
        UInt64(numbers[1] + place), numbers[2] + place * width, numbers[3] + place * width,
        tombstones: value("tombstones") ?? 0, size: value("size"))
    }
  }

  private func describe(_ plan: CompactionPlan?) -> String {
    guard let plan else { return "nothing" }
    let numbers = plan.segments.map { "\($0.number.rawValue)" }.joined(separator: " ")
    var line = "\(plan.purpose): \(numbers) to level \(plan.outputLevel)"
    if plan.isMove { line += ", moved" }
    if plan.keepsTombstones { line += ", tombstones stay" }
    if !plan.cuts.isEmpty { line += ", \(plan.cuts.count) cuts" }
    return line
  }
}

@Suite struct CompactionScriptTests {
  @Test(arguments: try GoldenScript.all(in: "compaction"))
  func `Plans match the script`(script: GoldenScript) async throws {
    try await script.check { try CompactionTable($0).run() }
  }

  @Test func `A move is an edit that drops and adds one segment`() throws {
    var shard = ShardState()
    try shard.add(tableSegment(11, 0, 99, size: 3_000), level: 5, run: 11)
    try shard.add(tableSegment(1, 150, 250, size: 20_000), level: 6, run: 1)
    let plan = try #require(CompactionPicker(policy: tablePolicy()).next(shard))
    #expect(plan.isMove)
    #expect(plan.changes(shard: 0, outputs: RunOutput(segments: plan.segments)).count == 2)
  }

  @Test func `A large flushed run is cut at the beginnings of segments below`() throws {
    var shard = ShardState()
    try shard.add(tableSegment(90, 0, 3_999, size: 4_000), level: 0, run: 90)
    for number in 0..<40 {
      try shard.add(
        tableSegment(UInt64(1 + number), number * 100, number * 100 + 99, size: 2_000), level: 6,
        run: 1)
    }
    let plan = try #require(CompactionPicker(policy: tablePolicy()).majorCompaction(shard))
    #expect(plan.cuts == (1..<40).map { tableKey($0 * 100) })
  }
}
