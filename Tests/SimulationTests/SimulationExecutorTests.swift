// The seed alone decides what runs next.

import OndolEngine
import OndolTestKit
import Testing

private actor Diary {
  var entries: [Int] = []

  func note(_ entry: Int) { entries.append(entry) }
}

/// Four tasks on one actor, with a worker's job between their two notes.
private func interleaving(seed: UInt64) throws -> [Int] {
  try SimulationExecutor.run(seed: seed) { executor in
    let diary = Diary()
    let worker = executor.makeWorker(named: "test")
    await withTaskGroup { group in
      for number in 1...4 {
        group.addTask {
          await diary.note(number)
          await worker.perform {}
          await diary.note(-number)
        }
      }
    }
    await worker.stop()
    return await diary.entries
  }
}

@Suite struct `A simulated executor` {
  @Test func `replays an interleaving from its seed`() throws {
    for seed: UInt64 in 0..<20 {
      #expect(try interleaving(seed: seed) == interleaving(seed: seed), "SEED=\(seed)")
    }
  }

  @Test func `finds many interleavings over many seeds`() throws {
    var seen: Set<[Int]> = []
    for seed: UInt64 in 0..<100 {
      let order = try interleaving(seed: seed)
      #expect(order.map(abs).sorted() == [1, 1, 2, 2, 3, 3, 4, 4])
      seen.insert(order)
    }
    #expect(seen.count > 50)
  }

  @Test func `runs a worker's jobs in the order given`() throws {
    for seed: UInt64 in 0..<20 {
      let order = try SimulationExecutor.run(seed: seed) { executor in
        let worker = executor.makeWorker(named: "test")
        let order = Guarded<[Int]>([])
        for number in 0..<10 {
          worker.enqueue { order.withLock { $0.append(number) } }
        }
        await worker.stop()
        return order.withLock { $0 }
      }
      #expect(order == Array(0..<10), "SEED=\(seed)")
    }
  }

  @Test func `says so when nothing can run any more`() {
    #expect(throws: SimulationExecutor.Stalled.self) {
      try SimulationExecutor.run(seed: 1) { _ in
        for await _ in AsyncStream<Int>(unfolding: { await forever() }) {}
      }
    }
  }

  @Test func `passes on what the body throws`() {
    #expect(throws: EngineError.closed) {
      try SimulationExecutor.run(seed: 1) { _ in throw EngineError.closed }
    }
  }
}

/// Waits until it is cancelled for a neighbour that never comes.
private func forever() async -> Int? {
  let (stream, _) = AsyncStream<Int>.makeStream()
  return await stream.first { _ in true }
}

@Suite struct `Inline workers` {
  @Test func `run a job at once, and a job's own jobs after it`() async {
    let worker = InlineWorkers().makeWorker(named: "test")
    let order = Guarded<[Int]>([])
    worker.enqueue {
      worker.enqueue { order.withLock { $0.append(2) } }
      order.withLock { $0.append(1) }
    }
    #expect(order.withLock { $0 } == [1, 2])
    #expect(await worker.perform { 3 } == 3)
    await worker.stop()
  }
}
