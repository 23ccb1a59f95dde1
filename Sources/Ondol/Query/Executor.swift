// Carries out a plan: stages 3 to 5 of the read path. Candidates come from the plan's ways. The
// matcher checks each of them in its row. The executor sorts the matches unless the plan gives the
// order already, cuts them at the limit, and only then decodes them. Everything is read from one
// snapshot, and nothing suspends: a caller that must not block its thread runs an executor on
// another one.

internal import OndolEngine

/// The cost of carrying out a plan.
struct ExecutionCounts: Sendable {
  /// Index rows or documents that a cursor visited, or ids that were looked up.
  var entriesVisited = 0
  /// Documents whose fields were checked.
  var documentsExamined = 0
}

/// The documents of one pattern that a query reads. A class, because otherwise each check of a
/// document would retain and release everything in it.
final class QueryPart: Sendable {
  let naming: DocumentNaming
  let matcher: Matcher
  let plan: Plan
  /// The names of unfinished indexes that the plan would use.
  let awaited: [String]
  /// All indexes, finished or not.
  let indexes: [IndexDefinition]

  init(
    naming: DocumentNaming, matcher: Matcher, plan: Plan, awaited: [String],
    indexes: [IndexDefinition]
  ) {
    self.naming = naming
    self.matcher = matcher
    self.plan = plan
    self.awaited = awaited
    self.indexes = indexes
  }

  /// Whether candidates of the plan can be checked without their keys.
  var needsNoKeys: Bool { plan.isExact || matcher.needsNoKeys }

  /// Whether a candidate of the plan is in the result. Requires `needsNoKeys`.
  @inline(__always)
  func accepts(_ view: borrowing DocumentView) throws(MalformedBytes) -> Bool {
    guard !plan.isExact else { return true }
    return try matcher.accepts(view)
  }

  /// Whether a candidate of the plan is in the result.
  func matches(_ view: borrowing DocumentView, _ key: RawSpan) throws(DatabaseError) -> Bool {
    guard !plan.isExact else { return true }
    return try matcher.matches(view, key)
  }
}

/// One query on one snapshot.
struct Executor {
  let database: Database
  let rows: Rows
  let shape: QueryShape
  private(set) var query: NormalQuery
  private(set) var parts: [QueryPart] = []
  /// For each part, the upgrader of its rows, when some may have an earlier schema.
  private(set) var upgraders: [RowUpgrader?] = []
  private(set) var counts = ExecutionCounts()
  /// Top-level fields that the query names and no document has.
  private(set) var unknownFields: [String] = []
  /// Whether the documents found are all there are, regardless of the limit.
  var isLast = false

  /// Plans `shape` with the catalog as of `rows`. With `start`, the result begins after a document
  /// with these sort keys, wherever the query itself begins.
  init(
    _ shape: QueryShape, in database: Database, _ rows: Rows, behind start: [Value?]? = nil
  ) throws(DatabaseError) {
    self.database = database
    self.rows = rows.atOneMoment
    self.shape = shape
    query = try NormalQuery(shape)
    if let start { query.start = NormalQuery.Bound(keys: start, isIncluded: false) }
    switch shape.source {
    case .collection(let path):
      let pattern = CollectionPattern(path)
      let family = try rows.catalog.family(pattern.root, in: rows)
      if let family, let entry = family.collections[pattern] {
        try add(entry, pattern, path, of: family)
      }
    case .group(let id):
      var found: [(entry: CollectionEntry, pattern: CollectionPattern, family: Family)] = []
      for family in try rows.catalog.families(withCollections: id, in: rows) {
        for (pattern, entry) in family.collections where pattern.collectionID == id {
          found.append((entry, pattern, family))
        }
      }
      for (entry, pattern, family) in found.sorted(by: { $0.entry.keyspace < $1.entry.keyspace }) {
        try add(entry, pattern, nil, of: family)
      }
    }
    for name in wholeArrayIndexes { database.warnOnce(ofWholeArraysIn: name, of: shape.source) }
    for order in query.orders { note(order.field) }
    for tree in query.conjuncts {
      if case .field(let filter) = tree {
        note(filter.field)
      } else {
        for filter in tree.fieldFilters { note(filter.field) }
      }
    }
  }

  /// Carries out the known plan of one part, and continues counting from `counts`.
  init(
    _ shape: QueryShape, _ query: NormalQuery, _ part: QueryPart, in database: Database,
    _ rows: Rows, _ counts: ExecutionCounts
  ) {
    (self.database, self.rows, self.shape) = (database, rows, shape)
    (self.query, self.counts) = (query, counts)
    (parts, upgraders) = ([part], [nil])
  }

