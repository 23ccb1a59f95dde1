// Walks the rows of one index, or of several indexes together: the candidates of stage 3 of the
// read path. A row identifies its document by its tail, the bytes that the document's key ends
// with.

internal import OndolEngine

/// Walks the rows of an index. A class, because several are walked together.
final class IndexWalk {
  let scan: IndexScan
  private var walk: RangeWalk
  /// The tail of the current row.
  private(set) var tail: [UInt8] = []
  /// Whether a row was met that holds its value only in part.
  private(set) var hasMetCut = false
  private(set) var visited = 0
  private var seen: Set<[UInt8]> = []

  init(_ scan: IndexScan, _ rows: Rows) {
    self.scan = scan
    walk = RangeWalk(rows, scan.ranges, reversed: scan.isReversed)
  }

  /// Moves to the row of the next document; false when there is none.
  func next() throws(DatabaseError) -> Bool {
    while try walk.next() {
      try readRow()
      if !scan.isRepeating || seen.insert(tail).inserted { return true }
    }
    return false
  }

  /// Moves over up to `limit` rows without reading them. Returns how many, 0 when there are no
  /// more.
  func pass(atMost limit: Int) throws(DatabaseError) -> Int {
    let passed = try walk.pass(atMost: limit)
    visited += passed
    return passed
  }

  /// The number of rows, when it is known without a walk over them; otherwise nil.
  func knownCount(in rows: Rows) throws(DatabaseError) -> Int? {
    guard !scan.isRepeating, scan.ranges.count <= Self.rangesWorthCounting else { return nil }
    var sum = 0
    for range in scan.ranges {
      guard let count = try rows.knownCount(of: range) else { return nil }
      sum += count
    }
    visited += sum
    return sum
  }

  /// With more ranges than this, each has few rows.
  private static let rangesWorthCounting = 64

  /// Moves to the row of the first document whose tail is not before `target`, in the direction of
  /// the walk. Only for a scan of one range in which rows are in the order of their documents.
  func next(from target: [UInt8]) throws(DatabaseError) -> Bool {
    // Usually the row is near.
    for _ in 0..<Self.stepsBeforeLeap {
      guard try next() else { return false }
      if !isBefore(tail, target) { return true }
    }
    let mask: UInt8 = scan.index.idDescending ? 0xff : 0
    let isFound = try walk.next(from: scan.ranges[0].lower + target.map { $0 ^ mask })
    if isFound { try readRow() }
    return isFound
  }

  private static let stepsBeforeLeap = 4

  private func isBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    let order = left.bytes.compare(right.bytes)
    return scan.isReversed != scan.index.idDescending ? order > 0 : order < 0
  }

  private func readRow() throws(DatabaseError) {
    visited += 1
    tail.removeAll(keepingCapacity: true)
    try walk.show { (key, value) throws(DatabaseError) in
      do throws(MalformedBytes) {
        let isWhole = try scan.index.read(
          key, value, prefixLength: scan.prefixLength, into: &tail)
        if !isWhole { hasMetCut = true }
      } catch {
        throw DatabaseError(
          .dataLoss, "a row of the index '\(scan.index.name)' is damaged: \(error.reason)")
      }
    }
  }
}

/// Finds the documents that have a row in each of several indexes, by leaping from one index to the
/// other.
final class IntersectionWalk {
  let walks: [IndexWalk]
  private let isReversed: Bool
  private var hasBegun = false

  init(_ scans: [IndexScan], _ rows: Rows) {
    walks = scans.map { IndexWalk($0, rows) }
    isReversed = scans.first.map { $0.isReversed != $0.index.idDescending } ?? false
  }

  /// The tail of the current document.
  var tail: [UInt8] { walks[0].tail }

  /// Moves to the next document; false when there is none.
  func next() throws(DatabaseError) -> Bool {
    if hasBegun {
      guard try walks[0].next() else { return false }
    } else {
      hasBegun = true
      for walk in walks {
        guard try walk.next() else { return false }
      }
    }
    while true {
      let farthest = farthestTail()
      var isAgreed = true
      for walk in walks where order(walk.tail, farthest) != 0 {
        guard try walk.next(from: farthest) else { return false }
        isAgreed = isAgreed && order(walk.tail, farthest) == 0
      }
      if isAgreed { return true }
    }
  }

  private func farthestTail() -> [UInt8] {
    var farthest = walks[0].tail
    for walk in walks where order(walk.tail, farthest) > 0 { farthest = walk.tail }
    return farthest
  }

  private func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
    let order = left.bytes.compare(right.bytes)
    return isReversed ? -order : order
  }
}
