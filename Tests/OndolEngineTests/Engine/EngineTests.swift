// The engine as a whole, compared with a dictionary: commits are read back, by key and in order,
// from memory, from segments, and after closing and reopening.

import OndolEngine
import OndolTestKit
import Testing

/// Options that make every path short: a few rows fill a memtable, a few commits a log.
func tinyOptions(shards: Int = 2) -> EngineOptions {
  var options = EngineOptions()
  options.shardCount = shards
  options.memtableSize = 4 << 10
  options.logSize = 16 << 10
  options.segmentSize = 8 << 10
  options.blockSize = 512
  options.runLimit = 3
  options.smallShardSize = 0
  options.manifestSize = 2 << 10
  return options
}

/// A row's key: a keyspace of group `group`, then text.
func rowKey(_ text: String, group: UInt32 = 1) -> [UInt8] {
  let keyspace = group << 12
  return (0..<4).map { UInt8(truncatingIfNeeded: keyspace >> (24 - 8 * $0)) } + Array(text.utf8)
}

extension Engine {
  @discardableResult
  func put(
    _ rows: [[UInt8]: [UInt8]?], durability: Durability = .process
  ) async throws -> CommitReceipt {
    var batch = Batch()
    for (key, value) in rows {
      if let value { batch.put(key.bytes, value.bytes) } else { batch.delete(key.bytes) }
    }
    return try await commit(batch, durability: durability)
  }

  /// Every row of a group, in order.
  func rows(group: UInt32 = 1) throws -> [(key: [UInt8], value: [UInt8])] {
    var cursor = try snapshot().cursor(
      from: rowKey("", group: group), to: rowKey("", group: group + 1))
    var rows: [(key: [UInt8], value: [UInt8])] = []
    try cursor.seekToFirst()
    while cursor.isValid {
      rows.append((cursor.key.array, try cursor.value.array))
      try cursor.next()
    }
    return rows
  }

  /// The keys of a group, last first.
  func rowsBackward(group: UInt32) throws -> [[UInt8]] {
    var cursor = try snapshot().cursor(
      from: rowKey("", group: group), to: rowKey("", group: group + 1))
    var keys: [[UInt8]] = []
    try cursor.seekToLast()
    while cursor.isValid {
      keys.append(cursor.key.array)
      try cursor.previous()
    }
    return keys
  }
}

/// Opens the database after the engine before, released without closing like a killed process, has
/// really gone. Background work may hold it for a moment.
func openWhenFree(_ environment: Environment) async throws -> Engine {
  while true {
    do throws(EngineError) {
      return try await Engine.open(at: "db", environment: environment)
    } catch {
      guard case .inUse = error else { throw error }
    }
    await Task.yield()
  }
}

@Suite struct EngineTests {
  @Test func `Commits are read back, before and after a reopen`() async throws {
    let environment = Environment.memory()
    let engine = try await Engine.open(at: "db", environment: environment)
    let receipt = try await engine.put([rowKey("a"): [1], rowKey("b"): [2]], durability: .power)
    #expect(receipt.sequence.rawValue == 1)
    #expect(try await engine.snapshot().get(rowKey("a")) == [1])
    #expect(try await engine.snapshot().get(rowKey("c")) == nil)
    try await engine.close()

    let again = try await Engine.open(at: "db", environment: environment)
    #expect(try await again.snapshot().get(rowKey("b")) == [2])
    let next = try await again.put([rowKey("b"): nil])
    #expect(next.sequence.rawValue == 2)
    #expect(next.time > receipt.time)
    #expect(try again.rows().map(\.key) == [rowKey("a")])
    try await again.close()
  }

  @Test func `An unclosed database comes back whole`() async throws {
    let environment = Environment.memory()
    do {
      let engine = try await Engine.open(at: "db", environment: environment)
      try await engine.put([rowKey("a"): [1]])
      try await engine.put([rowKey("b"): [2]])
    }
    for round in 0..<3 {
      let engine = try await openWhenFree(environment)
      #expect(try engine.rows().map(\.value) == [[1], [2]], "round \(round)")
    }
  }

