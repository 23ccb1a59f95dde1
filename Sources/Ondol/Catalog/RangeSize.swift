// How large a range of rows is, for people: counted when it is small, else an estimate from the
// engine's statistics. Nothing is decided by it.

internal import OndolEngine

/// Rows of a range, and the bytes of their keys and values.
struct RangeSize: Sendable {
  var rows = 0
  var bytes = 0
}

extension Rows {
  /// Up to so many rows a range is counted, and of so many the mean length is taken.
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

  private func estimatedCount(of range: KeyRange) throws(DatabaseError) -> Int {
    do throws(EngineError) {
      return try snapshot.approximateRowCount(
        from: range.lower, to: range.upper, mayBlock: mayBlock)
    } catch {
      if error == .wouldBlock { throw .cold }
      throw DatabaseError(error)
    }
  }
}
