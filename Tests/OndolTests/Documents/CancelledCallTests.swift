// Every public call that suspends, cancelled before every one of its steps. Whatever it waits for
// then, the call ends: with what it was asked for, or with `.cancelled`. The database goes on, and
// closes. The world is simulated, so a call that waits for ever is found at once.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct CancelledCallTests {
  typealias Call = @Sendable (Database) async throws -> Void

  private static let documents: [(name: String, call: Call)] = [
    ("set", { try await $0.document("c/d").setData(["n": 2]) }),
    ("set below a new collection", { try await $0.document("new/d").setData(["n": 2]) }),
    ("update", { try await $0.document("c/d").updateData(["n": 2]) }),
    ("delete", { try await $0.document("c/d").delete() }),
    ("delete all below", { try await $0.document("c/d").delete(recursive: true) }),
    (
      "batch",
      { database in
        let batch = database.batch()
        for id in ["d", "e", "f"] {
          try batch.setData(["n": 2], forDocument: database.document("c/\(id)"))
        }
        try await batch.commit()
      }
    ),
    (
      "transaction",
      { database in
        try await database.runTransaction { transaction in
          let n = try transaction.getDocument(database.document("c/d"))["n"] as Int? ?? 0
          await Task.yield()
          try transaction.setData(["n": n + 1], forDocument: database.document("c/e"))
        }
      }
    ),
    ("get", { _ = try await $0.document("c/d").getDocument() }),
    ("query", { _ = try await $0.collection("c").order(by: "n").getDocuments() }),
    ("group query", { _ = try await $0.collectionGroup("c").getDocuments() }),
    ("count", { _ = try await $0.collection("c").count.getAggregation() }),
    ("lookup", { _ = try await $0.collection("c").lookup("n", in: "c", as: "x").getDocuments() }),
    (
      "listen",
      { database in
        var count = 0
        for try await _ in database.collection("c").snapshots {
          count += 1
          if count == 1 { try await database.document("c/g").setData(["n": 5]) } else { break }
        }
      }
    ),
    (
      "listen to a count",
      { database in
        for try await _ in database.collection("c").count.snapshots { break }
      }
    ),
    (
      "changes",
      { database in
        var changes = database.changes().makeAsyncIterator()
        try await database.document("c/g").setData(["n": 5])
        _ = try await changes.next()
      }
    ),
    ("collections", { _ = try await $0.listCollections() }),
  ]

  private static let catalog: [(name: String, call: Call)] = [
    ("make an index", { try await $0.collection("c").createIndex(on: ["n"]) }),
    ("drop an index", { try await $0.collection("i").dropIndex(named: "n") }),
    ("list indexes", { _ = try await $0.collection("i").listIndexes() }),
    ("drop", { try await $0.collection("i").drop() }),
    ("time to live", { try await $0.collection("c").setTimeToLive(field: "end") }),
    ("schema", { try await $0.collection("c").setSchema(version: 1) { _, _ in } }),
    ("synchronize", { try await $0.synchronize() }),
    ("compact", { try await $0.compact() }),
    ("verify", { _ = try await $0.verify() }),
    ("reclaim", { _ = try await $0.storage.reclaim() }),
    ("close", { try await $0.close() }),
  ]

  private static let storage: [(name: String, call: Call)] = [
    ("put", { _ = try await $0.storage.put([4, 5, 6] as [UInt8]) }),
    ("put an object", { try await $0.storage.reference(withPath: "p").putData([7] as [UInt8]) }),
    ("read an object", { _ = try await $0.storage.reference(withPath: "o").data(maxSize: 9) }),
    ("metadata", { _ = try await $0.storage.reference(withPath: "o").getMetadata() }),
    ("list objects", { _ = try await $0.storage.reference().listAll() }),
    (
      "move",
      { database in
        let object = database.storage.reference(withPath: "o")
        try await object.move(to: database.storage.reference(withPath: "p"))
      }
    ),
    ("delete an object", { try await $0.storage.reference(withPath: "o").delete() }),
    (
      "derive",
      { database in
        _ = try await database.storage.reference(withPath: "o").derive("small") { $0.prefix(1) }
      }
    ),
    ("statistics", { _ = try await $0.storage.statistics() }),
    ("set in the tree", { try await $0.tree.child("a").setValue(["x": 1]) }),
    ("update the tree", { try await $0.tree.updateChildValues(["a/x": 1, "b": 2]) }),
    ("get from the tree", { _ = try await $0.tree.getData() }),
    ("index of the tree", { try await $0.tree.createIndex(byChild: "x") }),
    ("on close", { try await $0.tree.child("a").onCloseSetValue(1) }),
    (
      "listen to the tree",
      { database in
        for try await _ in database.tree.observe(.childAdded) { break }
      }
    ),
  ]

  @Test func `A call on documents ends wherever it is cancelled`() throws {
    try Self.check(Self.documents)
  }

  @Test func `A call of upkeep ends wherever it is cancelled`() throws {
    try Self.check(Self.catalog)
  }

  @Test func `A call on storage or the tree ends wherever it is cancelled`() throws {
    try Self.check(Self.storage)
  }

  private static func check(_ calls: [(name: String, call: Call)]) throws {
    var cancelled = 0
    for (name, call) in calls {
      var step = 0
      var isOver = false
      while !isOver {
        do {
          let outcome = try run(call, cancelledAt: step)
          isOver = !outcome.wasInTime
          cancelled += outcome.isCancelled ? 1 : 0
        } catch {
          Issue.record("\(name), cancelled at step \(step): \(error)")
          isOver = true
        }
        step += 1
      }
      #expect(step > 1, "\(name) has no step at which it could be cancelled")
    }
    print("\(calls.count) calls, cancelled in time \(cancelled) times")
    #expect(cancelled > calls.count)
  }

  /// What came of a call that was cancelled so many steps after it began.
  private static func run(
    _ call: @escaping Call, cancelledAt step: Int
  ) throws -> (wasInTime: Bool, isCancelled: Bool) {
    var options = Database.Options()
    options.changeRetention = .init()
    return try WatchedWorld.run(seed: 1, options: options) { world in
      let database = world.database
      for id in ["d", "e"] { try await database.document("c/\(id)").setData(["n": 1]) }
      try await database.document("i/d").setData(["n": 1])
      try await database.collection("i").createIndex(on: ["n"])
      try await database.storage.reference(withPath: "o").putData([1, 2, 3] as [UInt8])
      try await database.tree.setValue(["a": ["x": 2]])
      let wasInTime = Guarded(false)
      let task = world.start { try await call(database) }
      world.executor.plan(after: step) {
        wasInTime.withLock { $0 = true }
        task.cancel()
      }
      var isCancelled = false
      do {
        try await task.value
      } catch let error as DatabaseError where error.code == .cancelled {
        isCancelled = true
      }
      let inTime = wasInTime.withLock { $0 }
      // Nothing was left behind that others would wait for.
      do {
        for id in ["d", "e", "f"] { try await database.document("c/\(id)").setData(["n": 3]) }
        try await database.document("new/d").setData(["n": 3])
        try await database.tree.child("a").setValue(3)
        try await database.storage.reference(withPath: "o").putData([3] as [UInt8])
        _ = try await database.storage.reference(withPath: "o").derive("small") { $0.prefix(1) }
      } catch let error as DatabaseError where error.message.contains("closed") {}
      return (inTime, isCancelled)
    }
  }
}
