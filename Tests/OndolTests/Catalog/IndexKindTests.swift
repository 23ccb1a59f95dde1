// Indexes that are unique, partial, of elements or of a group, and dropping them.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct IndexKindTests {
  @Test func `A unique index refuses a second document with the values, naming the first`()
    async throws
  {
    let database = try await Database.underTest()
    let users = database.collection("users")
    try await users.document("ada").setData(["email": "a@b.kr", "n": 1])
    try await users.createIndex(on: ["email"], unique: true)
    let error = await #expect(throws: DatabaseError.self) {
      try await users.document("eve").setData(["email": "a@b.kr"])
    }
    #expect(error?.code == .alreadyExists)
    #expect(error?.message.contains("users/ada") == true)
    #expect(error?.path == "users/eve")
    #expect(error?.field == "email")
    #expect(try await !users.document("eve").getDocument().exists)
    // The holder may write itself, others may lack the field, and a released value is free.
    try await users.document("ada").updateData(["n": 2])
    try await users.document("none").setData(["n": 3])
    try await users.document("nobody").setData(["n": 3])
    try await users.document("ada").updateData(["email": "new@b.kr"])
    try await users.document("eve").setData(["email": "a@b.kr"])
    let found = users.whereField("email", isEqualTo: "a@b.kr")
    #expect(try await found.explain().indexName == "email unique")
    #expect(try await found.getDocuments().documents.map(\.documentID) == ["eve"])
    #expect(try await users.order(by: "email").getDocuments().count == 2)
    // 1 and 1.0 are one value; null is none.
    try await users.document("one").setData(["email": 1])
    await #expect(throws: DatabaseError.self) {
      try await users.document("two").setData(["email": 1.0])
    }
    try await users.document("null").setData(["email": nil])
    try await users.document("two").setData(["email": nil])
    try await auditIndexes(of: users)
  }

  @Test func `Unique values can be exchanged in one commit, and not taken twice in one`()
    async throws
  {
    let database = try await Database.underTest()
    let users = database.collection("users")
    try await users.createIndex(on: ["name"], unique: true)
    try await users.document("a").setData(["name": "x"])
    try await users.document("b").setData(["name": "y"])
    let batch = database.batch()
    try batch.updateData(["name": "y"], forDocument: users.document("a"))
    try batch.updateData(["name": "x"], forDocument: users.document("b"))
    try await batch.commit()
    let x = try await users.whereField("name", isEqualTo: "x").getDocuments()
    #expect(x.documents.map(\.documentID) == ["b"])
    let twice = database.batch()
    try twice.setData(["name": "z"], forDocument: users.document("c"))
    try twice.setData(["name": "z"], forDocument: users.document("d"))
    await #expect(throws: DatabaseError.self) { try await twice.commit() }
    await #expect(throws: DatabaseError.self) {
      try await users.document("t").setData(["name": FieldValue.serverTimestamp()])
    }
    await #expect(throws: DatabaseError.self) {
      try await users.document("l").setData(["name": String(repeating: "x", count: 2_000)])
    }
    try await auditIndexes(of: users)
  }

  @Test func `One of many concurrent takers of a unique value gets it`() async throws {
    let database = try await Database.underTest()
    let users = database.collection("users")
    try await users.createIndex(on: ["a", "b"], unique: true)
    for round in 0..<20 {
      let winners = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<8 {
          group.addTask {
            let document = users.document("r\(round)n\(number)")
            do {
              try await document.setData(["a": round, "b": "x"], durability: .memory)
              return true
            } catch {
              return (error as? DatabaseError)?.code != .alreadyExists
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(winners == 1)
    }
    #expect(try await users.count.getAggregation().count == 20)
    try await auditIndexes(of: users)
  }

  @Test func `A unique index is not created if documents agree`() async throws {
    let database = try await Database.underTest()
    let users = database.collection("users")
    for number in 0..<600 { try await users.document("u\(number)").setData(["n": number % 599]) }
    let error = await #expect(throws: DatabaseError.self) {
      try await users.createIndex(on: ["n"], unique: true)
    }
    #expect(error?.code == .alreadyExists)
    #expect(try await users.listIndexes().isEmpty)
    try await users.document("u599").delete()
    try await users.createIndex(on: ["n"], unique: true)
    #expect(try await users.listIndexes().map(\.entries) == [599])
  }

  @Test func `A partial index has the matching documents, and serves queries that imply it`()
    async throws
  {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<20 {
      try await items.document("d\(number)").setData(["n": number, "s": "x"])
    }
    let name = try await items.createIndex(
      on: ["s"],
      where: .andFilter([.whereField("n", isGreaterThan: 9), .whereField("n", in: [12, 15, 3])]))
    #expect(try await items.listIndexes().map(\.entries) == [2])
    let served = items.whereField("s", isEqualTo: "x").whereField("n", in: [12, 15])
    #expect(try await served.explain().indexName == name)
    #expect(try await served.getDocuments().documents.map(\.documentID) == ["d12", "d15"])
    let other = items.whereField("s", isEqualTo: "x").whereField("n", isGreaterThan: 9)
    #expect(try await other.explain().indexName == nil)
    #expect(try await other.getDocuments().count == 10)
    try await items.document("d12").updateData(["n": 1])
    #expect(try await items.listIndexes().map(\.entries) == [1])
    for filter: Filter in [
      .whereField(FieldPath.documentID(), isEqualTo: "x"),
      .whereField("t", isLessThan: Value.timestamp(.maximum)),
      .whereField("t", isEqualTo: String(repeating: "x", count: 2_000)),
    ] {
      await #expect(throws: DatabaseError.self) {
        try await items.createIndex(on: ["s"], where: filter)
      }
    }
    try await auditIndexes(of: items)
  }

  @Test func `An index on elements finds arrays, each document once`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["tags": ["oak", "new", "oak"]])
    try await items.document("b").setData(["tags": ["new", 1]])
    try await items.document("c").setData(["tags": "oak"])
    try await items.document("d").setData(["tags": [1.0, ["x": 1]]])
    let name = try await items.createIndex(onArray: "tags")
    #expect(name == "tags[]")
    #expect(try await items.listIndexes().map(\.entries) == [6])
    func ids(_ query: Query) async throws -> [String] {
      #expect(try await query.explain().indexName == "tags[]")
      return try await query.getDocuments().documents.map(\.documentID)
    }
    #expect(try await ids(items.whereField("tags", arrayContains: "oak")) == ["a"])
    #expect(try await ids(items.whereField("tags", arrayContains: 1)) == ["b", "d"])
    #expect(
      try await ids(items.whereField("tags", arrayContainsAny: ["oak", "new", 1])) == [
        "a", "b", "d",
      ])
    let any = items.whereField("tags", arrayContainsAny: ["oak", "new"])
    #expect(try await any.count.getAggregation().count == 2)
    try await items.document("a").updateData(["tags": FieldValue.arrayRemove(["oak"])])
    #expect(try await ids(items.whereField("tags", arrayContains: "oak")) == [])
    try await auditIndexes(of: items)
  }

  @Test func `A group's index serves every collection of it, including later ones`() async throws {
    let database = try await Database.underTest()
    let paths = ["work", "users/a/work", "users/b/work", "teams/t/users/x/work"]
    for (number, path) in paths.dropLast().enumerated() {
      try await database.collection(path).document("d").setData(["n": number, "s": "x"])
    }
    let group = database.collectionGroup("work")
    let name = try await group.createIndex(on: ["s", "-n"])
    try await database.collection(paths[3]).document("d").setData(["n": 3, "s": "x"])
    try await database.collection("users/c/other").document("d").setData(["n": 9, "s": "x"])
    let query = group.whereField("s", isEqualTo: "x").order(by: "n", descending: true)
    let plan = try await query.explain(analyze: true)
    #expect(plan.access == .union(Array(repeating: .index(name: name, ranges: 1), count: 3)))
    #expect(!plan.sorts)
    #expect(plan.entriesVisited == 4)
    let found = try await query.getDocuments().documents
    #expect(found.map(\.reference.path) == paths.reversed().map { "\($0)/d" })
    #expect(try await group.listIndexes().map(\.entries) == [4])
    for path in paths { try await auditIndexes(of: database.collection(path)) }
    await #expect(throws: DatabaseError.self) {
      try await database.collection("work").dropIndex(named: name)
    }
    try await group.dropIndex(named: name)
    #expect(try await group.listIndexes().isEmpty)
    try await database.collection("new/x/work").document("d").setData(["n": 4, "s": "x"])
    #expect(try await group.listIndexes().isEmpty)
    #expect(try await query.getDocuments().count == 5)
  }

  @Test func `A dropped index is gone, and its name is free`() async throws {
    let environment = Environment.memory()
    var database = try await Database.open(at: "/d", environment: environment)
    let items = database.collection("items")
    for number in 0..<300 { try await items.document("d\(number)").setData(["n": number]) }
    try await items.createIndex(on: ["n"])
    try await items.dropIndex(named: "n")
    try await items.dropIndex(named: "n")
    #expect(try await items.listIndexes().isEmpty)
    #expect(try await items.whereField("n", isEqualTo: 7).getDocuments().count == 1)
    // The next open finishes what a crash left half done.
    try await items.createIndex(on: ["n"])
    try await database.changeCatalog(of: "items") { (edit) throws(DatabaseError) in
      let indexes = edit.family.collections.values.first?.indexes ?? []
      for index in indexes { edit.drop(index, from: CollectionPattern(["items"])) }
    }
    try await database.close()
    database = try await Database.open(at: "/d", environment: environment)
    // The stored state, and not the cached one, which need not know that rows are gone.
    func stored() throws -> Family? {
      let catalog = Catalog(clock: { 0 })
      let rows = Rows(try database.engineSnapshot(), catalog, mayBlock: true)
      return try catalog.family("items", in: rows)
    }
    while try stored()?.dropped.isEmpty == false { await Task.yield() }
    let family = try await database.family("items")
    #expect(family?.collections.values.first?.indexes.isEmpty == true)
    #expect(try await database.droppedFamilies().isEmpty)
  }

  @Test func `A dropped collection is empty, and begins again`() async throws {
    let environment = Environment.memory()
    var database = try await Database.open(at: "/d", environment: environment)
    let items = database.collection("items")
    for number in 0..<300 { try await items.document("d\(number)").setData(["n": number]) }
    try await items.document("d1/sub/x").setData(["n": 1])
    try await database.document("other/d").setData(["n": 1])
    try await items.createIndex(on: ["n"])
    let before = try database.engineSnapshot()
    try await items.drop(includingDeclarations: true)
    #expect(try await items.getDocuments().isEmpty)
    #expect(try await !items.document("d1").getDocument().exists)
    #expect(try await database.collection("items/d1/sub").getDocuments().isEmpty)
    #expect(try await items.listIndexes().isEmpty)
    #expect(try await database.document("other/d").getDocument().exists)
    // An old state of the catalog does not come back.
    let old = Rows(before, database.catalog, mayBlock: true)
    _ = try database.catalog.family("items", in: old)
    try await items.document("new").setData(["n": 2])
    #expect(try await items.document("new").getDocument().exists)
    #expect(try await items.getDocuments().documents.map(\.documentID) == ["new"])
    try await database.close()
    database = try await Database.open(at: "/d", environment: environment)
    #expect(try await database.collection("items").getDocuments().count == 1)
    try await database.collection("nothing").drop()
  }

  @Test func `Dropping a collection below a document leaves its neighbours`() async throws {
    let database = try await Database.underTest()
    let posts = ["a", "b"].map { database.collection("users/\($0)/posts") }
    for collection in posts {
      for number in 0..<300 { try await collection.document("p\(number)").setData(["n": number]) }
      try await collection.document("p1/notes/x").setData(["n": 1])
    }
    try await posts[0].createIndex(on: ["n"])
    try await posts[0].drop()
    #expect(try await posts[0].count.getAggregation().count == 0)
    #expect(try await database.collection("users/a/posts/p1/notes").getDocuments().isEmpty)
    #expect(try await posts[1].count.getAggregation().count == 300)
    #expect(try await database.collection("users/b/posts/p1/notes").getDocuments().count == 1)
    #expect(try await posts[1].listIndexes().map(\.entries) == [300])
  }

  @Test func `Building tells how far it is, and writes go on meanwhile`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<700 { try await items.document("d\(number)").setData(["n": number]) }
    var steps: [IndexProgress] = []
    try await items.createIndex(on: ["n"]) { steps.append($0) }
    #expect(steps.map(\.documents) == [256, 512, 700])
    #expect(steps.last?.total == 700)
    async let building: String = items.createIndex(on: ["-n"])
    for number in 0..<300 {
      try await items.document("d\(number * 3)").setData(["n": -number], durability: .memory)
    }
    _ = try await building
    try await auditIndexes(of: items)
  }

  @Test func `Slow queries get their index when the database is to make them`() async throws {
    let database = try await Database.underTest(options: .init(automaticIndexes: true))
    let items = database.collection("items")
    for number in 0..<200 { try await items.document("d\(number)").setData(["n": number]) }
    #expect(try await items.whereField("n", isEqualTo: 7).getDocuments().count == 1)
    while try await items.listIndexes().first?.state != .ready { await Task.yield() }
    #expect(try await items.listIndexes().map(\.name) == ["n"])
    try await database.close()
  }

  @Test func `An index is made for a hundred documents of which few are wanted, or all sorted`()
    async throws
  {
    let database = try await Database.underTest(options: .init(automaticIndexes: true))
    // The number of documents, how many of them are queried, and whether in an order.
    let cases: [(name: String, count: Int, wanted: Int, isSorted: Bool, index: String?)] = [
      ("few", 99, 1, false, nil), ("many", 100, 26, false, nil), ("quarter", 100, 25, false, "g"),
      ("sorted", 100, 100, true, "n"),
    ]
    for (name, count, wanted, isSorted, _) in cases {
      let items = database.collection(name)
      for number in 0..<count {
        try await items.document("d\(number)").setData(
          ["n": number, "g": number < wanted], durability: .memory)
      }
      let query = isSorted ? items.order(by: "n") : items.whereField("g", isEqualTo: true)
      #expect(try await query.getDocuments().count == wanted)
    }
    for (name, _, _, _, index) in cases.reversed() {
      let items = database.collection(name)
      guard let index else {
        #expect(try await items.listIndexes().isEmpty, "\(name)")
        continue
      }
      while try await items.listIndexes().first?.state != .ready { await Task.yield() }
      #expect(try await items.listIndexes().map(\.name) == [index])
    }
    try await database.close()
  }
}
