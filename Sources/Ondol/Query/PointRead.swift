// Answers point queries in one step, without a normal form, a planner or a matcher: the shortest
// way from a query to documents. The first query of a form takes the long way through the executor.
// It leaves what it learned: the index, how to make keys, and the family's row in the catalog for
// which this holds. The next query compares that row, makes the key of its own values, and walks
// the index. Any relevant change in the collection changes the row, and the next query then takes
// the long way again.

internal import OndolEngine

/// The form of a query that may be answered in one step, without its values.
private struct PointReadKey: Sendable, Hashable {
  let pattern: CollectionPattern
  let comparisons: [PointComparison]
  let orders: [SortOrder]
  /// The number of values at which the result begins.
  let startCount: Int

  /// Returns nil for queries of other forms. Like PointForm, but of the query as written instead of
  /// its normal form.
  init?(_ shape: QueryShape, _ collection: CollectionPath) {
    guard shape.end == nil, shape.offset == 0, shape.limit != 0, !shape.isLimitToLast,
      shape.selection == nil, !shape.filters.isEmpty,
      let comparisons = [PointComparison](shape.filters)
    else { return nil }
    orders = shape.orders
    if let start = shape.start {
      // With several values before them, the start would be in one of many ranges.
      guard case .values(let values) = start.position, !comparisons.contains(where: \.isList) else {
        return nil
      }
      startCount = values.count
    } else {
      startCount = 0
    }
    pattern = CollectionPattern(collection)
    self.comparisons = comparisons
  }
}

/// What is known about the queries of one form.
private final class PointRead: Sendable {
  private let familyKey: [UInt8]
  /// The family's row. While it is unchanged, everything here is valid.
  private let familyRow: [UInt8]
  private let plan: PointPlan
  private let pattern: CollectionPattern
  private let keyspace: Keyspace
  private let symbols: SymbolTable

  init(
    familyKey: [UInt8], familyRow: [UInt8], _ plan: PointPlan, _ naming: DocumentNaming,
    _ symbols: SymbolTable
  ) {
    self.familyKey = familyKey
    self.familyRow = familyRow
    self.plan = plan
    pattern = naming.pattern
    keyspace = naming.keyspace
    self.symbols = symbols
  }

  /// The result; nil when the query must take the long way.
  func snapshot(
    of query: Query, _ shape: QueryShape, _ collection: CollectionPath, _ rows: Rows
  ) throws(DatabaseError) -> QuerySnapshot? {
    guard try isCurrent(in: rows) else { return nil }
    let naming = DocumentNaming(pattern, keyspace, collection: collection)
    guard let scan = plan.scan(for: shape.filters, naming, from: shape.startValues) else {
      return nil
    }
    guard !scan.ranges[0].isEmpty else {
      return QuerySnapshot(query: query, documents: [], ResultEnd(isLast: true), unreadable: [])
    }
    let walk = CandidateWalk(scan, naming, rows)
    let shaper = DocumentShaper(query.database, naming, symbols)
    let limit = shape.limit ?? .max
    var documents: [DocumentSnapshot] = []
    var isLast: Bool
    if plan.isInOrder {
      var hasMore = true
      while hasMore, documents.count < limit {
        hasMore = try walk.next(atMost: limit - documents.count) {
          (key, row) throws(DatabaseError) in
          documents.append(try shaper.snapshot(shaper.view(row, key), row, key))
        }
      }
      isLast = !hasMore
      if hasMore { isLast = try walk.pass(atMost: 1) == 0 }
    } else {
      var keys: [[UInt8]] = []
      var hasMore = true
      while hasMore { hasMore = try walk.nextKey { key in keys.append(key.array) } }
      // The keys of one collection's documents are in the order of their ids.
      keys.sort { $0.bytes.compare($1.bytes) < 0 }
      var next = 0
      while next < keys.count, documents.count < limit {
        let end = min(next + min(limit - documents.count, 32), keys.count)
        try rows.show(keys, at: next..<end) { (key, row) throws(DatabaseError) in
          documents.append(try shaper.snapshot(shaper.view(row, key), row, key))
        }
        next = end
      }
      isLast = next == keys.count
    }
    guard !walk.hasMetCut else { return nil }
    query.database.noteUse(of: walk)
    return QuerySnapshot(
      query: query, documents: documents, ResultEnd(isLast: isLast), unreadable: [])
  }

