// Waits within waits. An app's body of a transaction, or of a derivation, may call the database
// again. That works, or is refused at once with a message that says what to do instead. Nothing
// waits forever: every body here runs in a simulated world, which ends with an error as soon as a
// task waits and nothing is left to run.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Concurrent work of another caller, in a task of its own, outside of any body of a transaction.
@discardableResult
func apart<Success: Sendable>(
  _ body: @escaping @Sendable () async throws -> Success
) async throws -> Success {
  try await Task.detached { try await body() }.value
}

/// Returns the code of a refused call; nil if it is accepted.
private func refusal(
  of call: () async throws -> Void
) async -> DatabaseError.Code? {
  do {
    try await call()
    return nil
  } catch {
    return (error as? DatabaseError)?.code ?? .unknown
  }
}

@Suite struct TransactionBodyTests {
  @Test func `A transaction within another's body is refused at once, and the other continues`()
    throws
  {
    try WatchedWorld.run(seed: 1) { world in
      let database = world.database
      let document = database.document("c/d")
      var attempts = 0
      try await database.runTransaction { transaction in
        attempts += 1
        let error = await #expect(throws: DatabaseError.self) {
          try await database.runTransaction { inner in
            try inner.setData(["by": "inner"], forDocument: document)
          }
        }
        #expect(error?.code == .failedPrecondition)
        #expect(error?.suggestion?.contains("hand the Transaction on") == true)
        try transaction.setData(["by": "outer"], forDocument: document)
      }
      #expect(attempts == 1)
      #expect(try await document.getDocument().data() == ["by": "outer"])
    }
  }

  @Test func `A transaction of another database may be within`() async throws {
    let (left, right) = (try await Database.underTest(), try await Database.underTest())
    try await left.runTransaction { outer in
      try await right.runTransaction { inner in
        try inner.setData(["n": 1], forDocument: right.document("c/d"))
      }
      try await right.document("c/e").setData(["n": 2])
      try outer.setData(["n": 3], forDocument: left.document("c/d"))
    }
    #expect(try await right.collection("c").getDocuments().count == 2)
    #expect(try await left.collection("c").getDocuments().count == 1)
  }

  /// Calls that were meant for the transaction.
  private static let bypasses: [(name: String, call: @Sendable (Database) async throws -> Void)] = [
    ("set", { try await $0.document("c/d").setData(["n": 2]) }),
    ("update", { try await $0.document("c/d").updateData(["n": 2]) }),
    ("create", { try await $0.document("c/e").create(["n": 2]) }),
    ("delete", { try await $0.document("c/d").delete() }),
    ("delete all below", { try await $0.document("c/d").delete(recursive: true) }),
    (
      "batch",
      { database in
        let batch = database.batch()
        try batch.setData(["n": 2], forDocument: database.document("c/d"))
        try await batch.commit()
      }
    ),
    ("tree", { try await $0.tree.child("a").setValue(2) }),
    ("tree, several places", { try await $0.tree.updateChildValues(["a": 2]) }),
    ("put an object", { try await $0.storage.reference(withPath: "a").putData([2] as [UInt8]) }),
    (
      "move an object",
      { database in
        let object = database.storage.reference(withPath: "o")
        try await object.move(to: database.storage.reference(withPath: "p"))
      }
    ),
    ("delete an object", { try await $0.storage.reference(withPath: "o").delete() }),
    ("get", { _ = try await $0.document("c/d").getDocument() }),
    ("get several", { _ = try await $0.collection("c").getDocuments(ids: ["d"]) }),
    ("query", { _ = try await $0.collection("c").getDocuments() }),
    ("lookup", { _ = try await $0.collection("c").lookup("n", in: "c", as: "x").getDocuments() }),
    ("get from the tree", { _ = try await $0.tree.child("a").getData() }),
    ("metadata", { _ = try await $0.storage.reference(withPath: "o").getMetadata() }),
    ("on close", { try await $0.tree.child("a").onCloseRemoveValue() }),
  ]

  /// Calls that cannot be part of a transaction. `drop()` once waited for the gates that the
  /// transaction itself had closed. Others took effect at once, and with every attempt.
  private static let declarations:
    [(name: String, call: @Sendable (Database) async throws -> Void)] = [
      ("drop", { try await $0.collection("c").drop() }),
      ("drop", { try await $0.collection("c/d/below").drop() }),
      ("setSchema", { try await $0.collection("c").setSchema(version: 1) { _, _ in } }),
      ("setTimeToLive", { try await $0.collection("c").setTimeToLive(field: "end") }),
      ("createIndex", { try await $0.collection("c").createIndex(on: ["n"]) }),
      ("createIndex", { try await $0.collection("c").createIndex(onArray: "n") }),
      ("createIndex", { try await $0.collectionGroup("c").createIndex(on: ["n"]) }),
      ("createIndex", { try await $0.tree.child("a").createIndex(byChild: "n") }),
      ("dropIndex", { try await $0.collection("c").dropIndex(named: "x") }),
      ("dropIndex", { try await $0.collectionGroup("c").dropIndex(named: "x") }),
      ("dropIndex", { try await $0.tree.child("a").dropIndex(byChild: "n") }),
      ("linkBlobs", { try await $0.collection("c").linkBlobs(field: "photo") }),
      ("unlinkBlobs", { try await $0.collection("c").unlinkBlobs(field: "photo") }),
      ("compact", { try await $0.compact() }),
      ("backup", { try await $0.backup(into: { _ in }) }),
      ("reclaim", { try await $0.storage.reclaim() }),
    ]

  @Test func `Calls that cannot be part of a transaction are refused in its body, and named`()
    throws
  {
    try WatchedWorld.run(seed: 1) { world in
      let database = world.database
      try await database.document("c/d").setData(["n": 1])
      let version = database.snapshot().version
      for (name, call) in Self.declarations {
        var attempts = 0
        let error = await #expect(throws: DatabaseError.self) {
          try await database.runTransaction { transaction in
            attempts += 1
            _ = try transaction.getDocument(database.document("c/d"))
            try await call(database)
          }
        }
        #expect(error?.code == .failedPrecondition && attempts == 1, "\(name)")
        #expect(error?.message.hasPrefix("\(name) was called in the body") == true, "\(name)")
      }
      #expect(database.snapshot().version == version)
    }
  }

  // A missing `transaction.` once went unnoticed. The write took effect with every attempt, made
  // the transaction lose its race against itself, and after a hundred attempts it gave up.
  @Test func `A call past the transaction is found at the first attempt, and changes nothing`()
    throws
  {
    try WatchedWorld.run(seed: 1) { world in
      let database = world.database
      try await database.document("c/d").setData(["n": 1])
      try await database.tree.child("a").setValue(1)
      try await database.storage.reference(withPath: "o").putData([1] as [UInt8])
      let version = database.snapshot().version
      for (name, call) in Self.bypasses {
        var attempts = 0
        let code = await refusal {
          try await database.runTransaction { transaction in
            attempts += 1
            _ = try transaction.getDocument(database.document("c/d"))
            try await call(database)
          }
        }
        #expect(code == .failedPrecondition, "\(name)")
        #expect(attempts == 1, "\(name)")
      }
      #expect(database.snapshot().version == version)
      for (name, call) in Self.bypasses {
        guard ["set", "batch", "tree", "get", "query", "lookup", "metadata"].contains(name) else {
          continue
        }
        #expect(await refusal { try await call(database) } == nil, "\(name), outside of a body")
      }
    }
  }

  @Test func `It is found in tasks that the body begins, and not in others`() throws {
    try WatchedWorld.run(seed: 1) { world in
      let database = world.database
      let document = database.document("c/d")
      let free: Task<Void, any Error> = try await database.runTransaction { transaction in
        let code = await withTaskGroup(of: DatabaseError.Code?.self) { group in
          group.addTask { await refusal { try await document.setData(["by": "child"]) } }
          return await group.next() ?? nil
        }
        #expect(code == .failedPrecondition)
        let task = Task(executorPreference: world.executor) {
          try await document.setData(["by": "task"])
        }
        #expect(await refusal { _ = try await task.value } == .failedPrecondition)
        try await world.apart { try await document.setData(["by": "another"]) }
        try transaction.setData(["n": 1], forDocument: database.document("c/e"))
        return Task(executorPreference: world.executor) {
          while try await !database.document("c/e").getDocumentApart().exists { await Task.yield() }
          try await database.document("c/f").setData(["by": "a task that outlives the body"])
        }
      }
      try await free.value
      #expect(try await document.getDocument().data() == ["by": "another"])
      #expect(try await database.collection("c").getDocuments().count == 3)
    }
  }

  @Test func `Bytes, derived contents, counts and listeners are there within a body`() throws {
    try WatchedWorld.run(seed: 1) { world in
      let database = world.database
      let object = database.storage.reference(withPath: "o")
      try await object.putData([1, 2, 3] as [UInt8])
      try await database.document("c/d").setData(["n": 1])
      try await database.runTransaction { transaction in
        let blob = try await database.storage.put([4, 5] as [UInt8])
        #expect(try await object.data(maxSize: 10).count == 3)
        let first = try await object.derive("first") { $0.prefix(1) }
        #expect(try await database.storage.data(of: first).count == 1)
        #expect(try await database.collection("c").count.getAggregation().count == 1)
        #expect(try database.snapshot().getDocument(database.document("c/d")).exists)
        for try await snapshot in database.collection("c").snapshots {
          #expect(snapshot.count == 1)
          break
        }
        for try await value in database.tree.child("a").observe(.value) {
          #expect(!value.exists)
          break
        }
        try transaction.setData(["length": blob.length], forDocument: database.document("c/d"))
      }
      #expect(try await database.document("c/d").getDocument()["length"] as Int? == 2)
    }
  }

  @Test func `A database can be closed in the body, and then nothing is committed`() throws {
    try WatchedWorld.run(seed: 1) { world in
      let database = world.database
      let code = await refusal {
        try await database.runTransaction { transaction in
          try transaction.setValue(1, at: database.tree.child("a"))
          try transaction.setData(["n": 1], forDocument: database.document("c/d"))
          try await database.close()
        }
      }
      #expect(code == .failedPrecondition)
    }
  }
}

