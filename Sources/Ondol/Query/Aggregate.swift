// Aggregates of a query, over its whole result or for each group in it. On the read path they
// replace stage 5: they read the fields they need from the rows and decode no document. A count
// that an index answers alone reads no document at all.

internal import OndolEngine

/// Numbers about a query's result, made by `QuerySource.aggregate(_:)`.
///
/// Firestore computes aggregates only on its servers, at most five at a time, and does not report
/// changes to them. Here there may be any number, and `snapshots` follows them.
public struct AggregateQuery: Sendable, Hashable {
  /// The query whose result is aggregated.
  public let query: Query
  let fields: [AggregateField]

  /// The numbers, all as of one moment. The query's limit, offset, start and end apply.
  ///
  /// A document that lacks a field, or has a value in it that is not a number, adds nothing to that
  /// field's aggregates. It still counts.
  ///
  /// - Throws: as `Query.getDocuments()`, and `.invalidArgument` when a field is not a valid path.
  /// - Complexity: as the query's. A count that an index answers reads only rows of the index. A
  ///   minimum or maximum at an end of what an index answers reads only that row and its document.
  public func getAggregation() async throws(DatabaseError) -> AggregateQuerySnapshot {
    try await aggregate()
  }

  /// The same numbers for each group of documents that agree in the fields. Firestore's queries
  /// cannot do this. Documents that lack one of the fields are in no group.
  ///
  /// - Parameter fields: fields or paths into maps; without any, all documents are one group.
  public func group(by fields: FieldPath...) -> GroupedAggregateQuery { group(by: fields) }

  /// The same numbers for each group of documents that agree in the fields.
  ///
  /// - Parameter fields: fields or paths into maps; without any, all documents are one group.
  public func group(by fields: [FieldPath]) -> GroupedAggregateQuery {
    GroupedAggregateQuery(aggregate: self, groupFields: fields)
  }

  /// The same numbers for each group of documents that agree in the fields when their texts are
  /// compared in this way: with `.folded`, `"Élan"` and `"elan"` are in one group. The group's key
  /// has the one of its texts that is first by its bytes.
  ///
  /// Groups are in the order of this comparison. Documents are read even when an index compares
  /// texts in the same way.
  ///
  /// - Parameters:
  ///   - fields: fields or paths into maps; not `FieldPath.documentID()`.
  ///   - comparison: how the texts of all these fields are compared.
  public func group(
    by fields: FieldPath..., comparing comparison: TextComparison
  ) -> GroupedAggregateQuery {
    group(by: fields, comparing: comparison)
  }

  /// The same numbers for each group of documents that agree in the fields when their texts are
  /// compared in this way.
  ///
  /// - Parameters:
  ///   - fields: fields or paths into maps; not `FieldPath.documentID()`.
  ///   - comparison: how the texts of all these fields are compared.
  public func group(
    by fields: [FieldPath], comparing comparison: TextComparison
  ) -> GroupedAggregateQuery {
    GroupedAggregateQuery(aggregate: self, groupFields: fields, comparison: comparison)
  }

