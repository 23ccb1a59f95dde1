// Walking rows, for scans, indexes and the catalog alike: stage 3 of the read path.

internal import OndolEngine

/// Walks the rows in sorted ranges, forwards or backwards. When rows are sparser than ranges, it
/// leaps over ranges; when ranges are sparser, it leaps over rows. So the smaller of the two
/// numbers bounds the number of steps.
struct RangeWalk: ~Copyable {
  private(set) var cursor: Cursor
  private let ranges: [KeyRange]
  private let reversed: Bool
  /// The range the cursor is in or before.
  private var current: Int
  private var hasBegun = false
  private let rows: Rows
  /// Rows until the next step.
  private var rowsLeft = Rows.rowsOfStep

  /// Moves throw `DatabaseError.cold` when a block must come from disk and `rows` may not block.
  init(_ rows: Rows, _ ranges: [KeyRange], reversed: Bool = false) {
    self.rows = rows
    self.ranges = ranges
    self.reversed = reversed
    current = reversed ? ranges.count - 1 : 0
    cursor = rows.snapshot.cursor(
      from: ranges.first?.lower ?? [], to: ranges.last?.upper ?? [], mayBlock: rows.mayBlock)
  }

  /// Moves to the next row; false when there is none.
  mutating func next() throws(DatabaseError) -> Bool {
    guard !ranges.isEmpty else { return false }
    try count()
    return try rethrowing { () throws(EngineError) in
      try move()
      // The cursor knows the bounds of all ranges together.
      guard ranges.count > 1 else { return cursor.isValid }
      return try reversed ? settleBackward() : settleForward()
    }
  }

  /// The value of the current row. A large one is read from disk only now.
  var value: RawSpan {
    @_lifetime(borrow self)
    get throws(DatabaseError) { try cursor.readValue }
  }

  /// Moves over up to `limit` rows, at once over those that are side by side in memory. Returns how
  /// many, 0 when there are no more.
  ///
  /// - Complexity: of one range O(1) for the rows of a block.
  mutating func pass(atMost limit: Int) throws(DatabaseError) -> Int {
    guard limit > 0, try next() else { return 0 }
    // With several ranges, any row may be the last of one.
    return ranges.count == 1 ? 1 + cursor.skip(atMost: limit - 1, backward: reversed) : 1
  }

  /// Moves on by up to `limit` rows and shows each; returns how many, fewer than `limit` when there
  /// are no more.
  mutating func show(
    atMost limit: Int, _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> Int {
    var shown = 0
    while shown < limit, try next() {
      try show(visit)
      shown += 1
    }
    return shown
  }

  /// Moves on by up to `limit` wanted rows and shows each. Returns how many rows it looked at and
  /// how many it showed, fewer than `limit` when there are no more.
  ///
  /// - Parameter isUnwanted: receives values; may admit rows that are not wanted.
  mutating func show(
    atMost limit: Int, past isUnwanted: (RawSpan) -> Bool,
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) -> (looked: Int, shown: Int) {
    var (looked, shown) = (0, 0)
    while shown < limit, try next() {
      // With several ranges, any row may be the last of one. Stops at the next step at the latest.
      let most = ranges.count == 1 ? rowsLeft : 1
      let search = cursor.search(atMost: most, backward: reversed, past: isUnwanted)
      looked += search.looked
      rowsLeft -= search.looked - 1
      guard search.isFound else { continue }
      try show(visit)
      shown += 1
    }
    return (looked, shown)
  }

  /// Shows the key and the value of the current row.
  func show(
    _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    try visit(cursor.key, value)
  }

  /// Moves to the first row at or after `key`, in the direction of the walk; false when there is
  /// none. Only for a walk of one range.
  mutating func next(from key: [UInt8]) throws(DatabaseError) -> Bool {
    hasBegun = true
    try count()
    do throws(EngineError) {
      if reversed {
        try cursor.seek(atOrBefore: key.bytes)
      } else {
        try cursor.seek(atOrAfter: key.bytes)
      }
      return cursor.isValid
    } catch {
      throw DatabaseError(error)
    }
  }

  /// Counts a row.
  @inline(__always)
  private mutating func count() throws(DatabaseError) {
    rowsLeft -= 1
    guard rowsLeft == 0 else { return }
    rowsLeft = Rows.rowsOfStep
    try rows.step()
  }

  /// Moves the cursor by a row, to the first one at the beginning.
  private mutating func move() throws(EngineError) {
    switch (hasBegun, reversed) {
    case (false, false): try cursor.seekToFirst()
    case (false, true): try cursor.seekToLast()
    case (true, false): if cursor.isValid { try cursor.next() }
    case (true, true): if cursor.isValid { try cursor.previous() }
    }
    hasBegun = true
  }

  /// Continues to the first row that is in a range; false when there is none.
  private mutating func settleForward() throws(EngineError) -> Bool {
    while cursor.isValid {
      let end = ranges[current].upper
      if cursor.key.compare(end.bytes) >= 0 {
        guard let next = firstRangeEndingBehindKey() else { return false }
        current = next
      }
      let lower = ranges[current].lower
      if cursor.key.compare(lower.bytes) >= 0 { return true }
      try cursor.seek(atOrAfter: lower.bytes)
    }
    return false
  }

  /// Goes back to the last row that is in a range; false when there is none.
  private mutating func settleBackward() throws(EngineError) -> Bool {
    while cursor.isValid {
      let begin = ranges[current].lower
      if cursor.key.compare(begin.bytes) < 0 {
        guard let next = lastRangeBeginningAtOrBeforeKey() else { return false }
        current = next
      }
      let upper = ranges[current].upper
      if cursor.key.compare(upper.bytes) < 0 { return true }
      try cursor.seek(atOrBefore: upper.bytes)
      let isAtUpper = cursor.isValid && cursor.key.compare(upper.bytes) == 0
      if isAtUpper { try cursor.previous() }
    }
    return false
  }

  private func firstRangeEndingBehindKey() -> Int? {
    var low = current + 1
    var high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      let end = ranges[middle].upper
      if cursor.key.compare(end.bytes) < 0 { high = middle } else { low = middle + 1 }
    }
    return low < ranges.count ? low : nil
  }

  private func lastRangeBeginningAtOrBeforeKey() -> Int? {
    var low = 0
    var high = current
    while low < high {
      let middle = (low + high) / 2
      let begin = ranges[middle].lower
      if cursor.key.compare(begin.bytes) >= 0 { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }
}
