// Reads of a snapshot, each compared with the model as of the snapshot's commit. A snapshot may be
// new or have been held through flushes, merges and closing, with the same answers.

internal import OndolEngine

/// A snapshot and its expected rows.
struct CheckedSnapshot {
  let snapshot: Snapshot
  let shardCount: Int

  var sequence: UInt64 { snapshot.sequence.rawValue }

  // MARK: - By key

  /// Gets some keys in all three ways.
  func checkGets(_ count: Int, _ history: RowHistory, _ draw: inout ModelDraw) async throws {
    for _ in 0..<count {
      let isMet = draw.random.chance(2, in: 3)
      let group = UInt32(draw.random.below(Int(ModelDraw.groups)))
      let key = isMet ? draw.metKey() : draw.probe(group: group)
      try await checkGet(key, history, draw.random.below(3))
    }
  }

  private func checkGet(_ key: [UInt8], _ history: RowHistory, _ way: Int) async throws {
    let found: [UInt8]?
    switch way {
    case 0: found = try await snapshot.get(key)
    case 1: found = try snapshot.getBlocking(key)
    default:
      var copy: [UInt8]?
      let isThere = try snapshot.withValue(of: key.bytes) { copy = $0.array }
      guard isThere == (copy != nil) else {
        throw ModelFailure("withValue says \(isThere) of \(shown(key)) and hands out otherwise")
      }
      found = copy
    }
    let expected = history.value(of: key, at: sequence)
    guard isSame(found, expected) else {
      throw ModelFailure(
        "\(["get", "getBlocking", "withValue"][way]) of \(shown(key)) at \(sequence) finds "
          + "\(shown(found)), not \(shown(expected))")
    }
  }

  private func isSame(_ left: [UInt8]?, _ right: [UInt8]?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.bytes.compare(right.bytes) == 0
  }

  // MARK: - In order

  /// Walks over a group of keyspaces, forwards and backwards.
  func checkScan(group: UInt32, _ history: RowHistory) throws {
    try checkScan(
      from: ModelDraw.groupStart(group), to: ModelDraw.groupStart(group + 1), history)
  }

  /// Walks over everything.
  func checkAll(_ history: RowHistory) throws {
    if shardCount == 1 { return try checkScan(from: [], to: [], history) }
    for group in 0..<ModelDraw.groups { try checkScan(group: group, history) }
  }

  private func checkScan(from lower: [UInt8], to upper: [UInt8], _ history: RowHistory) throws {
    var cursor = cursor(from: lower, to: upper, history)
    try cursor.walkForward()
    try cursor.walkBackward()
  }

  /// A cursor between random bounds, both in one group.
  func drawnCursor(_ history: RowHistory, _ draw: inout ModelDraw) -> CheckedCursor {
    let group = UInt32(draw.random.below(Int(ModelDraw.groups)))
    var lower = ModelDraw.groupStart(group)
    var upper = ModelDraw.groupStart(group + 1)
    if draw.random.chance(1, in: 2) { lower = draw.probe(group: group) }
    if draw.random.chance(1, in: 2) { upper = draw.probe(group: group) }
    if lower.bytes.compare(upper.bytes) > 0 { (lower, upper) = (upper, lower) }
    return cursor(from: lower, to: upper, group: group, history)
  }

  private func cursor(
    from lower: [UInt8], to upper: [UInt8], group: UInt32 = 0, _ history: RowHistory
  ) -> CheckedCursor {
    CheckedCursor(
      snapshot.cursor(from: lower, to: upper),
      rows: history.rows(from: lower, to: upper, at: sequence), group: group,
      name: "the cursor from \(shown(lower)) to \(shown(upper)) at \(sequence)")
  }
}

/// A checked cursor that lives on between operations.
final class HeldCursor {
  private var cursor: CheckedCursor

  init(_ cursor: consuming CheckedCursor) {
    self.cursor = cursor
  }

  func wander(_ moves: Int, _ draw: inout ModelDraw) throws {
    try cursor.wander(moves, &draw)
  }
}

/// A cursor and its place in the model.
struct CheckedCursor: ~Copyable {
  private var cursor: Cursor
  private let rows: [ModelRow]
  private let group: UInt32
  private let name: String
  /// Index of the current row; nil if the cursor must be invalid.
  private var place: Int?

