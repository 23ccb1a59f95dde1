// Properties of the compaction policy, on a shard without files. Executing plans ends, keeps every
// row's newest version on top, bounds the number of runs and the bytes written, and works around
// damaged segments without exposing an old row. Two plans run at a time where the engine does that,
// beside flushes.

import OndolTestKit
import Testing

@testable import OndolEngine

/// A life of flushes and merges.
private struct ShardLife {
  var random: OndolTestKit.SeededRandom
  let picker: CompactionPicker
  let keys: Int
  var model = ShardModel()
  var truth: [Int: ShardModel.Row] = [:]
  var loaded: UInt64 = 0
  var round: UInt64 = 0
  /// The time when the last segment was damaged. Later writes must be read correctly.
  var lastDamage: UInt64 = 0
  /// Merges under way: one of any kind, and one of the newest flushed runs.
  private var pending: [CompactionPlan?] = [nil, nil]

  init(seed: UInt64, keys: Int, policy: CompactionPolicy) {
    random = OndolTestKit.SeededRandom(seed: seed)
    picker = CompactionPicker(policy: policy)
    self.keys = keys
  }

  mutating func flush(rows count: Int, deletes: Bool) throws {
    round += 1
    var flushed: [Int: ShardModel.Row] = [:]
    let start = random.below(keys)
    for step in 0..<count {
      let number = random.chance(1, in: 2) ? random.below(keys) : (start + step) % keys
      let isTombstone = deletes && random.chance(2, in: 3)
      flushed[number] = ShardModel.Row(sequence: round, isTombstone: isTombstone)
    }
    truth.merge(flushed) { $1 }
    loaded += UInt64(flushed.count) * 20
    try model.write(flushed, into: 0, id: nil)
  }

  private func barriers(beside lane: Int) -> Barriers {
    let taken = pending[1 - lane]?.segments.map(\.number) ?? []
    return Barriers(model.damaged.union(taken))
  }

  /// Begins a merge, or ends one that has begun. Returns false if there is nothing to do.
  mutating func step(_ lane: Int) throws -> Bool {
    if let plan = pending[lane] {
      pending[lane] = nil
      try model.carryOut(plan)
      return true
    }
    let barriers = barriers(beside: lane)
    pending[lane] =
      lane == 0
      ? picker.next(model.shard, around: barriers)
      : picker.mergingFlushed(model.shard, around: barriers)
    return pending[lane] != nil
  }

  /// Merges until there is nothing to do.
  mutating func rest() throws {
    var steps = 0
    while try step(1) || step(0) {
      steps += 1
      guard steps < 2_000 else {
        throw ShardModel.WrongPlan(description: "round \(round) has no end: \(pending)")
      }
    }
  }

  mutating func compactFully() throws {
    try rest()
    var steps = 0
    while let plan = picker.majorCompaction(model.shard, around: Barriers(model.damaged)) {
      try model.carryOut(plan)
      steps += 1
      guard steps < 2_000 else {
        throw ShardModel.WrongPlan(description: "a major compaction has no end: \(plan)")
      }
    }
  }

  /// Damages a segment that no merge has read yet.
  mutating func damageSegment() {
    let taken = Set(pending.compactMap { $0 }.flatMap(\.segments).map(\.number))
    let whole = model.shard.segments.filter {
      !model.damaged.contains($0.number) && !taken.contains($0.number)
    }
    guard !whole.isEmpty else { return }
    model.damaged.insert(random.pick(whole).number)
    lastDamage = round
  }

  /// The first key with a wrong answer for a reader.
  func firstWrong() -> Int? {
    // Every key would take most of the test's time. A third of them, others each time, are enough.
    stride(from: Int(round % 3), to: keys, by: 3).first { number in
      let wanted = truth[number]
      switch model.read(number) {
      case .row(let row): return row != wanted
      case .absent: return wanted != nil && wanted?.isTombstone != true
      case .damaged: return (wanted?.sequence ?? 0) > lastDamage
      }
    }
  }
}

@Suite struct `Plans carried out` {
  private func life(seed: UInt64) -> ShardLife {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var policy = tablePolicy(
      runLimit: 1 + random.below(6), baseSize: UInt64(500 + random.below(4_000)))
    policy.segmentSize = UInt64(500 + random.below(4_000))
    policy.memtableSize = UInt64(400 + random.below(1_000))
    return ShardLife(seed: seed, keys: 200 + random.below(2_000), policy: policy)
  }

