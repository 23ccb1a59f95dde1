// Orders of texts and conditions on texts that do not compare by their bytes: random texts, and
// each query answered by the model, by a sort in memory, by an index, page by page and by a
// listener, which must agree.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Documents with a name that is mostly a text, and the results of queries.
private struct TextWorld {
  var random: SeededRandom
  var documents: [String: Value?] = [:]

  static let parts = [
    "a", "A", "á", "Á", "e\u{301}", "ß", "ss", "1", "2", "10", "007", "\0", "Ａ", "가",
    "\u{1100}\u{1161}", "ガ", "カ\u{3099}", "ｶﾞ", "😀", "~", "!", "`", " ", "é", "İ", "\u{ad}",
    String(repeating: "9", count: 95), String(repeating: "é", count: 520),
  ]

  mutating func text() -> String {
    (0..<random.below(4)).map { _ in random.pick(Self.parts) }.joined()
  }

  mutating func name() -> Value? {
    switch random.below(16) {
    case 0: nil
    case 1: .null
    case 2: .integer(Int64(random.below(3)))
    case 3: .array([.string(text())])
    default: .string(text())
    }
  }

  /// The order of two documents in the model: by type, keys, bytes and ids.
  static func isBefore(
    _ left: (id: String, name: Value), _ right: (id: String, name: Value),
    _ comparison: TextComparison
  ) -> Bool {
    if let own = left.name.string, let other = right.name.string {
      let keys = ValueOrder.compare(comparison.key(of: own), comparison.key(of: other))
      if keys != 0 { return keys < 0 }
    }
    let order = ValueOrder.compare(left.name, right.name)
    return order != 0 ? order < 0 : ValueOrder.compare(left.id, right.id) < 0
  }

  /// The ids of documents that have a name, in order.
  func ordered(_ comparison: TextComparison, _ isIn: (Value) -> Bool = { _ in true }) -> [String] {
    documents.compactMap { id, name in name.map { (id: id, name: $0) } }
      .filter { isIn($0.name) }
      .sorted { Self.isBefore($0, $1, comparison) }.map(\.id)
  }
}

@Suite struct TextOrderTests {
  private func filled(
    _ seed: UInt64, _ count: Int
  ) async throws -> (TextWorld, CollectionReference) {
    var world = TextWorld(random: SeededRandom(seed: seed))
    let items = try await Database.underTest().collection("items")
    for number in 0..<count {
      let name = world.name()
      world.documents["d\(number)"] = .some(name)
      try await items.document("d\(number)").setData(
        name.map { ["name": $0, "n": .integer(Int64(number % 3))] }
          ?? ["n": .integer(Int64(number % 3))], durability: .memory)
    }
    return (world, items)
  }

  private func ids(_ query: Query) async throws -> [String] {
    try await query.getDocuments().documents.map(\.documentID)
  }

