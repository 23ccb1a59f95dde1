// Bytes for what fills megabytes and is written by its owner alone, freed with their last user.

/// Uninitialised memory.
@safe
final class LargeMemory: @unchecked Sendable {
  // Safe: who shares it sees to who writes where.

  /// From here on large pages pay: rows touch new memory all the time, and each small page of it is
  /// a fault.
  private static let largePageThreshold = 32 << 20

  /// From here on it comes from the system itself, which gets it back at once.
  private static let mappedThreshold = 128 << 10

  let size: Int
  let base: UnsafeMutableRawPointer
  private let isMapped: Bool

  /// The system gives the memory as it is touched.
  init(_ size: Int) {
    self.size = size
    let alignment = size >= Self.largePageThreshold ? 2 << 20 : 64 << 10
    if size >= Self.mappedThreshold,
      let mapped = unsafe SystemMemory.map(size, alignedTo: alignment)
    {
      unsafe base = mapped
      isMapped = true
    } else {
      unsafe base = .allocate(byteCount: size, alignment: 64)
      isMapped = false
    }
  }

  deinit {
    if isMapped {
      unsafe SystemMemory.unmap(base, size)
    } else {
      unsafe base.deallocate()
    }
  }

  /// Tells the system that all of it is about to be used.
  func expectUse() {
    if size >= Self.largePageThreshold { unsafe adviseLargePages(base, size) }
  }
}
