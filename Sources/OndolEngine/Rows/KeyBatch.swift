// Keys in one buffer, collected in any order and sorted for a bulk load into segments. An array per
// key would need an allocation per key, and sorting would follow a pointer at each comparison.

/// Keys, sorted once all are added.
package struct KeyBatch: Sendable {
  private struct Entry {
    /// The eight bytes after the common prefix of all keys, so that most comparisons need no more.
    var head: UInt64 = 0
    var offset: UInt32
    var length: UInt32
  }

  private var bytes: [UInt8] = []
  private var entries: [Entry] = []
  /// The length of the common prefix of all keys.
  private var sharedLength = 0

  package init() {}

  package var count: Int { entries.count }
  package var isEmpty: Bool { entries.isEmpty }
  package var byteCount: Int { bytes.count }

  /// The most bytes in a batch.
  package static let capacity = Int(Int32.max)

  /// Adds a key. Returns false without any change if there is no more room.
  package mutating func append(_ key: RawSpan) -> Bool {
    guard bytes.count + key.byteCount <= Self.capacity else { return false }
    // The first key is at the beginning.
    sharedLength =
      isEmpty ? key.byteCount : bytes.bytes.sharedPrefix(with: key, atMost: sharedLength)
    entries.append(Entry(offset: UInt32(bytes.count), length: UInt32(key.byteCount)))
    bytes.append(key)
    return true
  }

  /// Sorts the keys.
  ///
  /// - Complexity: O(n log n) comparisons, mostly of eight bytes.
  package mutating func sort() {
    let (bytes, shared) = (bytes, sharedLength)
    for place in entries.indices {
      entries[place].head = keyHead(Self.key(entries[place], in: bytes, from: shared))
    }
    entries.sort { left, right in
      if left.head != right.head { return left.head < right.head }
      return Self.key(left, in: bytes, from: shared)
        .compare(Self.key(right, in: bytes, from: shared)) < 0
    }
  }

  @_lifetime(borrow bytes)
  private static func key(
    _ entry: Entry, in bytes: borrowing [UInt8], from start: Int = 0
  ) -> RawSpan {
    let offset = Int(entry.offset)
    return bytes.bytes.extracting(offset + start..<offset + Int(entry.length))
  }

  /// Passes the key at a position to the closure.
  func withKey<Result, E: Error>(
    at place: Int, _ body: (RawSpan) throws(E) -> Result
  ) throws(E) -> Result {
    try body(Self.key(entries[place], in: bytes))
  }

  /// How the key at a position compares with one of another batch: negative if it comes first.
  func compare(_ place: Int, with other: KeyBatch, at otherPlace: Int) -> Int {
    Self.key(entries[place], in: bytes).compare(
      Self.key(other.entries[otherPlace], in: other.bytes))
  }

  /// The position of the first key that is not below `bound`. The batch must be sorted.
  func place(of bound: RawSpan) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if Self.key(entries[middle], in: bytes).compare(bound) < 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}
