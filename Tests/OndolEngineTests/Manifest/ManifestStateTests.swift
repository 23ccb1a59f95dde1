// The manifest's state as a value: it must not depend on its history, because sooner or later it is
// rewritten from nothing.

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

  /// A run of two segments, as old as the younger one, once lost that one and stayed before a run
  /// that was younger than the rest. After the rewrite they had changed places.
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

  /// The accepted part of any changes adds up to a state that can be restored from its own changes.
  @Test(arguments: Seeds.first(8))
  func `any state results from its own changes`(seed: UInt64) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    for round in 0..<200 {
      var state = empty(shards: 2)
      for _ in 0..<40 {
        // A refused change must leave nothing either.
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

  // MARK: - Size

  /// Every segment was once searched for among all others, and opening took the square of their
  /// number.
  @Test func `doubling a list doubles its comparisons, wherever it changes`() {
    func comparisons(_ count: Int) -> Int {
      var (list, compared) = (ChunkedArray<Int>([]), 0)
      var random = OndolTestKit.SeededRandom(seed: 7)
      for _ in 0..<count {
        let number = random.below(1 << 30)
        let place = list.partition { other in
          compared += 1
          return other < number
        }
        list.insert(number, at: place)
      }
      for _ in 0..<(count / 2) { list.remove(at: random.below(list.count)) }
      #expect(zip(list, list.dropFirst()).allSatisfy { $0 <= $1 })
      return compared
    }
    let counts = [4_000, 8_000, 16_000, 32_000].map(comparisons)
    for (few, many) in zip(counts, counts.dropFirst()) {
      #expect(Double(many) < 2.3 * Double(few), "\(counts)")
    }
  }

  @Test(arguments: Seeds.first(4))
  func `a list in chunks is like an array`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var (list, model) = (ChunkedArray<Int>([]), [Int]())
    for step in 0..<4_000 {
      // It grows past some chunks, and becomes empty again.
      let grows = random.chance(step < 2_000 ? 3 : 1, in: 4)
      if grows || model.isEmpty {
        let place = random.below(model.count + 1)
        list.insert(step, at: place)
        model.insert(step, at: place)
      } else {
        let place = random.below(model.count)
        let (one, other) = (list.remove(at: place), model.remove(at: place))
        #expect(one == other, "SEED=\(seed), step \(step)")
      }
      guard step % 100 == 99 else { continue }
      #expect(Array(list) == model, "SEED=\(seed), step \(step)")
      #expect(list.indices.map { list[$0] } == model, "SEED=\(seed), step \(step)")
      #expect(list == ChunkedArray(model), "SEED=\(seed), step \(step)")
    }
  }

  /// As many files as a database of some terabytes has, with long ids: the state is built and
  /// removed in edits, and restored from its own changes.
  @Test func `tens of thousands of segments and value files come and go`() throws {
    let count = 30_000
    var state = empty()
    for number in 0..<count {
      let file = FileNumber(rawValue: UInt64(count + number))
      try state.apply(
        .addValueFile(
          shard: 0, ValueFileMetadata(number: file, salt: 1, sizeBytes: 1_000, values: 2)))
      // Every other place, then those in between, so that all of them are inserted in the middle.
      let place = number < count / 2 ? 2 * number : 2 * (number - count / 2) + 1
      let next = FileNumber(rawValue: UInt64(count + max(0, number - 1)))
      try state.apply(
        .addSegment(
          shard: 0, level: 6, run: 0,
          ManifestSamples.segment(
            number, at: place, keyLength: 300,
            values: Set([file, next]).sorted().map { ValueReference(file: $0, bytes: 400) })))
    }
    #expect(state.shards[0].segments.count == count)
    #expect(state.dropsOfUnreferencedValueFiles.isEmpty)
    #expect(state.shards[0].mostlyDeadValueFiles == [FileNumber(rawValue: UInt64(2 * count - 1))])
    #expect(try rebuilt(state) == state)
    for number in 0..<(count / 2) {
      try state.apply(.dropSegment(shard: 0, number: FileNumber(rawValue: UInt64(2 * number))))
    }
    #expect(state.shards[0].segments.count == count / 2)
    // Each file is named by its segment and by the next one.
    #expect(state.dropsOfUnreferencedValueFiles.isEmpty)
    for number in 0..<(count / 2) {
      try state.apply(.dropSegment(shard: 0, number: FileNumber(rawValue: UInt64(2 * number + 1))))
    }
    #expect(state.dropsOfUnreferencedValueFiles.count == count)
    for drop in state.dropsOfUnreferencedValueFiles { try state.apply(drop) }
    #expect(state == empty())
  }

  // MARK: - Drops

  /// Numbers of dropped keyspaces once stayed forever.
  @Test func `a drop is forgotten when nothing from before it is left`() throws {
    var state = ManifestSamples.state(shards: 2)
    let drop = ManifestChange.dropKeyspaces([0x1002, 0x2001], before: FileNumber(rawValue: 50))
    // Shard 1 has the keyspaces from 0x1000 on. One segment spans the keyspace that is dropped
    // there.
    var old = ManifestSamples.segment(10, at: 1)
    old.maxKey = [0, 0, 16, 9]
    try state.apply(.addSegment(shard: 1, level: 6, run: 0, old))
    try state.apply(drop)
    func kept(_ state: ManifestState, recovered: UInt64 = 0) -> [UInt32] {
      state.forgettingDrops(recoveredThrough: SequenceNumber(rawValue: recovered))
        .dropped.keyspaces
    }
    #expect(kept(state) == [0x1002, 0x2001], "a log from before is there")
    state.floor.number = FileNumber(rawValue: 60)
    state.floor.sequence = SequenceNumber(rawValue: 7)
    #expect(kept(state, recovered: 8) == [0x1002, 0x2001], "commits before it are in a newer log")
    #expect(kept(state, recovered: 7) == [0x1002], "a segment may have rows of it")
    try state.apply(.dropSegment(shard: 1, number: FileNumber(rawValue: 10)))
    var new = old
    new.number = FileNumber(rawValue: 51)
    try state.apply(.addSegment(shard: 1, level: 6, run: 0, new))
    #expect(kept(state, recovered: 7) == [])
  }
}
