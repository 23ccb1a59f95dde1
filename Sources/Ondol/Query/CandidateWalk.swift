// One way to candidates, walked: from a scan, from lookups or from indexes, always to the key and
// the row of a document, borrowed. Stage 3 of the read path. Nothing is allocated for a candidate.

internal import OndolEngine

/// Walks the candidates of one way of a plan. A class, because several ways are walked together.
final class CandidateWalk {
  enum Way {
    case lookups([[UInt8]], next: Int)
    case scan
    case index(IndexWalk)
    case intersection(IntersectionWalk)
  }

  private let rows: Rows
  private(set) var way: Way
  private var walk: RangeWalk
  private let documentPrefix: [UInt8]
  private var key: [UInt8] = []
  private var looked = 0

  init(_ access: Plan.Access, _ naming: DocumentNaming, _ rows: Rows) {
    self.rows = rows
    documentPrefix = naming.prefix
    var range: (KeyRange, Bool)?
    switch access {
    case .lookups(let keys): way = .lookups(keys, next: 0)
    case .scan(let scanned, let reversed):
      range = (scanned, reversed)
      way = .scan
    case .index(let scan): way = .index(IndexWalk(scan, rows))
    case .intersection(let scans): way = .intersection(IntersectionWalk(scans, rows))
    }
    walk = RangeWalk(rows, range.map { [$0.0] } ?? [], reversed: range?.1 ?? false)
  }

  /// Rows and documents a cursor stood on, or lookups.
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

  /// Moves to the next candidate and shows its key and row; false when there is none.
  func next(
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    if case .scan = way {
      guard try walk.next() else { return false }
      looked += 1
      try walk.show(visit)
      return true
    }
    while try nextKey() {
      if try rows.show(key, visit) { return true }
    }
    return false
  }

  /// Moves to the next candidate and shows its key alone; false when there is none. What the way is
  /// taken from must be exact.
  func nextKey(
    _ visit: (RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    if case .scan = way {
      guard try walk.next() else { return false }
      looked += 1
      try walk.show { (key, _) throws(DatabaseError) in try visit(key) }
      return true
    }
    guard try nextKey() else { return false }
    let key = key
    try visit(key.bytes)
    return true
  }

  /// Passes over a candidate; false when there is none.
  func pass() throws(DatabaseError) -> Bool {
    switch way {
    case .index(let index) where !index.scan.isRepeating: return try index.pass()
    default: return try nextKey { _ in }
    }
  }

  /// Makes the key of the next document of a way that is no scan.
  private func nextKey() throws(DatabaseError) -> Bool {
    switch way {
    case .scan: return false
    case .lookups(let keys, let next):
      guard next < keys.count else { return false }
      looked += 1
      key = keys[next]
      way = .lookups(keys, next: next + 1)
      return true
    case .index(let index):
      guard try index.next() else { return false }
      makeKey(index.tail)
    case .intersection(let intersection):
      guard try intersection.next() else { return false }
      makeKey(intersection.tail)
    }
    return true
  }

  private func makeKey(_ tail: [UInt8]) {
    key.removeAll(keepingCapacity: true)
    key.append(contentsOf: documentPrefix)
    key.append(contentsOf: tail)
  }
}

extension Rows {
  /// Shows the row at `key`; false when there is none.
  func show(
    _ key: [UInt8], _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Bool {
    var failure: DatabaseError?
    let isFound: Bool?
    do throws(EngineError) {
      isFound = try snapshot.withValue(of: key.bytes, mayBlock: mayBlock) { row in
        do throws(DatabaseError) {
          try visit(key.bytes, row)
        } catch {
          failure = error
        }
      }
    } catch {
      throw DatabaseError(error)
    }
    if let failure { throw failure }
    guard let isFound else { throw .cold }
    return isFound
  }
}
