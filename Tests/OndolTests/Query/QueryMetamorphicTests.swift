// Many random queries on random documents, each answered in several ways that must agree: by the
// naive evaluator, without any index, with whatever indexes there are, page by page, as a stream,
// and counted. How often each kind of plan was taken is counted and demanded, too.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Draws documents and queries over few fields and values, so that much of it meets.
private struct Draw {
  var random: SeededRandom

  static let fields: [[String]] = [["a"], ["b"], ["c"], ["m", "x"], ["t"]]
  static let long = String(repeating: "x", count: 1_100)

  mutating func value() -> Value {
    switch random.below(20) {
    case 0: .null
    case 1: .boolean(random.below(2) == 0)
    case 2...10: .integer(Int64(random.below(4)))
    case 11: .double(Double(random.below(6)) / 2)
    case 12: .double(random.pick([.nan, .infinity, -0.0, 0x1p60]))
    case 13...16: .string(random.pick(["", "a", "ab", "b", "é", "\0", "😀"]))
    case 17: .string(Self.long + random.pick(["", "a", "b"]))
    case 18: .timestamp(Timestamp(unchecked: Int64(random.below(3))))
    default: .map(["x": .integer(Int64(random.below(3)))])
    }
  }

  mutating func fields() -> [String: Value] {
    var fields: [String: Value] = [:]
    for name in ["a", "b", "c"] where random.below(8) > 0 { fields[name] = value() }
    if random.below(3) > 0 { fields["m"] = .map(["x": value()]) }
    if random.below(4) > 0 {
      fields["t"] = .array((0..<random.below(4)).map { _ in .integer(Int64(random.below(4))) })
    }
    return fields
  }

  mutating func id() -> String { random.pick(["", "é", "z\0"]) + "d\(random.below(60))" }

  mutating func query(_ collections: [[String]]) -> ModelQuery {
    var query = ModelQuery()
    if random.below(5) == 0 {
      query.group = "posts"
    } else {
      query.collection = random.pick(collections)
    }
    for _ in 0..<random.pick([0, 1, 1, 2, 2, 3]) { query.filters.append(filter(2, query)) }
    if random.below(5) == 0 {
      for field in [["a"], ["b"]] {
        query.filters.append(
          .compare(field: field, sign: "==", operand: .integer(Int64(random.below(3)))))
      }
    }
    for _ in 0..<random.pick([0, 0, 1, 1, 2]) {
      let field = random.below(8) == 0 ? ModelQuery.name : random.pick(Self.fields)
      let missing: MissingPlacement =
        field == ModelQuery.name
        ? .excluded : random.pick([.excluded, .excluded, .excluded, .first, .last])
      query.orders.append((field, random.below(2) == 0, missing))
    }
    if random.below(4) == 0 { query.start = place(query) }
    if random.below(6) == 0 { query.end = place(query) }
    if random.below(3) == 0 {
      query.limit = random.below(10) + 1
      query.isLast = random.below(3) == 0
    }
    if random.below(8) == 0 { query.offset = random.below(4) }
    return query
  }

  private mutating func place(_ query: ModelQuery) -> (values: [Value], isIncluded: Bool)? {
    var fields: [[String]] = []
    for order in query.orders where !fields.contains(order.field) { fields.append(order.field) }
    guard !fields.isEmpty, fields.count == query.orders.count else { return nil }
    let values = fields.prefix(random.below(fields.count) + 1).map { field in
      field == ModelQuery.name ? name(query) : random.below(3) == 0 ? value() : .integer(1)
    }
    return (values, random.below(2) == 0)
  }

  private mutating func name(_ query: ModelQuery) -> Value {
    guard query.group != nil else { return .string(id()) }
    return .reference(DocumentPath(unchecked: ["users", random.pick(["a", "b"]), "posts", id()]))
  }