  @Test(arguments: Seeds.first(4))
  func `end, never show an old row, and bound the runs`(seed: UInt64) throws {
    var life = life(seed: seed)
    for round in 1...120 {
      try life.flush(rows: 20 + life.random.below(60), deletes: round % 10 > 6)
      if life.random.chance(1, in: 3) {
        try life.rest()
        #expect(life.model.shard.levelZero.count <= life.picker.policy.runLimit.advanced(by: 1))
        #expect(life.model.shard.runs.count <= life.picker.policy.runLimit + 3, "SEED=\(seed)")
      } else {
        for _ in 0..<life.random.below(4) { _ = try life.step(life.random.below(2)) }
      }
      if round % 10 == 0 { #expect(life.firstWrong() == nil, "SEED=\(seed) round \(round)") }
      if round % 50 == 0 { try life.compactFully() }
    }
    try life.compactFully()
    let alive = life.truth.values.count { !$0.isTombstone }
    #expect(life.model.shard.runs.count <= 1, "SEED=\(seed)")
    #expect(
      life.model.shard.segments.reduce(0) { $0 + $1.entries } == UInt64(alive), "SEED=\(seed)")
    #expect(life.firstWrong() == nil, "SEED=\(seed)")
  }

  /// Segments are damaged while merges run. Later writes, including tombstones, must be read
  /// correctly, and a row in a damaged segment must never be answered with an older one.
  @Test(arguments: Seeds.first(8))
  func `go around damaged segments`(seed: UInt64) throws {
    var life = life(seed: seed)
    let limit = 1 + life.random.below(6)
    for round in 1...120 {
      try life.flush(rows: 20 + life.random.below(60), deletes: round % 10 > 6)
      if round > 40, life.model.damaged.count < limit, life.random.chance(1, in: 10) {
        life.damageSegment()
      }
      if life.random.chance(1, in: 3) {
        try life.rest()
        let damaged = life.model.shard.levelZero.count { run in
          run.segments.contains { life.model.damaged.contains($0.number) }
        }
        let others = life.model.shard.levelZero.count - damaged
        #expect(
          others <= life.picker.policy.runLimit + 1 + 3 * limit, "SEED=\(seed) round \(round)")
      } else {
        for _ in 0..<life.random.below(4) { _ = try life.step(life.random.below(2)) }
      }
      if round % 10 == 0 {
        let wrong = life.firstWrong()
        try #require(wrong == nil, "SEED=\(seed) round \(round)")
      }
      if round % 50 == 0 { try life.compactFully() }
    }
    try life.compactFully()
    #expect(life.firstWrong() == nil, "SEED=\(seed)")
    #expect(life.model.damaged.isSubset(of: life.model.shard.segments.map(\.number)))
  }

  /// In a load the bytes written grow in proportion to the bytes loaded, a few times over.
  @Test func `write a little for each byte loaded`() throws {
    var policy = tablePolicy(runLimit: 8, baseSize: 16_000)
    policy.memtableSize = 2_000
    policy.segmentSize = 4_000
    var life = ShardLife(seed: 1, keys: 1 << 30, policy: policy)
    var most = 0
    for _ in 1...300 {
      try life.flush(rows: 100, deletes: false)
      try life.rest()
      most = max(most, life.model.shard.runs.count)
    }
    #expect(life.model.bytesWritten < 10 * life.loaded, "\(life.model.bytesWritten)")
    #expect(most <= 11)
  }
}

@Suite struct `Merging flushed runs by their sizes` {
  /// Returns how often each byte is written when `count` memtables come and none goes down a level,
  /// and the largest number of runs.
  private func amplification(_ count: Int, limit: Int, size: () -> Double) -> (Double, Int) {
    var sizes: [Double] = []
    var (loaded, written) = (0.0, 0.0)
    var most = 0
    for _ in 0..<count {
      let next = size()
      sizes.insert(next, at: 0)
      loaded += next
      written += next
      let merged = FlushedRunRule.count(ofNewest: sizes, limit: limit, unit: 1)
      if merged > 0 {
        let sum = sizes.prefix(merged).reduce(0, +)
        written += sum
        sizes.replaceSubrange(0..<merged, with: [sum])
      }
      most = max(most, sizes.count)
    }
    return (written / loaded, most)
  }

  @Test func `writes each row a few times, however many there are`() {
    for (count, wanted) in [(9, 2.1), (100, 4.0), (1_000, 6.5), (5_000, 8.5)] {
      let (written, most) = amplification(count, limit: 8) { 1 }
      #expect(written <= wanted, "\(count) memtables: \(written)")
      #expect(most == 8)
    }
  }

  @Test(arguments: Seeds.first(8))
  func `does so for memtables of many sizes`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let limit = 5 + random.below(8)
    let (written, most) = amplification(2_000, limit: limit) {
      random.chance(1, in: 3) ? 0.01 : 0.25 + Double(random.below(100)) / 50
    }
    #expect(written <= 16, "SEED=\(seed), \(limit) runs: \(written)")
    #expect(most == limit, "SEED=\(seed)")
  }
}
