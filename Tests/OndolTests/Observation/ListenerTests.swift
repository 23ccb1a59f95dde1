// Listening from beginning to end: what each kind of listener receives, and that each way of ending
// leaves nothing.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ListenerTests {
  private func withItems(
    _ body: (Database, CollectionReference) async throws -> Void
  ) async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for (id, count) in [("a", 3), ("b", 1), ("c", 2)] {
      try await items.document(id).setData(["count": count, "owner": "ann"])
    }
    try await body(database, items)
    try await database.close()
    #expect(database.observers.count == 0)
    #expect(database.observers.watchCount == 0)
  }

  @Test func `A query's listener receives one step for each commit`() async throws {
    try await withItems { database, items in
      var snapshots = items.order(by: "count").snapshots.makeAsyncIterator()
      let first = try #require(try await snapshots.next())
      #expect(first.documents.map(\.documentID) == ["b", "c", "a"])
      #expect(first.documentChanges.map(\.type) == [.added, .added, .added])

      let batch = database.batch()
      batch.deleteDocument(items.document("b"))
      try batch.setData(["count": 9], forDocument: items.document("d"))
      try batch.setData(["count": 0], forDocument: items.document("a"))
      try await batch.commit()
      let second = try #require(try await snapshots.next())
      #expect(second.documents.map(\.documentID) == ["a", "c", "d"])
      #expect(second.documentChanges.map(\.type) == [.removed, .added, .modified])
      #expect(second.documentChanges.map(\.oldIndex) == [0, nil, 1])
      #expect(second.documentChanges.map(\.newIndex) == [nil, 2, 0])
    }
  }

  @Test func `A limit lets the next one in when one leaves, in the same step`() async throws {
    try await withItems { _, items in
      var snapshots = items.order(by: "count").limit(toLast: 2).snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.documents.map(\.documentID) == ["c", "a"])
      try await items.document("a").delete()
      let next = try #require(try await snapshots.next())
      #expect(next.documents.map(\.documentID) == ["b", "c"])
      #expect(next.documentChanges.map(\.type) == [.removed, .added])
    }
  }

  @Test func `A commit that affects no listener wakes none`() async throws {
    try await withItems { _, items in
      var snapshots = items.whereField("count", isGreaterThan: 2).snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.count == 1)
      try await items.document("b").setData(["count": 0])
      try await items.document("b").setData(["count": 7])
      // The commit in between had nothing to report.
      #expect(try await snapshots.next()?.documentChanges.map(\.type) == [.added])
    }
  }

  @Test func `A document's listener sees it come, change and go`() async throws {
    try await withItems { _, items in
      let document = items.document("new")
      var snapshots = document.snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.exists == false)
      let made = try await document.setData(["count": 1])
      #expect(try await snapshots.next()?.version == made.version)
      try await document.updateData(["count": FieldValue.increment(Int64(4))])
      #expect(try await snapshots.next()?.get("count") == 5)
      try await document.delete()
      #expect(try await snapshots.next()?.exists == false)
    }
  }

  @Test func `Live aggregates equal those of a new query`() async throws {
    try await withItems { _, items in
      let aggregate = items.whereField("owner", isEqualTo: "ann").aggregate([
        .count(), .sum("count"), .average("count"), .minimum("count"), .maximum("count"),
      ])
      var snapshots = aggregate.snapshots.makeAsyncIterator()
      #expect(try await snapshots.next() == aggregate.getAggregation())
      let values: [[String: any FieldContent]] = [
        ["count": 40, "owner": "ann"], ["count": 0.1, "owner": "ann"], ["owner": "ann"],
        ["count": -5, "owner": "ann"], ["count": 1, "owner": "bob"], ["owner": "eve"],
        ["count": 7, "owner": "ann"],
      ]
      var before = try await aggregate.getAggregation()
      for value in values {
        try await items.document("d").setData(value)
        let now = try await aggregate.getAggregation()
        if now != before { #expect(try await snapshots.next() == now) }
        before = now
      }
    }
  }

  @Test func `Live groups follow their documents`() async throws {
    try await withItems { _, items in
      let groups = items.count.group(by: "owner")
      var snapshots = groups.snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.map(\.aggregation.count) == [3])
      try await items.document("a").updateData(["owner": "bob"])
      #expect(try await snapshots.next()?.map(\.aggregation.count) == [2, 1])
    }
  }

  @Test func `A join receives changes of the documents that its results refer to`() async throws {
    try await withItems { database, items in
      let ann = database.document("users/ann")
      let friend = database.document("elsewhere/bob")
      try await items.document("a").updateData(["friend": friend])
      let lookup = items.whereField("count", isEqualTo: 3)
        .lookup("owner", in: "users", as: "user").lookup("friend", in: "users", as: "buddy")
      var snapshots = lookup.snapshots.makeAsyncIterator()
      let first = try #require(try await snapshots.next()?.documents.first)
      #expect(first.get("user") == .null)
      try await ann.setData(["name": "Ann"])
      let second = try #require(try await snapshots.next())
      #expect(second.documentChanges.map(\.type) == [.modified])
      #expect(second.documents.first?.get("user.name") == "Ann")
      try await friend.setData(["name": "Bob"])
      #expect(try await snapshots.next()?.documents.first?.get("buddy.name") == "Bob")
    }
  }

  // MARK: - Ends

  @Test func `Leaving the loop is the end of listening`() async throws {
    try await withItems { database, items in
      for try await snapshot in items.snapshots {
        #expect(snapshot.count == 3)
        #expect(database.observers.count == 1)
        break
      }
      #expect(database.observers.count == 0)
    }
  }

  @Test func `Equal queries are kept up to date once`() async throws {
    try await withItems { database, items in
      var iterators = (0..<50).map { _ in
        items.whereField("count", isLessThan: 9).snapshots.makeAsyncIterator()
      }
      for index in iterators.indices { _ = try await iterators[index].next() }
      #expect(database.observers.count == 50)
      #expect(database.observers.watchCount == 1)
      try await items.document("e").setData(["count": 5])
      for index in iterators.indices {
        #expect(try await iterators[index].next()?.documentChanges.map(\.type) == [.added])
      }
    }
  }

  @Test func `A task that is cancelled while it listens ends without an error`() async throws {
    try await withItems { database, items in
      let (heard, hears) = AsyncStream<Void>.makeStream()
      let task = Task {
        var count = 0
        for try await _ in items.snapshots {
          count += 1
          hears.yield()
        }
        return count
      }
      for await _ in heard { break }
      task.cancel()
      let count = try await task.value
      #expect(count == 1)
      #expect(database.observers.count == 0)
    }
  }

  @Test func `Closing the database ends all listening`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    let (heard, hears) = AsyncStream<Void>.makeStream()
    let tasks = (0..<20).map { number in
      Task {
        for try await _ in items.limit(to: number % 3 + 1).snapshots { hears.yield() }
      }
    }
    var count = 0
    for await _ in heard {
      count += 1
      if count == tasks.count { break }
    }
    try await database.close()
    for task in tasks { try await task.value }
    #expect(database.observers.count == 0)
    var late = items.snapshots.makeAsyncIterator()
    #expect(try await late.next() == nil)
  }

  @Test func `Listeners to a dropped collection see it empty`() async throws {
    try await withItems { database, items in
      var snapshots = items.snapshots.makeAsyncIterator()
      var group = database.collectionGroup("items").count.snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.count == 3)
      #expect(try await group.next()?.count == 3)
      try await items.drop()
      let next = try #require(try await snapshots.next())
      #expect(next.documentChanges.map(\.type) == [.removed, .removed, .removed])
      #expect(try await group.next()?.count == 0)
      try await items.document("z").setData(["count": 1])
      #expect(try await snapshots.next()?.count == 1)
    }
  }

  @Test func `A query that cannot be asked throws when it is listened to`() async throws {
    try await withItems { _, items in
      await #expect(throws: DatabaseError.self) {
        for try await _ in items.order(by: "a..b").snapshots {}
      }
    }
  }

  @Test func `An idle listener costs the same, however much is written`() async throws {
    try await withItems { database, items in
      let plan = items.query
      var snapshots = plan.snapshots.makeAsyncIterator()
      _ = try await snapshots.next()
      for round in 0..<30 {
        let batch = database.batch()
        for number in 0..<200 {
          try batch.setData(
            ["count": round], forDocument: items.document("d\(number + round * 90)"))
        }
        try await batch.commit(durability: .memory)
        #expect(database.observers.pendingCount <= 2_200)
      }
      let last = try #require(try await snapshots.next())
      #expect(last.documents == (try await plan.getDocuments().documents))
    }
  }
}
