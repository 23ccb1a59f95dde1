// Many random queries on random documents, each answered in several ways that must agree: by the
// naive evaluator, without any index, with the existing indexes, and in every form of an answer: as
// documents, as ids, counted, summed, page by page, as a stream, to a listener, from a snapshot,
// and in a transaction after its own writes. The values include the ends of every range, and texts
// that are equal to Unicode but different in bytes, also as names of fields. The test counts how
// often each kind of plan and each form occurred, and requires a minimum.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Draws documents and queries over few fields and values, so that many match.
private struct Draw {
  var random: SeededRandom

  /// One syllable as one scalar, and decomposed as in the names of files on macOS.
  static let (composed, decomposed) = ("\u{ac00}", "\u{1100}\u{1161}")
  static let fields: [[String]] = [
    ["a"], ["b"], ["c"], ["m", "x"], [composed], [decomposed], ["t"],
  ]
  static let long = String(repeating: "x", count: 1_100)

  /// The ends of ranges, and the places where keys are cut: a text takes three bytes in addition to
  /// its own.
  static let ends: [Value] =
    [.min, .max, -(1 << 53) - 1, -(1 << 53), 1 << 53, 1 << 53 + 1].map { .integer($0) }
    + [0x1p53, -0x1p53, 0x1p63, -0x1p63, .nan, -.infinity, .leastNonzeroMagnitude].map {
      .double($0)
    }
    + decimals([
      "0.5", "9007199254740992.5", "-9223372036854775808.5", "9223372036854775808", "1e-128",
    ])
    + [.timestamp(.minimum), .timestamp(.maximum), .bytes([]), .array([]), .map([:])]
    + [.array([.array([]), .array([.integer(1)])])]
    + [1_020, 1_021, 1_022].map { .string(String(repeating: "x", count: $0)) }

  private static func decimals(_ texts: [String]) -> [Value] {
    texts.compactMap { DecimalValue($0) }.map { .decimal($0) }
  }

