// Sessions in random histories: for each target, a client's state from the steps so far is the
// database's state at the commit of the last step. The test keeps the true state after every commit
// beside the database.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ListeningSessionTests {
  @Test func `Every step shows all targets as of one commit`() async throws {
    var steps = 0
    for seed in Seeds.first(120) {
      do {
        var trial = SessionTrial(seed: seed)
        steps += try await trial.run()
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    #expect(steps > 2_000)
  }

  @Test func `A new target is acknowledged, complete and then quiet`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/a").setData(["n": 1])
    let session = ListeningSession(database)
    try await session.add(7, .query(database.collection("c").query))
    let first = try #require(try await session.next())
    #expect(first.acknowledged.map(\.target) == [7])
    #expect(first.completed == [7])
    #expect(first.changes.map(\.document.documentID) == ["a"])
    try await database.document("d/other").setData(["n": 1])
    try await database.document("c/b").setData(["n": 2])
    let second = try #require(try await session.next())
    #expect(second.changes.map(\.document.documentID) == ["b"])
    #expect(second.completed == [])
  }

  @Test func `A document that leaves a result is distinguished from a deleted one`() async throws {
    let database = try await Database.underTest()
    let collection = database.collection("c")
    for id in ["left", "gone"] { try await collection.document(id).setData(["n": 1]) }
    let session = ListeningSession(database)
    try await session.add(1, .query(collection.whereField("n", isEqualTo: 1)))
    _ = try await session.next()
    let batch = database.batch()
    try batch.setData(["n": 2], forDocument: collection.document("left"))
    batch.deleteDocument(collection.document("gone"))
    try await batch.commit()
    let step = try #require(try await session.next())
    let exists = Dictionary(
      uniqueKeysWithValues: step.changes.map { ($0.document.documentID, $0.exists) })
    #expect(exists == ["left": true, "gone": false])
    #expect(step.changes.allSatisfy { $0.targets.isEmpty && $0.left == [1] })
  }

  @Test func `A client that comes back receives the difference, or must begin again`() async throws
  {
    var options = Database.Options()
    options.changeRetention = Database.ChangeRetention()
    let database = try await Database.inMemory(options: options)
    let collection = database.collection("c")
    for id in ["kept", "changed", "gone"] {
      try await collection.document(id).setData(["n": 1])
    }
    let token = try database.changeToken()
    try await collection.document("changed").setData(["n": 2])
    try await collection.document("gone").delete()
    let session = ListeningSession(database)
    try await session.add(1, .query(collection.query), from: .result(asOf: token))
    try await session.add(2, .query(collection.query), from: .something)
    let step = try #require(try await session.next())
    #expect(step.reset == [2])
    let counts = try #require(step.counts[1])
    #expect(counts.seen == 3 && counts.now == 2)
    let shown = Set(step.changes.filter { $0.targets.contains(1) }.map(\.document.documentID))
    #expect(shown == ["changed"])
    let left = Set(step.changes.filter { $0.left.contains(1) }.map(\.document.documentID))
    #expect(left == ["gone"])
  }

  @Test func `A session ends with its database`() async throws {
    let database = try await Database.underTest()
    let session = ListeningSession(database)
    try await session.add(1, .query(database.collection("c").query))
    _ = try await session.next()
    async let next = session.next()
    try await database.close()
    let last = try await next
    #expect(last == nil)
    #expect(database.observerCount == 0)
  }
}

/// One history: commits, targets that come and go, and a client that sometimes asks.
private struct SessionTrial {
  struct Problem: Error, CustomStringConvertible {
    let description: String
  }

  private typealias State = [String: Int64]

