// Every wait for the engine ends, whatever comes between two of its steps.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `Whoever waits` {
  // A `.memory` commit once came between the writing of delayed frames and a look at their end, and
  // then `synchronize()` waited for a frame that no one would write. Delayed syncs, flushes and the
  // change feed waited with it, until another commit came.
  @Test(arguments: Seeds.first(4))
  func `continues, and names what does not`(seed: UInt64) throws {
    for number in 0..<150 {
      let seed = SeededRandom.derive(seed, number)
      do {
        try SimulationExecutor.run(seed: seed) { executor in
          try await workTogether(executor, seed: seed)
        }
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
  }

  private func workTogether(_ executor: SimulationExecutor, seed: UInt64) async throws {
    let world = SimulatedWorld(seed: seed, threads: executor)
    var random = SeededRandom(seed: seed)
    var options = EngineOptions()
    options.shardCount = 1
    options.callersSync = random.chance(1, in: 2)
    options.deferredBytes = random.pick([200, 1 << 20])
    let engine = try await Engine.open(
      at: "/db", options: options, environment: world.environment)
    try await commit(0, .power, to: engine)
    try await withThrowingTaskGroup { group in
      for number in 1...6 {
        let plan = random.pick(
          [
            nil, nil, .memory, .memory, .process, .power, .periodic(microseconds: 500),
          ] as [Durability?])
        group.addTask {
          try await executor.waiting(for: plan.map { "commit .\($0)" } ?? "synchronize") {
            guard let plan else { return try await engine.synchronize() }
            for step in 0..<3 { try await commit(10 * number + step, plan, to: engine) }
          }
        }
      }
      if random.chance(1, in: 4) {
        group.addTask { try await executor.waiting(for: "flush") { try await engine.flush() } }
      }
      try await group.waitForAll()
    }
    try await executor.waiting(for: "close") { try await engine.close() }
  }

  private func commit(
    _ number: Int, _ durability: Durability, to engine: Engine
  ) async throws(EngineError) {
    var batch = Batch()
    batch.put([0, 0, 0x10, 0, UInt8(number)].bytes, [1].bytes)
    _ = try await engine.commit(batch, durability: durability)
  }
}
