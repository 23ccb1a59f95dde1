// Documents: queries with their plans, single documents with preconditions, deletes of many.

import Ondol
import OndolJSON

/// A query in the page's form, from a body or a watch.
struct AskedQuery: Sendable {
  static let names = ["collection", "group", "where", "order", "limit"]

  let query: Query
  let condition: WhereExpression?
  /// The collection's path; nil for a collection group.
  let collection: String?
  let group: String?
  let limit: Int

  init(_ members: Members, in database: Database) throws {
    collection = try members.text("collection")
    group = try members.text("group")
    condition = try members.condition("where")
    limit = try members.number("limit", in: 1...500) ?? 50
    var query: Query
    switch (collection, group) {
    case (let collection?, nil): query = database.collection(collection).query
    case (nil, let group?): query = database.collectionGroup(group).query
    default: throw ConsoleFailure.wrong("name either a collection or a group")
    }
    if let condition { query = query.whereFilter(condition.filter) }
    if let order = try members.text("order"), !order.allSatisfy(\.isWhitespace) {
      for order in try WhereParser.orders(order) { query = order.added(to: query) }
    }
    self.query = query
  }

  /// The largest answer's bytes of documents.
  static let largestAnswer = 8 << 20

  /// A page of the result with its cursor, as much as fits in an answer.
  static func page(_ found: QuerySnapshot) throws -> [(name: String, value: JSON?)] {
    var documents: [JSON] = []
    var size = 0
    var cursor = found.cursor
    var isLast = found.isLastPage
    for (index, document) in found.documents.enumerated() {
      let written = JSON.document(document).bytes
      if size + written.count > largestAnswer, index > 0 {
        cursor = try found.query.cursor(at: found.documents[index - 1])
        isLast = false
        break
      }
      size += written.count
      documents.append(.written(written))
    }
    return [
      ("documents", .list(documents)), ("cursor", cursor.map { .text("\($0)") }),
      ("last", .boolean(isLast)), ("unreadable", .texts(found.unreadable.map(\.path))),
    ]
  }
}

extension ConsoleHandler {
  /// Runs a query with a time limit.
  func query(_ body: [UInt8]) async throws -> JSON {
    let members = try Members(
      body,
      known: AskedQuery.names + ["after", "select", "lookups", "explain", "aggregate", "by"])
    let asked = try AskedQuery(members, in: database)
    let explain = try members.text("explain")
    guard explain == nil || explain == "plan" || explain == "analyze" else {
      throw ConsoleFailure.wrong("\"explain\" is plan or analyze")
    }
    var answer: [(name: String, value: JSON?)] = []
    var query = asked.query
    if let select = try members.text("select"), !select.isEmpty {
      query = query.select(try WhereParser.fields(select))
    }
    if let asks = try members.list("aggregate", known: ["op", "field"]), !asks.isEmpty {
      answer = try await groups(query, asks, by: try members.text("by") ?? "")
    } else {
      if let after = try members.text("after") {
        guard let cursor = QueryCursor(after) else {
          throw ConsoleFailure.wrong("\"after\" is not a cursor")
        }
        query = query.start(after: cursor)
      }
      query = query.limit(to: asked.limit)
      if explain == "plan" {
        answer = [("documents", .list([])), ("last", true), ("unreadable", .list([]))]
      } else {
        let lookups = try members.list("lookups", known: ["field", "in", "as"]) ?? []
        answer = try AskedQuery.page(try await documents(query, lookups))
      }
    }
    let plan = explain == nil ? nil : try await query.explain(analyze: explain == "analyze")
    answer.append(("token", .text("\(database.newestToken)")))
    answer.append(("plan", plan.map { .plan($0) }))
    answer.append(("condition", asked.condition.map { .condition($0) }))
    return .object(answer)
  }

  private func documents(_ query: Query, _ lookups: [Members]) async throws -> QuerySnapshot {
    guard let first = lookups.first else { return try await query.getDocuments() }
    var joined = query.lookup(
      FieldPath(try first.needed("field")), in: try first.needed("in"), as: try first.needed("as"))
    for step in lookups.dropFirst() {
      joined = joined.lookup(
        FieldPath(try step.needed("field")), in: try step.needed("in"), as: try step.needed("as"))
    }
    return try await joined.getDocuments()
  }

  private func groups(
    _ query: Query, _ asks: [Members], by text: String
  ) async throws -> [(name: String, value: JSON?)] {
    let fields = try asks.map { ask in
      let operation = try ask.needed("op")
      if operation == "count" { return AggregateField.count() }
      let field = FieldPath(try ask.needed("field"))
      switch operation {
      case "sum": return AggregateField.sum(field)
      case "average": return AggregateField.average(field)
      case "minimum": return AggregateField.minimum(field)
      case "maximum": return AggregateField.maximum(field)
      default: throw ConsoleFailure.wrong("\"\(operation)\" is not an aggregate")
      }
    }
    let aggregate = query.aggregate(fields)
    func values(_ result: AggregateQuerySnapshot) -> JSON {
      .list(
        fields.map { field in
          let value: Value? = result.get(field)
          return value.map { .value($0) } ?? .null
        })
    }
    let groups: [JSON]
    if text.allSatisfy(\.isWhitespace) {
      groups = [["key": .list([]), "values": values(try await aggregate.getAggregation())]]
    } else {
      let by = try WhereParser.fields(text)
      groups = try await aggregate.group(by: by).getAggregation().prefix(10_000).map { group in
        ["key": .list(group.key.map { .value($0) }), "values": values(group.aggregation)]
      }
    }
    return [
      ("documents", .list([])), ("last", true), ("unreadable", .list([])),
      ("groups", .list(groups)),
    ]
  }

