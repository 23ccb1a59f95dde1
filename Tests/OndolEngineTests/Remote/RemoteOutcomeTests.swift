// The outcomes of commits from three processes are true, though the store loses every third request
// and every third answer. An acknowledged commit exists once, in its reported place. A commit
// reported as not happened does not exist. Numbers have no gap.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct RemoteOutcomeTests {
  private struct Told: Sendable {
    var key: [UInt8]
    /// Nil if it was reported as not happened.
    var sequence: SequenceNumber?
  }

  @Test(arguments: Seeds.first(64))
  func `Every commit is there once, or never was`(seed: UInt64) throws {
    let (store, told) = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let store = SimulatedStore(
        seed: seed, environment: world.environment,
        faults: StoreFaults(lostRequests: 0, lostAnswers: 0, delay: 2_000))
      var engines: [Engine] = []
      for _ in 0..<3 {
        engines.append(try await Engine.open(on: store, environment: world.environment))
      }
      store.faults.lostRequests = 330
      store.faults.lostAnswers = 330
      let told = await withTaskGroup(of: [Told].self) { group in
        for (number, engine) in engines.enumerated() {
          for task in 0..<4 {
            group.addTask { await Self.write(to: engine, number * 4 + task) }
          }
        }
        return await group.reduce(into: []) { $0 += $1 }
      }
      store.faults = .none
      for engine in engines { try await engine.close() }
      return (store, told)
    }
    let log = store.newestCommits
    #expect(log.map(\.point.sequence.rawValue) == Array(1...UInt64(log.count)), "seed \(seed)")
    #expect(zip(log, log.dropFirst()).allSatisfy { $0.point.time < $1.point.time })
    var places: [[UInt8]: [SequenceNumber]] = [:]
    for commit in log {
      for row in commit.rows { places[row.key, default: []].append(commit.point.sequence) }
    }
    for commit in told {
      #expect(
        places[commit.key] ?? [] == (commit.sequence.map { [$0] } ?? []),
        "seed \(seed), \(commit.key)")
    }
    #expect(told.contains { $0.sequence != nil })
  }

  /// Makes commits with keys of their own, one after another.
  private static func write(to engine: Engine, _ writer: Int) async -> [Told] {
    var told: [Told] = []
    for number in 0..<25 {
      let key: [UInt8] = [0, 1, 0, 0, UInt8(writer), UInt8(number)]
      var batch = Batch()
      batch.put(key.bytes, key.bytes)
      let receipt = try? await engine.commit(batch, durability: .power)
      told.append(Told(key: key, sequence: receipt?.sequence))
    }
    return told
  }
}
