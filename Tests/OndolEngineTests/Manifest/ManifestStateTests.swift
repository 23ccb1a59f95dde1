// The manifest's state as a value: what it is must not hang on how it came to be, because sooner or
// later it is written anew from nothing.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct ManifestStateTests {
  private func empty(shards: Int = 1) -> ManifestState {
    ManifestState(
      nextFile: .zero,
      floor: LogStart(number: .zero, base: .zero, sequence: .zero, time: 0), newestLog: .zero,
      shards: Array(repeating: ShardState(), count: shards))
  }

  private func segment(
    _ number: UInt64, _ keys: ClosedRange<UInt8>, upTo sequence: UInt64, valueFile: UInt64? = nil
  ) -> SegmentMetadata {
    var segment = SegmentMetadata(
      number: FileNumber(rawValue: number), salt: 1, sizeBytes: 100, footerChecksum: 2,
      minKey: [0, 0, 16, keys.lowerBound], maxKey: [0, 0, 16, keys.upperBound], entries: 1,
      tombstones: 0, rawBytes: 100, minSequence: SequenceNumber(rawValue: 1),
      maxSequence: SequenceNumber(rawValue: sequence))
    if let valueFile {
      segment.valueReferences = [
        ValueReference(file: FileNumber(rawValue: valueFile), bytes: 10)
      ]
    }
    return segment
  }

  private func rebuilt(_ state: ManifestState) throws -> ManifestState {
    var bytes: [UInt8] = []
    for change in state.asChanges { change.encode(into: &bytes) }
    var again = empty(shards: state.shards.count)
    for change in try ManifestChange.decodeAll(bytes.bytes) { try again.apply(change) }
    return again
  }

  /// A run of two segments, as old as the younger one, lost that one and stayed in front of a run
  /// that was younger than what was left; written anew they changed places.
  @Test func `a flushed run that loses its youngest segment takes its place by age`() throws {
    var state = empty()
    for change: ManifestChange in [
      .addSegment(shard: 0, level: 0, run: 1, segment(1, 1...2, upTo: 3)),
      .addSegment(shard: 0, level: 0, run: 1, segment(2, 3...4, upTo: 9)),
      .addSegment(shard: 0, level: 0, run: 5, segment(5, 1...9, upTo: 7)),
      .dropSegment(shard: 0, number: FileNumber(rawValue: 2)),
    ] { try state.apply(change) }
    #expect(state.shards[0].runs.map(\.id) == [5, 1])
    #expect(try rebuilt(state) == state)
  }

  @Test func `runs of one age have one order`() throws {
    var (one, other) = (empty(), empty())
    let first = ManifestChange.addSegment(shard: 0, level: 0, run: 1, segment(1, 1...2, upTo: 3))
    let second = ManifestChange.addSegment(shard: 0, level: 0, run: 2, segment(2, 1...2, upTo: 3))
    for change in [first, second] { try one.apply(change) }
    for change in [second, first] { try other.apply(change) }
    #expect(one == other)
  }

  @Test func `a segment that ends before it begins is refused`() {
    var state = empty()
    var backwards = segment(1, 1...2, upTo: 3)
    swap(&backwards.minKey, &backwards.maxKey)
    #expect(throws: MalformedBytes.self) {
      try state.apply(.addSegment(shard: 0, level: 1, run: 0, backwards))
    }
  }

  @Test func `a value file that segments name cannot be dropped`() throws {
    var state = empty()
    let number = FileNumber(rawValue: 7)
    let file = ValueFileMetadata(number: number, salt: 1, sizeBytes: 1_000, values: 1)
    try state.apply(.addValueFile(shard: 0, file))
    try state.apply(
      .addSegment(shard: 0, level: 0, run: 8, segment(8, 1...2, upTo: 3, valueFile: 7)))
    #expect(throws: MalformedBytes.self) {
      try state.apply(.dropValueFile(shard: 0, number: number))
    }
    try state.apply(.dropSegment(shard: 0, number: FileNumber(rawValue: 8)))
    try state.apply(.dropValueFile(shard: 0, number: number))
    #expect(state == empty())
  }

  /// Whatever is accepted of any changes adds up to a state that comes back from its own.
  @Test(arguments: Seeds.first(8))
  func `any state is what its own changes make`(seed: UInt64) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    for round in 0..<200 {
      var state = empty(shards: 2)
      for _ in 0..<40 {
        // What is refused must leave nothing behind, either.
        try? state.apply(anyChange(&random))
      }
      #expect(try rebuilt(state) == state, "SEED=\(seed), round \(round)")
    }
  }

  private func anyChange(_ random: inout OndolTestKit.SeededRandom) -> ManifestChange {
    let shard = random.below(2)
    let number = FileNumber(rawValue: UInt64(random.below(12)))
    switch random.below(10) {
    case 0: return .nextFile(number)
    case 1: return .flushed(shard: shard, through: SequenceNumber(rawValue: random.next() >> 40))
    case 2: return .dropKeyspaces([UInt32(random.below(5))], before: number)
    case 3:
      return .addValueFile(
        shard: shard, ValueFileMetadata(number: number, salt: 1, sizeBytes: 500, values: 2))
    case 4: return .dropValueFile(shard: shard, number: number)
    case 5, 6: return .dropSegment(shard: shard, number: number)
    default:
      let keys = (random.below(20), random.below(20))
      var segment = segment(
        number.rawValue, UInt8(min(keys.0, keys.1))...UInt8(max(keys.0, keys.1)),
        upTo: UInt64(random.below(6)),
        valueFile: random.chance(1, in: 3) ? UInt64(random.below(12)) : nil)
      if random.chance(1, in: 8) { swap(&segment.minKey, &segment.maxKey) }
      return .addSegment(
        shard: shard, level: random.below(3), run: UInt64(random.below(4)), segment)
    }
  }
}
