// Compaction within the engine, in a simulated world: levels form and nothing is lost, space is
// freed, dropped keyspaces go, and a quiet database becomes one run.

import OndolTestKit
import Testing

@testable import OndolEngine

private func options(shards: Int = 1) -> EngineOptions {
  var options = tinyOptions(shards: shards)
  options.segmentSize = 4 << 10
  options.runLimit = 2
  return options
}

private func key(_ keyspace: UInt32, _ number: Int) -> [UInt8] {
  (0..<4).map { UInt8(truncatingIfNeeded: keyspace >> (24 - 8 * $0)) }
    + (0..<3).map { UInt8(truncatingIfNeeded: number >> (16 - 8 * $0)) }
}

extension Engine {
  /// The numbers of a keyspace's rows.
  fileprivate func numbers(in keyspace: UInt32) throws -> [Int] {
    var cursor = try snapshot().cursor(from: key(keyspace, 0), to: key(keyspace + 1, 0))
    var numbers: [Int] = []
    try cursor.seekToFirst()
    while cursor.isValid {
      numbers.append(cursor.key.array.suffix(3).reduce(0) { $0 << 8 | Int($1) })
      try cursor.next()
    }
    return numbers
  }

  fileprivate func put(_ keyspace: UInt32, _ numbers: [Int], _ value: [UInt8]?) async throws {
    var rows: [[UInt8]: [UInt8]?] = [:]
    for number in numbers { rows[key(keyspace, number)] = .some(value) }
    try await put(rows)
  }
}

/// Runs `body` with an engine in a world of its own.
private func simulate(
  seed: UInt64, _ options: EngineOptions = options(),
  _ body: @escaping @Sendable (Engine, SimulatedWorld) async throws -> Void
) throws {
  try SimulationExecutor.run(seed: seed) { executor in
    let world = SimulatedWorld(seed: seed, threads: executor)
    let engine = try await Engine.open(
      at: "/db", options: options, environment: world.environment)
    try await body(engine, world)
    try await engine.close()
  }
}

private func segmentFiles(_ world: SimulatedWorld) -> Int {
  world.fileSystem.storage.names(in: "/db").count { $0.hasSuffix(".seg") }
}

@Suite struct `Compaction` {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `forms levels and loses nothing`(seed: UInt64) throws {
    try simulate(seed: seed) { engine, _ in
      var random = OndolTestKit.SeededRandom(seed: seed)
      var model: [Int: [UInt8]] = [:]
      var deepest = 0
      for round in 0..<400 {
        let numbers = (0..<8).map { _ in random.below(3_000) }
        let value: [UInt8]? = random.chance(1, in: 5) ? nil : random.bytes(60)
        try await engine.put(0x1000, numbers, value)
        for number in numbers { model[number] = value }
        deepest = max(deepest, engine.metrics.shards[0].levels.count { $0.number > 0 })
        guard round % 50 == 0 else { continue }
        #expect(try engine.numbers(in: 0x1000) == model.keys.sorted(), "SEED=\(seed)")
        for (number, value) in model where number % 5 == 0 {
          let found = try await engine.snapshot().get(key(0x1000, number))
          try #require(found == value, "SEED=\(seed) \(number)")
        }
      }
      #expect(deepest >= 2, "SEED=\(seed)")
      #expect(engine.metrics.totals.compactions > 10, "SEED=\(seed)")
      try await engine.compact()
      #expect(engine.metrics.shards[0].runs == 1)
      #expect(try engine.numbers(in: 0x1000) == model.keys.sorted(), "SEED=\(seed)")
    }
  }

  /// The stored bytes stay within a few times the live ones, and all of them go with the last row.
  @Test(arguments: [1, 2] as [UInt64])
  func `gives space back`(seed: UInt64) throws {
    try simulate(seed: seed) { engine, world in
      var random = OndolTestKit.SeededRandom(seed: seed)
      let live = 200 * 130
      var most: UInt64 = 0
      for _ in 0..<400 {
        try await engine.put(0x1000, (0..<8).map { _ in random.below(200) }, random.bytes(120))
        most = max(most, engine.metrics.shards[0].bytes)
      }
      #expect(most < UInt64(5 * live), "SEED=\(seed): \(most) bytes for \(live)")
      for start in stride(from: 0, to: 200, by: 8) {
        try await engine.put(0x1000, Array(start..<(start + 8)), nil)
      }
      try await engine.compact { _, _ in }
      #expect(engine.metrics.shards[0].bytes == 0, "SEED=\(seed)")
      #expect(segmentFiles(world) == 0, "SEED=\(seed)")
    }
  }