  /// Whether all documents have their collection's current schema.
  var hasNoUpgrades: Bool { upgraders.allSatisfy { $0 == nil } }

  /// Warns of a field that no document has.
  mutating func note(_ field: QueryField) {
    guard let name = field.names.first, parts.isUnknown(name),
      !unknownFields.contains(exactly: name),
      // Upgraded documents may have other fields.
      hasNoUpgrades
    else { return }
    unknownFields.append(name)
    database.warnOnce(ofUnknownField: name, in: shape.source)
  }

  private mutating func add(
    _ entry: CollectionEntry, _ pattern: CollectionPattern, _ path: CollectionPath?,
    of family: Family
  ) throws(DatabaseError) {
    let naming = DocumentNaming(pattern, entry.keyspace, collection: path)
    let pending = rows.pendingUpgrade(of: pattern, entry)
    var (plan, awaited) = plan(entry, naming, pending, family.row.generation)
    let matcher = Matcher(
      query, naming, symbols: entry.symbols, entry.timeToLive, endingAfter: rows.moment)
    if entry.timeToLive != nil { plan.isExact = false }
    var upgrader: RowUpgrader?
    if let pending {
      plan.isExact = false
      plan.suggestion = nil
      let made = RowUpgrader(pending, naming, matcher)
      try pending.meetLeftovers(behind: naming.prefix, in: rows, made)
      upgrader = made
    }
    parts.append(
      QueryPart(
        naming: naming, matcher: matcher, plan: plan, awaited: awaited, indexes: entry.indexes))
    upgraders.append(upgrader)
  }

  /// The plan, and the names of indexes that will be useful once they are finished.
  private func plan(
    _ entry: CollectionEntry, _ naming: DocumentNaming, _ pending: PendingUpgrade?,
    _ generation: UInt64
  ) -> (plan: Plan, awaited: [String]) {
    func planner(_ indexes: [IndexDefinition]) -> Planner {
      Planner(
        query: query, naming: naming, indexes: indexes,
        statistics: database.feedback.statistics.withLock { $0 })
    }
    // Indexes hold the stored values, while conditions apply to the upgraded ones.
    if let pending, pending.leftovers == nil { return (planner([]).plan(), []) }
    // The generation of uncommitted changes in a transaction may equal that of another commit.
    if rows.catalog === database.catalog, entry.indexes.allSatisfy({ $0.state == .ready }) {
      let plan = database.plans.plan(for: query, naming, generation: generation) {
        planner(entry.indexes)
      }
      return (plan, [])
    }
    var plan = planner(
      entry.indexes.filter { $0.state == .ready && rows.catalog.mayUse($0) }
    ).plan()
    guard entry.indexes.contains(where: { $0.state != .ready }) else { return (plan, []) }
    let awaited = planner(entry.indexes).plan().unfinishedIndexes
    if !awaited.isEmpty { plan.suggestion = nil }
    return (plan, awaited)
  }

  /// Documents that could not be upgraded, in the order of their paths.
  var unreadable: [DocumentReference] {
    var paths: Set<DocumentPath> = []
    for upgrader in upgraders { paths.formUnion(upgrader?.unreadable ?? []) }
    return [].adding(paths, in: database)
  }

  // MARK: - Ways

  /// A way of one of the parts.
  private struct Way {
    var part: Int
    var walk: CandidateWalk
  }

  private func makeWays() -> [Way] {
    parts.indices.flatMap { part in
      parts[part].plan.ways.map {
        Way(part: part, walk: CandidateWalk($0, parts[part], rows, upgraders[part]))
      }
    }
  }

  private mutating func note(_ ways: [Way], isComplete: Bool) {
    for way in ways {
      counts.entriesVisited += way.walk.visited
      counts.documentsExamined += way.walk.passedOver
      database.noteUse(of: way.walk)
      if isComplete { database.note(way.walk) }
    }
  }

  /// The most ways that are merged instead of sorted. With more of them, finding the least costs
  /// too much.
  private static let maximumMerged = 64

  /// Whether the documents need no sorting.
  var isInOrder: Bool {
    var ways = 0
    var (isEach, isEachWithWays) = (true, true)
    for part in parts {
      ways += part.plan.ways.count
      guard !part.plan.isInOrder else { continue }
      isEach = false
      if !part.plan.ways.isEmpty { isEachWithWays = false }
    }
    return ways <= 1 && isEachWithWays || ways <= Self.maximumMerged && isEach
  }

