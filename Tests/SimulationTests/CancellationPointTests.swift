// A task is cancelled at every step of every call of the engine. The call ends, reports the true
// outcome, nobody waits forever, and the database continues.

import OndolEngine
import OndolTestKit
import Testing

/// A call that waits.
private enum Call: String, CaseIterable {
  case commitToMemory, commitToProcess, commitForPower, commitPeriodically
  case synchronize, flush, settle, drop, history, store, storeFile, snapshot

  /// The durability, if it is a commit.
  var durability: Durability? {
    switch self {
    case .commitToMemory: .memory
    case .commitToProcess: .process
    case .commitForPower: .power
    case .commitPeriodically: .periodic(microseconds: 300)
    default: nil
    }
  }
}

private func open(
  _ fileSystem: SimulatedFileSystem, _ executor: SimulationExecutor
) async throws(EngineError) -> Engine {
  var options = EngineOptions()
  options.shardCount = 1
  options.inlineContentSize = 16
  options.historyRetention = HistoryRetention(microseconds: .max, bytes: .max)
  let world = SimulatedWorld(fileSystem: fileSystem, seed: 1, threads: executor)
  return try await Engine.open(at: "/db", options: options, environment: world.environment)
}

private func batch(_ number: UInt8) -> Batch {
  var batch = Batch()
  batch.put([0, 0, 0x10, 0, number].bytes, [UInt8](repeating: number, count: 50).bytes)
  return batch
}

private func has(_ number: UInt8, _ engine: Engine) async throws -> Bool {
  try await engine.snapshot().get([0, 0, 0x10, 0, number]) != nil
}

extension Call {
  func run(on engine: Engine) async throws {
    if let durability {
      _ = try await engine.commit(batch(100), durability: durability)
      return
    }
    switch self {
    case .synchronize: try await engine.synchronize()
    case .flush: try await engine.flush()
    case .settle: try await engine.compact()
    case .drop: try await engine.drop(keyspaces: [0x2000])
    case .history:
      var history = engine.history(after: CommitPoint(sequence: .zero, time: 0))
      while case let some = try await history.next(), !some.isEmpty {}
    case .store:
      let location = try await engine.contents.append(
        [UInt8](repeating: 1, count: 500), digest: [UInt8](repeating: 1, count: 32))
      engine.contents.decide(location)
    case .storeFile:
      let writer = try await engine.contents.makeFile()
      try await writer.write(0..<900, of: [UInt8](repeating: 1, count: 900))
      _ = try await writer.finish()
    default: _ = try await has(1, engine)
    }
  }
}

@Suite struct `A cancelled call` {
  @Test(arguments: Call.allCases)
  fileprivate func `ends at whatever step it was, and the database continues`(call: Call) throws {
    for seed in Seeds.first(1) {
      var steps = 0
      while try !isOver(call, cancelledAfter: steps, seed: seed) { steps += 1 }
      #expect(steps > 0 || call == .snapshot)
    }
  }

  /// Whether the call had ended before its cancellation.
  private func isOver(
    _ call: Call, cancelledAfter steps: Int, seed: UInt64
  ) throws -> Bool {
    let place = "SEED=\(seed), \(call.rawValue) cancelled after \(steps) steps"
    let fileSystem = SimulatedFileSystem()
    let (isOver, hasCommitted) = try SimulationExecutor.run(seed: seed) { executor in
      let engine = try await open(fileSystem, executor)
      for number: UInt8 in 1...6 {
        _ = try await engine.commit(batch(number), durability: number % 2 == 0 ? .memory : .power)
      }
      let task = Task(executorPreference: executor) {
        try await executor.waiting(for: call.rawValue) { try await call.run(on: engine) }
      }
      executor.plan(after: steps) { task.cancel() }
      let result = await task.result
      let isOver = !executor.isPlanDone
      executor.plan(after: .max >> 1) {}
      let isThere = try await has(100, engine)
      if call.durability != nil {
        #expect(isThere == ((try? result.get()) != nil), "\(place): \(result)")
      }
      try await executor.waiting(for: "the next commit") {
        _ = try await engine.commit(batch(101), durability: .power)
      }
      try await executor.waiting(for: "close") { try await engine.close() }
      return (isOver, isThere)
    }
    let found = try SimulationExecutor.run(seed: seed) { executor in
      let engine = try await open(fileSystem, executor)
      let found = (try await has(100, engine), try await has(101, engine))
      try await engine.close()
      return found
    }
    #expect(found == (hasCommitted, true), "\(place)")
    return isOver
  }
}
