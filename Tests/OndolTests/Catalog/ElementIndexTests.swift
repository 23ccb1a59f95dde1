// Indexes that have the elements of an array among their fields: which queries they serve, how they
// are written, and that such queries find what a scan finds.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite("Indexes with elements among other fields")
struct ElementIndexTests {
  @Test func `The newest documents with a tag are a page of the index`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<60 {
      let tag = "t\(number % 3)"
      try await items.document("d\(number)").setData([
        "tags": ["all", tag, tag], "at": number * 7 % 60,
      ])
    }
    try await items.document("none").setData(["at": 100])
    try await items.document("text").setData(["at": 101, "tags": "t1"])
    try await items.document("empty").setData(["at": 102, "tags": [] as [String]])
    let newest = items.whereField("tags", arrayContains: "t1").order(by: "at", descending: true)
      .limit(to: 5)
    #expect(try await newest.explain().suggestedIndex == ["tags[]", "-at"])
    let scanned = try await newest.getDocuments().documents.map(\.documentID)
    let name = try await items.createIndex(on: ["tags[]", "-at"])
    #expect(name == "tags[],-at")
    #expect(try await items.listIndexes().map(\.fields) == [["tags[]", "-at"]])
    #expect(try await items.listIndexes().map(\.entries) == [120])
    let plan = try await newest.explain(analyze: true)
    #expect(plan.indexName == name && !plan.sorts && plan.entriesVisited == 5)
    #expect(try await newest.getDocuments().documents.map(\.documentID) == scanned)
    let next = newest.start(after: try await newest.getDocuments().cursor)
    #expect(try await next.explain(analyze: true).entriesVisited == 5)
    let both = items.whereField("tags", arrayContainsAny: ["t1", "all"]).order(by: "at")
    let any = try await both.explain()
    #expect(any.indexName == name && any.sorts)
    #expect(try await both.getDocuments().count == 60)
    #expect(try await both.count.getAggregation().count == 60)
    // Without a condition on the array a document would appear once for each element.
    #expect(try await items.order(by: "at").explain().access == .scan)
    try await auditIndexes(of: items)
  }

  @Test func `An index that no query could use is refused`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    let refused: [([String], Bool, Filter?)] = [
      (["a[]", "b[]"], false, nil), (["-a[]"], false, nil), (["a[]"], true, nil),
      (["a[]", "a"], false, nil), (["[]"], false, nil), (["__name__"], false, nil),
      (["a", "__name__"], true, nil), (["__name__", "a"], false, nil),
      (["a"], false, .whereField("b", in: [] as [Value])),
    ]
    for (fields, unique, condition) in refused {
      let error = await #expect(throws: DatabaseError.self, "\(fields)") {
        try await items.createIndex(on: fields, unique: unique, where: condition)
      }
      #expect(error?.code == .invalidArgument, "\(fields)")
    }
    #expect(try await items.listIndexes().isEmpty)
  }

  @Test func `A query for elements gets a hint about an index of whole arrays`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["tags": ["x"], "at": 1])
    try await items.createIndex(on: ["tags", "-at"])
    let query = items.whereField("tags", arrayContains: "x")
    let plan = try await query.explain()
    #expect(plan.access == .scan)
    #expect(plan.wholeArrayIndexes == ["tags,-at"])
    #expect(plan.description.contains("holds whole arrays"))
    #expect(try await items.order(by: "at").explain().wholeArrayIndexes.isEmpty)
    try await items.createIndex(onArray: "tags")
    #expect(try await query.explain().wholeArrayIndexes.isEmpty)
  }

  @Test func `Ids can have another direction than the last field`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<9 {
      try await items.document("d\(number)").setData(["n": number / 3])
    }
    #expect(try await items.createIndex(on: ["n", "__name__"]) == "n")
    let name = try await items.createIndex(on: ["n", "-__name__"])
    #expect(name == "n,-__name__")
    let query = items.order(by: "n").order(by: .documentID(), descending: true)
    let plan = try await query.explain()
    #expect(plan.indexName == name && !plan.sorts)
    let ids = try await query.getDocuments().documents.map(\.documentID)
    #expect(ids == ["d2", "d1", "d0", "d5", "d4", "d3", "d8", "d7", "d6"])
    let reversed = items.order(by: "n", descending: true).order(by: .documentID())
    #expect(try await reversed.explain().indexName == name)
    #expect(try await reversed.getDocuments().documents.map(\.documentID) == ids.reversed())
    try await auditIndexes(of: items)
  }

  @Test func `Their rows in the catalog are read as they were written`() throws {
    let fields = [IndexField(["a"]), IndexField(["t"], isOfElements: true), IndexField(["b"])]
    var kinds: [IndexKind] = [IndexKind([fields[1]]), IndexKind([fields[0]])]
    // An index of one field's elements is written in the old form.
    for kind in kinds {
      var bytes: [UInt8] = []
      bytes.append(kind)
      #expect(bytes.last == (kind.isOfElements ? 1 : 0))
    }
    kinds += [IndexKind(fields), IndexKind([fields[0], fields[1]]), IndexKind(fields)]
    kinds[4].opposesIDs = true
    kinds.append(IndexKind([IndexField(["a"], descending: true)], isOfGroup: true))
    kinds[5].opposesIDs = true
    #expect(Set(kinds.map(\.name)).count == kinds.count)
    for kind in kinds {
      var bytes: [UInt8] = []
      bytes.append(kind)
      var reader = ByteReader(bytes.bytes)
      #expect(try reader.indexKind() == kind)
      for count in 0..<bytes.count {
        let cut = Array(bytes.prefix(count))
        var reader = ByteReader(cut.bytes)
        #expect(throws: MalformedBytes.self) { try reader.indexKind() }
      }
    }
  }

  /// Random indexes of random fields over few values, queried for elements and other conditions.
  @Test(arguments: Seeds.first(8))
  func `Queries by elements find what a scan finds`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let indexed = try await Database.underTest()
    let plain = try await Database.underTest()
    var used: Set<String> = []
    for round in 0..<3 {
      let batches = [indexed.batch(), plain.batch()]
      for _ in 0..<60 {
        let path = random.pick(["c", "u/x/c"]) + "/d\(random.below(40))"
        let fields = Self.fields(&random)
        for (batch, database) in zip(batches, [indexed, plain]) {
          if fields.isEmpty {
            batch.deleteDocument(database.document(path))
          } else {
            try batch.setData(
              fields.mapValues { $0 as any FieldContent }, forDocument: database.document(path))
          }
        }
      }
      for batch in batches { try await batch.commit(durability: .memory) }
      for _ in 0..<2 { try await makeIndex(in: indexed, &random) }
      for _ in 0..<80 {
        let build = Self.query(&random)
        let (query, model) = (build(indexed), build(plain))
        let plan = try await query.explain()
        if let name = plan.indexName, name.contains(",") { used.insert(name) }
        let found = try await query.getDocuments().documents.map(\.reference.path)
        let wanted = try await model.getDocuments().documents.map(\.reference.path)
        #expect(found == wanted, "seed \(seed), round \(round): \(plan)")
        let count = try await query.count.getAggregation().count
        #expect(count == wanted.count, "seed \(seed), count: \(plan)")
      }
    }
    #expect(!used.isEmpty)
    for path in ["c", "u/x/c"] { try await auditIndexes(of: indexed.collection(path), seed: seed) }
  }

  private static func fields(_ random: inout SeededRandom) -> [String: Value] {
    if random.chance(1, in: 8) { return [:] }
    var fields: [String: Value] = ["always": 1]
    for name in ["a", "b"] where !random.chance(1, in: 5) { fields[name] = value(&random) }
    switch random.below(8) {
    case 0: break
    case 1: fields["t"] = value(&random)
    default:
      let count = random.below(4)
      fields["t"] = .array((0..<count).map { _ in value(&random) })
    }
    return fields
  }

  private static func value(_ random: inout SeededRandom) -> Value {
    switch random.below(14) {
    case 12: random.decimal()
    case 13: random.grid()
    case 0: .string(String(repeating: "온돌", count: 300) + "\(random.below(2))")
    case 1: .null
    case 2: .double(Double(random.below(3)))
    case 3: .string(random.pick(["a", "b"]))
    default: .integer(Int64(random.below(3)))
    }
  }

  private func makeIndex(in database: Database, _ random: inout SeededRandom) async throws {
    var fields = random.pick([["a"], ["-b"], ["a", "b"], ["-b", "a"], ["-a", "-b"], []])
    fields.insert("t[]", at: random.below(fields.count + 1))
    if random.chance(1, in: 4) { fields.append(random.pick(["__name__", "-__name__"])) }
    if random.chance(1, in: 3) {
      try await database.collectionGroup("c").createIndex(on: fields)
    } else {
      try await database.collection(random.pick(["c", "u/x/c"])).createIndex(
        on: fields, where: random.chance(1, in: 4) ? .whereField("a", isGreaterThan: 0) : nil)
    }
  }

  private static func query(
    _ random: inout SeededRandom
  ) -> @Sendable (Database) -> Query {
    let isOfGroup = random.chance(1, in: 3)
    let path = random.pick(["c", "u/x/c"])
    var filters: [Filter] = []
    let elements = [value(&random), value(&random)]
    filters.append(
      random.chance(1, in: 3)
        ? .whereField("t", arrayContainsAny: elements)
        : .whereField("t", arrayContains: elements[0]))
    if random.chance(1, in: 6) { filters.append(.whereField("t", arrayContains: elements[1])) }
    if random.chance(1, in: 3) { filters.append(.whereField("a", isEqualTo: value(&random))) }
    if random.chance(1, in: 5) {
      filters.append(.whereField("b", in: [value(&random), value(&random)]))
    }
    if random.chance(1, in: 3) { filters.append(.whereField("a", isGreaterThan: random.below(2))) }
    var orders: [(String, Bool)] = []
    for name in ["a", "b", "__name__", "t"] where random.chance(1, in: name == "t" ? 12 : 3) {
      orders.append((name, random.chance(1, in: 2)))
    }
    var start: [Value] = []
    if random.chance(1, in: 3), orders.count == 1, orders[0].0 != "__name__" {
      start = [value(&random)]
    }
    let limit = random.chance(1, in: 2) ? random.below(6) + 1 : nil
    return { [filters, orders, start] database in
      var query = isOfGroup ? database.collectionGroup("c").query : database.collection(path).query
      for filter in filters { query = query.whereFilter(filter) }
      for (name, descending) in orders {
        query = query.order(by: FieldPath(name), descending: descending)
      }
      if !start.isEmpty { query = query.start(at: start) }
      if let limit { query = query.limit(to: limit) }
      return query
    }
  }
}
