// Queries whose rows are not in memory. The thread for cold reads reads their blocks. While that
// thread is held, a query waits and its own thread continues; after the release the answer comes. A
// transaction's body cannot wait: it runs again.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ColdQueryTests {
  /// A database of 2,000 documents, just opened, with nothing in its cache.
  private func openCold(_ environment: Environment) async throws -> Database {
    var engineOptions = EngineOptions()
    engineOptions.smallShardSize = 0
    let database = try await Database.open(
      at: "/db", environment: environment, engineOptions: engineOptions)
    let items = database.collection("items")
    try await items.createIndex(on: ["group"])
    for start in stride(from: 0, to: 2_000, by: 500) {
      let batch = database.batch()
      for number in start..<start + 500 {
        // One value in twenty is large enough for a file of its own.
        let text = String(repeating: "x", count: number % 20 == 0 ? 10_000 : 100)
        try batch.setData(
          ["n": number, "group": number % 10, "text": text],
          forDocument: items.document("\(number)"))
      }
      try await batch.commit(durability: .process)
    }
    try await database.close()
    return try await Database.open(
      at: "/db", environment: environment, engineOptions: engineOptions)
  }

  @Test(arguments: ["scan", "index", "id", "count"])
  func `A query waits for blocks from disk without holding its thread`(
    kind: String
  ) async throws {
    var environment = Environment.memory()
    let workers = HeldWorkers()
    environment.threads = workers
    let database = try await openCold(environment)
    let items = database.collection("items")
    // Reading the catalog is not the subject here.
    _ = try await database.collection("items").document("none").getDocument()
    workers.hold()
    let count = Guarded<Int?>(nil)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        let found = try await Self.count(kind, in: items)
        count.withLock { $0 = found }
      }
      // A query that holds its thread while it reads finishes without waiting.
      while !workers.hasWaiting, count.withLock({ $0 }) == nil { await Task.yield() }
      #expect(workers.hasWaiting)
      workers.release()
      try await group.waitForAll()
    }
    #expect(count.withLock { $0 } == ["scan": 1_000, "index": 200, "id": 2, "count": 200][kind])
    try await database.close()
  }

  /// A query once ran to its end though its task was cancelled, and the next one waited for it.
  @Test(arguments: ["scan", "index", "count"], [true, false])
  func `A query ends when its task is cancelled, on its own thread and on one for cold reads`(
    kind: String, isCold: Bool
  ) async throws {
    var environment = Environment.memory()
    let workers = HeldWorkers()
    environment.threads = workers
    let database = try await openCold(environment)
    let items = database.collection("items")
    _ = try await items.document("none").getDocument()
    if !isCold { _ = try await Self.count(kind, in: items) }
    workers.hold()
    let isAllowed = Guarded(false)
    let query = Task {
      while !isAllowed.withLock({ $0 }) { await Task.yield() }
      return try await Self.count(kind, in: items)
    }
    if isCold {
      isAllowed.withLock { $0 = true }
      while !workers.hasWaiting { await Task.yield() }
      query.cancel()
    } else {
      query.cancel()
      isAllowed.withLock { $0 = true }
    }
    workers.release()
    do {
      _ = try await query.value
      Issue.record("the query went on")
    } catch {
      #expect((error as? DatabaseError)?.code == .cancelled)
    }
    // Nothing of it is left: the same query is answered afterwards.
    _ = try await Self.count(kind, in: items)
    try await database.close()
  }

  /// Reads of a transaction once blocked their caller's thread, including the main one.
  @Test(arguments: ["get", "query", "count", "lookup", "update", "delete", "create", "tree"])
  func `A transaction waits for blocks from disk without holding its thread`(
    kind: String
  ) async throws {
    var environment = Environment.memory()
    let workers = HeldWorkers()
    environment.threads = workers
    var database = try await openCold(environment)
    // So many that opening, which looks for indexes of the tree, reads other blocks.
    let children = Dictionary(
      uniqueKeysWithValues: (0..<2_000).map { ("k\($0)", Value.integer(7)) })
    try await database.tree.child("a").setValue(Value.map(children))
    try await database.collection("items").createIndex(on: ["n"], unique: true)
    try await database.close()
    var engineOptions = EngineOptions()
    engineOptions.smallShardSize = 0
    database = try await Database.open(
      at: "/db", environment: environment, engineOptions: engineOptions)
    let items = database.collection("items")
    workers.hold()
    let runs = Guarded(0)
    let isDone = Guarded(false)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [database] in
        defer { isDone.withLock { $0 = true } }
        let found = try await database.runTransaction { transaction in
          runs.withLock { $0 += 1 }
          return try Self.touch(kind, items, transaction)
        }
        #expect(found == (kind == "query" ? 200 : kind == "count" ? 2_000 : 7), "\(kind)")
      }
      while !workers.hasWaiting, !isDone.withLock({ $0 }) { await Task.yield() }
      #expect(workers.hasWaiting, "\(kind)")
      workers.release()
      try await group.waitForAll()
    }
    #expect(runs.withLock { $0 } > 1)
    let written = try await items.document("7").getDocument()
    #expect(written.exists == (kind != "delete"))
    #expect(written["seen"] as Bool? == (kind == "update" ? true : nil))
    try await database.close()
  }

  /// Reads or writes, and swallows the error of a read once.
  private static func touch(
    _ kind: String, _ items: CollectionReference, _ transaction: Transaction
  ) throws -> Int {
    let seven = items.document("7")
    switch kind {
    case "get": return try transaction.getDocument(seven)["n"] ?? 0
    case "query":
      let found = try? transaction.getDocuments(items.whereField("group", isEqualTo: 3))
      return found?.count ?? 0
    case "count":
      return try transaction.getAggregation(items.whereField("n", isLessThan: 5_000).count).count
    case "lookup":
      let found = try transaction.getDocuments(
        items.whereField("n", isEqualTo: 7).lookup("n", in: "items", as: "other"))
      return found.documents.first?["n"] ?? 0
    case "update": try transaction.updateData(["seen": true], forDocument: seven)
    case "delete": try transaction.deleteDocument(seven, recursive: true)
    case "create":
      try transaction.setData(["n": 9_999], forDocument: items.document("new"))
    default:
      return Int(try transaction.getData(items.database.tree.child("a/k1500")).value.integer ?? 0)
    }
    return 7
  }

  private static func count(_ kind: String, in items: CollectionReference) async throws -> Int {
    let third = items.whereField("group", isEqualTo: 3)
    return switch kind {
    case "scan": try await items.whereField("n", isLessThan: 1_000).getDocuments().documents.count
    case "index": try await third.getDocuments().documents.count
    case "id":
      try await items.whereField(FieldPath.documentID(), in: ["40", "41"]).getDocuments()
        .documents.count
    // A query that an index alone counts finishes before anyone looks.
    default: try await third.whereField("n", isLessThan: 10_000).count.getAggregation().count
    }
  }
}
