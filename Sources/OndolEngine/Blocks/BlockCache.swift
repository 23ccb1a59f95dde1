// The one memory budget for data read from files (blocks, filters, tops of indexes) and, because
// memory is memory, also for memtables. Blocks are found through their segment's SlotTable, not
// through the cache. The cache only counts bytes and, when there are too many, evicts blocks that
// were not used recently. Evictable blocks are in a ring in the order in which they came. A thread
// that loads a block turns the ring as far as its block needs, under a lock that readers on a cache
// hit never take. A block used since the ring last reached it stays for another round.
//
// A turn is bounded: however much is charged that cannot be evicted, a miss examines a fixed number
// of blocks at most. A block that finds no room belongs to its reader alone and is freed when the
// reader is done. Only a thread that loads a block evicts, so charging a memtable costs an
// addition; following misses compensate for its excess.
//
// The budget is hard for evictable data, except for an eighth of it that blocks have in any case:
// otherwise a cache filled by memtables would read the same index block for every get. Index blocks
// become resident (held as long as their segment is open, read without counting) while they take
// less than a quarter of the budget, and so do whole filters.

import Synchronization

/// Counts bytes and evicts blocks.
final class BlockCache: Sendable {
  let budgetBytes: Int
  private let used = Atomic<Int>(0)
  /// The part of these bytes that cannot be evicted: those charged by `reserve`, and resident
  /// blocks'.
  private let reserved = Atomic<Int>(0)
  private let resident = Atomic<Int>(0)
  private let filters = Atomic<Int>(0)
  private let loads = Atomic<Int>(0)
  private let evictions = Atomic<Int>(0)
  private let examinations = Atomic<Int>(0)
  private let ring = Guarded(BlockRing())

  /// The most blocks examined to make room for one.
  static let mostExamined = 128

  init(budgetBytes: Int) {
    self.budgetBytes = budgetBytes
  }

  /// Bytes charged at the moment.
  var usedBytes: Int { used.load(ordering: .relaxed) }
  /// Blocks read from files since the start.
  var loadCount: Int { loads.load(ordering: .relaxed) }
  /// Blocks evicted since the start.
  var evictionCount: Int { evictions.load(ordering: .relaxed) }
  /// Blocks that eviction examined since the start.
  var examinationCount: Int { examinations.load(ordering: .relaxed) }

  /// Charges bytes that live elsewhere and cannot be evicted, such as a memtable's. Later loads
  /// evict blocks to make room.
  ///
  /// - Complexity: O(1); takes no lock.
  func reserve(_ bytes: Int) {
    reserved.add(bytes, ordering: .relaxed)
    used.add(bytes, ordering: .relaxed)
  }

  /// Releases bytes charged by `reserve`.
  func release(_ bytes: Int) {
    reserved.subtract(bytes, ordering: .relaxed)
    used.subtract(bytes, ordering: .relaxed)
  }

  /// Whether a filter of this many bytes may be kept as a whole; if so, `giveBackFilter` must
  /// release it later. `reserve` charges its bytes.
  func takeFilter(_ bytes: Int) -> Bool {
    if filters.add(bytes, ordering: .relaxed).newValue <= budgetBytes / 4 { return true }
    giveBackFilter(bytes)
    return false
  }

  func giveBackFilter(_ bytes: Int) {
    filters.subtract(bytes, ordering: .relaxed)
  }

  // MARK: - Tables

  func register(_ table: SlotTable) {
    ring.withLock { $0.add(table) }
    reserve(SlotTable.size(table.count))
  }

  /// Frees the table and its blocks, none of which may be held.
  func unregister(_ table: SlotTable) {
    ring.withLock { $0.remove(table) }
    table.destroy { block, isResident in
      if isResident { resident.subtract(block.allocatedBytes, ordering: .relaxed) }
      Self.discard(block)
    }
    release(SlotTable.size(table.count))
  }

  // MARK: - Blocks

  /// Bytes charged for a future block.
  struct Place {
    fileprivate var size: Int
    /// Whether the budget has room for the block; otherwise it will belong to its reader alone.
    fileprivate var fits: Bool
  }

  /// Charges the bytes of a block about to be made, evicting others.
  ///
  /// - Parameter keep: false when the block is read once, as by a compaction, and must not evict
  ///   others.
  func makeRoom(_ size: Int, keep: Bool) -> Place {
    guard keep else {
      used.add(size, ordering: .relaxed)
      return Place(size: size, fits: false)
    }
    return Place(size: size, fits: charge(size))
  }

  /// Releases the charge for a block that could not be made.
  func giveBack(_ place: Place) {
    used.subtract(place.size, ordering: .relaxed)
  }

  /// Puts a new block into its slot, and pins it.
  func install(
    _ block: Block, _ place: Place, at slot: Int, of table: SlotTable, kind: BlockKind
  ) -> PinnedBlock {
    block.setOwner(self)
    loads.add(1, ordering: .relaxed)
    guard place.fits else { return PinnedBlock(private: block) }
    let becomesResident = kind == .index && becomeResident(place.size)
    var isInstalled = false
    let pin = table.install(
      block, at: slot, resident: becomesResident, isInstalled: &isInstalled)
    if becomesResident {
      if !isInstalled { resident.subtract(place.size, ordering: .relaxed) }
    } else if isInstalled {
      ring.withLock { $0.append(slot, of: table) }
    }
    return pin
  }

  /// Frees a block of any cache.
  static func discard(_ block: Block) {
    let size = block.allocatedBytes
    let owner = block.owner
    block.free()
    owner.used.subtract(size, ordering: .relaxed)
  }

  private func becomeResident(_ size: Int) -> Bool {
    if resident.add(size, ordering: .relaxed).newValue <= budgetBytes / 4 { return true }
    resident.subtract(size, ordering: .relaxed)
    return false
  }

  /// The bytes that may be charged while blocks are loaded.
  private var limit: Int {
    let fixed = reserved.load(ordering: .relaxed) + resident.load(ordering: .relaxed)
    return max(budgetBytes, fixed + budgetBytes / 8)
  }

  /// Adds `bytes` and evicts until they fit the budget; false when they do not.
  private func charge(_ bytes: Int) -> Bool {
    if used.add(bytes, ordering: .relaxed).newValue <= limit { return true }
    ring.withLock { ring in
      var rest = min(Self.mostExamined, ring.count)
      examinations.add(rest, ordering: .relaxed)
      while rest > 0, used.load(ordering: .relaxed) > limit {
        rest -= 1
        guard let block = ring.turn() else { continue }
        evictions.add(1, ordering: .relaxed)
        Self.discard(block)
      }
      examinations.subtract(rest, ordering: .relaxed)
    }
    return used.load(ordering: .relaxed) <= limit
  }
}

extension Block {
  /// The cache that was charged for the block. It outlives its blocks: segments hold it.
  fileprivate var owner: BlockCache {
    // Safe: set by `setOwner` before any other thread saw the block.
    unsafe Unmanaged<BlockCache>.fromOpaque(
      UnsafeRawPointer(bitPattern: header.owner).unsafelyUnwrapped
    ).takeUnretainedValue()
  }

  fileprivate func setOwner(_ cache: BlockCache) {
    unsafe base.assumingMemoryBound(to: Header.self).pointee.owner = UInt(
      bitPattern: Unmanaged.passUnretained(cache).toOpaque())
  }
}