  @Test(arguments: Seeds.first(4), TextComparison.allCases)
  func `An index, a sort and the model agree`(
    seed: UInt64, comparison: TextComparison
  ) async throws {
    var (world, items) = try await filled(seed, 120)
    let expected = world.ordered(comparison)
    let query = items.order(by: "name", comparing: comparison)
    let down = items.order(by: "name", comparing: comparison, descending: true)
    #expect(try await ids(query) == expected, "SEED=\(seed)")
    let conditions = Self.conditions(&world, comparison)
    var found: [[String]] = []
    for condition in conditions {
      let ids = try await ids(
        items.whereFilter(condition.filter).order(by: "name", comparing: comparison))
      #expect(ids == world.ordered(comparison, condition.isMet), "\(condition.filter)")
      found.append(ids)
    }
    for field: IndexedField in [
      .ascending("name", comparing: comparison), .descending("name", comparing: comparison),
    ] {
      let name = try await items.createIndex(on: [field])
      #expect(try await query.explain().indexName == name)
      #expect(try await !query.explain().description.contains("sort"))
      #expect(try await ids(query) == expected, "SEED=\(seed)")
      #expect(try await ids(down) == expected.reversed(), "SEED=\(seed)")
      for (condition, known) in zip(conditions, found) {
        let query = items.whereFilter(condition.filter)
        #expect(
          try await ids(query.order(by: "name", comparing: comparison)) == known,
          "\(condition.filter), SEED=\(seed)")
        #expect(try await query.count.getAggregation().count == known.count)
      }
      try await auditIndexes(of: items)
      try await items.dropIndex(named: name)
    }
    try await items.database.close()
  }

  @Test(arguments: TextComparison.allCases)
  func `Beside other fields, in every direction, an index answers as a scan does`(
    comparison: TextComparison
  ) async throws {
    var (world, items) = try await filled(9, 90)
    var queries: [Query] = []
    for text in [world.text(), world.text() + "a", "a"] {
      let filters: [Filter] = [
        .whereField("name", isGreaterThanOrEqualTo: text, comparing: comparison),
        .orFilter([
          .whereField("name", isEqualTo: text, comparing: comparison),
          .whereField("name", isLessThan: text, comparing: comparison),
        ]),
        .whereField("n", in: [0, 2]),
      ]
      for filter in filters {
        let query = items.whereField("n", isLessThan: 2).whereFilter(filter)
        let one = items.whereField("n", isEqualTo: 1).whereFilter(filter)
        for down in [false, true] {
          queries += [
            query, one.order(by: "name", comparing: comparison, descending: down),
            one.order(by: "name", comparing: comparison, descending: down, missing: .last),
            query.order(by: "n").order(by: "name", comparing: comparison, descending: down)
              .start(after: [0, text]).limit(to: 9),
            one.order(by: "name", comparing: comparison, descending: down).end(before: [text])
              .limit(toLast: 5),
            one.order(by: "name", descending: down).order(by: "name", comparing: comparison),
          ]
        }
      }
    }
    var expected: [[String]] = []
    for query in queries { expected.append(try await ids(query)) }
    var served = 0
    for fields: [IndexedField] in [
      [.ascending("n"), .ascending("name", comparing: comparison)],
      [.ascending("n"), .descending("name", comparing: comparison)],
      [.descending("name", comparing: comparison), .ascending("n")], [.ascending("name")],
    ] {
      let name = try await items.createIndex(on: fields)
      for (query, known) in zip(queries, expected) {
        #expect(try await ids(query) == known, "\(query) with \(name)")
        if try await query.explain().indexName == name { served += 1 }
      }
      try await auditIndexes(of: items)
      try await items.dropIndex(named: name)
    }
    #expect(served > queries.count)
    try await items.database.close()
  }

  @Test func `A suggested index is stated in its created form`() async throws {
    let items = try await Database.underTest().collection("items")
    for number in 0..<20 {
      try await items.document("d\(number)").setData(
        ["name": number % 2 == 0 ? "Ä\(number)" : "a\(number)", "n": number])
    }
    let queries = [
      items.order(by: "name", comparing: .folded, descending: true),
      items.whereField("name", isEqualTo: "A4", comparing: .folded),
      items.whereField("n", isEqualTo: 4).order(by: "name", comparing: .natural),
      items.whereField("name", isEqualTo: "a", comparing: .folded).whereField("name", in: ["a"]),
    ]
    let wanted = [["-name~folded"], ["name~folded"], ["n", "name~natural"], ["name~folded"]]
    for (query, fields) in zip(queries, wanted) {
      let suggested = try #require(try await query.explain().suggestedIndex)
      #expect(suggested == fields)
      let before = try await ids(query)
      let name = try await items.createIndex(on: suggested)
      #expect(try await query.explain().indexName == name)
      #expect(try await ids(query) == before)
      try await items.dropIndex(named: name)
    }
    try await items.database.close()
  }

  @Test func `An index that is made for a slow query compares as the query does`() async throws {
    let database = try await Database.underTest(options: .init(automaticIndexes: true))
    let items = database.collection("items")
    for number in 0..<200 {
      try await items.document("d\(number)").setData(
        ["name": number % 2 == 0 ? "Ä\(number)" : "a\(number)"])
    }
    let query = items.whereField("name", isEqualTo: "A7", comparing: .folded)
    #expect(try await ids(query) == ["d7"])
    while try await items.listIndexes().first?.state != .ready { await Task.yield() }
    #expect(try await items.listIndexes().map(\.fields) == [["name~folded"]])
    let ordered = items.order(by: "name", comparing: .folded)
    #expect(try await ordered.explain().indexName == "name~folded")
    try await auditIndexes(of: items)
    try await database.close()
  }

  private struct Condition {
    var filter: Filter
    var isMet: (Value) -> Bool
  }

  /// Random conditions, and their meaning.
  private static func conditions(
    _ world: inout TextWorld, _ comparison: TextComparison
  ) -> [Condition] {
    func met(_ test: @escaping (String) -> Bool) -> (Value) -> Bool {
      { $0.string.map { test(comparison.key(of: $0)) } ?? false }
    }
    var conditions: [Condition] = []
    for _ in 0..<8 {
      let (text, other) = (world.text(), world.text())
      let (key, second) = (comparison.key(of: text), comparison.key(of: other))
      func order(_ own: String) -> Int { ValueOrder.compare(own, key) }
      conditions += [
        Condition(
          filter: .whereField("name", isEqualTo: text, comparing: comparison),
          isMet: met { order($0) == 0 }),
        Condition(
          filter: .whereField("name", isLessThan: text, comparing: comparison),
          isMet: met { order($0) < 0 }),
        Condition(
          filter: .whereField("name", isLessThanOrEqualTo: text, comparing: comparison),
          isMet: met { order($0) <= 0 }),
        Condition(
          filter: .whereField("name", isGreaterThan: text, comparing: comparison),
          isMet: met { order($0) > 0 }),
        Condition(
          filter: .whereField("name", isGreaterThanOrEqualTo: text, comparing: comparison),
          isMet: met { order($0) >= 0 }),
        Condition(
          filter: .whereField("name", in: [text, other], comparing: comparison),
          isMet: met { order($0) == 0 || ValueOrder.compare($0, second) == 0 }),
        Condition(filter: .whereField("name", isNotEqualTo: text, comparing: comparison)) {
          !$0.isNull && ($0.string.map { order(comparison.key(of: $0)) != 0 } ?? true)
        },
      ]
      guard comparison != .natural else { continue }
      conditions.append(
        Condition(
          filter: .whereField("name", hasPrefix: text, comparing: comparison),
          isMet: met { $0.utf8.starts(with: key.utf8) }))
    }
    return conditions
  }

  @Test(arguments: TextComparison.allCases, [false, true])
  func `Pages have no gaps and nothing twice`(
    comparison: TextComparison, isIndexed: Bool
  ) async throws {
    let (world, items) = try await filled(77, 60)
    if isIndexed { try await items.createIndex(on: [.ascending("name", comparing: comparison)]) }
    let query = items.order(by: "name", comparing: comparison).limit(to: 7)
    let expected = world.ordered(comparison)
    var found: [String] = []
    var page = try await query.getDocuments()
    while true {
      found += page.documents.map(\.documentID)
      guard let text = page.cursor?.description, let cursor = QueryCursor(text), page.count == 7
      else { break }
      page = try await query.start(after: cursor).getDocuments()
    }
    #expect(found == expected)
    for id in expected.prefix(20) {
      let document = try await items.document(id).getDocument()
      let rest = try await ids(
        items.order(by: "name", comparing: comparison).start(atDocument: document))
      #expect(rest == Array(expected.drop { $0 != id }))
      guard let name = world.documents[id]??.string else { continue }
      let behind = try await ids(
        items.order(by: "name", comparing: comparison).start(after: [name]))
      #expect(
        behind
          == Array(
            expected.drop { $0 != id }.drop { id in
              world.documents[id]??.string.map { ValueOrder.compare($0, name) == 0 } ?? false
            }))
    }
    try await items.database.close()
  }

  @Test func `A listener has the query's result, whatever is written`() async throws {
    var (world, items) = try await filled(5, 30)
    try await items.createIndex(on: [.ascending("name", comparing: .folded)])
    let queries = [
      items.order(by: "name", comparing: .natural).limit(to: 10),
      items.whereField("name", isGreaterThan: "a", comparing: .folded),
      items.whereField("name", isEqualTo: "A", comparing: .caseInsensitive).order(by: "n"),
    ]
    for query in queries {
      var snapshots = query.snapshots.makeAsyncIterator()
      var shown = try await snapshots.next()?.documents.map(\.documentID)
      for round in 0..<25 {
        let id = "d\(world.random.below(30))"
        let text = world.text() + "a"
        try await items.document(id).setData(["name": text, "n": round], durability: .memory)
        let expected = try await ids(query)
        // A write without effect here is not reported.
        while let known = shown, known != expected {
          shown = try await snapshots.next()?.documents.map(\.documentID)
        }
        #expect(shown == expected)
      }
    }
    try await items.database.close()
  }

  @Test func `A unique index with a comparison refuses another's name in other letters`()
    async throws
  {
    let users = try await Database.underTest().collection("users")
    let name = try await users.createIndex(
      on: [.ascending("name", comparing: .folded)], unique: true)
    #expect(name == "name~folded unique")
    try await users.document("ada").setData(["name": "Ådá"])
    let error = await #expect(throws: DatabaseError.self) {
      try await users.document("eve").setData(["name": "ada"])
    }
    #expect(error?.code == .alreadyExists)
    try await users.document("ada").setData(["name": "ADA"])
    let found = users.whereField("name", isEqualTo: "ada", comparing: .folded)
    #expect(try await found.explain().indexName == name)
    #expect(try await ids(found) == ["ada"])
    try await users.document("bob").setData(["name": "bob"])
    try await users.document("none").setData(["name": nil])
    let all = users.order(by: "name", comparing: .folded)
    #expect(try await all.explain().indexName == name)
    #expect(try await ids(all) == ["none", "ada", "bob"])
    #expect(try await ids(all.start(after: ["ADA"])) == ["bob"])
    #expect(try await ids(all.start(at: ["ADB"]).limit(toLast: 1)) == ["bob"])
    try await auditIndexes(of: users)
    try await users.database.close()
  }

  @Test func `Values that cannot be compared so are refused, with what to do`() async throws {
    let items = try await Database.underTest().collection("items")
    try await items.document("a").setData(["name": "a", "tags": ["a"]])
    for query in [
      items.whereField("name", hasPrefix: "1", comparing: .natural),
      items.order(by: .documentID(), comparing: .folded),
      items.whereField(.documentID(), isEqualTo: "a", comparing: .folded),
      items.order(by: "-name", comparing: .folded),
    ] {
      let error = await #expect(throws: DatabaseError.self) { try await query.getDocuments() }
      #expect(error?.code == .invalidArgument)
    }
    for fields in [["tags~folded[]"], ["name~accents"], ["name~folded", "name"]] {
      await #expect(throws: DatabaseError.self) { try await items.createIndex(on: fields) }
    }
    await #expect(throws: DatabaseError.self) {
      try await items.createIndex(
        on: ["n"], where: .whereField("name", isEqualTo: "a", comparing: .folded))
    }
    // A field may have the name of a comparison.
    try await items.document("b").setData(["name folded": "B"])
    #expect(try await items.createIndex(on: ["name folded"]) == "`name folded`")
    #expect(try await items.createIndex(on: ["name~folded"]) == "name~folded")
    #expect(try await items.listIndexes().map(\.fields) == [["`name folded`"], ["name~folded"]])
    try await items.database.close()
  }

  @Test func `A comparison that is not known yet is refused as newer`() throws {
    let kind = IndexKind([IndexField(["name"], descending: true, comparing: .natural)].withTies)
    var bytes: [UInt8] = []
    bytes.append(kind)
    var reader = ByteReader(bytes.bytes)
    #expect(try reader.indexKind() == kind)
    // The number of fields, the direction, and the comparison's number.
    #expect(Array(bytes.prefix(3)) == [2, 3, 3])
    bytes[2] = 4
    let error = #expect(throws: MalformedBytes.self) {
      var reader = ByteReader(bytes.bytes)
      _ = try reader.indexKind()
    }
    #expect(error?.isOfNewerVersion == true)
    // The form of an index without comparisons has not changed.
    var plain: [UInt8] = []
    plain.append(IndexKind([IndexField(["n"], descending: true)]))
    #expect(plain == [1, 1, 1, 1, UInt8(ascii: "n"), 0])
  }
}
