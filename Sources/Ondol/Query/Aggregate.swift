// Aggregates of a query, over its whole result or for each group in it. On the read path they take
// the place of stage 5: the fields in question are read from the rows and no document is decoded;
// counting what an index answers alone reads no document at all.

internal import OndolEngine

/// Numbers about a query's result: what `QuerySource.aggregate(_:)` makes.
///
/// Firestore works them out on its servers only, five at a time, and does not tell of changes. Here
/// there may be any number, and `snapshots` follows them.
public struct AggregateQuery: Sendable, Hashable {
  /// The query whose result it is about.
  public let query: Query
  let fields: [AggregateField]

  /// The numbers, all as of one moment. The query's limit, offset and places count.
  ///
  /// A document without a field, or with something in it that is no number, adds nothing to that
  /// field's aggregates, but counts.
  ///
  /// - Throws: as `Query.getDocuments()`, and `.invalidArgument` when a field is no path.
  /// - Complexity: as the query's; a count that an index answers reads rows of the index only, and
  ///   a minimum or maximum that stands at an end of what an index answers only that row and its
  ///   document.
  public func getAggregation() async throws(DatabaseError) -> AggregateQuerySnapshot {
    try await aggregate()
  }

  /// The same numbers for each group of documents that agree in the fields, which Firestore's
  /// queries cannot. Documents that lack one of the fields are in no group.
  ///
  /// - Parameter fields: fields or paths into maps; without any, all documents are one group.
  public func group(by fields: FieldPath...) -> GroupedAggregateQuery { group(by: fields) }

  /// The same numbers for each group of documents that agree in the fields.
  ///
  /// - Parameter fields: fields or paths into maps; without any, all documents are one group.
  public func group(by fields: [FieldPath]) -> GroupedAggregateQuery {
    GroupedAggregateQuery(aggregate: self, groupFields: fields)
  }

  /// How the numbers are worked out: as `QuerySource.explain(analyze:)` says it of the query, and
  /// whether only the ends of indexes are read.
  ///
  /// - Throws: as `getAggregation()`.
  public func explain() async throws(DatabaseError) -> QueryExplanation {
    try await explanation()
  }

  @concurrent
  private func explanation() async throws(DatabaseError) -> QueryExplanation {
    let shape = try query.shape.get()
    return try await query.database.read(
      try query.database.engineSnapshot(), canBeCancelled: true
    ) {
      [self] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: query.database, rows)
      for case let path? in fields.map(\.field) { executor.note(try QueryField(path)) }
      if let ends = try indexEnds(executor) { return QueryExplanation(endsOf: ends, executor) }
      return QueryExplanation(executor, documentsReturned: nil, duration: nil)
    }
  }

  private func aggregate() async throws(DatabaseError) -> AggregateQuerySnapshot {
    let shape = try query.shape.get()
    return try await query.database.query(mayBeShort: shape.mayBeShort) {
      [self] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: query.database, rows)
      return try aggregate(&executor)
    }
  }

  func aggregate(
    _ executor: inout Executor
  ) throws(DatabaseError) -> AggregateQuerySnapshot {
    let aggregators = try aggregators(&executor)
    return AggregateQuerySnapshot(query: self, aggregators, unreadable: executor.unreadable)
  }

  /// The aggregates, as they come to be.
  func aggregators(_ executor: inout Executor) throws(DatabaseError) -> [Aggregator] {
    if let ends = try indexEnds(executor) {
      var aggregators = fields.map { Aggregator($0.kind) }
      for (index, end) in ends.enumerated() {
        var end = end
        aggregators[index].add(try end.page(limit: 1).first?.sortKeys.first ?? nil)
      }
      return aggregators
    }
    if fields.allSatisfy({ $0.kind == .count }) {
      let count = try executor.count()
      query.database.suggestIndex(after: executor, returned: 0)
      return fields.map { _ in Aggregator(count: count) }
    }
    var aggregators = fields.map { Aggregator($0.kind) }
    try visit(&executor, []) { values in
      for index in aggregators.indices { aggregators[index].add(values[index]) }
    }
    return aggregators
  }

  /// Shows the values of the aggregates' fields, followed by those of `groups`, in each document.
  fileprivate func visit(
    _ executor: inout Executor, _ groups: [FieldPath],
    _ body: ([Value?]) -> Void
  ) throws(DatabaseError) {
    var aggregated: [QueryField?] = []
    for field in fields { aggregated.append(try field.field.map(QueryField.init)) }
    var grouped: [QueryField] = []
    for field in groups { grouped.append(try QueryField(field)) }
    for case let field? in aggregated + grouped { executor.note(field) }
    // With a limit the order decides which documents count.
    guard executor.query.isWhole else {
      var shape = executor.shape
      shape.selection = nil
      executor = try Executor(shape, in: query.database, executor.rows)
      for document in try executor.documents() {
        let path = try document.reference.place.get()
        let (fields, name) = (document.data(), shape.name(of: path))
        body((aggregated + grouped).map { $0?.value(in: fields, name: name) })
      }
      return
    }
    let readers = executor.parts.map { FieldReader(aggregated + grouped, $0) }
    var values: [Value?] = []
    try executor.visitEach { (view, key, part) throws(DatabaseError) in
      try readers[part].read(view, key, into: &values)
      body(values)
    }
  }
}