  private mutating func filter(_ depth: Int, _ query: ModelQuery) -> ModelFilter {
    if depth > 0, random.below(5) == 0 {
      let filters = (0..<random.below(3) + 1).map { _ in filter(depth - 1, query) }
      return random.below(3) == 0 ? .all(filters) : .any(filters)
    }
    if random.below(8) == 0 {
      let names = (0...random.below(12)).map { _ in name(query) }
      return random.below(2) == 0
        ? .list(field: ModelQuery.name, sign: "in", operands: names)
        : .compare(
          field: ModelQuery.name, sign: random.pick(["==", "<", ">=", ">", "!="]),
          operand: names[0])
    }
    let field = random.pick(Self.fields)
    if field == ["t"] {
      return random.below(2) == 0
        ? .compare(field: field, sign: "contains", operand: .integer(Int64(random.below(4))))
        : .list(
          field: field, sign: "any", operands: (0...1).map { _ in .integer(Int64(random.below(4))) }
        )
    }
    switch random.below(12) {
    case 0...4: return .compare(field: field, sign: "==", operand: likely())
    case 5, 6:
      return .list(field: field, sign: "in", operands: (0...random.below(4)).map { _ in likely() })
    case 7: return .list(field: field, sign: "not in", operands: [value()])
    case 8: return .compare(field: field, sign: "!=", operand: value())
    case 9:
      return .compare(
        field: field, sign: "prefix", operand: .string(random.pick(["", "a", Draw.long])))
    default:
      return .compare(field: field, sign: random.pick(["<", "<=", ">", ">="]), operand: bound())
    }
  }

  private mutating func likely() -> Value {
    random.below(3) == 0 ? value() : .integer(Int64(random.below(3)))
  }

  private mutating func bound() -> Value {
    while true {
      let value = value()
      if !value.isNull, value.double?.isNaN != true { return value }
    }
  }

  mutating func makeIndex(_ collection: CollectionReference) async throws {
    var names: [String] = []
    for _ in 0..<random.below(3) + 1 {
      let name = WriteCompiler.describe(random.pick(Array(Self.fields.prefix(4))))
      if !names.contains(where: { $0.hasSuffix(name) }) {
        names.append(random.below(2) == 0 ? name : "-\(name)")
      }
    }
    let group = collection.database.collectionGroup("posts")
    switch random.below(10) {
    case 0: try await collection.createIndex(onArray: "t")
    case 1: try await group.createIndex(on: names)
    case 2: try await group.createIndex(onArray: "t")
    case 3:
      try await collection.createIndex(on: names, where: .whereField("a", isGreaterThan: 0))
    case 4, 5, 6: try await collection.createIndex(on: [names[0]])
    default: try await collection.createIndex(on: names)
    }
  }
}

/// What was tried, over all seeds.
private final class Tally: Sendable {
  private let counts = Guarded<[String: Int]>([:])

  func note(_ name: String) { counts.withLock { $0[name, default: 0] += 1 } }
  subscript(name: String) -> Int { counts.withLock { $0[name] ?? 0 } }
  var text: String {
    counts.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" } }
      .joined(separator: ", ")
  }
}

@Suite struct QueryMetamorphicTests {
  private static let queriesASeed = 250

  @Test func `However a query is answered, the answer is the same`() async throws {
    let tally = Tally()
    let seeds = Seeds.first(84)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for seed in seeds {
        if seed > seeds[0] + 1 { try await group.next() }
        group.addTask { try await run(seed: seed, tally) }
      }
      try await group.waitForAll()
    }
    print("Queries: \(tally.text)")
    guard seeds.count > 1 else { return }
    #expect(tally["queries"] >= 20_000)
    #expect(tally["with results"] * 2 >= tally["queries"])
    for kind in ["scan", "idRange", "lookups", "index", "intersection", "union"] {
      #expect(tally[kind] >= 500, "\(kind)")
    }
    #expect(tally["end"] >= 100)
    for kind in ["merged", "sorted", "index only"] { #expect(tally[kind] >= 500, "\(kind)") }
  }

