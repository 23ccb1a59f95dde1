// A write whose task is cancelled reports the truth: `.cancelled` if it has not happened, success
// if it has its place among the commits. The seed decides when the cancellation comes.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct CancellationTests {
  private enum Outcome: Sendable {
    case committed
    case cancelled
  }

  /// A document written with `write` by a task that is cancelled some steps later; the result for
  /// the task, and whether it came after the cancellation.
  private static func race(
    seed: UInt64, _ write: @escaping @Sendable (DocumentReference) async throws -> Void
  ) throws -> (outcome: Outcome, cameLater: Bool) {
    let fileSystem = SimulatedFileSystem()
    let told = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      var options = EngineOptions()
      // The log's own thread makes syncs, so that a commit waits for its turn there.
      options.callersSync = false
      let database = try await Database.open(
        at: "/db", environment: world.environment, engineOptions: options)
      let document = database.document("c/d")
      try await document.setData(["n": 0])
      let state = Guarded((isCancelled: false, outcome: Outcome?.none, cameLater: false))
      try await withThrowingTaskGroup { group in
        group.addTask {
          let outcome: Outcome
          do {
            try await write(document)
            outcome = .committed
          } catch {
            guard (error as? DatabaseError)?.code == .cancelled else { throw error }
            outcome = .cancelled
          }
          state.withLock { $0 = ($0.isCancelled, outcome, $0.isCancelled) }
        }
        for _ in 0..<(seed % 24) { await Task.yield() }
        state.withLock { $0.isCancelled = true }
        group.cancelAll()
        try await group.waitForAll()
      }
      let (_, outcome, cameLater) = state.withLock { $0 }
      let told = try #require(outcome)
      let value = try await document.getDocument()["n"] as Int?
      #expect(value == (told == .committed ? 1 : 0), "SEED=\(seed)")
      let disk = fileSystem.crash(seed: seed)
      try await database.close()
      return (outcome: told, cameLater: cameLater, disk: disk)
    }
    // A commit that was reported survives the power cut at this moment.
    let value = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: told.disk, seed: seed, threads: executor)
      let database = try await Database.open(at: "/db", environment: world.environment)
      let value = try await database.document("c/d").getDocument()["n"] as Int?
      try await database.close()
      return value
    }
    #expect(value == (told.outcome == .committed ? 1 : 0), "SEED=\(seed)")
    return (told.outcome, told.cameLater)
  }

  private static let writes: [@Sendable (DocumentReference) async throws -> Void] = [
    { try await $0.setData(["n": 1], durability: .power) },
    { document in
      try await document.database.runTransaction(durability: .power) { transaction in
        _ = try transaction.getDocument(document)
        try transaction.updateData(["n": 1], forDocument: document)
      }
    },
  ]

  @Test(arguments: [0, 1])
  func `A cancelled write that has its place succeeds, and another has not happened`(
    kind: Int
  ) throws {
    var lateSuccesses = 0
    var refusals = 0
    for seed in (1...160 as ClosedRange<UInt64>) {
      switch try Self.race(seed: seed, Self.writes[kind]) {
      case (.committed, true): lateSuccesses += 1
      case (.cancelled, _): refusals += 1
      case (.committed, false): break
      }
    }
    #expect(lateSuccesses > 2, "cancelled between its place and its end: \(lateSuccesses) times")
    #expect(refusals > 2, "cancelled before: \(refusals) times")
  }
}
