// Assembles a row's whole key: a block stores the shared part of all its keys once. The shared part
// is copied when a block is entered, the rest when a key is requested.

/// Room for one key at a time. A plain reference: its owner calls `free` at the end.
///
/// Everything that changes is behind the one pointer, in one allocation while keys are short: in
/// variables of a cursor, a class, each use would be an access with dynamic exclusivity checks,
/// which took a third of a step.
@safe struct KeyBuffer: BitwiseCopyable {
  @safe private struct State {
    var bytes: UnsafeMutableRawPointer
    var capacity: Int
    var prefixLength: Int
  }

  private let state: UnsafeMutablePointer<State>
  private static let shortCapacity = 224

  init() {
    let size = MemoryLayout<State>.stride
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: size + Self.shortCapacity, alignment: 8)
    unsafe state = memory.initializeMemory(
      as: State.self,
      to: State(bytes: memory + size, capacity: Self.shortCapacity, prefixLength: 0))
  }

  func free() {
    freeLongBytes()
    unsafe state.deallocate()
  }

  private func freeLongBytes() {
    if unsafe state.pointee.bytes != UnsafeMutableRawPointer(state + 1) {
      unsafe state.pointee.bytes.deallocate()
    }
  }

  /// Prepares for keys of `block`. Must be called before any of them is filled in.
  func enter(_ block: Block) {
    let wanted = block.longestKey + Block.slack
    if unsafe wanted > state.pointee.capacity {
      freeLongBytes()
      unsafe state.pointee.bytes = .allocate(byteCount: 2 * wanted, alignment: 8)
      unsafe state.pointee.capacity = 2 * wanted
    }
    let prefix = block.prefix()
    unsafe state.pointee.prefixLength = prefix.byteCount
    // Safe: the longest key of the block fits, so does its prefix.
    unsafe prefix.withUnsafeBytes { source in
      unsafe UnsafeMutableRawBufferPointer(start: bytes, count: source.count)
        .copyMemory(from: source)
    }
  }

  /// The location of the keys; stays until the next block is entered.
  @inline(__always)
  var bytes: UnsafeMutableRawPointer { unsafe state.pointee.bytes }

  /// Writes the key of `row` of the entered block; returns its length.
  @inline(__always)
  func fill(_ block: Block, _ row: Int) -> Int {
    let range = block.suffixRange(row)
    let prefixLength = unsafe state.pointee.prefixLength
    unsafe Self.copy(block.base + range.lowerBound, to: bytes + prefixLength, count: range.count)
    return prefixLength + range.count
  }

  /// Copies `count` bytes in whole steps.
  @inline(__always)
  static func copy(
    _ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int
  ) {
    var offset = 0
    // Safe: steps run at most 15 bytes beyond the key's end; both sides have slack for that.
    repeat {
      let step = unsafe source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
      unsafe target.storeBytes(of: step, toByteOffset: offset, as: SIMD16<UInt8>.self)
      offset += 16
    } while offset < count
  }

  /// The first `length` bytes; valid until the next `fill`.
  @inline(__always)
  @_lifetime(borrow owner)
  func key<Owner: ~Copyable>(_ length: Int, heldBy owner: borrowing Owner) -> RawSpan {
    // Safe: filled up to there, and the owner holds this buffer.
    unsafe _overrideLifetime(RawSpan(_unsafeStart: bytes, byteCount: length), borrowing: owner)
  }
}
