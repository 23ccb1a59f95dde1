// Row counts that are known without a walk, compared with a model.

import Testing

@testable import OndolEngine

@Suite struct RowCountTests {
  private static let keys = 6_000

  private func key(_ number: Int) -> [UInt8] {
    var key: [UInt8] = [0, 0, 0x10, 0]
    key.appendBigEndian(UInt32(number))
    return key
  }

  private func options() -> EngineOptions {
    var options = EngineOptions()
    options.blockSize = 1 << 10
    options.segmentSize = 32 << 10
    return options
  }

  /// Counts random ranges, and returns how many of them were known.
  private func compare(
    _ snapshot: Snapshot, with model: Set<Int>, using random: inout SeededRandom,
    _ step: String
  ) throws -> Int {
    var known = 0
    for round in 0..<30 {
      var bounds = (0..<2).map { _ in Int.random(in: 0...Self.keys, using: &random) }.sorted()
      // All rows, and none.
      if round == 0 { bounds = [0, Self.keys] }
      if round == 1 { bounds[1] = bounds[0] }
      let wanted = model.count { $0 >= bounds[0] && $0 < bounds[1] }
      let count = try snapshot.rowCount(
        from: key(bounds[0]), to: round == 2 ? [] : key(bounds[1]), lookingAtMost: .max,
        mayBlock: true)
      guard let count else { continue }
      known += 1
      let rest = round == 2 ? model.count { $0 >= bounds[1] } : 0
      #expect(count == wanted + rest, "\(step), \(bounds)")
    }
    return known
  }

  @Test(arguments: UInt64(1)...6)
  func `Counts without a walk are correct`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let engine = try await Engine.open(at: "/db", options: options(), environment: .memory())
    var model: Set<Int> = []
    var known = 0
    for round in 0..<24 {
      var batch = Batch()
      // Large commits make runs, small ones are above them.
      for _ in 0..<(round % 4 == 0 ? 3_000 : 12) {
        let number = Int.random(in: 0..<Self.keys, using: &random)
        let key = key(number)
        if Int.random(in: 0..<5, using: &random) == 0 {
          batch.delete(key.bytes)
          model.remove(number)
        } else {
          batch.put(key.bytes, key.bytes)
          model.insert(number)
        }
      }
      _ = try await engine.commit(batch, durability: .memory)
      switch round % 4 {
      case 0: try await engine.compact()
      case 2: try await engine.flush()
      default: break
      }
      known += try compare(engine.snapshot(), with: model, using: &random, "round \(round)")
    }
    // After the merge there is one run, and a walk finds the same.
    try await engine.compact()
    let settled = try compare(engine.snapshot(), with: model, using: &random, "settled")
    #expect(settled >= 29, "only \(settled) of 30 ranges are known of a single run")
    #expect(known > 100, "\(known)")
    try await engine.close()
  }

  @Test func `A later commit does not count in an earlier snapshot`() async throws {
    let engine = try await Engine.open(at: "/db", options: options(), environment: .memory())
    var batch = Batch()
    for number in 0..<Self.keys {
      let key = key(number)
      batch.put(key.bytes, key.bytes)
    }
    _ = try await engine.commit(batch, durability: .memory)
    try await engine.compact()
    let earlier = try engine.snapshot()
    var later = Batch()
    let (added, removed, replaced) = (key(Self.keys), key(7), key(8))
    later.put(added.bytes, added.bytes)
    later.delete(removed.bytes)
    later.put(replaced.bytes, added.bytes)
    later.delete(key(Self.keys + 1).bytes)
    _ = try await engine.commit(later, durability: .memory)
    func count(_ snapshot: Snapshot, _ end: Int) throws -> Int? {
      try snapshot.rowCount(
        from: key(0), to: key(end), lookingAtMost: .max, mayBlock: true)
    }
    #expect(try count(earlier, Self.keys + 2) == Self.keys)
    #expect(try count(engine.snapshot(), Self.keys + 2) == Self.keys)
    #expect(try count(engine.snapshot(), Self.keys) == Self.keys - 1)
    #expect(
      try engine.snapshot().rowCount(
        from: key(0), to: key(Self.keys), lookingAtMost: 1, mayBlock: true) == nil)
    try await engine.close()
  }
}