  private func isCurrent(in rows: Rows) throws(DatabaseError) -> Bool {
    let known = familyRow
    var isCurrent = false
    _ = try rows.show(familyKey) { (_, row) throws(DatabaseError) in
      isCurrent = row.compare(known.bytes) == 0
    }
    return isCurrent
  }
}

/// What is known about the forms of recent queries.
final class PointReads: Sendable {
  /// The most forms that are kept. With more, all are dropped and the next ones kept.
  private static let limit = 256

  private let reads = Guarded<[PointReadKey: PointRead]>([:])

  /// The result of the query: in one step if possible, otherwise as the executor finds it, or the
  /// scan by which it would be found.
  func snapshot(
    of query: Query, _ shape: QueryShape, _ rows: Rows
  ) throws(DatabaseError) -> ReadAnswer<QuerySnapshot> {
    var key: PointReadKey?
    if case .collection(let collection) = shape.source {
      key = PointReadKey(shape, collection)
      if let key, let read = reads.withLock({ $0[key] }),
        let result = try read.snapshot(of: query, shape, collection, rows)
      {
        return .found(result)
      }
    }
    var executor = try Executor(shape, in: query.database, rows)
    if let scan = try ScanParts(documentsOf: executor) { return .inParts(scan) }
    let result = try executor.snapshot(of: query)
    query.database.suggestIndex(after: executor, returned: result.count)
    if let key { try learn(key, from: executor) }
    return .found(result)
  }

  /// The plan of a form; nil when none can be kept. With a start, the plan is the same as without
  /// when the result can begin there: only the beginning of the range differs.
  private func pointPlan(
    _ key: PointReadKey, _ executor: Executor
  ) throws(DatabaseError) -> PointPlan? {
    guard key.startCount > 0 else {
      // Results that are not in order are sorted by ids.
      return try executor.pointPlan().flatMap { $0.isInOrder || key.orders.isEmpty ? $0 : nil }
    }
    var shape = executor.shape
    shape.start = nil
    let whole = try Executor(shape, in: executor.database, executor.rows)
    guard let plan = try whole.pointPlan(),
      plan.mayBegin(atValuesOf: key.startCount, key.orders)
    else { return nil }
    return plan
  }

  private func learn(_ key: PointReadKey, from executor: Executor) throws(DatabaseError) {
    guard let plan = try pointPlan(key, executor) else { return }
    let part = executor.parts[0]
    let familyKey = CatalogKey.family(key.pattern.root)
    guard let familyRow = try executor.rows.row(familyKey) else { return }
    let read = PointRead(
      familyKey: familyKey, familyRow: familyRow, plan, part.naming, part.matcher.symbols)
    reads.withLock { reads in
      if reads.count >= Self.limit { reads = [:] }
      reads[key] = read
    }
  }
}

extension QueryShape {
  /// The values at which the result begins; nil when it does not begin at values.
  fileprivate var startValues: (values: [Value], isIncluded: Bool)? {
    guard let start, case .values(let values) = start.position else { return nil }
    return (values, start.isIncluded)
  }
}

extension Executor {
  /// The cached form of the plan of its only part, when the plan depends on nothing but the
  /// family's row in the catalog.
  fileprivate func pointPlan() throws(DatabaseError) -> PointPlan? {
    guard rows.catalog === database.catalog, parts.count == 1, parts[0].plan.isExact,
      let known = database.plans.pointPlan(for: query, parts[0].naming),
      let family = try rows.catalog.family(parts[0].naming.pattern.root, in: rows),
      family.row.generation == known.generation,
      let entry = family.collections[parts[0].naming.pattern],
      // The app's schema declarations are not in the row.
      entry.schema.epochs.isEmpty
    else { return nil }
    return known.plan
  }
}
