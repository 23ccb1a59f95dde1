// Reused plans: each query of a form gets the plan that new planning would give it, whatever has
// happened to the indexes since the last one, and whatever its values are.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct PlanCacheTests {
  private static let long = String(repeating: "x", count: 1_100)
  private static let values: [Value] =
    [.null, .integer(1), .integer(2), .double(1), .double(.nan), .string("a"), .boolean(true)]
    + ["", "a", "b"].map { .string(long + $0) }
  private static let indexes = [["a"], ["-a"], ["a", "b"], ["b", "-a"], ["b"], ["a", "b", "c"]]

  /// The documents of the result, each matched by itself, sorted and cut at the beginning.
  private func answer(
    _ query: Query, _ items: CollectionReference
  ) async throws -> [String] {
    let all = try await items.getDocuments().documents
    let shape = try query.shape.get()
    let orders = shape.completeOrders
    var found: [(id: String, keys: [Value?])] = []
    for document in all {
      let (fields, name) = (document.contents?.fields ?? [:], Value.string(document.documentID))
      guard shape.matches(fields, name: name) else { continue }
      found.append((document.documentID, orders.map { $0.field.value(in: fields, name: name) }))
    }
    func compare(_ left: [Value?], _ right: [Value?]) -> Int {
      zip(orders, zip(left, right)).lazy.map { $0.compare($1.0, $1.1) }.first { $0 != 0 } ?? 0
    }
    found.sort { compare($0.keys, $1.keys) < 0 }
    if let start = shape.start, case .values(let values) = start.position {
      let isIncluded = start.isIncluded
      found.removeAll { compare($0.keys, values) < (isIncluded ? 0 : 1) }
    }
    return found.map(\.id)
  }

  /// The query in a random order, and from a random place of it on. After the document's id a field
  /// in the order excludes documents without it, and does nothing else.
  private func ordered(_ query: Query, _ random: inout SeededRandom) -> Query {
    var query = query
    let descending = random.below(2) == 0
    let fields = ["a", "b", "c"].shuffled(using: &random).prefix(1 + random.below(2))
    let placeOfID = random.below(3) == 0 ? random.below(fields.count) : nil
    for (place, field) in fields.enumerated() {
      if place == placeOfID { query = query.order(by: .documentID(), descending: descending) }
      query = query.order(
        by: FieldPath(field), descending: random.below(8) == 0 ? !descending : descending,
        missing: random.below(6) == 0 ? .last : .excluded)
    }
    guard placeOfID == nil, random.below(3) > 0 else { return query }
    let values = (0..<(1 + random.below(fields.count))).map { _ in random.pick(Self.values) }
    return random.below(2) == 0 ? query.start(after: values) : query.start(at: values)
  }

  @Test(arguments: 1...12)
  func `A query is answered as if it were the first of its form`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let items = database.collection("items")
    for _ in 0..<300 {
      switch random.below(12) {
      case 0:
        _ = try await items.createIndex(on: random.pick(Self.indexes))
      case 1:
        if let index = try await items.listIndexes().first {
          try await items.dropIndex(named: index.name)
        }
      case 2: try await items.document("d\(random.below(9))").delete()
      case 3...5:
        var fields: [String: Value] = [:]
        for name in ["a", "b", "c"] where random.below(5) > 0 {
          fields[name] = random.pick(Self.values)
        }
        try await items.document("d\(random.below(9))").setData(fields)
      default:
        var query = items.query
        for name in ["a", "b", "c"].prefix(1 + random.below(3)).shuffled(using: &random) {
          query =
            random.below(3) > 0
            ? query.whereField(FieldPath(name), isEqualTo: random.pick(Self.values))
            : query.whereField(
              FieldPath(name), in: (0..<random.below(4)).map { _ in random.pick(Self.values) })
        }
        if random.below(2) == 0 { query = ordered(query, &random) }
        let limit = random.below(4) == 0 ? 2 : 100
        query = query.limit(to: limit)
        let expected = try await answer(query, items)
        let found = try await query.getDocuments().documents.map(\.documentID)
        #expect(found == Array(expected.prefix(limit)), "seed \(seed): \(query)")
        #expect(
          try await query.count.getAggregation().count == found.count, "seed \(seed): \(query)")
      }
    }
  }

  @Test(arguments: [["a", "b"], ["a", "-b"], ["-a", "b", "-c"], ["a", "b", "c"]])
  func `Pages and lists in order are the same the second time, in one go`(
    index: [String]
  ) async throws {
    var random = SeededRandom(seed: 7)
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.createIndex(on: index)
    for number in 0..<60 {
      var fields: [String: Value] = ["a": random.pick(Array(Self.values.prefix(3)))]
      for name in ["b", "c"] where random.below(6) > 0 { fields[name] = random.pick(Self.values) }
      try await items.document("d\(number)").setData(fields)
    }
    for _ in 0..<120 {
      var query =
        random.below(3) > 0
        ? items.whereField("a", isEqualTo: random.pick(Array(Self.values.prefix(3))))
        : items.whereField("a", in: Array(Self.values.prefix(2 + random.below(2))))
      let descending = random.below(2) == 0
      if random.below(4) == 0 { query = query.order(by: "a", descending: descending) }
      query = query.order(by: "b", descending: descending)
      if random.below(3) > 0 {
        let values = [random.pick(Self.values)]
        query = random.below(2) == 0 ? query.start(after: values) : query.start(at: values)
      }
      let limit = 1 + random.below(20)
      query = query.limit(to: limit)
      let expected = Array(try await answer(query, items).prefix(limit))
      for _ in 0..<2 {
        let page = try await query.getDocuments()
        #expect(page.documents.map(\.documentID) == expected, "\(index): \(query)")
      }
    }
    try await database.close()
  }

  @Test func `A form is planned once, until the catalog changes`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("d").setData(["a": 1, "b": 1])
    try await items.createIndex(on: ["a"])
    /// Whether a query had to be planned.
    func isPlanned(_ query: Query, at generation: UInt64) async throws -> Bool {
      let shape = try query.shape.get()
      let family = try #require(try await database.family("items"))
      let pattern = CollectionPattern(["items"])
      let entry = try #require(family.collections[pattern])
      let naming = DocumentNaming(
        pattern, entry.keyspace, collection: try CollectionPath("items"))
      let normal = try NormalQuery(shape)
      let planner = Planner(
        query: normal, naming: naming, indexes: entry.indexes, statistics: IndexStatistics())
      var isPlanned = false
      let plan = database.plans.plan(for: normal, naming, generation: generation) {
        isPlanned = true
        return planner
      }
      let fresh = planner.plan()
      #expect("\(plan)" == "\(fresh)")
      return isPlanned
    }
    let one = items.whereField("a", isEqualTo: 1)
    #expect(try await isPlanned(one, at: 100))
    #expect(try await !isPlanned(one, at: 100))
    #expect(try await !isPlanned(items.whereField("a", isEqualTo: "x"), at: 100))
    #expect(try await isPlanned(items.whereField("a", isEqualTo: Self.long), at: 100))
    #expect(try await isPlanned(items.whereField("a", in: [1, 2]), at: 100))
    #expect(try await !isPlanned(items.whereField("a", in: [3, 4, 5]), at: 100))
    #expect(try await isPlanned(items.whereField("b", isEqualTo: 1), at: 100))
    // An earlier snapshot, a later one, and an earlier one again.
    #expect(try await isPlanned(one, at: 99))
    #expect(try await isPlanned(one, at: 101))
    #expect(try await !isPlanned(one, at: 101))
    #expect(try await isPlanned(one, at: 100))
    // With two usable indexes, the results of earlier queries decide.
    try await items.createIndex(on: ["a", "b"])
    #expect(try await isPlanned(one, at: 102))
    #expect(try await isPlanned(one, at: 102))
  }

  /// A plan kept for one was once used for the other: fields after the id do not affect the order,
  /// and were ignored.
  @Test func `A field that must be there only is not in the order, and makes another form`()
    async throws
  {
    for isReversed in [false, true] {
      let items = try await Database.underTest().collection("items")
      try await items.document("without").setData(["a": 1])
      try await items.document("with").setData(["a": 1, "b": 1, "c": 1])
      try await items.createIndex(on: ["a", "b"])
      let all = items.whereField("a", isEqualTo: 1).order(by: .documentID())
      let queries = [(all, 2), (all.order(by: "b"), 1), (all.order(by: "c"), 1)]
      for (query, count) in isReversed ? queries.reversed() : queries {
        for _ in 0..<2 {
          let found = try await query.getDocuments().count
          #expect(found == count, "\(query)")
        }
      }
    }
  }

  /// A plan kept for one user's posts was once used for another's, whose id has another length.
  @Test func `Collections of one pattern are asked alike, whatever is above them`() async throws {
    let database = try await Database.underTest()
    let users = ["a", "somebody with a long name", "\u{1100}\u{1161}"]
    for user in users {
      let posts = database.collection("users/\(user)/posts")
      for number in 0..<4 {
        try await posts.document("p\(number)").setData(["n": number, "m": 1, "of": user])
      }
    }
    try await database.collection("users/a/posts").createIndex(on: ["n"])
    for user in users + users.reversed() {
      let posts = database.collection("users/\(user)/posts")
      let one = try await posts.whereField("n", isEqualTo: 2).getDocuments().documents
      #expect(one.map(\.reference.path) == ["users/\(user)/posts/p2"])
      let some = try await posts.whereField("n", in: [3, 1, 9]).getDocuments().documents
      #expect(some.map(\.documentID) == ["p1", "p3"])
      #expect(some.allSatisfy { $0.get("of") == Value.string(user) })
    }
  }

  /// A failed transaction has changed the catalog only for itself, and the next change of it gets
  /// the same generation.
  @Test func `A transaction's view of the catalog is kept for no other`() async throws {
    struct Abandoned: Error {}
    let items = try await Database.underTest().collection("items")
    try await items.document("d").setData(["a": 1])
    let index = try await items.createIndex(on: ["a"])
    let query = items.whereField("a", isEqualTo: 1)
    await #expect(throws: Abandoned.self) {
      try await items.database.runTransaction { transaction in
        try transaction.setData(["a": 1, "new": 1], forDocument: items.document("e"))
        #expect(try transaction.getDocuments(query).count == 2)
        throw Abandoned()
      }
    }
    try await items.dropIndex(named: index)
    try await items.document("f").setData(["a": 1])
    #expect(try await query.getDocuments().documents.map(\.documentID) == ["d", "f"])
  }
}
