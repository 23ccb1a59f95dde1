// Transactions: their promises to the caller, alone and among many.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct TransactionTests {
  struct SoldOut: Error {}

  @Test func `A transaction reads, decides and writes`() async throws {
    let database = try await Database.underTest()
    let item = database.document("items/a")
    try await item.setData(["count": 2])
    func buy() async throws -> Int {
      try await database.runTransaction { transaction in
        let stock = try transaction.getDocument(item)["count"] as Int? ?? 0
        guard stock > 0 else { throw SoldOut() }
        try transaction.updateData(["count": stock - 1], forDocument: item)
        return stock - 1
      }
    }
    #expect(try await buy() == 1)
    #expect(try await buy() == 0)
    await #expect(throws: SoldOut.self) { try await buy() }
    #expect(try await item.getDocument()["count"] as Int? == 0)
  }

  @Test func `Counting by reading and writing loses nothing`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<15 {
            try await database.runTransaction(durability: .memory) { transaction in
              let count = try transaction.getDocument(document)["n"] as Int? ?? 0
              try transaction.setData(["n": count + 1], forDocument: document)
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await document.getDocument()["n"] as Int? == 120)
  }

  @Test func `An error rolls everything back, and is thrown on`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/kept").setData(["n": 1])
    let before = database.snapshot().version
    await #expect(throws: SoldOut.self) {
      try await database.runTransaction { transaction in
        try transaction.setData(["n": 2], forDocument: database.document("c/kept"))
        try transaction.create(["n": 1], forDocument: database.document("new/d"))
        try transaction.deleteDocument(database.document("c/kept"))
        throw SoldOut()
      }
    }
    #expect(database.snapshot().version == before)
    #expect(try await database.document("c/kept").getDocument()["n"] as Int? == 1)
  }

  @Test func `A transaction that only reads commits nothing`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/d").setData(["n": 1])
    let before = database.snapshot().version
    let n = try await database.runTransaction { transaction in
      try transaction.setData(["n": 1], forDocument: database.document("c/d"))
      return try transaction.getDocument(database.document("c/d"))["n"] as Int?
    }
    #expect(n == 1)
    #expect(database.snapshot().version == before)
  }

  @Test func `Reads see the transaction's own writes`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["price": 10])
    try await items.document("b").setData(["price": 20])
    try await items.createIndex(on: ["price"])
    try await database.runTransaction { transaction in
      try transaction.updateData(
        ["price": FieldValue.increment(50)], forDocument: items.document("a"))
      try transaction.create(["price": 30, "new": true], forDocument: items.document("c"))
      try transaction.setData(["n": 1], forDocument: database.document("other/o"))
      #expect(try transaction.getDocument(items.document("a"))["price"] as Int? == 60)
      let query = items.whereField("price", isGreaterThan: 15).order(by: "price")
      let found = try transaction.getDocuments(query)
      #expect(found.documents.map(\.documentID) == ["b", "c", "a"])
      #expect(found.documents[1].get("new") as Bool? == true)
      #expect(found.documents[1].version == .missing)
      #expect(try transaction.getDocuments(database.collection("other")).count == 1)

      try transaction.deleteDocument(items.document("b"))
      try transaction.updateData(["price": 5], forDocument: items.document("a"))
      let rest = try transaction.getDocuments(query)
      #expect(rest.documents.map(\.documentID) == ["c"])
      #expect(try transaction.getDocument(items.document("b")).exists == false)
    }
    let found = try await items.order(by: "price").getDocuments()
    #expect(found.documents.map(\.documentID) == ["a", "c"])
    #expect(try await database.collection("other").getDocuments().count == 1)
    try await auditIndexes(of: items)
  }

  @Test func `A server timestamp reads as now and becomes the commit's moment`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let seen = try await database.runTransaction { transaction in
      try transaction.setData(["at": FieldValue.serverTimestamp()], forDocument: document)
      return try transaction.getDocument(document)["at"] as Timestamp?
    }
    let read = try await document.getDocument()
    #expect(read["at"] as Timestamp? == read.updateTime)
    #expect(try #require(seen).microsecondsSince1970 > 0)
  }

  @Test func `A write's reads of its documents are known at once`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await database.runTransaction { transaction in
      #expect(throws: DatabaseError.self) {
        try transaction.updateData(["n": 1], forDocument: document)
      }
      try transaction.create(["n": 1], forDocument: document)
      let error = #expect(throws: DatabaseError.self) {
        try transaction.create(["n": 2], forDocument: document)
      }
      #expect(error?.code == .alreadyExists)
      #expect(error?.path == "c/d")
      try transaction.updateData(["m": 2], forDocument: document)
    }
    #expect(try await document.getDocument().data() == ["n": 1, "m": 2])
  }

  @Test func `Two transactions that read each other's rows cannot both commit`() async throws {
    // Write skew: each reads both documents and writes one of them.
    for round in 0..<20 {
      let database = try await Database.underTest()
      let onCall = database.collection("onCall")
      try await onCall.document("ann").setData(["present": true])
      try await onCall.document("bob").setData(["present": true])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for name in ["ann", "bob"] {
          group.addTask {
            try await database.runTransaction(durability: .memory) { transaction in
              let present = onCall.whereField("present", isEqualTo: true)
              guard try transaction.getDocuments(present).count > 1 else { return }
              await Task.yield()
              try transaction.updateData(["present": false], forDocument: onCall.document(name))
            }
          }
        }
        try await group.waitForAll()
      }
      let left = try await onCall.whereField("present", isEqualTo: true).getDocuments()
      #expect(left.count == 1, "round \(round)")
      try await database.close()
    }
  }

  @Test func `No write enters a range that a query found free`() async throws {
    // Phantoms: each queries the name, and adds a document with an id of its own.
    let database = try await Database.underTest()
    let users = database.collection("users")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<16 {
        group.addTask {
          try await database.runTransaction(durability: .memory) { transaction in
            let taken = users.whereField("name", isEqualTo: "kim")
            guard try transaction.getDocuments(taken).isEmpty else { return }
            await Task.yield()
            try transaction.create(["name": "kim"], forDocument: users.document())
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await users.getDocuments().count == 1)
    try await database.close()
  }

  @Test func `A query guards its collection, and one by ids only those documents`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["price": 20])
    let byPrice = items.whereField("price", isGreaterThan: 10)
    let byID = items.whereField(FieldPath.documentID(), in: ["a", "b"])
    for (query, wanted) in [(byPrice, 2), (byID, 1)] {
      var attempts = 0
      try await database.runTransaction { transaction in
        attempts += 1
        _ = try transaction.getDocuments(query)
        if attempts == 1 {
          try await apart { try await items.document("cheap").setData(["price": wanted]) }
        }
        try transaction.setData(["attempts": attempts], forDocument: database.document("sums/s"))
      }
      #expect(attempts >= wanted, "\(query)")
      if TestedStore.current.repeatsForConflictsAlone { #expect(attempts == wanted, "\(query)") }
    }
    try await database.close()
  }

  @Test func `A transaction that is overtaken for ever gives up`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let error = await #expect(throws: DatabaseError.self) {
      try await database.runTransaction(attempts: 3) { transaction in
        let n = try transaction.getDocument(document)["n"] as Int? ?? 0
        try await apart { try await document.setData(["n": n + 1]) }
        try transaction.setData(["n": 0], forDocument: document)
      }
    }
    #expect(error?.code == .aborted)
    #expect(try await document.getDocument()["n"] as Int? == 3)
  }

  @Test func `A long transaction commits among busy writers`() async throws {
    let database = try await Database.underTest()
    let accounts = database.collection("accounts")
    for number in 0..<20 {
      try await accounts.document("\(number)").setData(["n": 0], durability: .memory)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      let isDone = Guarded(false)
      for writer in 0..<3 {
        group.addTask {
          var round = 0
          while !isDone.withLock({ $0 }) {
            round += 1
            try await accounts.document("\((round * 7 + writer) % 20)")
              .updateData(["n": FieldValue.increment(1)], durability: .memory)
          }
        }
      }
      group.addTask {
        defer { isDone.withLock { $0 = true } }
        for _ in 0..<3 {
          try await database.runTransaction(durability: .memory) { transaction in
            let all = try transaction.getDocuments(accounts)
            for _ in 0..<20 { await Task.yield() }
            let sum = all.documents.reduce(0) { $0 + ($1["n"] as Int? ?? 0) }
            try transaction.setData(["sum": sum], forDocument: database.document("sums/s"))
          }
        }
      }
      try await group.waitForAll()
    }
    try await database.close()
  }

  @Test func `A transaction cannot be used once it is over`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    var kept: Transaction?
    try await database.runTransaction { transaction in
      try transaction.setData(["n": 1], forDocument: document)
      kept = transaction
    }
    let transaction = try #require(kept)
    for use in [
      { try transaction.setData(["n": 2], forDocument: document) },
      { _ = try transaction.getDocument(document) },
      { _ = try transaction.getDocuments(database.collection("c")) },
    ] {
      let error = #expect(throws: DatabaseError.self) { try use() }
      #expect(error?.code == .failedPrecondition)
    }
  }

  @Test func `A transaction keeps to its own database`() async throws {
    let database = try await Database.underTest()
    let other = try await Database.underTest()
    await #expect(throws: DatabaseError.self) {
      try await database.runTransaction { transaction in
        try transaction.setData(["n": 1], forDocument: other.document("c/d"))
      }
    }
  }

  @Test func `A cancelled task commits nothing`() async throws {
    let database = try await Database.underTest()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await database.runTransaction { transaction in
        try transaction.setData(["n": 1], forDocument: database.document("c/d"))
      }
    }
    task.cancel()
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try await database.document("c/d").getDocument().exists == false)
  }

  /// A caller that cancels while the body runs wants none of its writes.
  @Test func `A task that is cancelled in the body commits nothing`() async throws {
    let database = try await Database.underTest()
    let (begun, signal) = AsyncStream<Void>.makeStream()
    let task = Task {
      try await database.runTransaction { transaction in
        try transaction.setData(["n": 1], forDocument: database.document("c/d"))
        signal.finish()
        while !Task.isCancelled { await Task.yield() }
      }
    }
    for await _ in begun {}
    task.cancel()
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try await database.document("c/d").getDocument().exists == false)
  }
}

