// Every public call that suspends, cancelled before every one of its steps. Whatever it waits for
// then, the call ends: with its result, or with `.cancelled`. The database continues, and closes.
// The world is simulated, so a call that waits forever is found at once.

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
    ("create", { try await $0.document("c/new").create(["n": 2]) }),
    ("merge", { try await $0.document("c/d").setData(["m": 2], merge: true) }),
    ("add", { _ = try await $0.collection("c").addDocument(data: ["n": 2]) }),
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
    ("get several", { _ = try await $0.collection("c").getDocuments(ids: ["d", "e"]) }),
    ("query", { _ = try await $0.collection("c").order(by: "n").getDocuments() }),
    ("explain", { _ = try await $0.collection("c").order(by: "n").explain(analyze: true) }),
    (
      "stream",
      { database in
        for try await _ in database.collection("c").order(by: "n").documents {}
      }
    ),
    ("group query", { _ = try await $0.collectionGroup("c").getDocuments() }),
    ("count", { _ = try await $0.collection("c").count.getAggregation() }),
    ("counts", { _ = try await $0.collection("c").count.group(by: "n").getAggregation() }),
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
      "listen to counts",
      { database in
        for try await _ in database.collection("c").count.group(by: "n").snapshots { break }
      }
    ),
    (
      "listen to a document",
      { database in
        for try await _ in database.document("c/d").snapshots { break }
      }
    ),
    (
      "listen to a lookup",
      { database in
        let lookup = database.collection("c").lookup("n", in: "c", as: "x")
        for try await _ in lookup.snapshots { break }
      }
    ),
    (
      "what is different since",
      { database in
        let token = try database.changeToken()
        try await database.document("c/g").setData(["n": 5])
        for try await _ in database.collection("c").snapshots(since: token) { break }
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
    ("collections below", { _ = try await $0.document("c/d").listCollections() }),
  ]

  private static let catalog: [(name: String, call: Call)] = [
    ("make an index", { try await $0.collection("c").createIndex(on: ["n"]) }),
    ("make an index of elements", { try await $0.collection("c").createIndex(onArray: "n") }),
    ("make a unique index", { try await $0.collection("i").createIndex(on: ["-n"], unique: true) }),
    ("make an index of a group", { try await $0.collectionGroup("c").createIndex(on: ["n"]) }),
    ("drop an index", { try await $0.collection("i").dropIndex(named: "n") }),
    ("list indexes", { _ = try await $0.collection("i").listIndexes() }),
    ("drop", { try await $0.collection("i").drop() }),
    ("drop all", { try await $0.collection("i").drop(includingDeclarations: true) }),
    ("link", { try await $0.collection("i").linkBlobs(field: "photo") }),
    ("unlink", { try await $0.collection("i").unlinkBlobs(field: "photo") }),
    ("back up", { try await $0.backup(into: { _ in }) }),
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
    ("exists", { _ = try await $0.storage.reference(withPath: "o").exists() }),
    ("URL", { _ = try await $0.storage.reference(withPath: "o").downloadURL() }),
    (
      "change metadata",
      { database in
        let change = StorageMetadata(contentType: "a/b")
        try await database.storage.reference(withPath: "o").updateMetadata(change)
      }
    ),
    (
      "pieces",
      { database in
        for try await _ in database.storage.reference(withPath: "o").bytes() {}
      }
    ),
    ("list objects", { _ = try await $0.storage.reference().listAll() }),
    ("list some objects", { _ = try await $0.storage.reference().list(maxResults: 1) }),
    (
      "listen to a folder",
      { database in
        for try await _ in database.storage.reference().snapshots { break }
      }
    ),
    (
      "copy",
      { database in
        let object = database.storage.reference(withPath: "o")
        try await object.copy(to: database.storage.reference(withPath: "p"))
      }
    ),
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
    ("remove from the tree", { try await $0.tree.child("a").removeValue() }),
    ("priority", { try await $0.tree.child("a").setPriority(1) }),
    (
      "transaction in the tree",
      { database in
        try await database.tree.child("a/x").runTransaction { .integer(($0.integer ?? 0) + 1) }
      }
    ),
    ("get from the tree", { _ = try await $0.tree.getData() }),
    ("one value of the tree", { _ = try await $0.tree.observeSingle(.value) }),
    (
      "query the tree",
      { _ = try await $0.tree.queryOrdered(byChild: "x").queryLimited(toFirst: 1).getData() }
    ),
    (
      "children",
      { database in
        for try await _ in database.tree.children {}
      }
    ),
    ("index of the tree", { try await $0.tree.createIndex(byChild: "x") }),
    ("on close", { try await $0.tree.child("a").onCloseSetValue(1) }),
    ("nothing on close", { try await $0.tree.child("a").cancelCloseOperations() }),
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

  /// The result of a call that was cancelled a number of steps after it began.
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
      // Nothing is left that others would wait for.
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
