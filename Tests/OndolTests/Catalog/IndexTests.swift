// Declaring, building and using indexes, and the catalog's rows.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct IndexTests {
  @Test func `A builder's batch is refused when one of its documents has changed`() async throws {
    let device = SimulatedDevice()
    let database = try await Database.open(at: "db", on: device)
    let collection = database.collection("c")
    for number in 0..<10 {
      try await collection.document("d\(number)").setData(["n": number])
    }
    // An open finishes unfinished indexes in the background. It has looked by now.
    await device.clock.advance(by: .zero)
    let pattern = CollectionPattern(["c"])
    let index = try await database.changeCatalog(of: "c") { (edit) throws(DatabaseError) in
      try edit.declareIndex(IndexKind([IndexField(["n"])]), of: pattern)
    }
    let builder = IndexBuilder(database: database, pattern: pattern, keyspace: index.keyspace)
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let step = try #require(try builder.nextStep(in: rows))
    try await collection.document("d3").setData(["n": 99])
    #expect(step.documents == 10)
    await #expect(throws: EngineError.stale) {
      try await database.engine.commit(step.batch, durability: .memory)
    }
    #expect(try await builder.build())
    try await auditIndexes(of: collection)
  }

  @Test func `A write that was prepared before an index was declared is refused`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await document.setData(["n": 1])
    let write = DocumentWrite(
      path: try document.place.get(), intent: try WriteCompiler.set(["n": FieldInput(2)]))
    let prepared = try WritePreparation.prepare(
      [write], in: Rows(database.engineSnapshot(), database.catalog, mayBlock: true))
    try await document.parent.createIndex(on: ["n"])
    await #expect(throws: EngineError.stale) {
      try await database.engine.commit(prepared.batch, durability: .memory)
    }
  }

  @Test func `A new collection's number is refused to the second taker`() async throws {
    let database = try await Database.underTest()
    var batches: [Batch] = []
    for root in ["a", "b"] {
      let write = DocumentWrite(
        path: try DocumentPath("\(root)/d"), intent: try WriteCompiler.set(["n": FieldInput(2)]))
      batches.append(
        try WritePreparation.prepare(
          [write], in: Rows(database.engineSnapshot(), database.catalog, mayBlock: true)
        ).batch)
    }
    _ = try await database.engine.commit(batches[0], durability: .memory)
    await #expect(throws: EngineError.stale) {
      try await database.engine.commit(batches[1], durability: .memory)
    }
  }

  @Test
  func `Documents without the first field are not in an index, and later fields may be missing`()
    async throws
  {
    let database = try await Database.underTest()
    let collection = database.collection("c")
    try await collection.document("none").setData(["b": 1])
    try await collection.document("first").setData(["a": 1])
    try await collection.document("null").setData(["a": nil, "b": nil])
    try await collection.document("both").setData(["a": 1, "b": 2])
    for fields in [["a", "b"], ["a", "-b"], ["-a", "b"], ["-a", "-b"]] {
      try await collection.createIndex(on: fields)
    }
    for index in try await collection.listIndexes() { #expect(index.entries == 3) }
    let byFirst = collection.whereField("a", isEqualTo: 1)
    #expect(try await byFirst.explain().indexName != nil)
    #expect(try await byFirst.getDocuments().documents.map(\.documentID) == ["both", "first"])
    let sorted = byFirst.order(by: "b", descending: true)
    #expect(try await sorted.getDocuments().documents.map(\.documentID) == ["both"])
    let nulls = collection.whereField("a", isEqualTo: nil)
    #expect(try await nulls.getDocuments().documents.map(\.documentID) == ["null"])
    try await auditIndexes(of: collection)
  }

  @Test func `An index serves all collections with the same names`() async throws {
    let database = try await Database.underTest()
    let users = ["a", "b", "\u{ff}"].map { database.document("users/\($0)").collection("posts") }
    for (number, posts) in users.enumerated() {
      for post in 0..<10 { try await posts.document("p\(post)").setData(["n": post, "u": number]) }
    }
    let name = try await users[0].createIndex(on: ["n"])
    #expect(name == "n")
    for (number, posts) in users.enumerated() {
      let query = posts.whereField("n", isGreaterThan: 6)
      let plan = try await query.explain(analyze: true)
      #expect(plan.indexName == "n")
      #expect(plan.documentsReturned == 3)
      #expect(try await query.getDocuments().documents.allSatisfy { $0["u"] as Int? == number })
      #expect(try await posts.listIndexes().map(\.entries) == [30])
    }
    #expect(try await database.collection("users").listIndexes().isEmpty)
    #expect(try await users[1].createIndex(on: ["n"]) == "n", "there is one, and nothing happens")
  }

  @Test func `Names in an index keep dots and backticks apart`() async throws {
    let database = try await Database.underTest()
    let collection = database.collection("c")
    try await collection.document("d").setData(["a.b": 1, "a": ["b": 2], "-x": 3])
    try await collection.createIndex(on: ["`a.b`"])
    try await collection.createIndex(on: ["a.b"])
    try await collection.createIndex(on: ["-`-x`"])
    #expect(try await collection.listIndexes().map(\.name) == ["`a.b`", "a.b", "-`-x`"])
    let literal = collection.whereField(FieldPath(["a.b"]), isEqualTo: 1)
    #expect(try await literal.explain().indexName == "`a.b`")
    #expect(try await literal.getDocuments().count == 1)
    let nested = collection.whereField("a.b", isEqualTo: 2)
    #expect(try await nested.explain().indexName == "a.b")
    #expect(try await nested.getDocuments().count == 1)
  }

  @Test func `Rows of the catalog survive the way through bytes`() throws {
    let pattern = CollectionPattern(["a", "é", "\0"])
    let keyspace = Keyspace(family: 5, member: 7)
    let operands: [Value] = [nil, 1, 2.5, .double(.nan), "é\0", [1], ["a": 1]]
    let condition = FilterTree.all([
      .field(FieldFilter(field: .field(["a"]), condition: .isIn(operands))),
      .any([
        .field(FieldFilter(field: .field(["b", "c"]), condition: .hasPrefix(ExactText("x")))),
        .field(FieldFilter(field: .field(["b"]), condition: .greaterOrEqual(-1.5))),
      ]),
    ])
    for state: IndexDefinition.State in [
      .ready, .building(through: nil), .building(through: [1, 2]),
    ] {
      let index = IndexDefinition(
        keyspace: keyspace, documents: Keyspace(family: 5, member: 1),
        kind: IndexKind(
          [IndexField(["a"]), IndexField(["b", "c"], descending: true)], isUnique: true,
          nullsDistinct: state == .ready, condition: condition), state: state)
      for row in [KeyspaceRow.index(index), .documents(pattern)] {
        let bytes = row.bytes
        #expect(try KeyspaceRow(bytes.bytes, of: keyspace) == row)
        for count in 0..<bytes.count {
          let cut = Array(bytes.prefix(count))
          if case .building(.some) = state, case .index = row, count > bytes.count - 3 { continue }
          #expect(throws: MalformedBytes.self) { try KeyspaceRow(cut.bytes, of: keyspace) }
        }
      }
    }
    let family = FamilyRow(number: 5, generation: 1 << 40, nextMember: 4_096)
    #expect(try FamilyRow(family.bytes.bytes) == family)
    let symbol = CatalogKey.symbol(70_000, of: keyspace)
    let parsed = try CatalogKey.parse(symbol.bytes)
    #expect(parsed.keyspace == keyspace)
    #expect(parsed.symbol == 70_000)
  }

  @Test func `A family runs out of keyspaces with an error`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/d").setData(["a": 1])
    try await database.changeCatalog(of: "c") { (edit) throws(DatabaseError) in
      for _ in 2..<Keyspace.familyCapacity { _ = try edit.takeKeyspace() }
    }
    let error = await #expect(throws: DatabaseError.self) {
      try await database.document("c/d/sub/x").setData(["a": 1])
    }
    #expect(error?.code == .resourceExhausted)
    try await database.document("c/d").setData(["a": 2])
    try await database.document("other/d").setData(["a": 2])
  }
}
