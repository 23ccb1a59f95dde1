// One damaged block, at every place of every segment, during commits, flushes, merges and opens. A
// merge that met such a block once stopped all writing, at every open, also of unrelated keyspaces.
// Now writing continues, later writes are read correctly, and a read from the block reports its
// damage and never returns something older.

import OndolEngine
import OndolTestKit
import Testing

private let groups: [UInt32] = [1, 2, 3]
private let keys = 120

private func key(_ group: UInt32, _ number: Int) -> [UInt8] {
  rowKey("k\(1_000 + number)", group: group)
}

/// The rows of the database, and those written since a block was damaged.
private struct Rows {
  var values: [[UInt8]: [UInt8]?] = [:]
  var fresh: Set<[UInt8]> = []
}

private struct Life {
  var random: OndolTestKit.SeededRandom
  let options: EngineOptions
  var fileSystem = SimulatedFileSystem()
  var rows = Rows()
  let reports = Guarded(0)

  init(seed: UInt64) {
    random = OndolTestKit.SeededRandom(seed: seed)
    var options = tinyOptions(shards: 2)
    options.memtableSize = 2 << 10
    options.segmentSize = random.pick([2 << 10, 6 << 10])
    options.blockSize = 256
    options.valueThreshold = 90
    options.smallShardSize = random.pick([0, 6 << 10])
    options.reportDamage = { [reports] _ in reports.withLock { $0 += 1 } }
    self.options = options
  }

  func open() async throws -> Engine {
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    return try await Engine.open(at: "/db", options: options, environment: world.environment)
  }

  mutating func commit(_ engine: Engine, since isRotten: Bool) async throws {
    var batch: [[UInt8]: [UInt8]?] = [:]
    let group = random.pick(groups)
    for _ in 0..<(1 + random.below(12)) {
      let value: [UInt8]? =
        random.chance(1, in: 4) ? nil : random.bytes(random.chance(1, in: 8) ? 100 : 30)
      batch[key(group, random.below(keys))] = .some(value)
    }
    try await engine.put(batch)
    for (key, value) in batch {
      rows.values[key] = .some(value)
      if isRotten { rows.fresh.insert(key) }
    }
  }

  /// Commits, flushes and merges that must all succeed.
  mutating func work(_ engine: Engine, rounds: Int, since isRotten: Bool) async throws {
    for _ in 0..<rounds {
      try await commit(engine, since: isRotten)
      switch random.below(12) {
      case 0, 1: try await engine.flush()
      case 2: try await engine.compact()
      default: break
      }
    }
  }

  /// Every row is correct, or reported as damaged if it was not written since.
  func check(_ engine: Engine, _ place: String) async throws {
    for (key, wanted) in rows.values {
      let answer = await Self.answer { try await engine.snapshot().get(key) }
      switch answer {
      case .success(let found): #expect(found == wanted, "\(place): \(key)")
      case .failure(.corrupt):
        let isFresh = rows.fresh.contains(key)
        #expect(!isFresh, "\(place): \(key) was written since")
      case .failure(let error): throw error
      }
    }
    for group in groups {
      let wanted = rows.values.filter { $0.key.starts(with: rowKey("", group: group)) }
        .compactMapValues { $0 }
      let answer = await Self.answer { try engine.rows(group: group) }
      switch answer {
      case .success(let found):
        let rows = Dictionary(found.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
        #expect(rows == wanted, "\(place)")
      case .failure(.corrupt): break
      case .failure(let error): throw error
      }
    }
  }

  private static func answer<Value>(
    _ read: () async throws -> Value
  ) async -> Result<Value, EngineError> {
    do {
      return .success(try await read())
    } catch {
      return .failure(error as? EngineError ?? .invalid(reason: "\(error)"))
    }
  }
}

@Suite struct `A rotten block` {
  /// A database at rest or in the middle of its life, as files.
  private func prepare(_ seed: UInt64) async throws -> Life {
    var life = Life(seed: seed)
    let engine = try await life.open()
    try await life.work(engine, rounds: 60, since: false)
    if seed % 2 == 0 { try await engine.compact() }
    try await engine.close()
    return life
  }

  @Test(arguments: Seeds.first(2))
  func `stops no writing, wherever it is`(seed: UInt64) async throws {
    let sound = try await prepare(seed)
    let directory = try sound.fileSystem.openDirectory(at: "/db", create: false)
    let names = try directory.list().filter { $0.hasSuffix(".seg") || $0.hasSuffix(".val") }
      .sorted()
    var places = 0
    var reported = 0
    for name in names {
      let size = try directory.open(name, access: .readOnly).size()
      for offset in stride(from: UInt64(40), to: size, by: 410) {
        let place = "SEED=\(seed) \(name) at \(offset)"
        var life = sound
        life.fileSystem = sound.fileSystem.kill()
        life.reports.withLock { $0 = 0 }
        let file = try life.fileSystem.openDirectory(at: "/db", create: false)
          .open(name, access: .readWrite)
        let byte = try file.read(at: offset, count: 1)
        try file.write([byte[0] ^ 0x55].bytes, at: offset)
        for _ in 0..<2 {
          let engine = try await life.open()
          try await life.live(engine, place)
        }
        places += 1
        reported += life.reports.withLock { $0 } > 0 ? 1 : 0
      }
    }
    // Damage in a filter shows at the filter's first use, and merges do not use filters.
    #expect(places > 10 && reported * 5 > places * 2, "SEED=\(seed): \(reported) of \(places)")
  }

  /// Neither the metrics nor the log once reported it.
  @Test func `is reported once, and counted until its file goes`() async throws {
    var life = try await prepare(2)
    life.reports.withLock { $0 = 0 }
    let directory = try life.fileSystem.openDirectory(at: "/db", create: false)
    let name = try #require(try directory.list().filter { $0.hasSuffix(".seg") }.sorted().first)
    let file = try directory.open(name, access: .readWrite)
    try file.write([UInt8](repeating: 0x5A, count: 40).bytes, at: 100)
    let engine = try await life.open()
    #expect(engine.metrics.damage.isEmpty)
    for _ in 0..<3 {
      try await life.work(engine, rounds: 10, since: true)
      try await engine.compact()
    }
    #expect(life.reports.withLock { $0 } == 1)
    let told = engine.metrics.damage.map { "\($0)" }
    #expect(told.count == 1 && told[0].hasPrefix(name), "\(told)")
    #expect(engine.metrics.shards.allSatisfy { $0.runs <= 4 }, "merged around it")
    try await engine.drop(keyspaces: groups.map { $0 << 12 })
    #expect(engine.metrics.damage.isEmpty, "its file went with its rows")
    try await engine.close()
  }
}

extension Life {
  /// Works and checks. It reports a failure with its place, and only a wrong test throws.
  fileprivate mutating func live(_ engine: Engine, _ place: String) async throws {
    do {
      try await work(engine, rounds: 25, since: true)
      try await check(engine, place)
      try await engine.compact()
      try await check(engine, place)
      #expect(engine.metrics.shards.allSatisfy { $0.runs < 12 }, "\(place)")
      try await engine.close()
    } catch {
      Issue.record("\(place): \(error)")
    }
  }
}
