// The plan a query gets: which index, how many ranges, whether it sorts. A wrong choice is only
// slow and so shows nowhere else.

import Logging
import OndolTestKit
import Synchronization
import Testing

@testable import Ondol

/// What was said in the log.
private final class LogLines: Sendable {
  private let noted = Mutex<[String]>([])

  var lines: [String] { noted.withLock { $0 } }
  var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

  private struct Handler: LogHandler {
    let lines: LogLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.noted.withLock { $0.append("\(event.message)") } }
  }
}

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

  /// Two numbers typed into a form the wrong way round: the last alternative was one that nothing
  /// can meet, so it was exact, and was taken for all of them. Counts and ids were of documents
  /// that the first alternative does not let through.
  @Test func `An "or" is only as exact as the least exact of its parts`() async throws {
    let items = try await Database.inMemory().collection("items")
    for (id, status, price, other) in [("1", "y", 1, 3), ("2", "y", 2, 4), ("3", "x", 7, 5)] {
      try await items.document(id).setData(["status": status, "price": price, "other": other])
    }
    try await items.createIndex(on: ["status", "price"])
    let query = items.whereFilter(
      .orFilter([
        .andFilter([.whereField("status", isEqualTo: "y"), .whereField("other", isEqualTo: 3)]),
        .andFilter([
          .whereField("status", isEqualTo: "x"), .whereField("price", isGreaterThan: 10),
          .whereField("price", isLessThan: 5),
        ]),
      ]))
    #expect(try await query.explain().access == .index(name: "status,price", ranges: 1))
    #expect(try await query.count.getAggregation().count == 1)
    #expect(try await query.select([]).getDocuments().documents.map(\.documentID) == ["1"])
  }

  /// Facets of a search, each an "or" of ranges: each doubled, and more, what planning cost.
  @Test(arguments: [2, 6, 40])
  func `What planning costs follows the size of the query`(facets: Int) async throws {
    let items = try await Database.inMemory().collection("items")
    for number in 0..<20 {
      try await items.document("\(number)").setData(
        Dictionary(uniqueKeysWithValues: (0..<facets).map { ("f\($0)", number) }))
    }
    for facet in 0..<min(8, facets) { try await items.createIndex(on: ["f\(facet)"]) }
    // Ranges alone fix no field, so no "or" in an "or" is looked at; with an equality in each part
    // the budget ends it.
    for hasEqualities in [false, true] {
      var query = items.query
      for facet in 0..<facets {
        let field = FieldPath("f\(facet)")
        query = query.whereFilter(
          .orFilter(
            (0..<5).map { part in
              let range: [Filter] = [
                .whereField(field, isGreaterThanOrEqualTo: 4 * part),
                .whereField(field, isLessThan: 4 * part + 3),
              ]
              let other = FieldPath("f\((facet + 1) % facets)")
              return .andFilter(
                hasEqualities ? range + [.whereField(other, isEqualTo: 4 * part)] : range)
            }))
      }
      let normal = try NormalQuery(query.shape.get())
      var budget = PlanningBudget(for: normal)
      var looks = 0
      while budget.allows(normal.conjuncts) { looks += 1 }
      #expect(looks < 1_000)
      let plan = try await query.explain()
      #expect(plan.isPlanCutShort == (hasEqualities && facets > 2), "\(plan)")
      #expect("\(plan)".contains("more ways than") == plan.isPlanCutShort)
      let found = try await query.getDocuments().documents.compactMap { $0["f0"] as Int? }
      #expect(
        found.sorted() == (hasEqualities ? [0, 4, 8, 12, 16] : (0..<20).filter { $0 % 4 < 3 }))
    }
  }

  /// A typing error found nothing, without a word.
  @Test func `Fields that nobody has are named`() async throws {
    let logs = LogLines()
    var options = Database.Options()
    options.logger = logs.logger
    let database = try await Database.inMemory(options: options)
    let items = database.collection("items")
    #expect(try await items.whereField("pirce", isEqualTo: 1).explain().unknownFields == [])
    try await items.document("a").setData(["price": 1, "size": ["h": 2]])
    try await items.createIndex(on: ["later"])
    for query in [
      items.whereField("pirce", isEqualTo: 1), items.order(by: "pirce"),
      items.whereFilter(.orFilter([.whereField("pirce", in: [1]), .whereField("price", in: [1])])),
    ] {
      #expect(try await query.getDocuments().count <= 1)
      let plan = try await query.explain()
      #expect(plan.unknownFields == ["pirce"])
      #expect("\(plan)".contains("'pirce'"))
    }
    let sum = items.aggregate([.sum("sise")])
    #expect(try await sum.getAggregation()[.sum("sise")] as Int? == 0)
    #expect(try await sum.explain().unknownFields == ["sise"])
    let known = items.whereField("later", isEqualTo: 1).order(by: "size.h")
    #expect(try await known.explain().unknownFields == [])
    #expect(logs.lines.filter { $0.contains("'pirce'") }.count == 1)
    #expect(logs.lines.filter { $0.contains("'sise'") }.count == 1)
    try await database.close()
  }

  @Test func `A direction in an order's field is refused with the right spelling`() async throws {
    let items = try await Database.inMemory().collection("items")
    try await items.document("a").setData([FieldPath(["-price"]).description: 1, "-price": 2])
    let error = await #expect(throws: DatabaseError.self) {
      try await items.order(by: "-price").getDocuments()
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("order(by: \"price\", descending: true)") == true)
    #expect(try await items.order(by: "`-price`").getDocuments().count == 1)
    #expect(try await items.order(by: FieldPath(["-price"])).getDocuments().count == 1)
  }

  /// `limit(1).count` read every document that matched.
  @Test(arguments: [false, true], [0, 3])
  func `Counting ends at the limit`(isIndexed: Bool, offset: Int) async throws {
    let database = try await Database.inMemory()
    let items = database.collection("items")
    for number in 0..<500 {
      try await items.document("\(number)").setData(["a": number % 2], durability: .memory)
    }
    if isIndexed { try await items.createIndex(on: ["a"]) }
    let query = items.whereField("a", isEqualTo: 1).offset(offset).limit(to: 2)
    #expect(try await query.count.getAggregation().count == 2)
    var executor = try Executor(
      try query.shape.get(), in: database, try database.snapshot().rows(for: database, ""))
    #expect(try executor.count() == 2)
    #expect(executor.counts.documentsExamined <= (isIndexed ? 0 : 4 * (2 + offset) + 32))
    #expect(executor.counts.entriesVisited <= 4 * (2 + offset) + 32)
    #expect(
      try await items.whereField("a", isEqualTo: 1).limit(to: 999).count.getAggregation().count
        == 250)
    try await database.close()
  }
}
