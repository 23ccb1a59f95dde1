// Carries a plan out: stages 3 to 5 of the read path. Candidates come from a cursor or from
// lookups, the matcher asks each of them in its row, the survivors are sorted where the
// plan does not already give the order, and cut at the limit. Everything is read from one snapshot.

internal import OndolEngine

/// What carrying out a plan cost.
struct ExecutionCounts: Sendable {
  /// Index rows or documents a cursor stood on, or ids looked up.
  var entriesVisited = 0
  /// Documents whose fields were looked at.
  var documentsExamined = 0
}

/// One query, carried out on one snapshot.
struct Executor {
  let database: Database
  let rows: Rows
  let shape: QueryShape
  /// Nil when the collection has never had a document.
  let entry: CollectionEntry?
  private(set) var plan: Plan
  private(set) var counts = ExecutionCounts()
  private var results: ResultCollector

  /// Plans `shape` with what the catalog knew when `rows` were taken.
  init(_ shape: QueryShape, in database: Database, _ rows: Rows) throws(DatabaseError) {
    self.database = database
    self.rows = rows
    self.shape = shape
    let pattern = CollectionPattern(shape.collection)
    let family = try rows.catalog.family(pattern.root, in: rows)
    entry = family?.collections[pattern]
    let planner = Planner(
      shape: shape,
      documentPrefix: entry.map {
        DocumentKey.prefix($0.keyspace, ancestors: shape.collection.ancestorIDs)
      } ?? [],
      indexes: entry?.indexes.filter { $0.state == .ready } ?? [])
    plan = entry == nil ? Plan(access: .nothing, isInOrder: true) : planner.plan()
    results = ResultCollector(shape, isInOrder: plan.isInOrder)
  }

  /// The documents of the result, in order.
  mutating func documents() throws(DatabaseError) -> [DocumentSnapshot] {
    guard let entry else { return [] }
    let matcher = try Matcher(shape, symbols: entry.symbols)
    let prefix = DocumentKey.prefix(entry.keyspace, ancestors: shape.collection.ancestorIDs)
    switch plan.access {
    case .nothing: break
    case .lookups(let ids):
      for id in ids where !results.isFull {
        counts.entriesVisited += 1
        try lookUp(id, prefix, matcher, entry)
      }
    case .scan(let range, let reversed):
      try scan(range, reversed: reversed, prefixLength: prefix.count, matcher, entry)
    case .index(let index, let ranges, let reversed):
      var walk = RangeWalk(rows.snapshot, ranges, reversed: reversed)
      while !results.isFull, try walk.next() {
        counts.entriesVisited += 1
        let found = try row(of: index, at: walk)
        if found.isCut, plan.isInOrder {
          // Rows of values that agree in their first kilobyte are not in the values' order.
          plan.isInOrder = false
          results = ResultCollector(shape, isInOrder: false)
          return try documents()
        }
        try lookUp(found.id, prefix, matcher, entry)
      }
    }
    return results.finish().map { document in
      let path = DocumentPath(unchecked: shape.collection.segments + [document.id])
      let reference = DocumentReference(database: database, place: .success(path))
      return DocumentSnapshot(reference: reference, contents: document.contents)
    }
  }

  private func row(
    of index: IndexDefinition, at walk: borrowing RangeWalk
  ) throws(DatabaseError) -> IndexDefinition.Entry {
    do throws(MalformedBytes) {
      return try index.entry(
        walk.cursor.key, ancestorCount: shape.collection.ancestorIDs.count)
    } catch {
      throw DatabaseError(
        .dataLoss, "a row of the index '\(index.name)' is damaged: \(error.reason)",
        path: "\(shape.collection)")
    }
  }

  private mutating func lookUp(
    _ id: String, _ prefix: [UInt8], _ matcher: Matcher, _ entry: CollectionEntry
  ) throws(DatabaseError) {
    guard let row = try rows.row(DocumentKey.key(prefix: prefix, id: id)) else { return }
    try examine(row.bytes, id: id, matcher, entry)
  }

  private mutating func scan(
    _ range: KeyRange, reversed: Bool, prefixLength: Int, _ matcher: Matcher,
    _ entry: CollectionEntry
  ) throws(DatabaseError) {
    var walk = RangeWalk(rows.snapshot, [range], reversed: reversed)
    while !results.isFull, try walk.next() {
      counts.entriesVisited += 1
      let id: String
      do throws(MalformedBytes) {
        var reader = KeyReader(walk.cursor.key)
        try reader.skip(raw: prefixLength)
        id = try reader.id()
      } catch {
        throw DatabaseError(
          .dataLoss, "a document's key is damaged: \(error.reason)", path: "\(shape.collection)")
      }
      try examine(walk.cursor.value, id: id, matcher, entry)
    }
  }

  private mutating func examine(
    _ row: RawSpan, id: String, _ matcher: Matcher, _ entry: CollectionEntry
  ) throws(DatabaseError) {
    counts.documentsExamined += 1
    do throws(MalformedBytes) {
      let view = try DocumentView(row)
      guard try matcher.matches(view, id: id) else { return }
      results.add(
        id: id, try DocumentSnapshot.Contents(row: row.array, symbols: entry.symbols))
    } catch {
      throw DatabaseError(
        error, documentAt: DocumentPath(unchecked: shape.collection.segments + [id]))
    }
  }
}

// MARK: - Collecting

/// Gathers matching documents: in the order they come, or sorted, never many more than the limit.
struct ResultCollector {
  struct Document {
    var id: String
    var contents: DocumentSnapshot.Contents
    var sortKeys: [Value]
  }

  private let orders: [SortOrder]
  private let limit: Int
  private let isInOrder: Bool
  private var documents: [Document] = []

  init(_ shape: QueryShape, isInOrder: Bool) {
    orders = shape.completeOrders
    limit = shape.limit ?? .max
    self.isInOrder = isInOrder
  }

  /// Whether no further document can change the result.
  var isFull: Bool { isInOrder && documents.count >= limit }

  mutating func add(id: String, _ contents: DocumentSnapshot.Contents) {
    let keys = isInOrder ? [] : orders.keys(of: contents, id: id)
    documents.append(Document(id: id, contents: contents, sortKeys: keys))
    // Sorting once in a while costs O(log n) a document, and memory for twice the limit.
    if !isInOrder, limit < .max / 2, documents.count >= 2 * max(limit, 512) { keepBest() }
  }

  mutating func finish() -> [Document] {
    if !isInOrder { keepBest() }
    return documents
  }

  private mutating func keepBest() {
    documents.sort { orders.areInOrder($0.sortKeys, $1.sortKeys) }
    if documents.count > limit { documents.removeLast(documents.count - limit) }
  }
}