  // MARK: - Documents

  /// The documents of the result, in order.
  mutating func documents() throws(DatabaseError) -> [DocumentSnapshot] {
    isLast = false
    guard query.limit > 0 else { return [] }
    let found: [DocumentSnapshot]
    if let documents = try documentsInOrder() {
      found = documents
    } else {
      found = try shaped(ranked(limit: query.limit))
    }
    return query.isReversed ? found.reversed() : found
  }

  /// The documents as they come; nil when they do not come in order.
  mutating func documentsInOrder() throws(DatabaseError) -> [DocumentSnapshot]? {
    guard isInOrder else { return nil }
    let ways = makeWays()
    guard let way = ways.first else {
      isLast = true
      return []
    }
    if ways.count > 1 { return try mergedDocuments(ways) }
    var found: [DocumentSnapshot] = []
    var skipped = 0
    var hasMore = true
    let part = parts[way.part]
    let needsNoDocument = part.plan.isExact && shape.selection?.isEmpty == true
    let shaper = DocumentShaper(database, part, shape.selection)
    var examined = 0
    while hasMore, found.count < query.limit {
      // No more than are still wanted, so that no document is read needlessly.
      let left = (query.limit - found.count).addingReportingOverflow(query.offset - skipped)
      if needsNoDocument {
        hasMore = try way.walk.nextKey { (key) throws(DatabaseError) in
          if skipped < query.offset { skipped += 1 } else { found.append(try shaper.name(key)) }
        }
      } else {
        hasMore = try way.walk.next(atMost: left.overflow ? .max : left.partialValue) {
          (key, row) throws(DatabaseError) in
          examined += 1
          let view = try shaper.view(row, key)
          guard try part.matches(view, key) else { return }
          if skipped < query.offset {
            skipped += 1
          } else {
            found.append(try shaper.snapshot(view, row, key))
          }
        }
      }
      if way.walk.hasMetCut { return nil }
    }
    counts.documentsExamined += examined
    note(ways, isComplete: !hasMore)
    // One step of the cursor shows whether anything could follow.
    isLast = !hasMore
    if hasMore { isLast = try way.walk.pass(atMost: 1) == 0 }
    return found
  }

  private mutating func mergedDocuments(
    _ ways: [Way]
  ) throws(DatabaseError) -> [DocumentSnapshot]? {
    guard let ranked = try merged(ways, limit: query.limit) else { return nil }
    return try shaped(ranked)
  }

  /// The first documents of several ways, merged in order; nil when one of them turns out not to be
  /// in order.
  private mutating func merged(
    _ ways: [Way], limit: Int
  ) throws(DatabaseError) -> [Ranked]? {
    var examined = 0
    let parts = parts
    var merged = try MergedWalk(query.orders, ways: ways.count) { (index) throws(DatabaseError) in
      let (part, walk) = (ways[index].part, ways[index].walk)
      var found: Ranked?
      var hasMore = true
      while hasMore, found == nil {
        hasMore = try walk.next(atMost: 1) { (key, row) throws(DatabaseError) in
          examined += 1
          found = try Self.rank(row, key, part, parts[part])
        }
      }
      return found
    }
    var documents: [Ranked] = []
    var skipped = 0
    while documents.count < limit, let document = try merged.nextDocument() {
      if skipped < query.offset { skipped += 1 } else { documents.append(document) }
    }
    isLast = merged.isAtEnd
    if ways.contains(where: \.walk.hasMetCut) { return nil }
    counts.documentsExamined += examined
    note(ways, isComplete: false)
    return documents
  }

  private static func rank(
    _ row: RawSpan, _ key: RawSpan, _ index: Int, _ part: QueryPart
  ) throws(DatabaseError) -> Ranked? {
    let view = try DocumentShaper.view(row, key, part.naming)
    guard try part.matches(view, key) else { return nil }
    let sortKeys = try part.matcher.sortKeys(of: view, key)
    return Ranked(source: index, key: key.array, sortKeys: sortKeys)
  }

  /// The places of the first documents of the result, with their sort keys.
  mutating func page(limit: Int) throws(DatabaseError) -> [Ranked] {
    if isInOrder, let documents = try merged(makeWays(), limit: limit) { return documents }
    return try ranked(limit: limit)
  }