  private var random: SeededRandom
  /// The client's state of each target: the number in each document.
  private var client: [Int32: State] = [:]
  private var active: [Int32: (name: String, holds: (String, Int64) -> Bool, limit: Int?)] = [:]
  /// The collection after each commit.
  private var truth: [UInt64: State] = [:]
  private var steps = 0

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  mutating func run() async throws -> Int {
    let database = try await Database.inMemory()
    let session = ListeningSession(database)
    truth[database.snapshot().version.rawValue] = [:]
    for _ in 0..<60 {
      switch random.below(10) {
      case 0..<5: try await commit(to: database)
      case 5: try await add(to: session, database)
      case 6: try await remove(from: session)
      default: try await take(from: session)
      }
    }
    try await commit(to: database)
    try await add(to: session, database)
    while client.count < active.count || isBehind(database) { try await take(from: session) }
    try await database.close()
    return steps
  }

  private func isBehind(_ database: Database) -> Bool {
    let newest = truth[database.snapshot().version.rawValue] ?? [:]
    return active.keys.contains { client[$0] != expected($0, newest) }
  }

  private mutating func commit(to database: Database) async throws {
    let count = 1 + random.below(random.below(8) == 0 ? 40 : 4)
    var state = truth[database.snapshot().version.rawValue] ?? [:]
    let batch = database.batch()
    for _ in 0..<count {
      let id = "d\(random.below(60))"
      let document = database.document("c/\(id)")
      if random.below(4) == 0 {
        batch.deleteDocument(document)
        state[id] = nil
      } else {
        let number = Int64(random.below(20))
        try batch.setData(["n": .integer(number)] as [String: Value], forDocument: document)
        state[id] = number
      }
    }
    try await batch.commit()
    truth[database.snapshot().version.rawValue] = state
  }

  private mutating func add(to session: ListeningSession, _ database: Database) async throws {
    let id = Int32(1 + random.below(6))
    let collection = database.collection("c")
    let bound = Int64(random.below(20))
    switch random.below(4) {
    case 0:
      try await session.add(id, .query(collection.query))
      active[id] = ("all", { _, _ in true }, nil)
    case 1:
      try await session.add(
        id, .query(collection.whereField("n", isLessThan: Value.integer(bound))))
      active[id] = ("below \(bound)", { _, number in number < bound }, nil)
    case 2:
      try await session.add(id, .query(collection.order(by: "n").limit(to: 5)))
      active[id] = ("first 5", { _, _ in true }, 5)
    default:
      let ids = (0..<5).map { _ in "d\(random.below(60))" }
      try await session.add(id, .documents(try ids.map { try DocumentPath("c/\($0)") }))
      active[id] = ("documents", { id, _ in ids.contains(id) }, nil)
    }
    client[id] = nil
  }

  private mutating func remove(from session: ListeningSession) async throws {
    guard let id = active.keys.sorted().first else { return }
    await session.remove(id)
    active[id] = nil
    client[id] = nil
  }

  /// Takes a step, which may be empty.
  private mutating func take(from session: ListeningSession) async throws {
    let step = try await session.takeStep()
    steps += 1
    for (id, isAdded) in step.acknowledged where isAdded { client[id] = [:] }
    for change in step.changes {
      for id in change.targets {
        guard client[id] != nil else { throw Problem(description: "\(id) was not acknowledged") }
        client[id]?[change.document.documentID] = change.document["n"] as Int64?
      }
      for id in change.left { client[id]?[change.document.documentID] = nil }
    }
    let version = step.version.rawValue
    let state = try #require(truth[version])
    for id in active.keys where client[id] != nil {
      let expected = expected(id, state)
      guard client[id] == expected else {
        throw Problem(
          description: "target \(id), \(active[id]?.name ?? ""), at \(version): has"
            + " \(client[id] ?? [:]) and should have \(expected)")
      }
    }
  }

  private func expected(_ id: Int32, _ state: State) -> State {
    guard let target = active[id] else { return [:] }
    var found = state.filter { target.holds($0.key, $0.value) }
      .sorted { ($0.value, $0.key) < ($1.value, $1.key) }
    if let limit = target.limit { found = Array(found.prefix(limit)) }
    return Dictionary(uniqueKeysWithValues: found.map { ($0.key, $0.value) })
  }
}
