// Documents of earlier schemas: upgraded at every read, and all of them in the background.

import OndolEngine
import Testing

@testable import Ondol

@Suite struct SchemaTests {
  struct Broken: Error {}

  /// From schema 0 to 1 the price becomes a number of cents, from 1 to 2 it gets a currency.
  private func declare(_ items: CollectionReference, version: Int = 2) async throws {
    try await items.setSchema(version: version) { fields, from in
      if from < 1, let price = fields["price"]?.integer {
        fields["cents"] = .integer(price * 100)
        fields["price"] = nil
      }
      if from < 2, version >= 2 { fields["currency"] = "KRW" }
    }
  }

  /// Waits for the work in the background.
  private func waitUntilUpgraded(_ items: CollectionReference) async throws {
    let pattern = CollectionPattern(try items.place.get())
    while items.database.catalog.picture(of: pattern.root)?.collections[pattern]?
      .schema.epochs.isEmpty == false
    {
      await Task.yield()
    }
  }

  @Test func `Documents are upgraded when they are met, and then all are rewritten`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<250 {
      try await items.document("\(number)").setData(["price": number], durability: .memory)
    }
    let old = database.snapshot()
    try await declare(items)
    #expect(
      try await items.document("7").getDocument().data() == ["cents": 700, "currency": "KRW"])
    let updated = try await items.document("8").updateData(
      ["cents": FieldValue.increment(1)], returning: .after)
    #expect(updated.after?.data() == ["cents": 801, "currency": "KRW"])
    #expect(try await items.getDocuments().documents.allSatisfy { $0["cents"] as Int? != nil })
    try await waitUntilUpgraded(items)
    #expect(
      try await items.whereField("currency", isEqualTo: "KRW").count.getAggregation().count == 250)
    #expect(try await items.document("7").getDocument()["cents"] as Int? == 700)
    _ = old
    try await database.close()
  }

  @Test func `A document that is new has the new schema already`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("old").setData(["price": 1])
    try await declare(items, version: 1)
    try await items.document("new").setData(["price": 5])
    try await waitUntilUpgraded(items)
    #expect(try await items.document("new").getDocument().data() == ["price": 5])
    #expect(try await items.document("old").getDocument().data() == ["cents": 100])
    try await declare(items, version: 2)
    try await waitUntilUpgraded(items)
    #expect(
      try await items.document("new").getDocument().data() == ["price": 5, "currency": "KRW"])
    try await database.close()
  }

  @Test func `An earlier schema than the documents' is refused`() async throws {
    let items = try await Database.underTest().collection("items")
    try await declare(items, version: 2)
    let error = await #expect(throws: DatabaseError.self) {
      try await declare(items, version: 1)
    }
    #expect(error?.code == .failedPrecondition)
  }

  @Test func `The schema survives a restart, and a failed upgrade is tried again`()
    async throws
  {
    var environment = Environment.memory()
    environment.fileSystem = MemoryFileSystem()
    var database = try await Database.open(at: "/db", environment: environment)
    try await database.document("items/a").setData(["price": 1])
    try await database.collection("items").setSchema(version: 1) { _, _ in throw Broken() }
    let document = database.document("items/a")
    let error = await #expect(throws: DatabaseError.self) { try await document.getDocument() }
    #expect(error?.path == "items/a")
    try await database.close()

    database = try await Database.open(at: "/db", environment: environment)
    try await declare(database.collection("items"), version: 1)
    #expect(try await database.document("items/a").getDocument().data() == ["cents": 100])
    try await waitUntilUpgraded(database.collection("items"))
    #expect(try await database.document("items/a").getDocument().data() == ["cents": 100])
    try await database.close()
  }

  /// An upgrade that changes a queried field, and that fails for one document.
  private func declareDoubling(
    _ items: CollectionReference, progress: @escaping @Sendable (SchemaProgress) -> Void = { _ in }
  ) async throws {
    try await items.setSchema(version: 1) { fields, _ in
      guard let price = fields["price"]?.integer else { throw Broken() }
      fields["price"] = .integer(-price)
      fields["state"] = "new"
    } progress: {
      progress($0)
    }
  }

  /// Fills the collection. One document in 100 cannot be upgraded, if that is wanted.
  private func fill(_ items: CollectionReference, _ count: Int, poisoned: Bool) async throws {
    for number in 0..<count {
      let isPoisoned = poisoned && number % 100 == 3
      try await items.document("d\(1_000 + number)").setData(
        ["price": isPoisoned ? Value.string("?") : .integer(Int64(number)), "state": "old"],
        durability: .memory)
    }
  }

  // A listener ordered by a field that an upgrade changes once showed twice as many documents as
  // existed, and sums and counts kept their earlier values.
  @Test func `Listeners show what queries return, at every step of an upgrade`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.createIndex(on: ["price"])
    try await fill(items, 300, poisoned: false)
    var lists = items.order(by: "price").snapshots.makeAsyncIterator()
    let numbers = items.whereField("state", isEqualTo: "new")
      .aggregate([.count(), .sum("price"), .minimum("price")])
    var aggregates = numbers.snapshots.makeAsyncIterator()
    #expect(try await lists.next()?.count == 300)
    #expect(try await aggregates.next()?.count == 0)
    try await declareDoubling(items)
    let aggregate = try #require(try await aggregates.next())
    #expect(aggregate.count == 300)
    #expect(aggregate[.sum("price")] == -44_850)
    #expect(aggregate[.minimum("price")] == -299)
    let list = try #require(try await lists.next())
    #expect(list.documents.map { $0["price"] as Int? } == (0..<300).map { $0 - 299 })
    try await waitUntilUpgraded(items)
    try await items.document("d1000").updateData(["price": 7])
    while let list = try await lists.next() {
      #expect(Set(list.documents.map(\.documentID)).count == 300)
      if list.documents.last?.documentID == "d1000" { break }
    }
    #expect(try await numbers.getAggregation()[.sum("price")] == -44_843)
    try await database.close()
  }

  @Test func `Everything sees an upgrade at once, whatever is rewritten yet`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.createIndex(on: ["price"])
    try await fill(items, 500, poisoned: false)
    let old = database.snapshot()
    try await declareDoubling(items)
    let cheap = items.whereField("price", isLessThan: -497)
    #expect(try await cheap.getDocuments().documents.map(\.documentID) == ["d1499", "d1498"])
    #expect(try await cheap.count.getAggregation().count == 2)
    #expect(try await cheap.select([]).getDocuments().count == 2)
    let selected = try await cheap.select(["state"]).getDocuments().documents
    #expect(selected.map { $0.data() } == [["state": "new"], ["state": "new"]])
    let groups = try await items.count.group(by: "state").getAggregation()
    #expect(groups.map { $0["state"] as String? } == ["new"])
    var streamed = 0
    for try await document in items.order(by: "price").documents {
      #expect(document["state"] == "new")
      streamed += 1
    }
    #expect(streamed == 500)
    try await database.runTransaction { transaction in
      try transaction.setData(["price": -1_000], forDocument: items.document("mine"))
      #expect(try transaction.getDocuments(cheap).count == 3)
    }
    // An earlier snapshot keeps its moment.
    #expect(try old.getDocument(items.document("d1007"))["price"] as Int? == 7)
    #expect(try old.getDocuments(items.whereField("price", isEqualTo: 7)).count == 1)
    try await waitUntilUpgraded(items)
    #expect(try old.getDocument(items.document("d1007"))["price"] as Int? == 7)
    #expect(try old.getDocuments(items.whereField("price", isEqualTo: 7)).count == 1)
    try await auditIndexes(of: items)
    try await database.close()
  }

  // One document that could not be upgraded once made every query throw, and stopped the rewriting.
  @Test func `A document that cannot be upgraded holds up no other`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.createIndex(on: ["price"])
    try await fill(items, 250, poisoned: true)
    let bad = ["items/d1003", "items/d1103", "items/d1203"]
    var lists = items.snapshots.makeAsyncIterator()
    #expect(try await lists.next()?.count == 250)
    let done = Guarded<SchemaProgress?>(nil)
    try await declareDoubling(items) { progress in
      if progress.isComplete { done.withLock { $0 = progress } }
    }
    func check() async throws {
      let found = try await items.getDocuments()
      #expect(found.count == 247)
      #expect(found.unreadable.map(\.path) == bad)
      let numbers = try await items.whereField("state", isEqualTo: "new").count.getAggregation()
      #expect(numbers.count == 247)
      #expect(numbers.unreadable.map(\.path) == bad)
      #expect(try await items.whereField("price", isEqualTo: -9).getDocuments().count == 1)
      var stream = items.documents.makeAsyncIterator()
      var streamed = 0
      while try await stream.next() != nil { streamed += 1 }
      #expect(streamed == 247)
      #expect(stream.unreadable.map(\.path) == bad)
      let error = await #expect(throws: DatabaseError.self) {
        try await items.document("d1003").getDocument()
      }
      #expect(error?.path == bad[0])
    }
    try await check()
    let list = try #require(try await lists.next())
    #expect(list.count == 247)
    #expect(list.unreadable.map(\.path) == bad)
    while done.withLock({ $0 == nil }) { await Task.yield() }
    #expect(
      done.withLock { $0 }
        == SchemaProgress(documents: 250, rewritten: 247, failures: 3, isComplete: true))
    try await check()
    // Indexes have the correct rows, so they are used again.
    let plan = try await items.whereField("price", isEqualTo: -9).explain()
    guard case .index = plan.access else {
      Issue.record("\(plan)")
      return
    }
    let error = await #expect(throws: DatabaseError.self) {
      try await items.document("d1003").updateData(["state": "newer"])
    }
    #expect(error?.code == .failedPrecondition)
    try await items.document("d1003").setData(["price": -3, "state": "new"])
    try await items.document("d1103").delete()
    #expect(try await items.getDocuments().unreadable.map(\.path) == [bad[2]])
    while let list = try await lists.next() {
      if list.unreadable.map(\.path) == [bad[2]], list.count == 248 { break }
    }
    try await database.close()
  }

  @Test func `A second upgrade that begins during the first misses no document`()
    async throws
  {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<600 {
      try await items.document("\(number)").setData(["price": number], durability: .memory)
    }
    try await declare(items, version: 1)
    try await declare(items, version: 2)
    try await waitUntilUpgraded(items)
    #expect(
      try await items.whereField("currency", isEqualTo: "KRW").count.getAggregation().count == 600)
    #expect(try await items.document("599").getDocument()["cents"] as Int? == 59_900)
    try await database.close()
  }

  // An app's write has the schema that the app declared, whatever the earlier stored form. A
  // document set to its earlier value was once taken for one of the earlier schema.
  @Test func `A write has the declared schema, even if it equals the stored document`()
    async throws
  {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["price": 5])
    // Still to be rewritten: the test prevents the collection's rewriting.
    try await database.latches.acquire(.schema(CollectionPattern(["items"])))
    try await declare(items, version: 1)
    try await items.document("a").setData(["price": 5])
    #expect(try await items.document("a").getDocument().data() == ["price": 5])
    database.latches.release(.schema(CollectionPattern(["items"])))
    try await waitUntilUpgraded(items)
    #expect(try await items.document("a").getDocument().data() == ["price": 5])
    try await database.close()
  }

  // A cursor was once made from the stored form, which lacks the field of the order, and a field
  // that only upgrades create was reported as one that no document has.
  @Test func `A page of selected fields ends at the upgraded document`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<6 { try await items.document("\(number)").setData(["price": number]) }
    // Still to be rewritten: the test prevents the collection's rewriting.
    let latch = LatchKey.schema(CollectionPattern(["items"]))
    try await database.latches.acquire(latch)
    try await declare(items, version: 1)
    let query = items.order(by: "cents").select("price").limit(to: 2)
    let first = try await query.getDocuments()
    #expect(first.documents.map(\.documentID) == ["0", "1"])
    #expect(!first.isLastPage)
    let cursor: QueryCursor = try #require(first.cursor)
    let next = try await query.start(after: cursor).getDocuments()
    #expect(next.documents.map(\.documentID) == ["2", "3"])
    #expect(try await query.explain().unknownFields == [])
    database.latches.release(latch)
    try await waitUntilUpgraded(items)
    #expect(try await query.getDocuments().cursor == cursor)
    try await database.close()
  }

  @Test func `A live lookup names a document that cannot be upgraded while it refers to it`()
    async throws
  {
    let database = try await Database.underTest()
    let (posts, users) = (database.collection("posts"), database.collection("users"))
    for id in ["u", "v"] {
      try await users.document(id).setData(["name": id])
      try await posts.document("by \(id)").setData(["user": id])
    }
    try await users.setSchema(version: 1) { _, _ in throw Broken() }
    let lookup = posts.lookup("user", in: "users", as: "who")
    var lists = lookup.snapshots.makeAsyncIterator()
    func check(_ unreadable: [String], _ names: [String?]) async throws {
      let list = try #require(try await lists.next())
      #expect(list.unreadable.map(\.documentID) == unreadable)
      #expect(list.documents.map { $0["who.name"] as String? } == names)
      let asked = try await lookup.getDocuments()
      #expect(asked.unreadable == list.unreadable)
      #expect(asked.documents.map { $0["who.name"] as String? } == names)
    }
    try await check(["u", "v"], [nil, nil])
    try await posts.document("by v").delete()
    try await check(["u"], [nil])
    try await users.document("u").setData(["name": "new"])
    try await check([], ["new"])
    try await database.close()
  }
}