  /// How the numbers are computed: what `QuerySource.explain(analyze:)` says of the query, and
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
      for field in fields { if let field = try field.queryField() { executor.note(field) } }
      if let ends = try indexEnds(executor) { return QueryExplanation(endsOf: ends, executor) }
      return QueryExplanation(executor, documentsReturned: nil, duration: nil)
    }
  }

  private func aggregate() async throws(DatabaseError) -> AggregateQuerySnapshot {
    let shape = try query.shape.get()
    let answer = try await query.database.query(mayBeShort: shape.mayBeShort) {
      [self] (rows) throws(DatabaseError) -> ReadAnswer<AggregateQuerySnapshot> in
      var executor = try Executor(shape, in: query.database, rows)
      if let known = try aggregatorsByIndex(&executor) { return .found(snapshot(known, executor)) }
      if executor.query.isWhole, let scan = try ScanParts(executor) { return .inParts(scan) }
      return .found(snapshot(try aggregatorsByWalk(&executor), executor))
    }
    return switch answer {
    case .found(let result): result
    case .inParts(let scan):
      AggregateQuerySnapshot(query: self, try await aggregators(in: scan), unreadable: [])
    }
  }

  func aggregate(
    _ executor: inout Executor
  ) throws(DatabaseError) -> AggregateQuerySnapshot {
    let aggregators = try aggregators(&executor)
    return snapshot(aggregators, executor)
  }

  private func snapshot(
    _ aggregators: [Aggregator], _ executor: borrowing Executor
  ) -> AggregateQuerySnapshot {
    AggregateQuerySnapshot(query: self, aggregators, unreadable: executor.unreadable)
  }

  /// The aggregates as the documents add up.
  func aggregators(_ executor: inout Executor) throws(DatabaseError) -> [Aggregator] {
    if let known = try aggregatorsByIndex(&executor) { return known }
    return try aggregatorsByWalk(&executor)
  }

  private var isOfCounts: Bool { fields.allSatisfy { $0.kind == .count } }

  /// The aggregates that an index, or the ranks of rows, give without a document; nil when they
  /// give none.
  private func aggregatorsByIndex(
    _ executor: inout Executor
  ) throws(DatabaseError) -> [Aggregator]? {
    if isOfCounts, executor.parts.allSatisfy(\.plan.isExact) {
      return try counts(&executor)
    }
    guard let ends = try indexEnds(executor) else { return nil }
    var aggregators = fields.map { Aggregator($0) }
    for (index, end) in ends.enumerated() {
      var end = end
      aggregators[index].add(try end.page(limit: 1).first?.sortKeys.first ?? nil)
    }
    return aggregators
  }

  private func aggregatorsByWalk(_ executor: inout Executor) throws(DatabaseError) -> [Aggregator] {
    if isOfCounts { return try counts(&executor) }
    return try groups(&executor, by: [], comparing: nil).groups.first?.aggregators
      ?? fields.map { Aggregator($0) }
  }

  private func counts(_ executor: inout Executor) throws(DatabaseError) -> [Aggregator] {
    let count = try executor.count()
    query.database.suggestIndex(after: executor, returned: 0)
    return fields.map { _ in Aggregator(count: count) }
  }

  /// The aggregates of the documents that agree in `names`.
  func groups(
    _ executor: inout Executor, by names: [FieldPath], comparing comparison: TextComparison?
  ) throws(DatabaseError) -> GroupTable {
    var table = GroupTable(fields, comparing: comparison)
    try add(&executor, by: names, comparing: comparison, to: &table)
    return table
  }

  /// Adds the executor's documents to those of the table.
  private func add(
    _ executor: inout Executor, by names: [FieldPath], comparing comparison: TextComparison?,
    to table: inout GroupTable
  ) throws(DatabaseError) {
    var (aggregated, grouped): ([QueryField?], [QueryField]) = ([], [])
    for field in fields { aggregated.append(try field.queryField()) }
    for name in names {
      if let comparison {
        grouped.append(try QueryField(name, comparing: comparison).plain)
      } else {
        grouped.append(try QueryField(name))
      }
    }
    for case let field? in aggregated + grouped { executor.note(field) }
    guard executor.query.isWhole else {
      return try add(limited: &executor, aggregated, grouped, to: &table)
    }
    let readers = executor.parts.map { GroupFields(aggregated, grouped, $0) }
    func addDocument(
      _ view: borrowing DocumentView, _ key: RawSpan, _ part: Int
    ) throws(DatabaseError) {
      try table.add(view, key, readers[part])
    }
    if (aggregated + grouped).contains(.documentID) {
      try executor.visitEach(addDocument)
    } else {
      try executor.visitEachRow(addDocument)
    }
  }

  /// Adds the documents of a limited result: its order decides which of them count.
  private func add(
    limited executor: inout Executor, _ aggregated: [QueryField?], _ grouped: [QueryField],
    to table: inout GroupTable
  ) throws(DatabaseError) {
    var shape = executor.shape
    shape.selection = nil
    executor = try Executor(shape, in: query.database, executor.rows)
    for document in try executor.documents() {
      let path = try document.reference.place.get()
      let (fields, name) = (document.data(), shape.name(of: path))
      table.add(
        aggregated.map { $0?.value(in: fields, name: name) },
        grouped.map { $0.value(in: fields, name: name) })
    }
  }
}

// MARK: - Parallel scans

extension AggregateQuery {
  private func aggregators(in scan: ScanParts) async throws(DatabaseError) -> [Aggregator] {
    guard isOfCounts else {
      return try await groups(in: scan, by: [], comparing: nil).groups.first?.aggregators
        ?? fields.map { Aggregator($0) }
    }
    let (found, counts) = try await scan.read(into: 0) { (count, executor) throws(DatabaseError) in
      count += try executor.count()
    }
    try await scan.finish(counts) { (executor) in
      query.database.suggestIndex(after: executor, returned: 0)
    }
    return fields.map { _ in Aggregator(count: found.reduce(0, +)) }
  }

  fileprivate func groups(
    in scan: ScanParts, by names: [FieldPath], comparing comparison: TextComparison?
  ) async throws(DatabaseError) -> GroupTable {
    let none = GroupTable(fields, comparing: comparison)
    let (tables, _) = try await scan.read(into: none) { (table, executor) throws(DatabaseError) in
      try add(&executor, by: names, comparing: comparison, to: &table)
    }
    var all = none
    for table in tables { all.add(table) }
    return all
  }
}

/// Numbers about a result at one moment.
public struct AggregateQuerySnapshot: Sendable, Hashable {
  /// The aggregates that were asked for.
  public let query: AggregateQuery
  /// Documents that could not be upgraded to their collection's schema. The numbers leave them out.
  /// See `QuerySnapshot.unreadable`.
  public let unreadable: [DocumentReference]
  private let values: [Value?]

