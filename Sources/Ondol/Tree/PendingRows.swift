// The rows that a write to the tree changes, ordered, until they become a batch. One write can
// change a hundred thousand of them, in any order, so they are stored in chunks, each a short
// sorted array.

internal import OndolEngine

/// A row as a write leaves it.
struct PendingRow: Sendable {
  /// Nil when the row is removed.
  var row: [UInt8]?
  /// The position of the commit's time in the row.
  var stamp: Int?
  /// The row as it is stored.
  var before: [UInt8]?

  var isChanged: Bool { row != before || stamp != nil }
}

/// Rows by their keys.
struct PendingRows: Sendable {
  typealias Entry = (key: [UInt8], pending: PendingRow)

  private static let chunkLimit = 256

  /// Sorted, none of them empty.
  private var chunks: [[Entry]] = []

  var isEmpty: Bool { chunks.isEmpty }

  subscript(key: [UInt8]) -> PendingRow? {
    let (chunk, index, isFound) = find(key)
    return isFound ? chunks[chunk][index].pending : nil
  }

  /// Records the new state of a row. The stored state is kept from the first call.
  ///
  /// - Complexity: O(log n), and up to half a chunk is moved.
  mutating func set(_ key: [UInt8], _ row: [UInt8]?, stamp: Int?, before: [UInt8]?) {
    let (chunk, index, isFound) = find(key)
    if isFound {
      chunks[chunk][index].pending.row = row
      chunks[chunk][index].pending.stamp = stamp
      return
    }
    let entry = (key, PendingRow(row: row, stamp: stamp, before: before))
    guard chunk < chunks.count else {
      chunks.append([entry])
      return
    }
    chunks[chunk].insert(entry, at: index)
    guard chunks[chunk].count > Self.chunkLimit else { return }
    let upper = Array(chunks[chunk][(Self.chunkLimit / 2)...])
    chunks[chunk].removeSubrange((Self.chunkLimit / 2)...)
    chunks.insert(upper, at: chunk + 1)
  }

  /// The rows in a range, in order.
  ///
  /// - Complexity: O(log n + rows).
  func rows(in range: KeyRange) -> [Entry] {
    guard !isEmpty else { return [] }
    var found: [Entry] = []
    var (chunk, index, _) = find(range.lower)
    while chunk < chunks.count {
      while index < chunks[chunk].count {
        let entry = chunks[chunk][index]
        guard TreeKey.compare(entry.key, range.upper) < 0 else { return found }
        found.append(entry)
        index += 1
      }
      chunk += 1
      index = 0
    }
    return found
  }

  /// Visits all rows in order.
  func forEach<E: Error>(_ body: (Entry) throws(E) -> Void) throws(E) {
    for chunk in chunks {
      for entry in chunk { try body(entry) }
    }
  }

  /// The position of the key, or where it would be inserted: in the last chunk that begins at or
  /// before it.
  private func find(_ key: [UInt8]) -> (chunk: Int, index: Int, isFound: Bool) {
    var low = 0
    var high = chunks.count
    while low < high {
      let middle = (low + high) / 2
      if TreeKey.compare(chunks[middle][0].key, key) <= 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    guard low > 0 else { return (0, 0, false) }
    let chunk = low - 1
    (low, high) = (0, chunks[chunk].count)
    while low < high {
      let middle = (low + high) / 2
      let order = TreeKey.compare(chunks[chunk][middle].key, key)
      if order == 0 { return (chunk, middle, true) }
      if order < 0 { low = middle + 1 } else { high = middle }
    }
    return (chunk, low, false)
  }
}