  @Test func `leaves a small shard one run after every flush`() throws {
    var options = options()
    options.smallShardSize = 1 << 20
    try simulate(seed: 1, options) { engine, world in
      for round in 0..<20 {
        try await engine.put(0x1000, Array((round * 4)..<(round * 4 + 8)), [1, 2, 3])
        try await engine.flush()
        #expect(engine.metrics.shards[0].runs == 1)
      }
      #expect(segmentFiles(world) == 1)
      #expect(try engine.numbers(in: 0x1000) == Array(0..<84))
    }
  }

  /// Rows of one text compress to a twentieth. A shard whose files were small was once rewritten at
  /// every flush until a hundred megabytes of rows went through each, and writers stood still for
  /// seconds.
  @Test func `a shard is small by its rows, however well they compress`() throws {
    var options = options()
    options.runLimit = 100
    options.smallShardSize = 32 << 10
    try simulate(seed: 1, options) { engine, _ in
      let value = [UInt8](repeating: 7, count: 900)
      for round in 1...12 {
        try await engine.put(0x1000, Array((round * 8)..<(round * 8 + 8)), value)
        try await engine.flush()
        let rawBytes = round * 8 * 900
        #expect(engine.metrics.shards[0].bytes < 32 << 10, "they do compress")
        if rawBytes < 24 << 10 { #expect(engine.metrics.shards[0].runs == 1) }
        if rawBytes > 48 << 10 { #expect(engine.metrics.shards[0].runs > 1) }
      }
      #expect(try engine.numbers(in: 0x1000) == Array(8..<104))
    }
  }

  @Test func `merges all of a database that has become quiet`() throws {
    try simulate(seed: 3, options(shards: 2)) { engine, world in
      var random = OndolTestKit.SeededRandom(seed: 3)
      for _ in 0..<200 {
        let numbers = (0..<8).map { _ in random.below(2_000) }
        try await engine.put(random.pick([0x1000, 0x2000]), numbers, random.bytes(60))
      }
      let executor = try #require(world.environment.executor as? SimulationExecutor)
      for _ in 0..<50 { await executor.doze() }
      #expect(engine.metrics.shards.allSatisfy { $0.runs <= 1 })
      #expect(engine.metrics.reclaimableBytes == 0)
    }
  }

  @Test func `rests as long as it is asked to`() throws {
    try simulate(seed: 1) { engine, world in
      for round in 0..<40 {
        try await engine.put(
          0x1000, (0..<8).map { $0 * 40 + round }, [UInt8](repeating: 7, count: 99))
      }
      try await engine.compact()
      try await engine.put(0x1000, [1, 300], [1])
      var merged: UInt64 = 0
      let began = world.environment.now()
      try await engine.compact(bytesPerSecond: 1_000) { done, total in
        if done < total { merged = done }
      }
      let microseconds = UInt64(clamping: world.environment.now() - began)
      #expect(merged > 0)
      #expect(microseconds >= merged * 1_000, "\(merged) bytes in \(microseconds) µs")
    }
  }

  @Test func `says how far it is, and stops when its task is cancelled`() throws {
    try simulate(seed: 1) { engine, world in
      for round in 0..<40 {
        try await engine.put(
          0x1000, (0..<8).map { $0 * 40 + round }, [UInt8](repeating: 7, count: 99))
      }
      try await engine.compact()
      try await engine.put(0x1000, [1], [1])
      let cancelled = Task(executorPreference: world.environment.executor) {
        try await engine.compact { _, _ in }
      }
      cancelled.cancel()
      await #expect(throws: EngineError.cancelled) { try await cancelled.value }
      var steps: [UInt64] = []
      var total: UInt64 = 0
      try await engine.compact { done, all in
        steps.append(done)
        total = all
      }
      #expect(steps == steps.sorted())
      #expect(steps.last == total)
      #expect(engine.metrics.shards[0].runs == 1)
    }
  }
}

@Suite struct `Dropping keyspaces` {
  @Test func `frees their files at once and leaves other rows alone`() throws {
    try simulate(seed: 1) { engine, world in
      let value = [UInt8](repeating: 1, count: 100)
      for round in 0..<60 {
        try await engine.put(0x1001, (0..<8).map { $0 * 60 + round }, value)
        try await engine.put(0x1000, [round], value)
        try await engine.put(0x1002, [round], value)
      }
      try await engine.compact()
      try await engine.put(0x1001, [9_999], value)
      let before = engine.metrics.shards[0].bytes
      try await engine.drop(keyspaces: [0x1001])
      #expect(engine.metrics.shards[0].bytes < before / 2)
      try await engine.compact()
      #expect(try engine.numbers(in: 0x1001) == [], "rows in memory and beside others too")
      #expect(try engine.numbers(in: 0x1000) == Array(0..<60))
      #expect(try engine.numbers(in: 0x1002) == Array(0..<60))
      let written = world.fileSystem.count(of: .write)
      try await engine.drop(keyspaces: [0x1001])
      #expect(world.fileSystem.count(of: .write) == written, "it was dropped before")
    }
  }

  /// Each number once stayed in the manifest forever, and with a million of them the manifest could
  /// not be read.
  @Test func `leaves nothing if there are no rows`() throws {
    try simulate(seed: 6) { engine, world in
      try await engine.put(0x1000, [1], [1])
      try await engine.put(0x1001, [1], [1])
      try await engine.compact()
      let written = world.fileSystem.count(of: .write)
      for start in stride(from: UInt32(1 << 24), to: 1 << 24 + 5_000, by: 500) {
        try await engine.drop(keyspaces: Array(start..<(start + 500)))
      }
      #expect(world.fileSystem.count(of: .write) == written)
      #expect(engine.storage.manifest.state.dropped.isEmpty)
      // The only segment also has rows of another keyspace.
      try await engine.drop(keyspaces: [0x1001])
      #expect(engine.storage.manifest.state.dropped.keyspaces == [0x1001])
    }
  }

  /// A drop is remembered until no log and no segment can bring a row of it back, also over
  /// crashes.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `is forgotten only when nothing can bring rows back`(seed: UInt64) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      var small = options()
      small.manifestSize = 300
      let opened = small
      let fileSystem = SimulatedFileSystem()
      let first = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      let engine = try await Engine.open(
        at: "/db", options: opened, environment: first.environment)
      try await engine.put(0x1000, Array(0..<30), [1])
      try await engine.put(0x1001, Array(0..<30), [1])
      if seed != 1 { try await engine.flush() }
      try await engine.put(0x1001, Array(30..<60), [1])
      try await engine.drop(keyspaces: [0x1001])
      #expect(engine.storage.manifest.state.dropped.keyspaces == [0x1001])
      // After a kill, the log has rows of the dropped keyspace, and recovery copies them to a newer
      // one.
      let second = SimulatedWorld(fileSystem: fileSystem.kill(), seed: seed, threads: executor)
      let again = try await Engine.open(
        at: "/db", options: opened, environment: second.environment)
      try await again.storage.waitForRecovery()
      #expect(again.storage.manifest.state.dropped.keyspaces == [0x1001])
      for round in 0..<40 {
        try await again.put(0x1000, [round], [UInt8](repeating: 2, count: 400))
        if round % 5 == 4 { try await again.compact() }
      }
      #expect(try again.numbers(in: 0x1001) == [])
      #expect(try again.numbers(in: 0x1000).count == 40)
      #expect(again.storage.manifest.state.dropped.isEmpty)
      try await again.close()
      let last = try await Engine.open(
        at: "/db", options: opened, environment: second.environment)
      #expect(try last.numbers(in: 0x1001) == [])
      try await last.close()
      try? await engine.close()
    }
  }