  init(_ cursor: consuming Cursor, rows: [ModelRow], group: UInt32, name: String) {
    self.cursor = cursor
    self.rows = rows
    self.group = group
    self.name = name
  }

  mutating func walkForward() throws {
    try seekToFirst()
    while place != nil { try next() }
  }

  mutating func walkBackward() throws {
    try seekToLast()
    while place != nil { try previous() }
  }

  /// Makes a number of moves, in any allowed way.
  mutating func wander(_ moves: Int, _ draw: inout ModelDraw) throws {
    for _ in 0..<moves {
      switch draw.random.below(14) {
      case 0: try seekToFirst()
      case 1: try seekToLast()
      case 2, 3: try seek(atOrAfter: draw.probe(group: group))
      case 4, 5: try seek(atOrBefore: draw.probe(group: group))
      case 6...8 where place != nil: try next()
      case 9...11 where place != nil: try previous()
      case 12...13 where place != nil:
        try skip(atMost: draw.random.below(20), backward: draw.random.chance(1, in: 2))
      default: try seek(atOrAfter: draw.probe(group: group))
      }
    }
  }

  private mutating func seekToFirst() throws {
    try cursor.seekToFirst()
    try arrive(at: 0, by: "seekToFirst")
  }

  private mutating func seekToLast() throws {
    try cursor.seekToLast()
    try arrive(at: rows.count - 1, by: "seekToLast")
  }

  private mutating func seek(atOrAfter key: [UInt8]) throws {
    try cursor.seek(atOrAfter: key.bytes)
    try arrive(at: firstRow(atOrAfter: key), by: "seek(atOrAfter: \(shown(key)))")
  }

  private mutating func seek(atOrBefore key: [UInt8]) throws {
    try cursor.seek(atOrBefore: key.bytes)
    let next = firstRow(atOrAfter: key)
    let isThere = next < rows.count && byteOrder(rows[next].key, key) == 0
    try arrive(at: isThere ? next : next - 1, by: "seek(atOrBefore: \(shown(key)))")
  }

  private mutating func next() throws {
    guard let place else { return }
    try cursor.next()
    try arrive(at: place + 1, by: "next after \(shown(rows[place].key))")
  }

  private mutating func previous() throws {
    guard let place else { return }
    try cursor.previous()
    try arrive(at: place - 1, by: "previous before \(shown(rows[place].key))")
  }

  private mutating func skip(atMost count: Int, backward: Bool) throws {
    guard let place else { return }
    let skipped = cursor.skip(atMost: count, backward: backward)
    guard 0...count ~= skipped else {
      throw ModelFailure("\(name) skips \(skipped) rows of \(count)")
    }
    try arrive(
      at: place + (backward ? -skipped : skipped),
      by: "skipping \(skipped) rows from \(shown(rows[place].key))")
  }

  private func firstRow(atOrAfter key: [UInt8]) -> Int {
    var low = 0
    var high = rows.count
    while low < high {
      let middle = (low + high) / 2
      if byteOrder(rows[middle].key, key) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Compares the cursor's place with the expected one. An index outside the rows means an invalid
  /// cursor.
  private mutating func arrive(at index: Int, by move: String) throws {
    place = rows.indices.contains(index) ? index : nil
    guard let place else {
      guard !cursor.isValid else {
        throw ModelFailure("\(move) takes \(name) to \(shown(cursor.key.array)), not outside")
      }
      return
    }
    let expected = rows[place]
    guard cursor.isValid else {
      throw ModelFailure("\(move) takes \(name) outside, not to \(shown(expected.key))")
    }
    guard cursor.key.compare(expected.key.bytes) == 0 else {
      throw ModelFailure(
        "\(move) takes \(name) to \(shown(cursor.key.array)), not to \(shown(expected.key))")
    }
    let value = try cursor.value
    guard value.compare(expected.value.bytes) == 0 else {
      throw ModelFailure(
        "\(move): \(name) has at \(shown(expected.key)) the value "
          + "\(shown(value.array)), not \(shown(expected.value))")
    }
  }
}
