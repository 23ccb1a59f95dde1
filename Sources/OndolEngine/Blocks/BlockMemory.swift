// The memory of blocks. In one place, so that the allocation can change without affecting other
// code.

/// Memory for blocks and other data that is charged to the cache.
enum BlockMemory {
  private static let arena = Guarded(BlockArena())

  /// Larger pieces come from the system's allocator, which maps them individually.
  private static let largestInArena = 256 << 10

  /// The bytes that a piece of `size` bytes takes and is charged with.
  @inline(__always)
  static func roundedSize(_ size: Int) -> Int {
    let unit = size <= largestInArena ? BlockArena.unit : 64
    return (max(size, 1) + unit - 1) / unit * unit
  }

  /// At least `size` bytes, uninitialised, at the start of a cache line. Never fails: the runtime
  /// ends the process when the system has no memory at all, as for every other allocation.
  static func allocate(_ size: Int) -> UnsafeMutableRawPointer {
    let rounded = roundedSize(size)
    guard size <= largestInArena else {
      return UnsafeMutableRawPointer.allocate(byteCount: rounded, alignment: 64)
    }
    let address = arena.withLock { $0.allocate(rounded / BlockArena.unit) }
    guard let memory = unsafe UnsafeMutableRawPointer(bitPattern: address) else {
      preconditionFailure("the system has no memory left")
    }
    return unsafe memory
  }

  /// Frees memory from `allocate(size)`.
  static func free(_ memory: UnsafeMutableRawPointer, _ size: Int) {
    guard size <= largestInArena else { return unsafe memory.deallocate() }
    let address = UInt(bitPattern: memory)
    arena.withLock { $0.free(address) }
  }

  /// Bytes that the arena has mapped.
  static var mappedBytes: Int { arena.withLock { $0.mappedBytes } }
}
