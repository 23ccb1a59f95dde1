// Memory directly from the system, for allocations of several megabytes. Randomly accessed memory
// needs large pages, because with small pages a TLB miss costs as much as the access itself. Freed
// memory returns to the system at once. The allocator would keep it between blocks in use, in a
// heap per thread, until a loading database has four times the memory that it uses.

internal import COndol
internal import OndolPlatform

/// Maps memory.
package enum SystemMemory {
  /// The process's limit of address space in bytes (`RLIMIT_AS`); nil if there is no limit.
  package static var addressLimit: Int? {
    let limit = ondol_address_limit()
    return limit == CLong.max ? nil : limit
  }

  /// `size` zero bytes that begin at a multiple of `alignment`, a power of two and at least a page.
  /// Returns nil if the system has no memory.
  static func map(_ size: Int, alignedTo alignment: Int) -> UnsafeMutableRawPointer? {
    // This length always contains an aligned part. The rest around it is unmapped.
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

  /// Unmaps memory from `map`.
  static func unmap(_ memory: UnsafeMutableRawPointer, _ size: Int) {
    unsafe munmap(memory, size)
  }

  /// Makes the system provide the pages of a range of mapped memory for writing. Their bytes stay
  /// unchanged. Does nothing if there is no such call.
  static func populate(_ memory: UnsafeMutableRawPointer, _ range: Range<Int>) {
    #if os(Linux)
      let page = Int(getpagesize())
      let start = range.lowerBound / page * page
      // `MADV_POPULATE_WRITE`, which the importer omits.
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

/// Tells the system that all of the memory will be accessed, so that large pages pay (`madvise`).
/// This is a hint, and nothing depends on it.
func adviseLargePages(_ start: UnsafeMutableRawPointer, _ count: Int) {
  #if os(Linux)
    unsafe madvise(start, count, MADV_HUGEPAGE)
  #endif
}
