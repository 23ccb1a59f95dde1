// Properties of plans that a script does not show: their cost, and that their results are correct.
// Tests/GoldenScripts/planner shows which plan a query gets.

import Logging
import OndolTestKit
import Synchronization
import Testing

@testable import Ondol

/// Log messages.
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

@Suite struct PlannerTests {
  @Test func `A list of a hundred thousand values is answered from an index`() async throws {
    let database = try await Database.underTest()
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

  /// Two numbers typed into a form the wrong way round: nothing could meet the last alternative, so
  /// it was exact, and was taken for all of them. Counts and ids came from documents that the first
  /// alternative excludes.
  @Test func `An "or" is only as exact as the least exact of its parts`() async throws {
    let items = try await Database.underTest().collection("items")
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

  /// Facets of a search, each an "or" of ranges: each once more than doubled the cost of planning.
  @Test(arguments: [2, 6, 40])
  func `The cost of planning follows the size of the query`(facets: Int) async throws {
    let items = try await Database.underTest().collection("items")
    for number in 0..<20 {
      try await items.document("\(number)").setData(
        Dictionary(uniqueKeysWithValues: (0..<facets).map { ("f\($0)", number) }))
    }
    for facet in 0..<min(8, facets) { try await items.createIndex(on: ["f\(facet)"]) }
    // Ranges alone fix no field, so no nested "or" is examined. With an equality in each part the
    // budget ends it.
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

  /// A mistyped field once found nothing, without a warning.
  @Test func `Fields that no document has are named`() async throws {
    let logs = LogLines()
    var options = Database.Options()
    options.logger = logs.logger
    let database = try await Database.underTest(options: options)
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
    let items = try await Database.underTest().collection("items")
    try await items.document("a").setData([FieldPath(["-price"]).description: 1, "-price": 2])
    let error = await #expect(throws: DatabaseError.self) {
      try await items.order(by: "-price").getDocuments()
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("order(by: \"price\", descending: true)") == true)
    #expect(try await items.order(by: "`-price`").getDocuments().count == 1)
    #expect(try await items.order(by: FieldPath(["-price"])).getDocuments().count == 1)
  }

  /// `limit(1).count` once read every document that matched.
  @Test(arguments: [false, true], [0, 3])
  func `Counting ends at the limit`(isIndexed: Bool, offset: Int) async throws {
    let database = try await Database.underTest()
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
