// What a segment's writer remembers of each block until the end: its location, and a key that
// separates it from the next block. The separator is not below the block's last key and below the
// next block's first, and as short as that allows, so that an index has many more entries than with
// whole keys.

/// Collects the entries of a segment's index.
struct SegmentIndexBuilder {
  private var separators: [UInt8] = []
  /// Without that of the very last block, which is its last key.
  private var separatorEnds: [Int] = []
  private var isFinished = false
  private var handles: [BlockHandle] = []
  /// The last key of the last block.
  private(set) var lastKey: [UInt8] = []

  var entryCount: Int { separatorEnds.count + (isFinished ? 1 : 0) }

  /// Adds a block. `separate(from:)` or `finish()` must follow before the next one.
  mutating func append(lastKey: [UInt8], _ handle: BlockHandle) {
    precondition(handles.count == separatorEnds.count, "a block without a separator")
    self.lastKey = lastKey
    handles.append(handle)
  }

  /// Ends the last block's entry; `key` is the first one of the next block.
  mutating func separate(from key: RawSpan) {
    separators.append(contentsOf: Self.separator(lastKey.bytes, key))
    separatorEnds.append(separators.count)
  }

  /// Ends the very last block's entry.
  mutating func finish() { isFinished = true }

  /// The separator of entry number `entry`.
  @_lifetime(borrow self)
  private func separator(of entry: Int) -> RawSpan {
    if entry == separatorEnds.count { return lastKey.bytes }
    let start = entry == 0 ? 0 : separatorEnds[entry - 1]
    return separators.bytes.extracting(start..<separatorEnds[entry])
  }

  /// Adds an index block to the block that points to all of them; `entry` is its last entry.
  func append(indexBlock handle: BlockHandle, upTo entry: Int, to top: inout BlockBuilder) {
    var value: [UInt8] = []
    handle.append(to: &value)
    top.append(.put, key: separator(of: entry), value: value.bytes)
  }

  /// Adds entry number `entry` to an index block.
  func append(_ entry: Int, to block: inout BlockBuilder) {
    var value: [UInt8] = []
    handles[entry].append(to: &value)
    block.append(.put, key: separator(of: entry), value: value.bytes)
  }

  /// A short key that is not below `low` and is below `high`, which is above `low`.
  static func separator(_ low: RawSpan, _ high: RawSpan) -> [UInt8] {
    let shared = low.sharedPrefix(with: high, atMost: low.byteCount)
    guard shared < low.byteCount else { return low.array }
    let next = low.byte(at: shared) + 1
    if next < high.byte(at: shared) || high.byteCount > shared + 1 {
      return low.extracting(first: shared).array + [next]
    }
    // The only shorter key would be `high` itself: increase a later byte of `low` instead.
    var end = shared + 1
    while end < low.byteCount, low.byte(at: end) == 0xff { end += 1 }
    guard end + 1 < low.byteCount else { return low.array }
    return low.extracting(first: end).array + [low.byte(at: end) + 1]
  }
}
