// Several opens of one database on a store, as in several processes: the others see one's commits
// in the same order, listeners receive them, and transactions are serializable whoever runs them,
// while the store is late, loses requests and loses answers.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct SharedStoreTests {
  static let faults = StoreFaults(lostRequests: 20, lostAnswers: 20, delay: 3_000)

  private func open(
    _ store: SimulatedStore, _ environment: Environment, count: Int = 3
  ) async throws -> [Database] {
    var databases: [Database] = []
    for _ in 0..<count {
      databases.append(
        try await Database.open(at: store.name, environment: environment, on: store))
    }
    return databases
  }

  @Test(arguments: Seeds.first(12))
  func `Transactions of three processes are serializable`(seed: UInt64) throws {
    let history = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let store = SimulatedStore(seed: seed, environment: world.environment)
      let databases = try await open(store, world.environment)
      store.faults = Self.faults
      let history = try await HistoryWorkload(databases: databases, seed: seed, rounds: 4).run()
      store.faults = .none
      for database in databases { try await database.close() }
      return history
    }
    #expect(history.violation() == nil, "seed \(seed)")
  }

  @Test(arguments: Seeds.first(4))
  func `On real threads they are as well`(seed: UInt64) async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: seed, environment: environment)
    let databases = try await open(store, environment)
    let history = try await HistoryWorkload(databases: databases, seed: seed).run()
    #expect(history.violation() == nil, "seed \(seed)")
    for database in databases { try await database.close() }
  }

  @Test func `The others see one's commits, and their listeners receive them`() async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: 1, environment: environment)
    let databases = try await open(store, environment, count: 2)
    let query = databases[1].collection("items").whereField("price", isGreaterThan: 10)
    var results = query.snapshots.makeAsyncIterator()
    #expect(try await results.next()?.documents.isEmpty == true)
    try await databases[0].document("items/lamp").setData(["price": 30])
    #expect(try await results.next()?.documents.map(\.documentID) == ["lamp"])
    try await databases[1].document("items/lamp").updateData(["price": 40])
    #expect(try await results.next()?.documents.first?["price"] as Int? == 40)
    try await databases[0].refresh()
    #expect(try await databases[0].document("items/lamp").getDocument()["price"] as Int? == 40)
    for database in databases { try await database.close() }
  }

  /// The list of collections was once remembered from the last step of others. For a collection
  /// that the process itself had created or renamed since, it received nothing that others wrote.
  @Test func `A listener hears of others in a collection that its process made`() async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: 5, environment: environment)
    let databases = try await open(store, environment, count: 2)
    let (one, other) = (databases[0], databases[1])
    var steps = other.collection("before").snapshots.makeAsyncIterator()
    #expect(try await steps.next()?.documents.isEmpty == true)
    try await one.document("before/a").setData(["n": 1])
    #expect(try await steps.next()?.documents.count == 1)

    var made = other.collection("made").snapshots.makeAsyncIterator()
    #expect(try await made.next()?.documents.isEmpty == true)
    try await other.document("made/a").setData(["n": 1])
    #expect(try await made.next()?.documents.map(\.documentID) == ["a"])
    try await one.refresh()
    try await one.document("made/b").setData(["n": 2])
    #expect(try await made.next()?.documents.map(\.documentID) == ["a", "b"])

    var migrator = Migrator()
    migrator.register("renaming") { $0.renameCollection("made", to: "renamed") }
    _ = try await migrator.migrate(other)
    var renamed = other.collection("renamed").snapshots.makeAsyncIterator()
    #expect(try await renamed.next()?.documents.count == 2)
    try await one.refresh()
    try await one.document("renamed/c").setData(["n": 3])
    #expect(try await renamed.next()?.documents.map(\.documentID) == ["a", "b", "c"])
    for database in databases { try await database.close() }
  }

  @Test func `An index that one makes the others keep and use`() async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: 2, environment: environment)
    let databases = try await open(store, environment, count: 2)
    for number in 0..<40 {
      try await databases[number % 2].document("items/\(number)").setData(["price": number])
    }
    try await databases[0].collection("items").createIndex(on: ["price"])
    // Right away, whatever the other has received: its commit is refused and repeated.
    try await databases[1].document("items/new").setData(["price": 7])
    for database in databases {
      try await database.refresh()
      let query = database.collection("items").whereField("price", isEqualTo: 7)
      #expect(try await query.explain().indexName == "price")
      #expect(try await Set(query.getDocuments().documents.map(\.documentID)) == ["7", "new"])
      let report = try await database.verify(depth: .blocks)
      #expect(report == [])
    }
    for database in databases { try await database.close() }
  }

  /// It once made a database without a document, and reported success.
  @Test func `A backup there is refused, and makes nothing`() async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: 4, environment: environment)
    let database = try await open(store, environment, count: 1)[0]
    try await database.document("items/lamp").setData(["price": 0])
    let fileSystem = MemoryFileSystem()
    let error = await #expect(throws: DatabaseError.self) {
      try await database.backup(to: "copy", in: fileSystem)
    }
    #expect(error?.code == .unimplemented)
    #expect(throws: EngineError.self) { try fileSystem.openDirectory(at: "copy", create: false) }
    let streamed = await #expect(throws: DatabaseError.self) {
      try await database.backup { _ in Issue.record("a piece of nothing") }
    }
    #expect(streamed?.code == .unimplemented)
    try await database.close()
  }

  @Test func `A process that was away for long continues reading once it is back`() async throws {
    let world = SimulatedWorld(seed: 3)
    let store = SimulatedStore(seed: 3, environment: world.environment)
    func open() async throws -> Database {
      try await Database.open(at: store.name, environment: world.environment, on: store)
    }
    let writer = try await open()
    for name in ["desk", "lamp"] {
      try await writer.document("items/\(name)").setData(["price": 30])
    }
    let away = try await open()
    world.pass(seconds: 700)
    try await writer.document("items/lamp").updateData(["price": 40])
    try await away.refresh()
    try await writer.engine.flush(shardOf: ContentKey.locations.prefix)
    await writer.engine.forgetVersions()
    let error = await #expect(throws: DatabaseError.self) {
      try await away.document("items/desk").getDocument()
    }
    #expect(error?.code == .aborted)
    await away.engine.forgetVersions()
    #expect(try await away.document("items/desk").getDocument()["price"] as Int? == 30)
    #expect(try await away.document("items/lamp").getDocument()["price"] as Int? == 40)
    for database in [writer, away] { try await database.close() }
  }

  @Test func `Invisible versions are forgotten`() async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: 3, environment: environment)
    let database = try await open(store, environment, count: 1)[0]
    let item = database.document("items/lamp")
    try await item.setData(["price": 0])
    let few = store.versionCount
    for price in 1...200 { try await item.setData(["price": price]) }
    #expect(store.versionCount >= few + 200)
    try await database.engine.flush(shardOf: [0, 0, 0, 0])
    // A base that a read has released may live a moment longer on the read's thread.
    for _ in 0..<10_000 where store.versionCount > few + 2 {
      await database.engine.forgetVersions()
      await Task.yield()
    }
    #expect(store.versionCount <= few + 2)
    #expect(try await item.getDocument()["price"] as Int? == 200)
    try await database.close()
  }
}