  func count(_ body: [UInt8]) async throws -> JSON {
    let asked = try AskedQuery(
      Members(body, known: ["collection", "group", "where"]), in: database)
    return ["count": .number(try await asked.query.count.getAggregation().count)]
  }

  func deleteMany(_ body: [UInt8]) async throws -> JSON {
    let members = try Members(body, known: ["collection", "group", "where", "dryRun"])
    let asked = try AskedQuery(members, in: database)
    guard let isDry = try members.boolean("dryRun") else {
      throw ConsoleFailure.wrong("\"dryRun\" is missing")
    }
    if isDry { return ["count": .number(try await asked.query.count.getAggregation().count)] }
    let most = 10_000
    let count = try await asked.query.limit(to: most).deleteDocuments()
    log("deleted \(count) documents of \(asked.collection ?? asked.group ?? "")")
    return ["count": .number(count), "last": .boolean(count < most)]
  }

  func schema(_ items: QueryItems) async throws -> JSON {
    let query: Query
    switch (items["collection"], items["group"]) {
    case (let collection?, nil): query = database.collection(collection).query
    case (nil, let group?): query = database.collectionGroup(group).query
    default: throw ConsoleFailure.wrong("name either a collection or a group")
    }
    let found = try await query.limit(to: 300).getDocuments()
    var fields: [String: [String: Int]] = [:]
    for document in found.documents {
      for (name, value) in document.data() where fields[name] != nil || fields.count < 1_000 {
        fields[name, default: [:]][Self.kind(of: value), default: 0] += 1
      }
    }
    let rows = fields.map { (name: $0.key, count: $0.value.values.reduce(0, +), kinds: $0.value) }
      .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    let total = Double(max(1, found.documents.count))
    return [
      "sampled": .number(found.documents.count),
      "fields": .list(
        rows.map { row in
          [
            "field": .text("\(FieldPath([row.name]))"),
            "share": .fraction(Double(row.count) / total),
            "kinds": .object(
              row.kinds.sorted { $0.key < $1.key }
                .map { (name: $0.key, value: .fraction(Double($0.value) / Double(row.count))) }),
          ]
        }),
    ]
  }

  private static func kind(of value: Value) -> String {
    switch value {
    case .null: "null"
    case .boolean: "boolean"
    case .integer: "integer"
    case .double: "double"
    case .decimal: "decimal"
    case .timestamp: "timestamp"
    case .string: "string"
    case .bytes: "bytes"
    case .blob: "blob"
    case .reference: "reference"
    case .geoPoint: "geoPoint"
    case .array: "array"
    case .vector: "vector"
    case .map: "map"
    }
  }

  // MARK: - One document

  func document(_ items: QueryItems) async throws -> JSON {
    let reference = database.document(try items.text("path"))
    let document = try await reference.getDocument()
    guard document.exists else {
      var failure = ConsoleFailure(404, "notFound", "there is no document \(reference.path)")
      failure.path = reference.path
      throw failure
    }
    return ["document": .document(document)]
  }

  func createDocument(_ items: QueryItems, _ body: [UInt8]) async throws -> JSON {
    let members = try Members(body, known: ["id", "fields"])
    let collection = database.collection(try items.text("collection"))
    let id = try members.text("id")
    let reference = id.map { collection.document($0) } ?? collection.document()
    guard id == nil || reference.parent.path == collection.path else {
      throw ConsoleFailure.wrong("an id must not contain \"/\"")
    }
    guard let fields = try members.fields("fields") else {
      throw ConsoleFailure.wrong("\"fields\" is missing")
    }
    let result = try await reference.create(fields, returning: .after)
    log("created \(reference.path) in version \(result.version)")
    return ["document": try await current(reference)]
  }

  func putDocument(_ items: QueryItems, _ version: Version, _ body: [UInt8]) async throws -> JSON {
    guard let fields = try Members(body, known: ["fields"]).fields("fields") else {
      throw ConsoleFailure.wrong("\"fields\" is missing")
    }
    let reference = database.document(try items.text("path"))
    return try await write(reference) {
      try await reference.setData(fields, ifVersion: version).version
    }
  }

  func patchDocument(_ items: QueryItems, _ version: Version, _ body: [UInt8]) async throws -> JSON
  {
    let members = try Members(body, known: ["set", "delete"])
    let reference = database.document(try items.text("path"))
    var changes: [FieldPath: (any FieldContent)?] = [:]
    for (field, value) in try members.fields("set") ?? [:] {
      changes.updateValue(value, forKey: FieldPath(field))
    }
    for field in try members.texts("delete") ?? [] {
      changes.updateValue(FieldValue.delete(), forKey: FieldPath(field))
    }
    let all = changes
    return try await write(reference) {
      try await reference.updateData(all, ifVersion: version).version
    }
  }

  func deleteDocument(_ items: QueryItems, _ version: Version) async throws -> JSON {
    let reference = database.document(try items.text("path"))
    let isRecursive = items["recursive"] == "true"
    _ = try await write(reference) {
      try await reference.delete(recursive: isRecursive, ifVersion: version).version
    }
    return [:]
  }

  private func current(_ reference: DocumentReference) async throws -> JSON {
    .document(try await reference.getDocument())
  }

  /// Writes under a precondition. If it fails, the error has the stored document.
  private func write(
    _ reference: DocumentReference, _ body: () async throws -> Version
  ) async throws -> JSON {
    do {
      let version = try await body()
      log("wrote \(reference.path) in version \(version)")
      return ["document": try await current(reference)]
    } catch let error as DatabaseError where error.code == .aborted || error.code == .notFound {
      var failure = ConsoleFailure(error)
      failure.status = 409
      failure.code = "aborted"
      failure.path = reference.path
      failure.current = try await current(reference)
      throw failure
    }
  }
}
