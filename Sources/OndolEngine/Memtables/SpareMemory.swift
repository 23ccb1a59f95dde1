// A full memtable's memory serves the next one. Memory that comes from the system has to be cleared
// first, page by page as rows arrive in it, which took a loading database a third of its time on
// the write path, and where a hypervisor had to find the pages, any length of time.

/// Keeps the memory of one memtable that nobody uses any more.
final class SpareMemory: Sendable {
  /// The sizes that are kept.
  private let sizes: ClosedRange<Int>
  private let budget: BlockCache
  private let kept = Guarded<LargeMemory?>(nil)

  /// Keeps a piece of so many bytes, and counts what it keeps against `budget`.
  init(sizes: ClosedRange<Int>, budget: BlockCache) {
    self.sizes = sizes
    self.budget = budget
  }

  /// Memory of `size` bytes, not cleared.
  func take(_ size: Int) -> LargeMemory {
    guard sizes.contains(size), let memory = takeKept() else { return LargeMemory(size) }
    // A load has outgrown it, or is over.
    return memory.size == size ? memory : LargeMemory(size)
  }

  /// Takes memory that is not used any more.
  func giveBack(_ memory: LargeMemory) {
    guard sizes.contains(memory.size) else { return }
    let isKept = kept.withLock { kept in
      guard kept == nil else { return false }
      kept = memory
      return true
    }
    if isKept { budget.reserve(memory.size) }
  }

  /// Lets go of what is kept.
  func clear() {
    _ = takeKept()
  }

  private func takeKept() -> LargeMemory? {
    let memory = kept.withLock { kept in
      defer { kept = nil }
      return kept
    }
    if let memory { budget.release(memory.size) }
    return memory
  }
}