  init(
    query: AggregateQuery, _ aggregators: [Aggregator], unreadable: [DocumentReference]
  ) {
    self.query = query
    self.unreadable = unreadable
    values = aggregators.map(\.result)
  }

  /// The number of documents; 0 when no count was asked for.
  public var count: Int {
    Int(get(.count())?.integer ?? 0)
  }

  /// One of the requested aggregates; nil when it has no value, like the average of no numbers, or
  /// was not requested.
  ///
  /// - Parameter field: equal to one that was passed to `QuerySource.aggregate(_:)`.
  public func get(_ field: AggregateField) -> Value? {
    query.fields.firstIndex(of: field).flatMap { values[$0] }
  }

  /// One of the requested aggregates as a Swift type; nil when it has no value or has another type.
  public func get<Number: FieldReadable>(_ field: AggregateField) -> Number? {
    let value: Value? = get(field)
    return value.flatMap { Number(fieldValue: $0) }
  }

  /// One of the requested aggregates; nil when it has no value.
  public subscript(field: AggregateField) -> Value? { self.get(field) }

  /// One of the requested aggregates as a Swift type; nil when it has no value or has another type.
  public subscript<Number: FieldReadable>(field: AggregateField) -> Number? { self.get(field) }
}

// MARK: - Groups

/// Numbers about each group in a query's result.
public struct GroupedAggregateQuery: Sendable, Hashable {
  let aggregate: AggregateQuery
  let groupFields: [FieldPath]
  /// How texts are compared when documents are grouped; nil when by their bytes.
  var comparison: TextComparison?

  /// The groups in the order of their keys, all as of one moment.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  /// - Complexity: as the query's, and memory for the groups.
  public func getAggregation() async throws(DatabaseError) -> [AggregateGroup] {
    try await groups()
  }

  private func groups() async throws(DatabaseError) -> [AggregateGroup] {
    let query = aggregate.query
    let shape = try query.shape.get()
    let answer = try await query.database.query(mayBeShort: shape.mayBeShort) {
      [self] (rows) throws(DatabaseError) -> ReadAnswer<[AggregateGroup]> in
      var executor = try Executor(shape, in: query.database, rows)
      if let groups = try groupsByIndex(executor) { return .found(groups) }
      if executor.query.isWhole, let scan = try ScanParts(executor) { return .inParts(scan) }
      return .found(try groupsByWalk(&executor))
    }
    return switch answer {
    case .found(let groups): groups
    case .inParts(let scan):
      self.answer(
        try await aggregate.groups(in: scan, by: groupFields, comparing: comparison).groups)
    }
  }

  func groups(
    _ executor: inout Executor
  ) throws(DatabaseError) -> [AggregateGroup] {
    if let groups = try groupsByIndex(executor) { return groups }
    return try groupsByWalk(&executor)
  }

  private func groupsByWalk(_ executor: inout Executor) throws(DatabaseError) -> [AggregateGroup] {
    let table = try aggregate.groups(&executor, by: groupFields, comparing: comparison)
    return answer(table.groups, executor.unreadable)
  }

  private func groupsByIndex(_ executor: Executor) throws(DatabaseError) -> [AggregateGroup]? {
    guard let counts = try countsByIndex(executor) else { return nil }
    return answer(
      counts.map { key, count in (key, aggregate.fields.map { _ in Aggregator(count: count) }) })
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
    }.sorted { ValueOrder.compare(compared($0), compared($1)) < 0 }
  }

  /// The value by which a group is compared.
  private func compared(_ group: AggregateGroup) -> Value {
    .array(comparison.map { group.key.map($0.value) } ?? group.key)
  }
}

/// Documents of a result that agree in some fields.
public struct AggregateGroup: Sendable, Hashable {
  private let fields: [FieldPath]
  /// The values in which the documents agree, one for each field of `group(by:)`.
  public let key: [Value]
  /// The numbers about the group.
  public let aggregation: AggregateQuerySnapshot

  init(fields: [FieldPath], key: [Value], aggregation: AggregateQuerySnapshot) {
    self.fields = fields
    self.key = key
    self.aggregation = aggregation
  }

  /// The value in which the documents agree, for one of the fields of `group(by:)`; nil for other
  /// fields.
  public subscript(field: FieldPath) -> Value? {
    fields.firstIndex(of: field).map { key[$0] }
  }

  /// The value in which the documents agree for one of the fields, as a Swift type.
  public subscript<Field: FieldReadable>(field: FieldPath) -> Field? {
    fields.firstIndex(of: field).flatMap { Field(fieldValue: key[$0]) }
  }
}

extension QuerySource {
  /// Numbers about the result: counts, sums, averages, least and greatest values.
  ///
  /// Unlike in Firestore, a document that lacks one of the fields still counts.
  ///
  /// - Parameter fields: any number of aggregates.
  public func aggregate(_ fields: [AggregateField]) -> AggregateQuery {
    AggregateQuery(query: query, fields: fields)
  }

  /// The number of documents: `try await query.count.getAggregation().count`.
  public var count: AggregateQuery { aggregate([.count()]) }
}
