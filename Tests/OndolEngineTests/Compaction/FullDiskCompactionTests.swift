// Major compactions on disks of every size. One once needed as much free space as the whole shard,
// took it without a request, gave up the reserve if there was less, and so caused refused commits
// on a disk that had room for them. Now a quiet database takes only space that commits do not need,
// and merging everything on request needs room for a piece.

import OndolEngine
import OndolTestKit
import Testing

private func key(_ number: Int) -> [UInt8] { rowKey("k\(10_000 + number)") }

private func options() -> EngineOptions {
  var options = tinyOptions(shards: 1)
  options.segmentSize = 2 << 10
  options.logSize = 8 << 10
  options.compress = false
  return options
}

@Suite struct `A major compaction on a disk that is nearly full` {
  /// A database with a large lowest run and something new above it.
  private func prepare(_ world: SimulatedWorld) async throws -> (Engine, [[UInt8]: [UInt8]]) {
    var random = OndolTestKit.SeededRandom(seed: 7)
    let engine = try await Engine.open(
      at: "/db", options: options(), environment: world.environment)
    var rows: [[UInt8]: [UInt8]] = [:]
    func put(_ numbers: [Int]) async throws {
      let batch = Dictionary(
        numbers.map { (key($0), random.bytes(60)) }, uniquingKeysWith: { $1 })
      rows.merge(batch) { $1 }
      try await engine.put(batch.mapValues { $0 })
    }
    for start in stride(from: 0, to: 2_000, by: 20) { try await put(Array(start..<(start + 20))) }
    try await engine.compact()
    for _ in 0..<20 { try await put((0..<12).map { _ in random.below(2_000) }) }
    try await engine.flush()
    return (engine, rows)
  }

  @Test(arguments: Array(0..<16))
  func `refuses no commit for the sake of order`(step: Int) throws {
    try SimulationExecutor.run(seed: UInt64(step)) { executor in
      let world = SimulatedWorld(seed: 1, threads: executor)
      let (engine, rows) = try await prepare(world)
      let files = world.fileSystem
      // Commits need a log, its successor, and the reserve, which exists.
      let needed = 4 * options().logSize
      files.setCapacity(files.used + needed + step * 12_000)
      for round in 0..<60 {
        for _ in 0..<8 { await executor.doze() }
        _ = try await engine.put([rowKey("n\(round % 5)"): [1]], durability: .power)
      }
      for (key, value) in rows { #expect(try await engine.snapshot().get(key) == value) }
      files.setCapacity(nil)
      try await engine.close()
    }
  }

  @Test func `needs room for a piece when it is asked for`() throws {
    try SimulationExecutor.run(seed: 3) { executor in
      let world = SimulatedWorld(seed: 1, threads: executor)
      let (engine, rows) = try await prepare(world)
      let whole = Int(engine.metrics.shards[0].bytes)
      let piece = 10 * options().segmentSize
      #expect(whole > 5 * piece)
      world.fileSystem.setCapacity(world.fileSystem.used + 2 * piece)
      try await engine.compact()
      #expect(engine.metrics.shards[0].runs == 1)
      for (key, value) in rows { #expect(try await engine.snapshot().get(key) == value) }
      world.fileSystem.setCapacity(nil)
      try await engine.close()
    }
  }
}
