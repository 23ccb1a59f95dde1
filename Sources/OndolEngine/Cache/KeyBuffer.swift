// Puts a row's key together for those who need it whole: a block stores what all its keys share
// once. The shared part is copied when the first key of a block is asked for, the rest for each.

/// Room for one key at a time.
///
/// A class, held by a constant: in a variable of a cursor, itself a class, each use would be an
/// access that the runtime watches over, which took a third of a step.
@safe final class KeyBuffer {
  private var base: UnsafeMutableRawPointer
  private var capacity: Int
  /// Of the block whose prefix stands in front; -1 when none does.
  private var prefixLength = -1

  init() {
    capacity = 256
    unsafe base = BlockMemory.allocate(capacity)
  }

  deinit {
    unsafe BlockMemory.free(base)
  }

  /// Forgets the block last read from. Must be called before keys of another are filled in.
  @inline(__always)
  func leave() {
    prefixLength = -1
  }

  /// Prepares for keys of `block`.
  @inline(never)
  private func enter(_ block: Block) {
    let wanted = block.longestKey + Block.slack
    if wanted > capacity {
      unsafe BlockMemory.free(base)
      capacity = 2 * wanted
      unsafe base = BlockMemory.allocate(capacity)
    }
    let prefix = block.prefix()
    prefixLength = prefix.byteCount
    // Safe: the longest key of the block fits, so does its prefix.
    unsafe prefix.withUnsafeBytes { source in
      unsafe UnsafeMutableRawBufferPointer(start: base, count: source.count).copyMemory(
        from: source)
    }
  }

  /// Writes the key of `row` of `block`; gives back its length.
  @inline(__always)
  func fill(_ block: Block, _ row: Int) -> Int {
    if prefixLength < 0 { enter(block) }
    let range = block.suffixRange(row)
    let source = unsafe block.base + range.lowerBound
    let target = unsafe base + prefixLength
    var offset = 0
    // Safe: whole steps run at most 15 bytes over the key's end; both sides have slack for that.
    repeat {
      let step = unsafe source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
      unsafe target.storeBytes(of: step, toByteOffset: offset, as: SIMD16<UInt8>.self)
      offset += 16
    } while offset < range.count
    return prefixLength + range.count
  }

  /// The first `length` bytes; valid until the next `fill`.
  @inline(__always)
  @_lifetime(borrow owner)
  func key<Owner: AnyObject>(_ length: Int, heldBy owner: borrowing Owner) -> RawSpan {
    // Safe: filled up to there, and the owner holds this buffer.
    unsafe _overrideLifetime(RawSpan(_unsafeStart: base, byteCount: length), borrowing: owner)
  }
}
