// Walks one way to candidates: a scan, lookups or indexes. Each step gives the key and the row of a
// document, borrowed. Stage 3 of the read path. Ways other than scans make the keys of several
// documents first and look them up together, so that their cache misses overlap. They look up only
// as many documents as the reader still wants. After a batch has been made, a candidate needs no
// allocation.

internal import OndolEngine

/// Walks the candidates of one way of a plan. A class, because several ways are walked together.
final class CandidateWalk {
  private enum Way {
    case lookups([[UInt8]], next: Int)
    case scan(ScanWalk)
    case index(IndexWalk)
    case intersection(IntersectionWalk)
  }

  private let rows: Rows
  /// Upgrades rows where some may have an earlier schema.
  private let upgrader: RowUpgrader?
  /// Rejects rows of a scan that surely do not match, while they are still side by side.
  private let matcher: Matcher?
  private var way: Way
  private let documentPrefix: [UInt8]
  /// Rows and documents that a cursor visited, or lookups, apart from those of indexes.
  private var looked = 0
  /// Documents that were skipped because they do not match, or because `consume` has handled them.
  private(set) var passedOver = 0
  /// The keys of a batch; the memory is reused.
  private var keys: [[UInt8]] = []

  /// The most documents that are looked up together.
  private static let batchCount = 32
  /// Rows of a scan that are shown at once.
  private static let scanCount = 256

  init(
    _ access: Plan.Access, _ part: QueryPart, _ rows: Rows, _ upgrader: RowUpgrader? = nil
  ) {
    self.rows = rows
    self.upgrader = upgrader
    // The conditions do not apply to a row of an earlier schema before its upgrade.
    matcher = part.plan.isExact || upgrader != nil ? nil : part.matcher
    documentPrefix = part.naming.prefix
    switch access {
    case .lookups(let keys): way = .lookups(keys, next: 0)
    case .scan(let range, let reversed): way = .scan(ScanWalk(range, reversed: reversed, rows))
    case .index(let scan): way = .index(IndexWalk(scan, rows))
    case .intersection(let scans): way = .intersection(IntersectionWalk(scans, rows))
    }
  }

  /// Walks the rows of an index all of which lead to documents of the result.
  init(_ scan: IndexScan, _ naming: DocumentNaming, _ rows: Rows) {
    self.rows = rows
    (upgrader, matcher) = (nil, nil)
    documentPrefix = naming.prefix
    way = .index(IndexWalk(scan, rows))
  }

  /// Rows and documents that a cursor visited, or lookups.
  var visited: Int {
    switch way {
    case .lookups, .scan: looked
    case .index(let index): index.visited
    case .intersection(let intersection): intersection.walks.map(\.visited).reduce(0, +)
    }
  }

  /// Whether candidates may be out of order, because a value was too long for an index.
  var hasMetCut: Bool {
    if case .index(let index) = way { index.hasMetCut } else { false }
  }

  /// The index that was walked; nil when there were several or none.
  var wholeScan: IndexScan? {
    if case .index(let index) = way { index.scan } else { nil }
  }

  /// The indexes that were walked.
  var indexKeyspaces: [Keyspace] {
    switch way {
    case .index(let index): [index.scan.index.keyspace]
    default: []
    }
  }

  /// Moves on by at most `count` candidates, perhaps by none, and shows their keys and rows in the
  /// current schema; false when there are no more. Skips candidates of a scan that surely do not
  /// match.
  func next(
    atMost count: Int, _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    if case .scan(let scan) = way, let matcher {
      return try next(scan, atMost: count, past: { matcher.refuses($0) }, visit)
    }
    guard let upgrader else { return try nextStored(atMost: count, visit) }
    return try nextStored(atMost: count) { (key, row) throws(DatabaseError) in
      try upgrader.show(key, row, visit)
    }
  }

  /// The same, but rows of a scan are first shown to `consume`, which returns whether it has
  /// handled a row.
  func next(
    atMost count: Int, past consume: (RawSpan) -> Bool,
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    // A row of an earlier schema is not stored as the app must see it.
    guard case .scan(let scan) = way, upgrader == nil else {
      return try next(atMost: count, visit)
    }
    return try next(scan, atMost: count, past: consume, visit)
  }

  private func next(
    _ scan: ScanWalk, atMost count: Int, past consume: (RawSpan) -> Bool,
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    let most = min(count, Self.scanCount)
    let found = try scan.walk.show(atMost: most, past: consume, visit)
    looked += found.looked
    passedOver += found.looked - found.shown
    return found.shown == most
  }

  private func nextStored(
    atMost count: Int, _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    let wanted = min(count, Self.batchCount)
    switch way {
    case .scan(let scan):
      let most = min(count, Self.scanCount)
      let shown = try scan.walk.show(atMost: most, visit)
      looked += shown
      return shown == most
    case .lookups(let keys, let next):
      let end = min(next + wanted, keys.count)
      guard next < end else { return false }
      looked += end - next
      way = .lookups(keys, next: end)
      try rows.show(keys, at: next..<end, visit)
      return true
    case .index, .intersection:
      var made = 0
      while made < wanted, try nextTail() {
        makeKey(made)
        made += 1
      }
      try rows.show(keys, at: 0..<made, visit)
      return made == wanted
    }
  }

