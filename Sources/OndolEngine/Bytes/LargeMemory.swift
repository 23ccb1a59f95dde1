// Bytes for what fills megabytes and is written by its owner alone, freed with their last user.

/// Uninitialised memory.
@safe
final class LargeMemory: @unchecked Sendable {
  // Safe: who shares it sees to who writes where.

  /// From here on large pages pay: rows touch new memory all the time, and each small page of it is
  /// a fault.
  private static let largePageThreshold = 32 << 20

  let size: Int
  let base: UnsafeMutableRawPointer

  /// The system gives the memory as it is touched.
  init(_ size: Int) {
    self.size = size
    let alignment = size >= Self.largePageThreshold ? 2 << 20 : 64
    unsafe base = .allocate(byteCount: size, alignment: alignment)
  }

  deinit {
    unsafe base.deallocate()
  }

  /// Tells the system that all of it is about to be used.
  func expectUse() {
    if size >= Self.largePageThreshold { unsafe adviseLargePages(base, size) }
  }
}
