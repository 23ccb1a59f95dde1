// Memory straight from the system, for what fills megabytes. What is read all over wants large
// pages: there a lookup of the address costs as much as the memory itself, unless pages are large.
// And what is freed goes back at once: the allocator keeps it between pieces that are not free, a
// heap for every thread, until a loading database has four times the memory it uses.

internal import COndol
internal import OndolPlatform

/// Maps memory.
package enum SystemMemory {
  /// Bytes of addresses that the process may have (`RLIMIT_AS`); nil when there is no limit.
  package static var addressLimit: Int? {
    let limit = ondol_address_limit()
    return limit == CLong.max ? nil : limit
  }

  /// `size` bytes of zeros that begin at a multiple of `alignment`, which is a power of two and at
  /// least a page, or nil when the system has none.
  static func map(_ size: Int, alignedTo alignment: Int) -> UnsafeMutableRawPointer? {
    // So much more holds an aligned part; what is around it goes back.
    let (whole, isTooLong) = size.addingReportingOverflow(alignment)
    guard !isTooLong, let start = unsafe anonymous(whole) else { return nil }
    let misfit = Int(UInt(bitPattern: start) & UInt(alignment - 1))
    let front = misfit == 0 ? 0 : alignment - misfit
    if front > 0 { unsafe munmap(start, front) }
    let page = Int(getpagesize())
    let end = front + (size + page - 1) / page * page
    if end < whole { unsafe munmap(start + end, whole - end) }
    return unsafe start + front
  }

  /// Gives back what `map` gave.
  static func unmap(_ memory: UnsafeMutableRawPointer, _ size: Int) {
    unsafe munmap(memory, size)
  }

  /// Has the system give the pages of a range of mapped memory, for writing; their bytes stay as
  /// they are. Does nothing where there is no such call.
  static func populate(_ memory: UnsafeMutableRawPointer, _ range: Range<Int>) {
    #if os(Linux)
      let page = Int(getpagesize())
      let start = range.lowerBound / page * page
      // `MADV_POPULATE_WRITE`, which the importer drops.
      unsafe madvise(memory + start, range.upperBound - start, 23)
    #endif
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