extension DocumentReference {
  /// The document in a snapshot, which may be read in a body.
  fileprivate func getDocumentApart() async throws -> DocumentSnapshot {
    try database.snapshot().getDocument(self)
  }
}

@Suite struct GateTests {
  // Two transactions that had lost three races each, one begun in the other's body in a task of its
  // own, once waited for each other's gate forever, and so did everybody after them.
  @Test func `A transaction that waits for another at its own gate ends`() throws {
    for seed in Seeds.first(8) {
      try WatchedWorld.run(seed: seed) { world in
        let database = world.database
        let document = database.document("c/d")
        try await document.setData(["n": 0])
        let counts = Guarded((outer: 0, inner: 0))
        try await database.runTransaction { outer in
          _ = try outer.getDocument(document)
          let attempt = counts.withLock { counts in
            counts.outer += 1
            return counts.outer
          }
          if attempt <= 3 { try await world.apart { try await increment(document) } }
          if attempt == 4 {
            try await world.apart {
              try await database.runTransaction { inner in
                _ = try inner.getDocument(document)
                let attempt = counts.withLock { counts in
                  counts.inner += 1
                  return counts.inner
                }
                if attempt <= 3 { try await world.apart { try await increment(document) } }
                try inner.setData(["by": "inner"], forDocument: database.document("c/e"))
              }
            }
          }
          try outer.setData(["by": "outer"], forDocument: database.document("c/f"))
        }
        #expect(try await database.collection("c").getDocuments().count == 3)
      }
    }
  }

