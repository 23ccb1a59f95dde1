// Where blocks live. One place, so that how memory is got can change without anybody noticing.

/// Memory for blocks and other things the cache is charged for.
enum BlockMemory {
  /// At least `size` bytes, uninitialised, at the start of a cache line. Never fails: the runtime
  /// ends the process when the system has no memory at all, as for every other allocation.
  static func allocate(_ size: Int) -> UnsafeMutableRawPointer {
    UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 64)
  }

  static func free(_ memory: UnsafeMutableRawPointer) {
    unsafe memory.deallocate()
  }
}
