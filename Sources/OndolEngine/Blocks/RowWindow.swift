// The rows that a cursor may return without another look at its sources: neighbours in one pinned
// block, cut where another source, a bound or a tombstone needs attention. A step within it is an
// addition and a comparison.
//
// The code that makes a window must keep its bytes valid as long as the window is read.

/// Rows side by side, and which of them is the current one. One cache line.
@safe struct RowWindow: BitwiseCopyable {
  /// The block; for a row from elsewhere, its value.
  private let base: UnsafeMutableRawPointer?
  /// The block's rows; nil when the window is one row from elsewhere.
  private let rows: UnsafePointer<Block.Row>?
  /// The block's prefix, with room after it for the rest of a key; for a row from elsewhere, its
  /// key.
  private let keys: UnsafeMutableRawPointer?
  /// Bytes of the prefix; for a row from elsewhere, those of its key.
  private let keyLength: Int
  /// For a row from elsewhere: bytes of its value, -1 when it is a tombstone.
  private let valueLength: Int
  /// The current row; none when it is not below `end`.
  var row: Int
  /// The rows of the window: none before `first`, none from `end` on.
  private(set) var first: Int
  private(set) var end: Int

  /// No rows.
  init() {
    unsafe (base, rows, keys) = (nil, nil, nil)
    (keyLength, valueLength, row, first, end) = (0, 0, 0, 0, 0)
  }

  /// All rows of `block`, which `keys` has entered.
  init(_ block: Block, at row: Int, _ keys: KeyBuffer) {
    unsafe base = block.base
    unsafe rows = block.rows
    unsafe self.keys = keys.bytes
    keyLength = Int(block.header.prefixLength)
    valueLength = 0
    self.row = row
    first = 0
    end = block.rowCount
  }

  /// One row from outside any block, whose bytes the caller keeps.
  init(_ kind: RowKind, key: RawSpan, value: RawSpan) {
    // Never written to: only keys of blocks are assembled.
    unsafe keys = key.withUnsafeBytes { unsafe UnsafeMutableRawPointer(mutating: $0.baseAddress) }
    unsafe base = value.withUnsafeBytes { unsafe UnsafeMutableRawPointer(mutating: $0.baseAddress) }
    unsafe rows = nil
    keyLength = key.byteCount
    valueLength = kind == .put ? value.byteCount : -1
    (row, first, end) = (0, 0, 1)
  }

  private var block: Block? { unsafe rows == nil ? nil : base.map { unsafe Block(base: $0) } }

  // MARK: - The current row

  @inline(__always)
  var isValid: Bool { row < end }

  @inline(__always)
  var kind: RowKind {
    if let rows = unsafe rows {
      return unsafe rows[row].kind
    }
    return valueLength >= 0 ? .put : .delete
  }

  /// The key, assembled now; valid until the next one is requested.
  @inline(__always)
  var key: RawSpan {
    @_lifetime(borrow self)
    get {
      precondition(row < end, "a cursor that is nowhere")
      var count = keyLength
      if let rows = unsafe rows, let base = unsafe base, let keys = unsafe keys {
        // Safe: `row` is a row of the block, and the longest key of the block has room.
        let start = unsafe Int(rows[row - 1].keyEnd)
        let suffix = unsafe Int(rows[row].keyEnd) - start
        unsafe KeyBuffer.copy(base + start, to: keys + count, count: suffix)
        count += suffix
      }
      return unsafe span(keys, count)
    }
  }

  /// The row's bytes: the value, or the pointer to it.
  @inline(__always)
  var value: RawSpan {
    @_lifetime(borrow self)
    get {
      precondition(row < end, "a cursor that is nowhere")
      guard let rows = unsafe rows else { return unsafe span(base, max(0, valueLength)) }
      // Safe: `row` is a row of the block.
      let start = unsafe Int(rows[row - 1].valueEnd & Block.endMask)
      let end = unsafe Int(rows[row].valueEnd & Block.endMask)
      return unsafe span(base.map { unsafe $0 + start }, end - start)
    }
  }

  @inline(__always)
  @_lifetime(borrow self)
  private func span(_ start: UnsafeMutableRawPointer?, _ count: Int) -> RawSpan {
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
    return unsafe _overrideLifetime(RawSpan(_unsafeBytes: bytes), borrowing: self)
  }

  // MARK: - Cutting

  /// Cuts off the rows from `key` on; false when that leaves no current row.
  mutating func cut(from key: RawSpan) -> Bool {
    if let block {
      end = min(end, block.lowerBound(key))
    } else if self.key.compare(key) >= 0 {
      end = row
    }
    return isValid
  }

