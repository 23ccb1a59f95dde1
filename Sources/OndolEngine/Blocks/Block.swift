// A block in memory, as every read searches it. One allocation holds the stored bytes (see
// BlockLayout) and, before them, what one pass over the stored lengths derived:
//
//     0  a header of 48 bytes: what a search needs first, in one cache line with
//    48  a row before the first: its ends are the starts of keys and of values,
//        its head is not 0 when there are tombstones
//    64  rows, 16 bytes each: head, end of the key, end of the value (with the kind in its
//        top bits)
//        the stored bytes
//        16 bytes of slack, so that eight bytes can be loaded at any key
//
// A row's `head` is the first eight bytes of its key after the prefix that all keys of the block
// share, as a number with the order of the bytes. So a search compares integers that are side by
// side and touches a key once, at the end. Ends count from the start of the allocation: a row and
// the previous one determine where its bytes are, usually in one cache line.
//
// When heads are spread evenly, as those of random identifiers are, a search begins at the
// proportional position and walks from there, usually over two or three rows. Otherwise it is a
// binary search.
//
// The pass that derives is also the protection against hostile files: lengths add up exactly to the
// existing bytes, keys ascend strictly, kinds are known. After it nothing in a block is checked
// again, and this file is one of the few that reads memory without bounds checks; everything it
// reads was bounded there.
//
// Tried and dropped: heads and ends in arrays of their own (three cache misses for a get instead of
// one or two), and storing them (14 bytes a row that do not compress).

/// A validated block, which does not own its memory: it is valid as long as its pin, see
/// PinnedBlock.
@safe struct Block: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: nothing is written after `make`.
  let base: UnsafeMutableRawPointer

  struct Header {
    var firstHead: UInt64
    /// Rows for each unit of head distance, times 2^64; 0 when heads are not spread evenly.
    var scale: UInt64
    /// The first eight bytes of the prefix, big-endian, padded with zeros.
    var prefixWord: UInt64
    var rowCount: UInt32
    var prefixLength: UInt32
    var allocatedBytes: UInt32
    var longestKey: UInt32
    /// The cache that the memory is charged to.
    var owner: UInt
  }

  struct Row: BitwiseCopyable {
    var head: UInt64
    var keyEnd: UInt32
    /// The top bits are the kind.
    var valueEnd: UInt32

    @inline(__always)
    var kind: RowKind {
      if valueEnd <= Block.endMask { return .put }
      return valueEnd & Block.tombstoneBit != 0 ? .delete : .valuePointer
    }
  }

  static let rowsOffset = 64
  static let slack = 16
  static let tombstoneBit: UInt32 = 1 << 31
  static let pointerBit: UInt32 = 1 << 30
  /// The part of `valueEnd` that is the end: an allocation has less than 2^30 bytes.
  static let endMask: UInt32 = pointerBit - 1

  /// The bytes of a block's allocation.
  static func allocationSize(rowCount: Int, rawLength: Int) -> Int {
    BlockMemory.roundedSize(
      rowsOffset + rowCount * MemoryLayout<Row>.stride + rawLength + slack)
  }

  @inline(__always)
  var header: Header { unsafe base.assumingMemoryBound(to: Header.self).pointee }

  @inline(__always)
  var rowCount: Int { Int(header.rowCount) }

  @inline(__always)
  var prefixOffset: Int {
    Self.rowsOffset + rowCount * MemoryLayout<Row>.stride + BlockLayout.headerLength
  }

  /// Bytes of the longest key, including the prefix.
  var longestKey: Int { Int(header.longestKey) }

  var allocatedBytes: Int { Int(header.allocatedBytes) }

  /// Whether any row is a tombstone. Stored as the head of the row before the first.
  var hasTombstones: Bool { unsafe rows[-1].head != 0 }

  /// Row -1 is the one before the first.
  @inline(__always)
  var rows: UnsafePointer<Row> {
    unsafe UnsafePointer((base + Self.rowsOffset).assumingMemoryBound(to: Row.self))
  }
}

// MARK: - Reading rows

extension Block {
  @inline(__always)
  func kind(_ row: Int) -> RowKind { unsafe rows[row].kind }

  /// The position of the value of `row`, from the start of the allocation.
  @inline(__always)
  func valueRange(_ row: Int) -> Range<Int> {
    let start = unsafe Int(rows[row - 1].valueEnd & Self.endMask)
    let end = unsafe Int(rows[row].valueEnd & Self.endMask)
    return unsafe Range(uncheckedBounds: (start, end))
  }

  /// The position of the key of `row`, without the block's prefix.
  @inline(__always)
  func suffixRange(_ row: Int) -> Range<Int> {
    unsafe Range(uncheckedBounds: (Int(rows[row - 1].keyEnd), Int(rows[row].keyEnd)))
  }

  /// The value of `row`.
  @inline(__always)
  @_lifetime(borrow self)
  func value(_ row: Int) -> RawSpan {
    bytes(valueRange(row))
  }

  /// The value of `row`, for the holder of the block's pin.
  @inline(__always)
  @_lifetime(borrow owner)
  func value<Owner: AnyObject>(_ row: Int, heldBy owner: borrowing Owner) -> RawSpan {
    // Safe: the owner's pin keeps the bytes.
    unsafe _overrideLifetime(value(row), borrowing: owner)
  }

  /// The key of `row` without the block's prefix.
  @inline(__always)
  @_lifetime(borrow self)
  func suffix(_ row: Int) -> RawSpan {
    bytes(suffixRange(row))
  }

  /// The prefix of all keys of the block.
  @_lifetime(borrow self)
  func prefix() -> RawSpan {
    let start = prefixOffset
    return bytes(start..<(start + Int(header.prefixLength)))
  }

  @inline(__always)
  @_lifetime(borrow self)
  private func bytes(_ range: Range<Int>) -> RawSpan {
    // Safe: ranges of a validated block are in its allocation, which the pin keeps.
    let span = unsafe RawSpan(_unsafeStart: base + range.lowerBound, byteCount: range.count)
    return unsafe _overrideLifetime(span, borrowing: self)
  }
}
