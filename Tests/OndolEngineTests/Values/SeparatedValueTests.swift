// Large values from commit to garbage, through the whole engine: compared with a dictionary, on a
// damaged disk, and measured for their space.

import OndolEngine
import OndolTestKit
import Testing

private func smallOptions(threshold: Int, cache: Int = 1 << 20) -> EngineOptions {
  var options = tinyOptions()
  options.memtableSize = 16 << 10
  options.valueThreshold = threshold
  options.valueFileSize = 8 << 10
  options.cacheSize = cache
  return options
}

extension Environment {
  /// Names and sizes of the value files.
  fileprivate func valueFiles() throws -> [String: UInt64] {
    let directory = try fileSystem.openDirectory(at: "db", create: false)
    var sizes: [String: UInt64] = [:]
    for name in try directory.list() where name.hasSuffix(".val") {
      // A background compaction may remove it in the meantime.
      sizes[name] = try? directory.open(name, access: .readOnly).size()
    }
    return sizes
  }

  fileprivate func valueBytes() throws -> UInt64 {
    try valueFiles().values.reduce(0, +)
  }
}

@Suite struct SeparatedValueTests {
  @Test(arguments: [0, 1, 200, 1_000, .max], [1, 2] as [UInt64])
  func `values of all sizes come back through everything`(
    _ threshold: Int, _ seed: UInt64
  ) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let environment = Environment.memory()
    var options = smallOptions(threshold: threshold, cache: seed == 1 ? 0 : 1 << 20)
    var engine = try await Engine.open(at: "db", options: options, environment: environment)
    var model: [[UInt8]: [UInt8]] = [:]
    for step in 0..<300 {
      var rows: [[UInt8]: [UInt8]?] = [:]
      for _ in 0..<random.below(8) {
        let key = rowKey("k\(random.below(80))")
        let isNear = threshold != .max && random.chance(1, in: 2)
        let size = isNear ? max(0, threshold - 2 + random.below(4)) : random.below(1_500)
        let value =
          random.chance(1, in: 2)
          ? random.bytes(size) : [UInt8](repeating: UInt8(step & 255), count: size)
        rows[key] = .some(random.chance(1, in: 5) ? nil : value)
      }
      try await engine.put(rows)
      for (key, value) in rows { model[key] = value }
      switch random.below(30) {
      case 0, 1: try await engine.flush()
      case 2: try await engine.compact()
      case 3:
        try await engine.close()
        // A database may be opened with another threshold than before.
        if random.chance(1, in: 3) { options.valueThreshold = random.below(1_500) }
        engine = try await Engine.open(at: "db", options: options, environment: environment)
      default: break
      }
      if step % 25 == 24 { try await compare(engine, model, "seed \(seed), step \(step)") }
    }
    try await engine.close()
  }

  private func compare(
    _ engine: Engine, _ model: [[UInt8]: [UInt8]], _ place: String
  ) async throws {
    let expected = model.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    let rows = try engine.rows()
    #expect(rows.map(\.key) == expected.map(\.key), "\(place)")
    #expect(rows.map(\.value) == expected.map(\.value), "\(place)")
    #expect(try engine.rowsBackward(group: 1).reversed() == expected.map(\.key), "\(place)")
    let snapshot = try engine.snapshot()
    for number in 0..<80 {
      let key = rowKey("k\(number)")
      #expect(try await snapshot.get(key) == model[key], "\(place)")
      var found: [UInt8]?
      let isThere = try snapshot.withValue(of: key.bytes) { found = $0.array }
      #expect(isThere == (model[key] != nil) && found == model[key], "\(place)")
    }
  }

  @Test func `only values from the threshold on are separated`() async throws {
    let environment = Environment.memory()
    let engine = try await Engine.open(
      at: "db", options: smallOptions(threshold: 100), environment: environment)
    try await engine.put([rowKey("a"): [UInt8](repeating: 1, count: 99)])
    try await engine.compact()
    #expect(try environment.valueFiles().isEmpty)
    try await engine.put([rowKey("b"): [UInt8](repeating: 1, count: 100)])
    try await engine.compact()
    #expect(try environment.valueFiles().count == 1)
    try await engine.close()
  }

  @Test func `keys are walked without their values, and a damaged value is an error`() async throws
  {
    let environment = Environment.memory()
    let options = smallOptions(threshold: 100)
    let engine = try await Engine.open(at: "db", options: options, environment: environment)
    for number in 0..<20 {
      try await engine.put([rowKey("k\(number)"): [UInt8](repeating: 1, count: 400 + number)])
    }
    try await engine.close()
    let directory = try environment.fileSystem.openDirectory(at: "db", create: false)
    for name in try environment.valueFiles().keys {
      let file = try directory.open(name, access: .readWrite)
      // The codec of the first record.
      try file.write([9].bytes, at: 72)
    }

    let again = try await Engine.open(at: "db", options: options, environment: environment)
    #expect(try again.rowsBackward(group: 1).count == 20)
    func expectDamage(_ error: any Error) {
      guard case EngineError.corrupt(let file, let offset, _) = error else {
        Issue.record(error)
        return
      }
      #expect(file.hasSuffix(".val"))
      #expect(offset == 64)
    }
    do {
      _ = try again.rows()
      Issue.record("a damaged value was read")
    } catch {
      expectDamage(error)
    }
    do {
      for number in 0..<20 { _ = try await again.snapshot().get(rowKey("k\(number)")) }
      Issue.record("a damaged value was read")
    } catch {
      expectDamage(error)
    }
    try await again.close()
  }

  /// Whether a condition becomes true while background work has its turns.
  private func comesTrue(_ condition: () async throws -> Bool) async rethrows -> Bool {
    for _ in 0..<1_000_000 {
      if try await condition() { return true }
      await Task.yield()
    }
    return false
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `overwriting takes bounded space`(_ seed: UInt64) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let environment = Environment.memory()
    let engine = try await Engine.open(
      at: "db", options: smallOptions(threshold: 100), environment: environment)
    let keys = 60
    let size = 1_000
    let live = UInt64(keys * size)
    for round in 0..<60 {
      for _ in 0..<20 {
        try await engine.put([rowKey("k\(random.below(keys))"): random.bytes(size)])
      }
      if round % 4 == 3 { try await engine.flush() }
      // Values that wait in three young runs, dead values in old files, and a merge's output.
      // Merges run beside the writer without a request.
      let isBounded = try await comesTrue { try environment.valueBytes() < 6 * live }
      #expect(isBounded, "seed \(seed), round \(round)")
    }
    try await engine.compact()
    try await engine.compact()
    #expect(try environment.valueBytes() < 2 * live, "seed \(seed)")

    var batch: [[UInt8]: [UInt8]?] = [:]
    for number in 0..<keys { batch[rowKey("k\(number)")] = .some(nil) }
    try await engine.put(batch)
    // A concurrent merge may hold files as long as it runs.
    let isEmpty = try await comesTrue {
      try await engine.compact()
      return try environment.valueFiles().isEmpty
    }
    #expect(isEmpty, "seed \(seed)")
    try await engine.close()
  }

  @Test func `a snapshot keeps the files that it reads`() async throws {
    let environment = Environment.memory()
    let engine = try await Engine.open(
      at: "db", options: smallOptions(threshold: 100, cache: 0), environment: environment)
    let value = [UInt8](repeating: 1, count: 500)
    try await engine.put([rowKey("a"): value])
    try await engine.compact()
    let names = Set(try environment.valueFiles().keys)
    do {
      let before = try engine.snapshot()
      for round in UInt8(2)..<5 {
        try await engine.put([rowKey("a"): [UInt8](repeating: round, count: 500)])
        try await engine.compact()
      }
      #expect(Set(try environment.valueFiles().keys).isSuperset(of: names))
      #expect(try await before.get(rowKey("a")) == value)
    }
    // A concurrent merge may hold files as long as it runs.
    let areGone = try await comesTrue {
      let left = Set(try environment.valueFiles().keys)
      return left.isDisjoint(with: names) && left.count == 1
    }
    #expect(areGone)
    try await engine.close()
  }

  @Test func `opening removes value files without a reference`() async throws {
    let environment = Environment.memory()
    let options = smallOptions(threshold: 100)
    let engine = try await Engine.open(at: "db", options: options, environment: environment)
    try await engine.put([rowKey("a"): [UInt8](repeating: 1, count: 500)])
    try await engine.close()
    let names = Set(try environment.valueFiles().keys)
    let directory = try environment.fileSystem.openDirectory(at: "db", create: false)
    _ = try directory.create("9999.val")
    let again = try await Engine.open(at: "db", options: options, environment: environment)
    #expect(Set(try environment.valueFiles().keys) == names)
    #expect(try again.rows().count == 1)
    try await again.close()
  }
}