  private func run(seed: UInt64, _ tally: Tally) async throws {
    var draw = Draw(random: SeededRandom(seed: seed))
    var engineOptions = EngineOptions()
    if seed % 2 == 1 { engineOptions.memtableSize = 32 << 10 }
    let database = try await Database.open(
      at: "/d", environment: .memory(), engineOptions: engineOptions)
    let plain = try await Database.inMemory()
    let collections = [["shop"], ["users", "a", "posts"], ["users", "b", "posts"], ["posts"]]
    var documents: [String: ModelDocument] = [:]
    if seed % 2 == 0 {
      for path in collections {
        for name in ["a", "b"] {
          try await database.collection(CollectionPath(unchecked: path)).createIndex(on: [name])
        }
      }
    }
    for _ in 0..<3 {
      let batches = [database.batch(), plain.batch()]
      for _ in 0..<90 {
        let path = draw.random.pick(collections) + [draw.id()]
        let fields = draw.fields()
        documents[path.joined(separator: "/")] = ModelDocument(path: path, fields: fields)
        for (batch, database) in zip(batches, [database, plain]) {
          let reference = database.document(DocumentPath(unchecked: path))
          try batch.setData(fields.mapValues { $0 as any FieldContent }, forDocument: reference)
        }
      }
      for batch in batches { try await batch.commit(durability: .memory) }
      let evaluator = NaiveEvaluator(documents: Array(documents.values))
      for _ in 0..<Self.queriesASeed / 3 + 1 {
        let query = draw.query(collections)
        let isThorough = draw.random.below(8) == 0
        try await check(query, evaluator, database, plain, isThorough: isThorough, seed, tally)
        if draw.random.below(12) == 0 {
          let path = draw.random.pick(collections)
          try await draw.makeIndex(database.collection(CollectionPath(unchecked: path)))
        }
      }
    }
    for path in collections {
      try await auditIndexes(
        of: database.collection(CollectionPath(unchecked: path)), seed: seed)
    }
    try await database.close()
    try await plain.close()
  }

  private func check(
    _ model: ModelQuery, _ evaluator: NaiveEvaluator, _ database: Database, _ plain: Database,
    isThorough: Bool, _ seed: UInt64, _ tally: Tally
  ) async throws {
    let expected = evaluator.paths(model)
    let query = model.build(in: database)
    let plan = try await query.explain()
    func expect(_ found: [String], _ way: String) {
      let isSame = found.map(ExactText.init) == expected.map(ExactText.init)
      #expect(isSame, "seed \(seed), \(way): \(plan)\nfound \(found)\nnot \(expected)")
    }
    expect(try await query.getDocuments().documents.map(\.reference.path), "all")
    note(plan, expected, tally)

    switch tally["queries"] % 3 {
    case 0:
      let counting = try await query.count.getAggregation().count
      #expect(counting == expected.count, "seed \(seed), count: \(plan)")
    case 1:
      let names = query.select([])
      if try await names.explain().needsNoDocuments { tally.note("index only") }
      expect(try await names.getDocuments().documents.map(\.reference.path), "ids")
    default: break
    }
    guard isThorough else { return }

    var streamed: [String] = []
    for try await document in query.documents { streamed.append(document.reference.path) }
    expect(streamed, "stream")
    if model.limit == nil, model.offset == 0 { expect(try await paged(query), "pages") }
    let scanned = model.build(in: plain)
    expect(try await scanned.getDocuments().documents.map(\.reference.path), "scan")
    #expect(try await scanned.count.getAggregation().count == expected.count)
    for names in Self.extremeFields {
      let field = FieldPath(names)
      let extremes: [AggregateField] = [.minimum(field), .maximum(field)]
      let ends = query.aggregate(extremes)
      let (found, wanted) = try await (
        ends.getAggregation(), scanned.aggregate(extremes).getAggregation()
      )
      for extreme in extremes {
        #expect(found[extreme] as Value? == wanted[extreme], "seed \(seed), \(field): \(plan)")
      }
      if case .union(let ways) = try await ends.explain().access, case .end = ways[0] {
        tally.note("end")
      }
    }
  }

  private static let extremeFields: [FieldNames] = [["a"], ["b"], ["m", "x"]]

  private func note(_ plan: QueryExplanation, _ expected: [String], _ tally: Tally) {
    tally.note("queries")
    if !expected.isEmpty { tally.note("with results") }
    switch plan.access {
    case .nothing: tally.note("nothing")
    case .scan: tally.note("scan")
    case .idRange: tally.note("idRange")
    case .lookups: tally.note("lookups")
    case .index: tally.note("index")
    case .intersection: tally.note("intersection")
    case .end: tally.note("end")
    case .union:
      tally.note(plan.sorts ? "sorted union" : "merged")
      tally.note("union")
    }
    if plan.sorts { tally.note("sorted") }
  }

  /// The result in pages of three, each begun at the place the one before ended, kept as a text.
  private func paged(_ query: Query) async throws -> [String] {
    var paths: [String] = []
    var next = query
    while true {
      let page = try await next.limit(to: 3).getDocuments()
      paths += page.documents.map(\.reference.path)
      guard page.count == 3, let cursor = page.cursor else { return paths }
      next = query.start(after: cursor)
    }
  }
}