  /// Moves to the next candidate and shows only its key; false when there is none. The plan of the
  /// way must be exact.
  func nextKey(
    _ visit: (RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    switch way {
    case .scan(let scan):
      guard try scan.walk.next() else { return false }
      looked += 1
      try scan.walk.show { (key, _) throws(DatabaseError) in try visit(key) }
    case .lookups:
      // Only its row shows whether a document exists.
      return try next(atMost: 1) { (key, _) throws(DatabaseError) in try visit(key) }
    case .index, .intersection:
      guard try nextTail() else { return false }
      makeKey(0)
      let key = keys[0]
      try visit(key.bytes)
    }
    return true
  }

  /// Skips up to `limit` candidates. Returns how many, 0 when there are no more.
  func pass(atMost limit: Int) throws(DatabaseError) -> Int {
    switch way {
    case .index(let index) where !index.scan.isRepeating: return try index.pass(atMost: limit)
    case .scan(let scan):
      let passed = try scan.walk.pass(atMost: limit)
      looked += passed
      return passed
    case .index, .lookups, .intersection:
      var passed = 0
      while passed < limit, try nextKey({ _ in }) { passed += 1 }
      return passed
    }
  }

  /// The number of candidates, or any number above `limit` when there are more. Must be called
  /// before the first move.
  func count(atMost limit: Int) throws(DatabaseError) -> Int {
    if limit > Self.rowsWorthARank, let known = try knownCount() { return known }
    var count = 0
    while count < limit {
      let passed = try pass(atMost: limit - count)
      if passed == 0 { break }
      count += passed
    }
    return count
  }

  /// Skipping fewer rows than this is faster than finding the ranks of two rows.
  private static let rowsWorthARank = 64

  /// The number of candidates, when it is known without a walk over them; otherwise nil.
  private func knownCount() throws(DatabaseError) -> Int? {
    switch way {
    case .scan(let scan):
      guard let count = try rows.knownCount(of: scan.range) else { return nil }
      looked += count
      return count
    case .index(let index): return try index.knownCount(in: rows)
    case .lookups, .intersection: return nil
    }
  }

  /// Moves to the next document of an index or several.
  private func nextTail() throws(DatabaseError) -> Bool {
    switch way {
    case .index(let index): try index.next()
    case .intersection(let intersection): try intersection.next()
    case .scan, .lookups: false
    }
  }

  /// Makes the key of the current document of one or several indexes, as part of the batch.
  private func makeKey(_ place: Int) {
    if place == keys.count { keys.append([]) }
    keys[place].removeAll(keepingCapacity: true)
    keys[place].append(contentsOf: documentPrefix)
    switch way {
    case .index(let index): keys[place].append(contentsOf: index.tail)
    case .intersection(let intersection): keys[place].append(contentsOf: intersection.tail)
    case .scan, .lookups: break
    }
  }
}

/// A walk over documents, for uses that need a class.
private final class ScanWalk {
  let range: KeyRange
  var walk: RangeWalk

  init(_ range: KeyRange, reversed: Bool, _ rows: Rows) {
    self.range = range
    walk = RangeWalk(rows, [range], reversed: reversed)
  }
}

extension Rows {
  /// Shows the row at `key` after `upgrader` has upgraded it; false when there is none.
  func show(
    _ key: [UInt8], _ upgrader: RowUpgrader?,
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    guard let upgrader else { return try show(key, visit) }
    return try show(key) { (key, row) throws(DatabaseError) in
      try upgrader.show(key, row, visit)
    }
  }

  /// Shows the row at `key`; false when there is none.
  func show(
    _ key: [UInt8], _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    var failure: DatabaseError?
    let isFound = try rethrowing { () throws(EngineError) in
      try snapshot.withValue(of: key.bytes, mayBlock: mayBlock) { row in
        do throws(DatabaseError) {
          try visit(key.bytes, row)
        } catch {
          failure = error
        }
      }
    }
    if let failure { throw failure }
    guard let isFound else { throw .cold }
    return isFound
  }

  /// Shows the rows at the keys in `places`, in their order; skips keys that have none.
  func show(
    _ keys: [[UInt8]], at places: Range<Int>,
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    // With so few, looking them up together gains nothing.
    if places.count <= 2 {
      for place in places { _ = try show(keys[place], visit) }
      return
    }
    try step()
    var failure: DatabaseError?
    let isComplete = try rethrowing { () throws(EngineError) in
      try snapshot.withValues(of: keys, at: places, mayBlock: mayBlock) { place, row in
        guard failure == nil else { return }
        do throws(DatabaseError) {
          let key = keys[place]
          try visit(key.bytes, row)
        } catch {
          failure = error
        }
      }
    }
    if let failure { throw failure }
    guard isComplete else { throw .cold }
  }
}