/// Reads a few fields of documents of one part of a query.
struct FieldReader {
  private let fields: [(field: QueryField?, path: ResolvedPath?)]
  private let part: QueryPart

  init(_ fields: [QueryField?], _ part: QueryPart) {
    self.part = part
    self.fields = fields.map { field in
      (field, field.flatMap { Matcher.resolve($0, part.matcher.symbols) })
    }
  }

  /// The fields' values; nil where the document lacks the field.
  func read(
    _ view: borrowing DocumentView, _ key: RawSpan, into values: inout [Value?]
  ) throws(DatabaseError) {
    values.removeAll(keepingCapacity: true)
    for index in fields.indices {
      do throws(MalformedBytes) {
        if let path = fields[index].path {
          values.append(try view.field(path)?.value(part.matcher.symbols))
          continue
        }
      } catch {
        throw DatabaseError(error, documentAt: try part.naming.path(of: key))
      }
      values.append(
        fields[index].field == .documentID ? try part.naming.name(of: key) : nil)
    }
  }
}

/// Numbers about a result, as they were at one moment.
public struct AggregateQuerySnapshot: Sendable, Hashable {
  /// What was asked.
  public let query: AggregateQuery
  /// Documents met that could not be upgraded to the schema their collection has: the numbers do
  /// without them. See `QuerySnapshot.unreadable`.
  public let unreadable: [DocumentReference]
  private let values: [Value?]

  init(
    query: AggregateQuery, _ aggregators: [Aggregator], unreadable: [DocumentReference]
  ) {
    self.query = query
    self.unreadable = unreadable
    values = aggregators.map(\.result)
  }

  /// The number of documents, 0 or more; 0 when no count was asked for.
  public var count: Int {
    Int(get(.count())?.integer ?? 0)
  }

  /// One of the aggregates asked for; nil when it has no value, as the average of nothing, or was
  /// not asked for.
  ///
  /// - Parameter field: equal to one that was passed to `QuerySource.aggregate(_:)`.
  public func get(_ field: AggregateField) -> Value? {
    query.fields.firstIndex(of: field).flatMap { values[$0] }
  }

  /// One of the aggregates asked for as a Swift type; nil when it has none or is of another type.
  public func get<Number: FieldReadable>(_ field: AggregateField) -> Number? {
    let value: Value? = get(field)
    return value.flatMap { Number(fieldValue: $0) }
  }

  /// One of the aggregates asked for; nil when it has no value.
  public subscript(field: AggregateField) -> Value? { self.get(field) }

  /// One of the aggregates asked for as a Swift type; nil when it has none or is of another type.
  public subscript<Number: FieldReadable>(field: AggregateField) -> Number? { self.get(field) }
}

// MARK: - Groups

/// Numbers about each group in a query's result.
public struct GroupedAggregateQuery: Sendable, Hashable {
  let aggregate: AggregateQuery
  let groupFields: [FieldPath]