  // MARK: - Sorting

  /// The first documents of the result, found by sorting all matches, without the query's offset.
  mutating func ranked(limit: Int) throws(DatabaseError) -> [Ranked] {
    let (wanted, overflow) = limit.addingReportingOverflow(query.offset)
    let (found, hasLeftOut) = try sorted(limit: overflow ? .max : wanted)
    isLast = !hasLeftOut
    return Array(found.dropFirst(query.offset))
  }

  /// The first matches, including those that the query's offset skips, and whether there are more.
  mutating func sorted(limit: Int) throws(DatabaseError) -> ([Ranked], hasLeftOut: Bool) {
    var collector = ResultCollector(query.orders, limit: limit)
    let parts = parts
    try visit { (view, key, index) throws(DatabaseError) in
      let keys = try parts[index].matcher.sortKeys(of: view, key)
      collector.add(Ranked(source: index, key: key.array, sortKeys: keys), sortKeys: keys)
      return true
    }
    return (collector.finish(), collector.hasLeftOut)
  }

  /// Shows every match, in no order, until that many were new. A document that several ways lead to
  /// may be shown several times.
  ///
  /// - Parameter body: returns whether the document counts.
  private mutating func visit(
    atMost limit: Int = .max,
    _ body: (borrowing DocumentView, RawSpan, Int) throws(DatabaseError) -> Bool
  ) throws(DatabaseError) {
    let ways = makeWays()
    var (examined, left) = (0, limit)
    for way in ways {
      let part = parts[way.part]
      var hasMore = true
      while hasMore, left > 0 {
        hasMore = try way.walk.next(atMost: left) { (key, row) throws(DatabaseError) in
          examined += 1
          let view = try DocumentShaper.view(row, key, part.naming)
          if try part.matches(view, key), try body(view, key, way.part) { left -= 1 }
        }
      }
    }
    counts.documentsExamined += examined
    note(ways, isComplete: left > 0)
  }

  /// Shows every match once, in no order, and no more than that many.
  mutating func visitEach(
    atMost limit: Int = .max,
    _ body: (borrowing DocumentView, RawSpan, Int) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    let mayRepeat = parts.contains { $0.plan.ways.count > 1 }
    var seen: Set<[UInt8]> = []
    try visit(atMost: limit) { (view, key, part) throws(DatabaseError) in
      if mayRepeat, !seen.insert(key.array).inserted { return false }
      try body(view, key, part)
      return true
    }
  }

  /// Shows every match once, in no order. The key may be left empty, which avoids assembling the
  /// keys of a scan.
  ///
  /// - Parameter body: when it throws, it is called again with the document's key.
  mutating func visitEachRow(
    _ body: (borrowing DocumentView, RawSpan, Int) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    guard parts.allSatisfy({ $0.needsNoKeys && $0.plan.ways.count <= 1 }) else {
      return try visitEach(body)
    }
    let ways = makeWays()
    var examined = 0
    for way in ways {
      let part = parts[way.part]
      func isDone(_ row: RawSpan) -> Bool {
        do {
          let view = try DocumentView(row)
          if try part.accepts(view) { try body(view, RawSpan(), way.part) }
          return true
        } catch {
          return false
        }
      }
      var hasMore = true
      while hasMore {
        hasMore = try way.walk.next(atMost: .max, past: isDone) {
          (key, row) throws(DatabaseError) in
          examined += 1
          let view = try DocumentShaper.view(row, key, part.naming)
          if try part.matches(view, key) { try body(view, key, way.part) }
        }
      }
    }
    counts.documentsExamined += examined
    note(ways, isComplete: true)
  }

  // MARK: - Counting

  /// The number of documents in the result. This needs no order and looks at no more documents than
  /// count.
  mutating func count() throws(DatabaseError) -> Int {
    guard query.limit > 0 else { return 0 }
    let (sum, overflow) = query.limit.addingReportingOverflow(query.offset)
    let enough = overflow ? .max : sum
    var count = 0
    if parts.allSatisfy({ $0.plan.isExact && $0.plan.ways.count <= 1 }) {
      let ways = makeWays()
      for way in ways where count < enough { count += try way.walk.count(atMost: enough - count) }
      note(ways, isComplete: count < enough)
    } else if enough == .max {
      try visitEachRow { _, _, _ in count += 1 }
    } else {
      try visitEach(atMost: enough) { _, _, _ in count += 1 }
    }
    return min(query.limit, max(0, count - query.offset))
  }
}
