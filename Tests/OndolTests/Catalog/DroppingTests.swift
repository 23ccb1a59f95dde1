// Dropping: what stays declared, and who notices.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct DroppingTests {
  private func withDatabase(_ body: (Database) async throws -> Void) async throws {
    let database = try await Database.underTest()
    try await body(database)
    try await database.close()
  }

  // `drop()` once forgot the declarations: afterwards two documents could share a unique value, and
  // documents were upgraded twice.
  @Test func `A collection's declarations stay when it is dropped`() async throws {
    var environment = Environment.memory()
    environment.fileSystem = MemoryFileSystem()
    var database = try await Database.open(at: "/db", environment: environment)
    func declare(_ database: Database) async throws {
      try await database.collection("items").setSchema(version: 1) { fields, _ in
        if let price = fields["price"]?.integer { fields["price"] = .integer(100 * price) }
      }
    }
    try await declare(database)
    var items = database.collection("items")
    try await items.createIndex(on: ["email"], unique: true)
    try await items.createIndex(onArray: "tags")
    try await database.collectionGroup("posts").createIndex(on: ["date"])
    try await database.collection("items/a/posts").createIndex(on: ["-likes"])
    try await database.collection("items/a/posts").setTimeToLive(field: "end")
    try await items.document("lamp").setData(["price": 500, "email": "x"])
    try await database.document("items/a/posts/1").setData(["likes": 1, "date": 1])
    let names = try await items.listIndexes().map(\.name)
    try await items.drop()
    #expect(try await items.getDocuments().isEmpty)
    #expect(try await items.listIndexes().map(\.name) == names)
    #expect(
      try await database.collection("items/z/posts").listIndexes().map(\.name).sorted()
        == ["-likes", "date group"])
    try await items.document("lamp").setData(["price": 500, "email": "x"])
    let error = await #expect(throws: DatabaseError.self) {
      try await items.document("desk").create(["email": "x"])
    }
    #expect(error?.code == .alreadyExists)
    try await database.document("items/a/posts/1").setData(
      ["end": try Timestamp(microsecondsSince1970: 1)])
    #expect(try await database.document("items/a/posts/1").getDocument().exists == false)
    try await auditIndexes(of: items)
    try await database.close()

    database = try await Database.open(at: "/db", environment: environment)
    try await declare(database)
    items = database.collection("items")
    #expect(try await items.document("lamp").getDocument()["price"] as Int? == 500)
    // Without documents there is nothing to drop, and no collection number is used up.
    try await items.drop()
    let number = try await database.family("items")?.row.number
    try await items.drop()
    #expect(try await database.family("items")?.row.number == number)
    try await database.close()
  }

  @Test func `Declarations are dropped on request, and writes have the app's schema`()
    async throws
  {
    var environment = Environment.memory()
    environment.fileSystem = MemoryFileSystem()
    var database = try await Database.open(at: "/db", environment: environment)
    func declare(_ database: Database) async throws {
      try await database.collection("items").setSchema(version: 2) { fields, _ in
        fields["upgraded"] = true
      }
    }
    try await declare(database)
    let items = database.collection("items")
    try await items.createIndex(on: ["email"], unique: true)
    try await items.document("a").setData(["email": "x"])
    try await items.drop(includingDeclarations: true)
    #expect(try await items.listIndexes().isEmpty)
    try await items.document("a").setData(["email": "x"])
    try await items.document("b").setData(["email": "x"])
    try await database.close()

    database = try await Database.open(at: "/db", environment: environment)
    try await declare(database)
    #expect(try await database.document("items/a").getDocument().data() == ["email": "x"])
    let below = database.collection("items/a/parts")
    let error = await #expect(throws: DatabaseError.self) {
      try await below.drop(includingDeclarations: true)
    }
    #expect(error?.code == .invalidArgument)
    try await database.close()
  }

  // A transaction that had read documents of a collection once committed as if it had not been
  // dropped in the meantime.
  @Test(arguments: ["document", "ids", "query", "group", "recursive"])
  func `A transaction that read a dropped collection runs again`(kind: String) async throws {
    try await withDatabase { database in
      let (items, other) = (database.collection("items"), database.collection("other"))
      try await items.document("a").setData(["v": 1])
      try await database.document("items/a/parts/p").setData(["v": 1])
      var runs = 0
      let exists = try await database.runTransaction { transaction in
        let exists =
          switch kind {
          case "document": try transaction.getDocument(items.document("a")).exists
          case "ids":
            try !transaction.getDocuments(items.whereField(.documentID(), isEqualTo: "a")).isEmpty
          case "query": try !transaction.getDocuments(items).isEmpty
          case "group": try !transaction.getDocuments(database.collectionGroup("parts")).isEmpty
          default: try !transaction.readDescendants(of: items.document("a").place.get()).isEmpty
          }
        // After the read, because a body whose read must wait runs again.
        runs += 1
        if runs == 1 { try await Task.detached { try await items.drop() }.value }
        try transaction.setData(["exists": exists], forDocument: other.document("b"))
        return exists
      }
      #expect(runs >= 2)
      if TestedStore.current.repeatsForConflictsAlone { #expect(runs == 2) }
      #expect(!exists)
    }
  }

  @Test func `A transaction whose reads have changed their meaning runs again`() async throws {
    try await withDatabase { database in
      let (items, other) = (database.collection("items"), database.collection("other"))
      try await items.document("a").setData(["v": 1])
      var runs = 0
      try await database.runTransaction { transaction in
        runs += 1
        let value: Int = try transaction.getDocument(items.document("a"))["v"] ?? 0
        if runs == 1 {
          let task = Task.detached {
            try await items.setSchema(version: 1) { fields, _ in fields["v"] = 2 }
          }
          try await task.value
        }
        try transaction.setData(["v": value], forDocument: other.document("b"))
      }
      #expect(try await other.document("b").getDocument()["v"] as Int? == 2)
    }
  }

  // Documents by their ids were once looked up in the collection's successor.
  @Test func `A snapshot keeps a dropped collection, for every form of query`() async throws {
    try await withDatabase { database in
      let items = database.collection("items")
      try await items.createIndex(on: ["v"])
      for number in 0..<30 { try await items.document("\(number)").setData(["v": number % 3]) }
      let snapshot = database.snapshot()
      func check() throws {
        #expect(try snapshot.getDocument(items.document("7"))["v"] as Int? == 1)
        #expect(try snapshot.getDocuments(items, ids: ["7", "x"]).map(\.exists) == [true, false])
        #expect(try snapshot.getDocuments(items.whereField("v", isEqualTo: 1)).count == 10)
      }
      for includingDeclarations in [false, true] {
        try await items.drop(includingDeclarations: includingDeclarations)
        try check()
        try await items.document("new").setData(["v": 1, "another name": 2])
        try await database.compact()
        try check()
        #expect(try await items.document("7").getDocument().exists == false)
      }
    }
  }

  // An index that only a later version knows was once taken for damage.
  @Test func `A newer version's rows in the catalog are not damage`() async throws {
    let database = try await Database.underTest()
    try await database.collection("items").createIndex(on: ["v"])
    let family = try #require(try await database.family("items"))
    let keyspace = try #require(family.collections.values.first?.indexes.first?.keyspace)
    let key = CatalogKey.keyspace(keyspace)
    let row = try #require(
      Rows(try database.engineSnapshot(), database.catalog, mayBlock: true).row(key))
    // The flags of the kind precede the state, which is the last byte.
    let flags = row.count - 2
    for (name, change) in [
      (
        "an index of another kind",
        { (row: inout [UInt8]) in
          row[flags] = 0x40
          row.insert(0x80, at: flags + 1)
        }
      ),
      ("an index in another state", { $0[flags + 1] = 9 }),
      ("a keyspace of another kind", { $0[0] = 9 }),
    ] as [(String, (inout [UInt8]) -> Void)] {
      var changed = row
      change(&changed)
      let error = #expect(throws: MalformedBytes.self, "\(name)") {
        try KeyspaceRow(changed.bytes, of: keyspace)
      }
      #expect(error?.isOfNewerVersion == true, "\(name)")
      #expect(error.map { DatabaseError(catalog: $0).code } == .unimplemented)
    }
    let unknown = key.dropLast() + [0x09]
    let error = #expect(throws: MalformedBytes.self) {
      try CatalogKey.parse(Array(unknown).bytes)
    }
    #expect(error?.isOfNewerVersion == true)
    try await database.close()
  }
}
