// Rows of a store as of one commit, side by side in memory and immutable: all rows in a range of
// keys. Cursors borrow from them. The presence or absence of a single key is also a page: its range
// ends directly after the key.

internal import Synchronization

/// All rows with keys from `lower` on and before `upper`; no bound when that is empty.
final class RemotePage: Sendable {
  private struct Ends: Sendable {
    var key: Int
    var value: Int
  }

  let lower: [UInt8]
  let upper: [UInt8]
  private let bytes: [UInt8]
  /// The ends of the key and the value of each row.
  private let ends: [Ends]
  /// Whether it was read since the cache last checked.
  let isUsed = Atomic(true)

  /// - Parameter rows: those of the range, in the order of their keys.
  init(from lower: [UInt8], to upper: [UInt8], _ rows: [(key: [UInt8], value: [UInt8])]) {
    self.lower = lower
    self.upper = upper
    var bytes: [UInt8] = []
    var ends: [Ends] = []
    bytes.reserveCapacity(rows.reduce(0) { $0 + $1.key.count + $1.value.count })
    ends.reserveCapacity(rows.count)
    for row in rows {
      bytes += row.key
      let key = bytes.count
      bytes += row.value
      ends.append(Ends(key: key, value: bytes.count))
    }
    self.bytes = bytes
    self.ends = ends
  }

  /// The state of a single key.
  convenience init(at key: [UInt8], value: [UInt8]?) {
    self.init(from: key, to: key + [0], value.map { [(key, $0)] } ?? [])
  }

  var count: Int { ends.count }

  /// Its approximate memory in bytes.
  var sizeBytes: Int { 200 + bytes.count + 16 * ends.count + lower.count + upper.count }

  /// The key of a row, borrowed from the holder of the page.
  @_lifetime(borrow owner)
  func key<Owner: ~Copyable>(_ row: Int, heldBy owner: borrowing Owner) -> RawSpan {
    let bytes = bytes
    let start = row == 0 ? 0 : ends[row - 1].value
    return held(bytes.bytes.extracting(start..<ends[row].key), by: owner)
  }

  /// The value of a row, borrowed from the holder of the page.
  @_lifetime(borrow owner)
  func value<Owner: ~Copyable>(_ row: Int, heldBy owner: borrowing Owner) -> RawSpan {
    let bytes = bytes
    return held(bytes.bytes.extracting(ends[row].key..<ends[row].value), by: owner)
  }

  /// The order of a row's key relative to `key`.
  func compare(_ row: Int, with key: RawSpan) -> Int { self.key(row, heldBy: self).compare(key) }

  /// The first row whose key is `key` or above; `count` when there is none.
  func lowerBound(_ key: RawSpan) -> Int {
    var (low, high) = (0, ends.count)
    while low < high {
      let middle = (low + high) / 2
      if compare(middle, with: key) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The row with the key; nil when there is none.
  func find(_ key: RawSpan) -> Int? {
    let row = lowerBound(key)
    return row < ends.count && compare(row, with: key) == 0 ? row : nil
  }

  /// Whether `key` is in its range.
  func covers(_ key: RawSpan) -> Bool {
    let lower = lower
    return key.compare(lower.bytes) >= 0 && isBefore(upper: key)
  }

  /// Whether `key` is before the end of its range.
  func isBefore(upper key: RawSpan) -> Bool {
    let upper = upper
    return upper.isEmpty || key.compare(upper.bytes) < 0
  }

  func isBefore(upper page: RemotePage) -> Bool {
    let key = page.lower
    return isBefore(upper: key.bytes)
  }

  func isBefore(upper change: RemoteChange) -> Bool {
    let key = change.key
    return isBefore(upper: key.bytes)
  }

  /// The hash of its first possible key.
  func hash(seed: UInt64) -> UInt64 {
    let lower = lower
    return KeyHash.hash(lower.bytes, seed: seed)
  }

  /// The same range with `changes` applied, which are in the order of their keys and within it.
  func applying(_ changes: ArraySlice<RemoteChange>) -> RemotePage {
    var rows: [(key: [UInt8], value: [UInt8])] = []
    rows.reserveCapacity(count + changes.count)
    var row = 0
    for change in changes {
      let place = lowerBound(change.key.bytes)
      while row < place { append(row, to: &rows, &row) }
      if place < count, compare(place, with: change.key.bytes) == 0 { row = place + 1 }
      if let value = change.value { rows.append((change.key, value)) }
    }
    while row < count { append(row, to: &rows, &row) }
    return RemotePage(from: lower, to: upper, rows)
  }

  private func append(
    _ place: Int, to rows: inout [(key: [UInt8], value: [UInt8])], _ row: inout Int
  ) {
    rows.append((key(place, heldBy: self).array, value(place, heldBy: self).array))
    row += 1
  }
}

/// The result of commits for a row: its value, or nothing.
struct RemoteChange: Sendable {
  var key: [UInt8]
  var value: [UInt8]?
}

extension [UInt8] {
  /// The order of these bytes relative to others: negative when they come first.
  func order(_ other: [UInt8]) -> Int { bytes.compare(other.bytes) }

  func order(_ other: RawSpan) -> Int { bytes.compare(other) }
}