  // Writers once waited for a tenth of a second, however long the transaction took. One that called
  // a server in its body lost every race against an occasional writer.
  @Test func `A transaction with a long body wins against a writer that never stops`() throws {
    for seed in Seeds.first(4) {
      let attempts = try WatchedWorld.run(seed: seed) { world in
        let database = world.database
        let document = database.document("c/d")
        try await document.setData(["n": 0])
        let isDone = Guarded(false)
        let writer = world.start {
          while !isDone.withLock({ $0 }) {
            try await increment(document)
            await world.rest(milliseconds: 1)
          }
        }
        let attempts = Guarded(0)
        try await database.runTransaction(attempts: 30) { transaction in
          attempts.withLock { $0 += 1 }
          let n = try transaction.getDocument(document)["n"] as Int? ?? 0
          for _ in 0..<250 { await world.rest(milliseconds: 1) }
          try transaction.updateData(["seen": n], forDocument: document)
        }
        isDone.withLock { $0 = true }
        try await writer.value
        return attempts.withLock { $0 }
      }
      #expect(attempts > 3 && attempts < 20, "ONDOL_SEED=\(seed)")
    }
  }

  @Test func `A transaction that waits for a write at its own gate gives up and says why`() throws {
    try WatchedWorld.run(seed: 1) { world in
      let document = world.database.document("c/d")
      try await document.setData(["n": 0])
      let error = await #expect(throws: DatabaseError.self) {
        try await world.database.runTransaction(attempts: .max) { transaction in
          _ = try transaction.getDocument(document)
          try await world.apart { try await increment(document) }
          try transaction.updateData(["seen": true], forDocument: document)
        }
      }
      #expect(error?.code == .aborted)
      #expect(error?.message.contains("stood aside") == true)
    }
  }

  @Test
  func `A wait at a gate ends when the task is cancelled, and when the database closes`()
    throws
  {
    for closes in [false, true] {
      try WatchedWorld.run(seed: 1) { world in
        let (database, root) = (world.database, ExactText("c"))
        let closed = try await database.closeGates([root], wait: Gates.longestWait)
        let writer = world.start { try await database.document("c/d").setData(["n": 1]) }
        let other = world.start { try await database.closeGates([root], wait: 0) }
        for _ in 0..<20 { await Task.yield() }
        if closes {
          try await database.close()
        } else {
          writer.cancel()
          other.cancel()
        }
        let expected: DatabaseError.Code = closes ? .failedPrecondition : .cancelled
        #expect(await refusal { _ = try await writer.value } == expected)
        // A transaction without a gate finds out at the next step.
        #expect(await refusal { _ = try await other.value } == (closes ? nil : .cancelled))
        database.openGates(closed)
      }
    }
  }
}

private func increment(_ document: DocumentReference) async throws {
  try await document.updateData(["n": FieldValue.increment(1)], durability: .memory)
}