@Suite struct DatabaseSnapshotTests {
  @MainActor @Test func `A snapshot is read without suspension on the main actor`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["price": 1])
    try await items.document("b").setData(["price": 2])
    let view = database.snapshot()
    let a = try view.getDocument(items.document("a"))
    let rows = try view.getDocuments(items.order(by: "price", descending: true))
    #expect(a["price"] as Int? == 1)
    #expect(rows.documents.map(\.documentID) == ["b", "a"])
    #expect(try view.getDocuments(items, ids: ["b", "x"]).map(\.exists) == [true, false])
  }

  @Test func `A snapshot stays as it was`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let empty = database.snapshot()
    try await document.setData(["n": 1])
    let first = database.snapshot()
    try await document.setData(["n": 2, "m": 3])
    try await database.document("other/o").setData(["n": 1])
    #expect(try empty.getDocument(document).exists == false)
    #expect(try first.getDocument(document).data() == ["n": 1])
    #expect(try first.getDocuments(database.collection("other")).isEmpty)
    #expect(try database.snapshot().getDocument(document).data() == ["n": 2, "m": 3])
    #expect(empty.version < first.version)
  }

  @Test func `A snapshot shows all of a commit or nothing`() async throws {
    let database = try await Database.underTest()
    let left = database.document("left/d")
    let right = database.document("right/d")
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for round in 1...200 {
          let batch = database.batch()
          try batch.setData(["n": round], forDocument: left)
          try batch.setData(["n": round], forDocument: right)
          try await batch.commit(durability: .memory)
        }
      }
      group.addTask {
        for _ in 0..<400 {
          let view = database.snapshot()
          let n = try view.getDocument(left)["n"] as Int?
          #expect(try view.getDocument(right)["n"] as Int? == n)
          await Task.yield()
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `A snapshot of a closed database throws`() async throws {
    let database = try await Database.underTest()
    try await database.close()
    let error = #expect(throws: DatabaseError.self) {
      try database.snapshot().getDocument(database.document("c/d"))
    }
    #expect(error?.code == .failedPrecondition)
  }

  /// A query in the middle once saw the writes so far as if they were complete, and found them in
  /// conflict.
  @Test func `Unique values can be swapped, whatever is asked between the two writes`() async throws
  {
    let database = try await Database.underTest()
    let users = database.collection("users")
    try await users.createIndex(on: ["seat"], unique: true)
    for (id, seat) in [("a", 1), ("b", 2), ("c", 3)] {
      try await users.document(id).setData(["seat": seat])
    }
    try await database.runTransaction { transaction in
      try transaction.updateData(["seat": 2], forDocument: users.document("a"))
      // Both are found, although the index has room for one.
      let twice = try transaction.getDocuments(users.whereField("seat", isEqualTo: 2))
      #expect(twice.documents.map(\.documentID) == ["a", "b"])
      let ordered = try transaction.getDocuments(users.order(by: "seat"))
      #expect(ordered.documents.map(\.documentID) == ["a", "b", "c"])
      try transaction.updateData(["seat": 1], forDocument: users.document("b"))
      let one = try transaction.getDocuments(users.whereField("seat", isEqualTo: 1))
      #expect(one.documents.map(\.documentID) == ["b"])
    }
    #expect(
      try await users.order(by: "seat").getDocuments().documents.map(\.documentID) == [
        "b", "a", "c",
      ])
    let error = await #expect(throws: DatabaseError.self) {
      try await database.runTransaction { transaction in
        try transaction.updateData(["seat": 3], forDocument: users.document("a"))
        _ = try transaction.getDocuments(users)
      }
    }
    #expect(error?.code == .alreadyExists)
    #expect(try await users.document("a").getDocument()["seat"] as Int? == 2)
    try await database.close()
  }

  /// Documents that the transaction had written once came back whole.
  @Test func `A query in a transaction shows the fields asked for and no others`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for id in ["a", "b"] { try await items.document(id).setData(["n": 1, "secret": 1]) }
    try await database.runTransaction { transaction in
      try transaction.updateData(["n": 2], forDocument: items.document("a"))
      let some = try transaction.getDocuments(items.select("n"))
      #expect(some.documents.map { $0.data() } == [["n": 2], ["n": 1]])
      let ids = try transaction.getDocuments(items.select([]))
      #expect(ids.documents.allSatisfy { $0.data().isEmpty && $0.version == .missing })
      let page = try transaction.getDocuments(items.select("secret").order(by: "n").limit(to: 1))
      #expect(page.documents.map(\.documentID) == ["b"])
      let rest = try transaction.getDocuments(items.order(by: "n").start(after: page.cursor))
      #expect(rest.documents.map(\.documentID) == ["a"])
    }
    try await database.close()
  }
}