  @Test func `lasts over a reopening`() throws {
    try SimulationExecutor.run(seed: 2) { executor in
      let world = SimulatedWorld(seed: 2, threads: executor)
      let open = {
        try await Engine.open(at: "/db", options: options(), environment: world.environment)
      }
      var engine = try await open()
      try await engine.put(0x1000, Array(0..<50), [1])
      try await engine.put(0x1001, Array(0..<50), [1])
      try await engine.drop(keyspaces: [0x1001, 0x1005])
      try await engine.close()
      engine = try await open()
      #expect(try engine.numbers(in: 0x1001) == [])
      #expect(try engine.numbers(in: 0x1000).count == 50)
      try await engine.close()
    }
  }

  @Test func `keeps what a snapshot holds, and names its holder`() throws {
    try simulate(seed: 4) { engine, world in
      try await engine.put(0x1000, Array(0..<40), [UInt8](repeating: 1, count: 100))
      try await engine.compact()
      do {
        let snapshot = try engine.snapshot(owner: "a backup")
        try await engine.drop(keyspaces: [0x1000])
        #expect(engine.metrics.pins.owners == ["a backup"])
        #expect(engine.metrics.pins.bytes > 0)
        #expect(engine.metrics.pins.ageMicroseconds > 0)
        #expect(segmentFiles(world) > 0)
        #expect(try await snapshot.get(key(0x1000, 3)) != nil)
      }
      #expect(engine.metrics.pins == PinnedFiles.none)
      #expect(segmentFiles(world) == 0)
    }
  }
}