  @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8])
  func `Random commits, flushes and reopenings agree with a dictionary`(seed: UInt64) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let environment = Environment.memory()
    let options = tinyOptions()
    var engine = try await Engine.open(at: "db", options: options, environment: environment)
    var model: [[UInt8]: [UInt8]] = [:]
    for step in 0..<400 {
      var rows: [[UInt8]: [UInt8]?] = [:]
      for _ in 0..<random.below(8) {
        let key = rowKey("k\(random.below(200))", group: 1 + UInt32(random.below(3)))
        let value: [UInt8]? =
          random.below(4) == 0
          ? nil : [UInt8](repeating: UInt8(step & 255), count: random.below(300))
        rows[key] = .some(value)
      }
      let durability: Durability = [.memory, .process, .power][random.below(3)]
      try await engine.put(rows, durability: durability)
      for (key, value) in rows { model[key] = value }
      switch random.below(40) {
      case 0: try await engine.flush()
      case 1: try await engine.compact()
      case 2:
        try await engine.close()
        engine = try await Engine.open(at: "db", options: options, environment: environment)
      default: break
      }
      if step % 20 == 0 { try await compare(engine, model, seed: seed, step: step) }
    }
    try await compare(engine, model, seed: seed, step: 400)
    try await engine.close()
  }

  private func compare(
    _ engine: Engine, _ model: [[UInt8]: [UInt8]], seed: UInt64, step: Int
  ) async throws {
    let snapshot = try engine.snapshot()
    for number in 0..<200 {
      let key = rowKey("k\(number)", group: 1 + UInt32(number % 3))
      #expect(try await snapshot.get(key) == model[key], "seed \(seed), step \(step)")
    }
    for group in UInt32(1)...3 {
      let expected = model.filter { $0.key.starts(with: rowKey("", group: group)) }
        .sorted { $0.key.lexicographicallyPrecedes($1.key) }
      let forward = try engine.rows(group: group)
      let backward = try engine.rowsBackward(group: group)
      #expect(forward.map(\.key) == expected.map(\.key), "seed \(seed), step \(step)")
      #expect(forward.map(\.value) == expected.map(\.value), "seed \(seed), step \(step)")
      #expect(backward.reversed() == expected.map(\.key), "seed \(seed), step \(step)")
    }
  }

  @Test func `A snapshot stays as it was while everything around it changes`() async throws {
    let engine = try await Engine.open(
      at: "db", options: tinyOptions(), environment: .memory())
    try await engine.put([rowKey("a"): [1], rowKey("b"): [2]])
    let before = try engine.snapshot()
    for round in 0..<300 {
      try await engine.put([
        rowKey("a"): [UInt8](repeating: 9, count: 100), rowKey("b"): nil,
        rowKey("c\(round)"): [3],
      ])
    }
    try await engine.compact()
    #expect(try await before.get(rowKey("a")) == [1])
    #expect(try await before.get(rowKey("b")) == [2])
    #expect(try await before.get(rowKey("c0")) == nil)
    #expect(try await engine.snapshot().get(rowKey("b")) == nil)
    try await engine.close()
  }

  @Test func `A batch derived from a row that changed since is refused`() async throws {
    let engine = try await Engine.open(at: "db", environment: .memory())
    try await engine.put([rowKey("a"): [1]])
    var batch = Batch()
    batch.basis = try engine.snapshot().sequence
    batch.guardUnchanged(rowKey("a").bytes)
    batch.put(rowKey("a").bytes, [2].bytes)
    let copy = batch
    _ = try await engine.commit(batch, durability: .process)
    await #expect(throws: EngineError.stale) {
      try await engine.commit(copy, durability: .process)
    }
    #expect(try await engine.snapshot().get(rowKey("a")) == [2])
    try await engine.close()
  }

  @Test func `Counting from many tasks loses no step`() async throws {
    let engine = try await Engine.open(at: "db", options: tinyOptions(), environment: .memory())
    let key = rowKey("counter")
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<50 { await increment() }
        }
      }
    }
    func increment() async {
      while true {
        do {
          let snapshot = try engine.snapshot()
          let value = try await snapshot.get(key)?.first ?? 0
          let high = try await snapshot.get(key)?.last ?? 0
          let count = Int(value) + Int(high) * 256 + 1
          var batch = Batch()
          batch.basis = snapshot.sequence
          batch.guardUnchanged(key.bytes)
          batch.put(key.bytes, [UInt8(count & 255), UInt8(count >> 8)].bytes)
          _ = try await engine.commit(batch, durability: .power)
          return
        } catch EngineError.stale {
          continue
        } catch {
          Issue.record(error)
          return
        }
      }
    }
    #expect(try await engine.snapshot().get(key) == [UInt8(400 & 255), 1])
    try await engine.close()
  }

  /// An engine that was released without closing once freed its directory while its upkeep still
  /// created a log there. The next engine failed on that log, or both wrote.
  @Test func `A directory is not free before the last work on it is done`() async throws {
    var environment = Environment.memory()
    let workers = HeldWorkers()
    environment.threads = workers
    do {
      let engine = try await Engine.open(at: "db", environment: environment)
      try await engine.put([rowKey("first"): [1]], durability: .process)
      workers.hold()
      let halfLog = [UInt8](repeating: 7, count: EngineOptions().logSize / 2)
      try await engine.put([rowKey("big"): halfLog], durability: .process)
      while !workers.hasWaiting { await Task.yield() }
    }
    var intruder = Environment.memory()
    intruder.fileSystem = environment.fileSystem
    do throws(EngineError) {
      _ = try await Engine.open(at: "db", environment: intruder)
      Issue.record("the directory was free while a log was still to be made in it")
    } catch {
      guard case .inUse = error else { throw error }
    }
    workers.release()
    let again = try await openWhenFree(intruder)
    #expect(try await again.snapshot().get(rowKey("first")) == [1])
    try await again.close()
  }

  @Test func `A commit over four mebibytes survives in pieces`() async throws {
    let environment = Environment.memory()
    let value = (0..<9_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    do {
      let engine = try await Engine.open(at: "db", environment: environment)
      try await engine.put([rowKey("big"): value, rowKey("small"): [1]], durability: .power)
    }
    let again = try await openWhenFree(environment)
    #expect(try await again.snapshot().get(rowKey("big")) == value)
    #expect(try await again.snapshot().get(rowKey("small")) == [1])
    try await again.close()
  }

  @Test func `The last operation on a key within a batch wins`() async throws {
    let engine = try await Engine.open(at: "db", environment: .memory())
    var batch = Batch()
    batch.put(rowKey("a").bytes, [1].bytes)
    batch.delete(rowKey("a").bytes)
    batch.put(rowKey("a").bytes, [2].bytes)
    batch.put(rowKey("b").bytes, [3].bytes)
    batch.delete(rowKey("b").bytes)
    _ = try await engine.commit(batch, durability: .process)
    #expect(try engine.rows().map(\.value) == [[2]])
    try await engine.compact()
    #expect(try engine.rows().map(\.value) == [[2]])
    try await engine.close()
  }

  @Test func `Stamps hold the commit's own number and time`() async throws {
    let engine = try await Engine.open(at: "db", environment: .memory())
    try await engine.put([rowKey("x"): [0]])
    var batch = Batch()
    let room = [UInt8](repeating: 0, count: 16)
    batch.put(rowKey("a").bytes, room.bytes, stamps: [(0, .sequence), (8, .time)])
    let receipt = try await engine.commit(batch, durability: .process)
    let value = try #require(try await engine.snapshot().get(rowKey("a")))
    var reader = ByteReader(value.bytes)
    #expect(try reader.littleEndian(UInt64.self) == receipt.sequence.rawValue)
    #expect(try reader.littleEndian(Int64.self) == receipt.time)
    try await engine.close()
  }

  @Test func `A second opening of a directory is refused while the first lasts`() async throws {
    let environment = Environment.memory()
    let engine = try await Engine.open(at: "db", environment: environment)
    await #expect(throws: EngineError.self) {
      _ = try await Engine.open(at: "db", environment: environment)
    }
    try await engine.close()
    let again = try await Engine.open(at: "db", environment: environment)
    try await again.close()
    await #expect(throws: EngineError.closed) { try await again.put([rowKey("a"): [1]]) }
  }
}