  mutating func value() -> Value {
    switch random.below(26) {
    case 20: random.pick(Self.ends)
    case 24: .decimal(DecimalValue("\(random.below(3)).\(random.below(3) * 25)") ?? .zero)
    case 25: .array([.array([.integer(Int64(random.below(2)))]), .integer(1)])
    case 21, 22: .string(random.pick([Self.composed, Self.decomposed, "e\u{301}", "é"]))
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
    if random.below(3) > 0 { fields[random.pick([Self.composed, Self.decomposed])] = value() }
    if random.below(4) > 0 {
      fields["t"] = .array((0..<random.below(4)).map { _ in random.element(below: 4) })
    }
    return fields
  }

  mutating func id() -> String {
    random.pick(["", "é", "e\u{301}", "z\0"]) + "d\(random.below(50))"
  }

  mutating func query(_ collections: [[String]]) -> ModelQuery {
    var query = ModelQuery()
    if random.below(5) == 0 {
      query.group = "posts"
    } else {
      query.collection = random.pick(collections)
    }
    for _ in 0..<random.pick([0, 1, 1, 2, 2, 3]) { query.filters.append(filter(2, query)) }
    if random.below(10) == 0 { query.filters.append(facets()) }
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

  /// Alternatives of several conditions each. One index answers some of them whole, some in part,
  /// and shows that nothing can meet others.
  private mutating func facets() -> ModelFilter {
    .any(
      (0..<random.below(3) + 1).map { _ in
        let (low, high) = (Value.integer(Int64(random.below(4))), bound())
        return random.below(2) == 0
          ? .all([
            .compare(field: ["a"], sign: "==", operand: likely()),
            .compare(field: random.pick([["b"], ["c"]]), sign: "==", operand: likely()),
          ])
          : .all([
            .compare(field: ["a"], sign: "==", operand: likely()),
            .compare(field: ["b"], sign: ">", operand: low),
            .compare(field: ["b"], sign: "<", operand: high),
          ])
      })
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
        ? .compare(field: field, sign: "contains", operand: random.element(below: 4))
        : .list(
          field: field, sign: "any", operands: (0...1).map { _ in random.element(below: 4) })
    }
    switch random.below(12) {
    case 0...4: return .compare(field: field, sign: "==", operand: likely())
    case 5, 6:
      return .list(field: field, sign: "in", operands: (0...random.below(4)).map { _ in likely() })
    case 7: return .list(field: field, sign: "not in", operands: [value()])
    case 8: return .compare(field: field, sign: "!=", operand: value())
    case 9:
      return .compare(
        field: field, sign: "prefix",
        operand: .string(random.pick(["", "a", "e", Draw.composed, Draw.long])))
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
      let name = WriteCompiler.describe(random.pick(Array(Self.fields.dropLast())))
      if !names.contains(where: { $0.hasSuffix(name) }) {
        names.append(random.below(2) == 0 ? name : "-\(name)")
      }
    }
    if random.below(4) == 0, !names.contains(where: { $0.hasSuffix("t") }) {
      names.insert("t[]", at: random.below(names.count + 1))
    }
    if random.below(8) == 0 { names.append(random.pick(["__name__", "-__name__"])) }
    let group = collection.database.collectionGroup("posts")
    switch random.below(10) {
    case 0: try await collection.createIndex(onArray: "t")
    case 1: try await group.createIndex(on: names)
    case 2: try await group.createIndex(onArray: "t")
    case 3:
      let limit = random.pick([0, 0, random.decimal()])
      try await collection.createIndex(on: names, where: .whereField("a", isGreaterThan: limit))
    case 4, 5, 6: try await collection.createIndex(on: [names[0]])
    default: try await collection.createIndex(on: names)
    }
  }
}

/// The counts over all seeds.
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
    let seeds = Seeds.first(42)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for seed in seeds {
        if seed > seeds[0] + 1 { try await group.next() }
        group.addTask { try await run(seed: seed, tally) }
      }
      try await group.waitForAll()
    }
    print("Queries: \(tally.text)")
    guard seeds.count > 1 else { return }
    #expect(tally["queries"] >= 10_000)
    #expect(tally["with results"] * 3 >= tally["queries"])
    for kind in ["scan", "idRange", "lookups", "index", "union"] {
      #expect(tally[kind] >= 250, "\(kind)")
    }
    #expect(tally["end"] >= 40)
    for kind in ["intersection", "index only"] { #expect(tally[kind] >= 100, "\(kind)") }
    for kind in ["merged", "sorted"] { #expect(tally[kind] >= 250, "\(kind)") }
    for form in ["ids", "stream", "pages", "listener", "snapshot", "transaction"] {
      #expect(tally[form] >= 1_000, "\(form)")
    }
    for form in ["counted", "summed"] { #expect(tally[form] >= 1_000, "\(form)") }
  }

  private func run(seed: UInt64, _ tally: Tally) async throws {
    var draw = Draw(random: SeededRandom(seed: seed))
    var engineOptions = EngineOptions()
    if seed % 2 == 1 { engineOptions.memtableSize = 32 << 10 }
    let database = try await Database.open(
      at: "/d", environment: .memory(), engineOptions: engineOptions)
    let plain = try await Database.underTest()
    let collections = [["shop"], ["users", "a", "posts"], ["users", "b", "posts"], ["posts"]]
    var documents: [ExactText: ModelDocument] = [:]
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
        documents[ExactText(path.joined(separator: "/"))] = ModelDocument(
          path: path, fields: fields)
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
        let own = OwnWrites(&draw, evaluator.documents)
        try await check(query, evaluator, own, database, plain, isThorough, seed, tally)
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
    _ model: ModelQuery, _ evaluator: NaiveEvaluator, _ own: OwnWrites, _ database: Database,
    _ plain: Database, _ isThorough: Bool, _ seed: UInt64, _ tally: Tally
  ) async throws {
    let expected = evaluator.paths(model)
    let query = model.build(in: database)
    let plan = try await query.explain()
    func expect(_ found: [DocumentSnapshot], _ way: String, _ expected: [String]) {
      tally.note(way)
      let found = found.map(\.reference.path)
      let isSame = found.map(ExactText.init) == expected.map(ExactText.init)
      #expect(isSame, "seed \(seed), \(way): \(plan)\nfound \(found)\nnot \(expected)")
    }
    let all = try await query.getDocuments()
    expect(all.documents, "all", expected)
    let whole = evaluator.paths(model.withoutLimit)
    let isAll = whole.count <= expected.count + model.offset
    #expect(!all.isLastPage || isAll, "seed \(seed), last page: \(plan)")
    #expect(all.isLastPage || expected.count == model.limit, "seed \(seed), last page: \(plan)")
    note(plan, expected, tally)

    let form = tally["queries"] % 8
    if isThorough || form == 0 {
      tally.note("counted")
      let counting = try await query.count.getAggregation().count
      #expect(counting == expected.count, "seed \(seed), count: \(plan)")
    }
    if isThorough || form == 1 {
      let names = query.select([])
      if try await names.explain().needsNoDocuments { tally.note("index only") }
      expect(try await names.getDocuments().documents, "ids", expected)
    }
    if isThorough || form == 2, let sum = evaluator.sum(of: ["a"], at: expected) {
      tally.note("summed")
      let found = try await query.aggregate([.sum("a")]).getAggregation()[.sum("a")] as Int64?
      #expect(found == sum, "seed \(seed), sum: \(plan)")
    }
    if isThorough || form == 3 {
      var streamed: [DocumentSnapshot] = []
      for try await document in query.documents { streamed.append(document) }
      expect(streamed, "stream", expected)
    }
    if isThorough || form == 4, model.limit == nil, model.offset == 0 {
      expect(try await paged(query), "pages", expected)
    }
    if isThorough || form == 5 {
      var listener = query.snapshots.makeAsyncIterator()
      expect(try #require(await listener.next()).documents, "listener", expected)
    }
    if isThorough || form == 6 {
      expect(try database.snapshot().getDocuments(query).documents, "snapshot", expected)
    }
    if isThorough || form == 7 {
      let own = try await own.ask(query, in: database)
      expect(own.found, "transaction", own.evaluator.paths(model))
    }
    guard isThorough else { return }

    let scanned = model.build(in: plain)
    expect(try await scanned.getDocuments().documents, "scanned", expected)
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

  /// The result in pages of three. Each begins at the end of the one before, kept as a text. The
  /// fields of the order are left out every other time.
  private func paged(_ query: Query) async throws -> [DocumentSnapshot] {
    var documents: [DocumentSnapshot] = []
    var (next, pages) = (query, 0)
    while true {
      pages += 1
      let limited = pages % 2 == 0 ? next.limit(to: 3) : next.select("none").limit(to: 3)
      let page = try await limited.getDocuments()
      documents += page.documents
      #expect(page.cursor == nil ? page.isEmpty : !page.isEmpty)
      guard let cursor = page.cursor, !page.isLastPage else { return documents }
      next = query.start(after: QueryCursor("\(cursor)"))
    }
  }
}

/// Writes of a transaction that runs a query after them and is given up.
private struct OwnWrites {
  private struct GivenUp: Error {}

  /// The documents after the writes.
  let evaluator: NaiveEvaluator
  private let written: [ModelDocument]
  private let deleted: [ModelDocument]

  init(_ draw: inout Draw, _ documents: [ModelDocument]) {
    var (rest, written, deleted) = (documents, [ModelDocument](), [ModelDocument]())
    for _ in 0..<draw.random.below(4) where !rest.isEmpty {
      let document = rest.remove(at: draw.random.below(rest.count))
      if draw.random.below(3) == 0 {
        deleted.append(document)
      } else {
        written.append(ModelDocument(path: document.path, fields: draw.fields()))
      }
    }
    (self.written, self.deleted) = (written, deleted)
    evaluator = NaiveEvaluator(documents: rest + written)
  }

  /// Returns the query's result after the writes.
  func ask(
    _ query: Query, in database: Database
  ) async throws -> (found: [DocumentSnapshot], evaluator: NaiveEvaluator) {
    var found: [DocumentSnapshot] = []
    do {
      try await database.runTransaction { transaction in
        for document in written {
          try transaction.setData(
            document.fields.mapValues { $0 as any FieldContent },
            forDocument: database.document(DocumentPath(unchecked: document.path)))
        }
        for document in deleted {
          try transaction.deleteDocument(
            database.document(DocumentPath(unchecked: document.path)))
        }
        found = try transaction.getDocuments(query).documents
        throw GivenUp()
      }
    } catch is GivenUp {}
    return (found, evaluator)
  }
}

extension ModelQuery {
  fileprivate var withoutLimit: ModelQuery {
    var copy = self
    (copy.limit, copy.offset, copy.isLast) = (nil, 0, false)
    return copy
  }
}

extension NaiveEvaluator {
  /// The sum of a field of the documents at the paths; nil if it has doubles, whose sum depends on
  /// their order, or exceeds `Int64`.
  fileprivate func sum(of field: FieldNames, at paths: [String]) -> Int64? {
    var sum: Int128 = 0
    for document in documents {
      guard paths.contains(exactly: document.path.joined(separator: "/")) else { continue }
      switch lookUp(field[...], in: document.fields) {
      case .integer(let number)?: sum += Int128(number)
      case .double?, .decimal?: return nil
      default: break
      }
    }
    return Int64(exactly: sum)
  }
}
