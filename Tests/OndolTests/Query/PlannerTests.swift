// The plan a query gets: which index, how many ranges, whether it sorts. A wrong choice is only
// slow and so shows nowhere else.

import Testing

@testable import Ondol

/// What a query is, the indexes there are, and how it is to be answered.
private struct Expectation: CustomTestStringConvertible, Sendable {
  let name: String
  let indexes: [[String]]
  let plan: String
  let query: @Sendable (CollectionReference) -> Query

  init(
    _ name: String, _ indexes: [[String]], _ plan: String,
    _ query: @escaping @Sendable (CollectionReference) -> Query
  ) {
    self.name = name
    self.indexes = indexes
    self.plan = plan
    self.query = query
  }

  var testDescription: String { name }
}

private let expectations: [Expectation] = [
  Expectation("everything", [["a"]], "scan of the collection") { $0.query },
  Expectation("by id, backwards", [["a"]], "scan of the collection") {
    $0.order(by: FieldPath.documentID(), descending: true)
  },
  Expectation("one id", [["a"]], "1 lookup by id") {
    $0.whereField(FieldPath.documentID(), isEqualTo: "x")
  },
  Expectation("ids and a field", [["a"]], "3 lookups by id") {
    $0.whereField("a", isEqualTo: 1).whereField(FieldPath.documentID(), in: ["x", "y", "z", "x"])
  },
  Expectation("no value to be in", [["a"]], "nothing can match") { $0.whereField("a", in: []) },
  Expectation("a limit of zero", [["a"]], "nothing can match") { $0.limit(to: 0) },
  Expectation("an equality", [["a"]], "index 'a', 1 range") { $0.whereField("a", isEqualTo: 1) },
  Expectation("an equality on another field", [["a"]], "scan of the collection") {
    $0.whereField("b", isEqualTo: 1)
  },
  Expectation("a list", [["a"]], "index 'a', 3 ranges, then sorted") {
    $0.whereField("a", in: [3, 1, 2, 1.0])
  },
  Expectation("a list, sorted by it", [["a"]], "index 'a', 3 ranges") {
    $0.whereField("a", in: [3, 1, 2]).order(by: "a")
  },
  Expectation("a list, sorted backwards on a descending index", [["-a"]], "index '-a', 3 ranges") {
    $0.whereField("a", in: [3, 1, 2]).order(by: "a", descending: true)
  },
  Expectation("a range", [["a"]], "index 'a', 1 range") { $0.whereField("a", isGreaterThan: 1) },
  Expectation("a range, sorted backwards", [["a"]], "index 'a', 1 range") {
    $0.whereField("a", isGreaterThan: 1).order(by: "a", descending: true)
  },
  Expectation("an order", [["a"]], "index 'a', 1 range") { $0.order(by: "a") },
  Expectation("an order the other way", [["a"]], "index 'a', 1 range") {
    $0.order(by: "a", descending: true)
  },
  Expectation(
    "an order the index has behind another field", [["b", "a"]],
    "scan of the collection, then sorted"
  ) {
    $0.order(by: "a")
  },
  Expectation("an equality and an order", [["a"], ["b"], ["a", "-b"]], "index 'a,-b', 1 range") {
    $0.whereField("a", isEqualTo: 1).order(by: "b", descending: true)
  },
  Expectation("an equality and an order, walked backwards", [["a", "-b"]], "index 'a,-b', 1 range")
  {
    $0.whereField("a", isEqualTo: 1).order(by: "b")
  },
  Expectation("two orders in mixed directions", [["a", "-b"]], "index 'a,-b', 1 range") {
    $0.order(by: "a").order(by: "b", descending: true)
  },
  Expectation(
    "two orders in directions the index lacks", [["a", "b"]], "scan of the collection, then sorted"
  ) {
    $0.order(by: "a").order(by: "b", descending: true)
  },
  Expectation(
    "a list and an order on another field", [["a", "b"]], "index 'a,b', 2 ranges, then sorted"
  ) {
    $0.whereField("a", in: [1, 2]).order(by: "b")
  },
  Expectation("a list of one and an order on another field", [["a", "b"]], "index 'a,b', 1 range") {
    $0.whereField("a", in: [1]).order(by: "b")
  },
  Expectation("an order by what is fixed", [["a"]], "index 'a', 1 range") {
    $0.whereField("a", isEqualTo: 1).order(by: "a")
  },
  Expectation("two equalities", [["a"], ["b", "a"]], "index 'b,a', 1 range") {
    $0.whereField("a", isEqualTo: 1).whereField("b", isEqualTo: 1)
  },
  Expectation("an equality and a range", [["a"], ["a", "b"], ["b", "a"]], "index 'a,b', 1 range") {
    $0.whereField("a", isEqualTo: 1).whereField("b", isLessThan: 1)
  },
  Expectation("an inequality", [["a"]], "index 'a', 1 range") {
    $0.whereField("a", isNotEqualTo: 1)
  },
  Expectation("ids from one to another", [["a"]], "range of ids") {
    $0.whereField(FieldPath.documentID(), isGreaterThan: "x")
  },
  Expectation("the beginning of a text", [["a"]], "index 'a', 1 range") {
    $0.whereField("a", hasPrefix: "x")
  },
  Expectation("two equalities, an index each", [["a"], ["b"]], "index 'a' and index 'b'") {
    $0.whereField("a", isEqualTo: 1).whereField("b", isEqualTo: 1)
  },
  Expectation(
    "alternatives, an index each", [["a"], ["b"]], "index 'a', 1 range; index 'b', 1 range"
  ) {
    $0.whereFilter(.orFilter([.whereField("a", isEqualTo: 1), .whereField("b", isEqualTo: 2)]))
  },
  Expectation("alternatives of which one has no index", [["a"]], "scan of the collection") {
    $0.whereFilter(.orFilter([.whereField("a", isEqualTo: 1), .whereField("b", isEqualTo: 2)]))
  },
  Expectation("alternatives on one field", [["a"]], "index 'a', 2 ranges, then sorted") {
    $0.whereFilter(.orFilter([.whereField("a", isEqualTo: 1), .whereField("a", isEqualTo: 2)]))
  },
  Expectation(
    "alternatives within a condition", [["c", "a"], ["c", "b"]],
    "index 'c,a', 1 range; index 'c,b', 1 range"
  ) {
    $0.whereField("c", isEqualTo: 1).whereFilter(
      .orFilter([.whereField("a", isEqualTo: 1), .whereField("b", isEqualTo: 2)]))
  },
  Expectation("missing fields last, on an index", [["a"]], "scan of the collection, then sorted") {
    $0.order(by: "a", missing: .last)
  },
  Expectation("missing fields first, behind a fixed one", [["a", "b"]], "index 'a,b', 1 range") {
    $0.whereField("a", isEqualTo: 1).order(by: "b", missing: .first)
  },
]

