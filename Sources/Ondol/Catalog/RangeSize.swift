// The size of a range of rows: counted when it is small, otherwise estimated from the engine's
// statistics. It is for people, and for distributing work; no result depends on it.

internal import OndolEngine

/// Rows of a range, and the bytes of their keys and values.
struct RangeSize: Sendable {
  var rows = 0
  var bytes = 0
}

extension Rows {
  /// A range of up to this many rows is counted. For a larger one, this many rows give the mean
  /// length.
  private static let countedRows = 1_000

  /// The size of a range: exact up to a thousand rows, otherwise estimated.
  func size(of range: KeyRange) throws(DatabaseError) -> RangeSize {
    var size = RangeSize()
    var walk = RangeWalk(self, [range])
    while try walk.next() {
      guard size.rows < Self.countedRows else {
        let rows = max(size.rows, try estimatedCount(of: range))
        let meanLength = Double(size.bytes) / Double(size.rows)
        return RangeSize(rows: rows, bytes: Int(Double(rows) * meanLength))
      }
      size.rows += 1
      size.bytes += walk.cursor.key.byteCount + (try walk.value.byteCount)
    }
    return size
  }

  /// The number of rows in a range: exact up to a thousand, otherwise estimated.
  func count(of range: KeyRange) throws(DatabaseError) -> Int {
    var count = 0
    var walk = RangeWalk(self, [range])
    while try walk.next() {
      guard count < Self.countedRows else { return max(count, try estimatedCount(of: range)) }
      count += 1
    }
    return count
  }

  /// The approximate number of rows in a range.
  func estimatedCount(of range: KeyRange) throws(DatabaseError) -> Int {
    try orCold { () throws(EngineError) in
      try snapshot.approximateRowCount(
        from: range.lower, to: range.upper, mayBlock: mayBlock)
    }
  }

  /// Keys that cut a range into `count` parts of similar size; none when it is small.
  func cuts(of range: KeyRange, into count: Int) throws(DatabaseError) -> [[UInt8]] {
    try orCold { () throws(EngineError) in
      try snapshot.cuts(from: range.lower, to: range.upper, into: count, mayBlock: mayBlock)
    }
  }

  private func orCold<R>(_ body: () throws(EngineError) -> R) throws(DatabaseError) -> R {
    do throws(EngineError) {
      return try body()
    } catch {
      if error == .wouldBlock { throw .cold }
      throw DatabaseError(error)
    }
  }
}
