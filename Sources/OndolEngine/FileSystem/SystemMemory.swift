// Memory by the large page, straight from the system, for what fills megabytes and is read all
// over: there a lookup of the address costs as much as the memory itself, unless pages are large.

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Maps memory.
enum SystemMemory {
  /// `size` bytes of zeros that begin at a multiple of `size`, a power of two, or nil when the
  /// system has none.
  static func map(_ size: Int) -> UnsafeMutableRawPointer? {
    // Twice as much holds an aligned part; what is around it goes back.
    guard let start = unsafe anonymous(2 * size) else { return nil }
    let misfit = Int(UInt(bitPattern: start) & UInt(size - 1))
    let front = misfit == 0 ? 0 : size - misfit
    if front > 0 { unsafe munmap(start, front) }
    if front < size { unsafe munmap(start + front + size, size - front) }
    return unsafe start + front
  }

  /// Gives back what `map` gave.
  static func unmap(_ memory: UnsafeMutableRawPointer, _ size: Int) {
    unsafe munmap(memory, size)
  }

  private static func anonymous(_ size: Int) -> UnsafeMutableRawPointer? {
    let access = PROT_READ | PROT_WRITE
    #if canImport(Darwin)
      let memory = unsafe mmap(nil, size, access, MAP_PRIVATE | MAP_ANON, -1, 0)
    #else
      let memory = unsafe mmap(nil, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    #endif
    return unsafe memory == MAP_FAILED ? nil : memory
  }
}

/// Tells the system that memory will be used all over, so that large pages pay (`madvise`). A hint:
/// nothing depends on it.
func adviseLargePages(_ start: UnsafeMutableRawPointer, _ count: Int) {
  #if os(Linux)
    unsafe madvise(start, count, MADV_HUGEPAGE)
  #endif
}