  /// Cuts off the rows below `key`; false when that leaves no current row.
  mutating func cut(below key: RawSpan) -> Bool {
    if let block {
      first = max(first, block.lowerBound(key))
    } else if self.key.compare(key) < 0 {
      first = row + 1
    }
    if first > row { end = row }
    return isValid
  }

  /// Cuts off the rows from `key` on, except the current one.
  mutating func cut(behindCurrentFrom key: RawSpan) {
    if let block { end = min(end, max(row + 1, block.lowerBound(key))) }
  }

  /// Cuts off the rows up to `key`, except the current one.
  mutating func cut(inFrontOfCurrentUpTo key: RawSpan) {
    guard let block else { return }
    let bound = block.lowerBound(key) + (block.find(key) == nil ? 0 : 1)
    first = max(first, min(row, bound))
  }

  /// Cuts off everything before the current row.
  mutating func cutInFront() { first = row }

  /// Cuts off everything after the current row.
  mutating func cutBehind() { end = row + 1 }

  /// Cuts the window at the tombstones next to the current row, which is not one.
  mutating func cutAtTombstones() {
    guard let block, block.hasTombstones else { return }
    var place = row
    while place > first, block.kind(place - 1) != .delete { place -= 1 }
    first = place
    place = row + 1
    while place < end, block.kind(place) != .delete { place += 1 }
    end = place
  }
}

/// A window in a place of its own, so that the handle a caller steps through is one word: arguments
/// of a call into another module are copied. A plain reference: its owner calls `free` at the end.
@safe struct WindowPlace: BitwiseCopyable {
  private let place: UnsafeMutablePointer<RowWindow>

  init() {
    unsafe place = .allocate(capacity: 1)
    unsafe place.initialize(to: RowWindow())
  }

  @inline(__always)
  var window: RowWindow {
    get { unsafe place.pointee }
    nonmutating set { unsafe place.pointee = newValue }
  }

  @inline(__always)
  var isValid: Bool { unsafe place.pointee.isValid }

  /// Whether the current row has only a pointer to its value.
  @inline(__always)
  var isPointer: Bool { unsafe isValid && place.pointee.kind == .valuePointer }

  @inline(__always)
  @_lifetime(borrow owner)
  func key<Owner: ~Copyable>(heldBy owner: borrowing Owner) -> RawSpan {
    // Safe: the owner keeps the window's bytes.
    unsafe _overrideLifetime(place.pointee.key, borrowing: owner)
  }

  @inline(__always)
  @_lifetime(borrow owner)
  func value<Owner: ~Copyable>(heldBy owner: borrowing Owner) -> RawSpan {
    // Safe: as for keys.
    unsafe _overrideLifetime(place.pointee.value, borrowing: owner)
  }

  /// Moves to the next row; false when it is not in the window.
  @inline(__always)
  func stepForward() -> Bool {
    unsafe place.pointee.row &+= 1
    return unsafe place.pointee.row < place.pointee.end
  }

  /// Moves to the previous row; false when it is not in the window.
  @inline(__always)
  func stepBackward() -> Bool {
    unsafe place.pointee.row &-= 1
    return unsafe place.pointee.row >= place.pointee.first
  }

  /// Moves on by up to `count` rows of the window; returns by how many.
  func skip(atMost count: Int, backward: Bool) -> Int {
    let window = window
    guard window.isValid, count > 0 else { return 0 }
    let room = backward ? window.row - window.first : window.end - 1 - window.row
    let skipped = min(count, room)
    unsafe place.pointee.row += backward ? -skipped : skipped
    return skipped
  }

  /// Moves on from the current row to the first wanted one, looking at no more than `count` rows;
  /// returns how many it looked at, and whether the last of them is wanted.
  func search(
    atMost count: Int, backward: Bool, past isUnwanted: (RawSpan) -> Bool
  ) -> (looked: Int, isFound: Bool) {
    var window = window
    guard window.isValid else { return (0, false) }
    let step = backward ? -1 : 1
    let room = backward ? window.row - window.first + 1 : window.end - window.row
    let most = min(count, room)
    var looked = 0
    var isFound = false
    while looked < most {
      looked += 1
      if window.kind == .valuePointer || !isUnwanted(window.value) {
        isFound = true
        break
      }
      if looked < most { window.row += step }
    }
    unsafe place.pointee.row = window.row
    return (looked, isFound)
  }

  func free() {
    unsafe place.deallocate()
  }
}