@Suite struct PlannerTests {
  @Test(arguments: expectations)
  fileprivate func `A query is answered by what serves it best`(
    expectation: Expectation
  ) async throws {
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    try await collection.document("d").setData(["a": 1])
    for index in expectation.indexes { try await collection.createIndex(on: index) }
    let text = try await expectation.query(collection).explain().description
    let line = text.split(separator: "\n").dropFirst().first.map(String.init)
    #expect(line == "  \(expectation.plan)", "\(text)")
    try await database.close()
  }

  @Test func `A scan names the index that would serve it`() async throws {
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    try await collection.document("d").setData(["status": "x", "workDate": "y"])
    let query = collection.whereField("status", isEqualTo: "x")
      .order(by: "workDate", descending: true)
    let suggestion = try #require(try await query.explain().suggestedIndex)
    #expect(suggestion == ["status", "-workDate"])
    try await collection.createIndex(on: suggestion)
    let plan = try await query.explain()
    #expect(plan.access == .index(name: "status,-workDate", ranges: 1))
    #expect(plan.sorts == false)
    #expect(plan.suggestedIndex == nil)
  }

  @Test func `A limit on an index reads no more than it needs`() async throws {
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    for number in 0..<100 {
      try await collection.document("d\(number)").setData(["n": number], durability: .memory)
    }
    try await collection.createIndex(on: ["n"])
    let query = collection.order(by: "n", descending: true).limit(to: 3)
    let plan = try await query.explain(analyze: true)
    #expect(plan.entriesVisited == 3)
    #expect(plan.documentsExamined == 3)
    #expect(plan.documentsReturned == 3)
    #expect(plan.duration != nil)
    #expect(try await query.getDocuments().documents.map { $0["n"] as Int? } == [99, 98, 97])
  }

  @Test func `A list of a hundred thousand values is answered from an index`() async throws {
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    for number in 0..<300 {
      try await collection.document("d\(number)").setData(
        ["n": number * 1_000, "s": "v\(number)"], durability: .memory)
    }
    let values = Array(0..<100_000)
    let query = collection.whereField("n", in: values).order(by: "n")
    let expected = (0..<100).map { "d\($0)" }
    #expect(try await query.getDocuments().documents.map(\.documentID) == expected)
    try await collection.createIndex(on: ["n"])
    let plan = try await query.explain(analyze: true)
    #expect(plan.access == .index(name: "n", ranges: 100_000))
    #expect(plan.entriesVisited == 100)
    #expect(try await query.getDocuments().documents.map(\.documentID) == expected)
    let backwards = collection.whereField("n", in: values).order(by: "n", descending: true)
    #expect(try await backwards.getDocuments().documents.map(\.documentID) == expected.reversed())
    let ids = values.map { "d\($0)" }
    let byID = collection.whereField(FieldPath.documentID(), in: ids)
    #expect(try await byID.getDocuments().count == 300)
  }
}
