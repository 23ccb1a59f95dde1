// The source of memtables' memory. The system must clear new memory first, page by page as rows
// arrive in it, and when a hypervisor has to find the pages, that takes up to three milliseconds a
// megabyte, several times as long as writing the rows. So a later memtable reuses the memory of an
// earlier one, as long as a load continues, and another thread touches unused memory ahead of the
// rows.

/// Keeps memory that memtables no longer use, and touches other memory ahead of its use.
final class MemtableMemory: Sendable {
  /// The sizes that are kept.
  private let sizes: ClosedRange<Int>
  /// The most bytes that are kept; at least one piece in any case.
  private let limit: Int
  private let budget: BlockCache
  /// Touches memory. Not from the environment: nothing that a program or a test can observe depends
  /// on when it does so.
  private let worker = SharedThreads.process.forDatabase()
    .makeWorker(named: "ondol-memory", for: .contents)
  private let kept = Guarded<[LargeMemory]>([])

  /// Keeps pieces of some sizes, up to `limit` bytes, and counts them against `budget`.
  init(sizes: ClosedRange<Int>, limit: Int, budget: BlockCache) {
    self.sizes = sizes
    self.limit = limit
    self.budget = budget
  }

  /// Memory of `size` bytes, not cleared.
  func take(_ size: Int) -> LargeMemory {
    guard sizes.contains(size) else { return LargeMemory(size) }
    let memory = kept.withLock { kept in
      // If there is only another size, the load has outgrown it, or is over.
      kept.isEmpty ? nil : kept.remove(at: kept.lastIndex { $0.size == size } ?? 0)
    }
    guard let memory else { return LargeMemory(size) }
    budget.release(memory.size)
    return memory.size == size ? memory : LargeMemory(size)
  }

  /// Takes unused memory back.
  func giveBack(_ memory: LargeMemory) {
    guard sizes.contains(memory.size) else { return }
    let isKept = kept.withLock { kept in
      guard kept.isEmpty || kept.reduce(memory.size, { $0 + $1.size }) <= limit else {
        return false
      }
      kept.append(memory)
      return true
    }
    if isKept { budget.reserve(memory.size) }
  }

  /// Releases the kept memory.
  func clear() {
    let all = kept.withLock { kept in
      defer { kept = [] }
      return kept
    }
    budget.release(all.reduce(0) { $0 + $1.size })
  }

  // MARK: - Touching ahead

  /// Touches the part of `memory` that is needed next, now that this many bytes from its front and
  /// from its back are in use. For the thread that fills it.
  @inline(__always)
  func touchAhead(in memory: LargeMemory, front: Int, back: Int) {
    if memory.lacks(front: front, back: back) { touch(memory, front: front, back: back) }
  }

  private func touch(_ memory: LargeMemory, front: Int, back: Int) {
    let ranges = memory.expect(front: front, back: back)
    worker.enqueue { for range in ranges { memory.populate(range) } }
  }
}