  /// The groups in the order of what they agree in, all as of one moment.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  /// - Complexity: as the query's, and memory for the groups.
  public func getAggregation() async throws(DatabaseError) -> [AggregateGroup] {
    try await groups()
  }

  private func groups() async throws(DatabaseError) -> [AggregateGroup] {
    let query = aggregate.query
    let shape = try query.shape.get()
    return try await query.database.query(mayBeShort: shape.mayBeShort) {
      [self] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: query.database, rows)
      return try groups(&executor)
    }
  }

  func groups(
    _ executor: inout Executor
  ) throws(DatabaseError) -> [AggregateGroup] {
    if let counts = try countsByIndex(executor) {
      return answer(
        counts.map { key, count in
          (key, aggregate.fields.map { _ in Aggregator(count: count) })
        })
    }
    var table = GroupTable(aggregate.fields)
    try aggregate.visit(&executor, groupFields) { table.add($0) }
    return answer(table.groups, executor.unreadable)
  }

  private func answer(
    _ groups: [(key: [Value], aggregators: [Aggregator])],
    _ unreadable: [DocumentReference] = []
  ) -> [AggregateGroup] {
    groups.map { key, aggregators in
      AggregateGroup(
        fields: groupFields, key: key,
        aggregation: AggregateQuerySnapshot(
          query: aggregate, aggregators, unreadable: unreadable))
    }.sorted { ValueOrder.compare(.array($0.key), .array($1.key)) < 0 }
  }
}

/// The aggregates of groups, as they come to be.
private struct GroupTable {
  /// Most groups agree in one field, whose value needs no list around it.
  private enum Key: Hashable {
    case value(Value)
    case values([Value])
  }

  private let fresh: [Aggregator]
  private(set) var groups: [(key: [Value], aggregators: [Aggregator])] = []
  private var places: [Key: Int] = [:]

  init(_ fields: [AggregateField]) {
    fresh = fields.map { Aggregator($0.kind) }
  }

  /// Adds a document by the values of the aggregates' fields and of the groups'; to none when it
  /// lacks one of the latter.
  mutating func add(_ values: [Value?]) {
    let key: Key
    if values.count == fresh.count + 1 {
      guard let value = values[fresh.count] else { return }
      key = .value(value)
    } else {
      let keys = values[fresh.count...].compactMap(\.self)
      guard keys.count == values.count - fresh.count else { return }
      key = .values(keys)
    }
    let place = places[key] ?? begin(key)
    for index in fresh.indices { groups[place].aggregators[index].add(values[index]) }
  }

  private mutating func begin(_ key: Key) -> Int {
    let place = groups.count
    places[key] = place
    switch key {
    case .value(let value): groups.append(([value], fresh))
    case .values(let values): groups.append((values, fresh))
    }
    return place
  }
}

/// The documents of a result that agree in some fields.
public struct AggregateGroup: Sendable, Hashable {
  private let fields: [FieldPath]
  /// What the documents agree in: a value for each field of `group(by:)`.
  public let key: [Value]
  /// The numbers about the group.
  public let aggregation: AggregateQuerySnapshot

  init(fields: [FieldPath], key: [Value], aggregation: AggregateQuerySnapshot) {
    self.fields = fields
    self.key = key
    self.aggregation = aggregation
  }

  /// What the documents agree in for one of the fields of `group(by:)`; nil for other fields.
  public subscript(field: FieldPath) -> Value? {
    fields.firstIndex(of: field).map { key[$0] }
  }

  /// What the documents agree in for one of the fields, as a Swift type.
  public subscript<Field: FieldReadable>(field: FieldPath) -> Field? {
    fields.firstIndex(of: field).flatMap { Field(fieldValue: key[$0]) }
  }
}

extension QuerySource {
  /// Numbers about the result: counts, sums, averages, least and greatest values.
  ///
  /// Unlike in Firestore, a document that lacks one of the fields still counts.
  ///
  /// - Parameter fields: any number of them.
  public func aggregate(_ fields: [AggregateField]) -> AggregateQuery {
    AggregateQuery(query: query, fields: fields)
  }

  /// How many documents there are: `try await query.count.getAggregation().count`.
  public var count: AggregateQuery { aggregate([.count()]) }
}
