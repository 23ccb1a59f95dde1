// Feeds and returning listeners in random histories of several lives: see ChangeTrial.

import Ondol
import OndolTestKit
import Testing

@Suite struct ChangePropertyTests {
  @Test(arguments: [false, true])
  func `A returning reader receives everything that happened in the meantime`(onStore: Bool) throws
  {
    var counts = ChangeCounts()
    for seed in Seeds.first(40) {
      do {
        counts += try ChangeTrial.run(seed: seed, onStore: onStore)
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    print(
      "Changes: \(counts.lives) lives, \(counts.commits) commits, \(counts.told) told in"
        + " \(counts.resumptions) stretches, \(counts.lost) lost, \(counts.keptLogs) logs kept,"
        + " \(counts.results) results with \(counts.differences) differences,"
        + " \(counts.forgotten) places forgotten")
    // One seed alone, or a few, need not meet everything.
    guard counts.lives > 100 else { return }
    #expect(counts.told > counts.commits / 2)
    #expect(counts.differences > counts.results)
    #expect(counts.lost > 10 && counts.forgotten > 2)
    #expect(onStore || counts.keptLogs > counts.lives)
  }

  /// With seed 22 a log was once begun while commits of the one before were visible and not yet in
  /// it, which a feed took for damage.
  @Test(arguments: Seeds.first(24))
  func `Commits of several writers arrive in their order`(seed: UInt64) throws {
    let (writers, writes) = (4, 40)
    let changes = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      defer { withExtendedLifetime(world) {} }
      let database = try await Database.open(
        at: "/db", options: .init(shardCount: 2, changeRetention: .init(duration: nil)),
        environment: world.environment)
      let feed = database.changes()
      return try await withThrowingTaskGroup(of: [DatabaseChange].self) { group in
        for writer in 0..<writers {
          group.addTask {
            var random = SeededRandom(seed: SeededRandom.derive(seed, writer))
            for write in 0..<writes {
              try await database.document("c/\(random.below(6))").setData(
                ["w": writer, "n": write],
                durability: random.pick([.memory, .process, .power] as [Ondol.Durability]))
            }
            return []
          }
        }
        group.addTask {
          var changes: [DatabaseChange] = []
          for try await change in feed {
            changes.append(change)
            if changes.count == writers * writes { break }
          }
          return changes
        }
        let changes = try await group.reduce([], +)
        try await database.close()
        return changes
      }
    }
    var state: [String: DocumentSnapshot] = [:]
    for (change, next) in zip(changes, changes.dropFirst()) {
      #expect(change.version < next.version && change.time < next.time)
    }
    for document in changes.flatMap(\.documents) {
      let path = document.reference.path
      #expect(document.before.exists ? state[path] == document.before : state[path] == nil)
      state[path] = document.after
    }
    for writer in 0..<writers {
      let mine = changes.flatMap(\.documents).filter { $0.after["w"] as Int? == writer }
      #expect(mine.map { $0.after["n"] as Int? } == Array(0..<writes))
    }
  }
}
