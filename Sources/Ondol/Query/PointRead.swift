// Point queries answered in one go, without a normal form, a planner or a matcher: the shortest way
// from a query to documents. The first query of a form goes the long way, through the executor, and
// leaves behind what it learnt: the index, how keys are made, and the family's row in the catalog
// that all of this was true of. The next one compares that row, makes the key of its own values,
// and walks the index. Whatever has changed in the collection has changed the row, and then the
// long way is gone again.

internal import OndolEngine

/// The form of a query that may be answered in one go, without its values.
private struct PointReadKey: Sendable, Hashable {
  let pattern: CollectionPattern
  let comparisons: [PointComparison]

  /// Nil for queries of other forms. As PointForm, but of what was asked instead of what it means.
  init?(_ shape: QueryShape, _ collection: CollectionPath) {
    guard shape.orders.isEmpty, shape.start == nil, shape.end == nil, shape.offset == 0,
      shape.limit != 0, !shape.isLimitToLast, shape.selection == nil, !shape.filters.isEmpty,
      let comparisons = [PointComparison](shape.filters)
    else { return nil }
    pattern = CollectionPattern(collection)
    self.comparisons = comparisons
  }
}

/// What is known of the queries of one form.
private final class PointRead: Sendable {
  private let familyKey: [UInt8]
  /// The family's row; while it is the same, so is everything here.
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

  /// The result; nil where the long way must be gone.
  func snapshot(
    of query: Query, _ shape: QueryShape, _ collection: CollectionPath, _ rows: Rows
  ) throws(DatabaseError) -> QuerySnapshot? {
    guard try isCurrent(in: rows) else { return nil }
    let naming = DocumentNaming(pattern, keyspace, collection: collection)
    guard let scan = plan.scan(for: shape.filters, naming) else { return nil }
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

/// What is known of the forms of queries that were asked lately.
final class PointReads: Sendable {
  /// Forms kept. With more, all are forgotten and the next ones kept.
  private static let limit = 256

  private let reads = Guarded<[PointReadKey: PointRead]>([:])

  /// The result of the query, in one go where that is possible, else as the executor finds it, or
  /// the scan that it would be found by.
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

  private func learn(_ key: PointReadKey, from executor: Executor) throws(DatabaseError) {
    guard let plan = try executor.pointPlan() else { return }
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

extension Executor {
  /// What is kept of the plan of its only part, when the family's row in the catalog says all that
  /// it depends on.
  fileprivate func pointPlan() throws(DatabaseError) -> PointPlan? {
    guard rows.catalog === database.catalog, parts.count == 1, parts[0].plan.isExact,
      let known = database.plans.pointPlan(for: query, parts[0].naming),
      let family = try rows.catalog.family(parts[0].naming.pattern.root, in: rows),
      family.row.generation == known.generation,
      let entry = family.collections[parts[0].naming.pattern],
      // What the app says of schemas is not in the row.
      entry.schema.epochs.isEmpty
    else { return nil }
    return known.plan
  }
}
