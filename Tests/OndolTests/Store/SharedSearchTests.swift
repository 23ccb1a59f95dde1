// An index of words on a store that two processes maintain at the same time. It finds what a walk
// over all texts finds, however their steps interleave, and when one of them dies in the middle of
// its work.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Texts of a few words, in a database that two processes have open.
private final class SharedNotes {
  private static let words = ["lamp", "lantern", "table", "chair", "desk", "shelf", "rug", "door"]

  private let databases: [Database]
  private var random: SeededRandom
  private var texts: [String: Set<String>] = [:]

  init(_ databases: [Database], seed: UInt64) {
    self.databases = databases
    random = SeededRandom(seed: seed)
  }

  /// Writes and deletes some, through either process.
  func write(_ count: Int) async throws {
    for database in databases {
      let batch = database.batch()
      var ids: Set<String> = []
      for _ in 0..<count {
        let id = "\(random.below(3 * count))"
        guard ids.insert(id).inserted else { continue }
        if random.chance(1, in: 4) {
          batch.deleteDocument(database.document("notes/\(id)"))
          texts[id] = nil
        } else {
          let words = Set((0..<3).map { _ in random.pick(Self.words) })
          try batch.setData(
            ["text": words.sorted().joined(separator: " ")],
            forDocument: database.document("notes/\(id)"))
          texts[id] = words
        }
      }
      try await batch.commit()
    }
  }

  /// The differences between the index's results and the expected ones.
  func differences(in database: Database) async throws -> [String] {
    var found: [String] = []
    for word in Self.words {
      let query = database.collection("notes").query.limit(to: 1_000).search(word, in: "text")
      let ids = try await query.getMatches().map(\.document.documentID)
      let expected = texts.filter { $0.value.contains(word) }.keys.sorted()
      if ids.sorted() != expected { found.append("\(word): \(ids.sorted()), not \(expected)") }
    }
    return found + (try await database.verify(depth: .full)).map { "\($0)" }
  }
}

@Suite struct `An index of words on a store` {
  private static func open(
    _ world: SimulatedWorld, on way: any RemoteStore
  ) async throws -> Database {
    try await Database.open(at: "store", environment: world.environment, on: way)
  }

  @Test(arguments: Seeds.first(24))
  func `has one process at a time for its upkeep`(seed: UInt64) throws {
    let differences = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let store = SimulatedStore(seed: seed, environment: world.environment)
      let (one, other) = (
        try await Self.open(world, on: store), try await Self.open(world, on: store)
      )
      _ = try await one.collection("notes").createSearchIndex(on: ["text"])
      let notes = SharedNotes([one, other], seed: seed)
      for _ in 0..<4 {
        try await notes.write(20)
        async let first: Void = one.gatherSearchIndexes(of: "notes")
        async let second: Void = other.gatherSearchIndexes(of: "notes")
        _ = try await (first, second)
      }
      try await one.refresh()
      let differences = try await notes.differences(in: one)
      for database in [one, other] { try await database.close() }
      return differences
    }
    #expect(differences == [], "seed \(seed)")
  }

  @Test(arguments: Seeds.first(12))
  func `is gone on with when one dies in the middle`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let world = SimulatedWorld(seed: seed)
    let store = SimulatedStore(seed: seed, environment: world.environment)
    let way = MortalStore(store)
    let (one, other) = (try await Self.open(world, on: way), try await Self.open(world, on: store))
    _ = try await other.collection("notes").createSearchIndex(on: ["text"])
    let notes = SharedNotes([other], seed: seed)
    for _ in 0..<4 {
      try await notes.write(20)
      try await other.gatherSearchIndexes(of: "notes")
      try await notes.write(20)
    }
    try await one.refresh()
    way.die(behind: random.below(24))
    let dying = Task { try? await one.gatherSearchIndexes(of: "notes") }
    for _ in 0..<10_000 where !way.hasDied { await Task.yield() }
    way.die()
    world.pass(seconds: 121)
    await other.engine.forgetVersions()
    try await notes.write(20)
    try await other.gatherSearchIndexes(of: "notes")
    #expect(try await notes.differences(in: other) == [], "seed \(seed)")
    dying.cancel()
    try await other.close()
    withExtendedLifetime(one) {}
  }

  /// Its next commit belongs to a job that the other process has taken over: chunks of a run under
  /// the number of a run that the other one has created in the meantime.
  @Test(arguments: Seeds.first(12))
  func `takes nothing from one that was away in the middle`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let world = SimulatedWorld(seed: seed)
    let store = SimulatedStore(seed: seed, environment: world.environment)
    let way = MortalStore(store)
    let (one, other) = (try await Self.open(world, on: way), try await Self.open(world, on: store))
    _ = try await other.collection("notes").createSearchIndex(on: ["text"])
    let notes = SharedNotes([other], seed: seed)
    for _ in 0..<4 {
      try await notes.write(20)
      try await other.gatherSearchIndexes(of: "notes")
      try await notes.write(20)
    }
    try await one.refresh()
    way.stop(behind: random.below(12))
    let away = Task { try await one.gatherSearchIndexes(of: "notes") }
    for _ in 0..<10_000 where !way.hasStopped { await Task.yield() }
    world.pass(seconds: 121)
    await other.engine.forgetVersions()
    // A run with the number of the other one's merge: it is not merged itself, and otherwise the
    // new chunks would not matter.
    try await notes.write(150)
    try await other.settleSearchIndexes(of: "notes")
    way.goOn()
    try await away.value
    try await other.refresh()
    #expect(try await notes.differences(in: other) == [], "seed \(seed)")
    for database in [one, other] { try await database.close() }
  }
}
