// The one budget of memory for what was read from files (blocks, filters, tops of indexes) and,
// because memory is memory, for memtables too. Blocks are found through their segment's SlotTable,
// not through the cache; the cache only counts bytes and, when there are too many, takes back
// blocks that were not used lately. Those that can go stand in a ring in the order in which they
// came; whoever loads a block turns the ring as far as its block needs, under a lock that readers
// who find their block never see. What was asked for since the ring came by stays for another
// round.
//
// A turn is bounded: however much is charged that cannot go, a miss looks at so many blocks and no
// more, and a block that finds no room is its reader's own and goes when the reader is done. Nobody
// but who loads a block evicts, so charging a memtable costs an addition; what it takes too much is
// made good by the misses that follow.
//
// The budget is hard for what can be evicted, but for an eighth of it that blocks have in any case:
// a cache that memtables fill would otherwise read the same index block for every get. Index blocks
// become resident (held for as long as their segment is open, read without counting) while they
// take less than a quarter of the budget, and so do whole filters.

import Synchronization

/// Counts bytes and evicts blocks.
final class BlockCache: Sendable {
  let budgetBytes: Int
  private let used = Atomic<Int>(0)
  /// Of these, bytes that cannot be evicted: those charged by `reserve`, and resident blocks'.
  private let reserved = Atomic<Int>(0)
  private let resident = Atomic<Int>(0)
  private let filters = Atomic<Int>(0)
  private let loads = Atomic<Int>(0)
  private let evictions = Atomic<Int>(0)
  private let examinations = Atomic<Int>(0)
  private let ring = Guarded(BlockRing())

  /// Blocks that are looked at to make room for one.
  static let mostExamined = 128

  init(budgetBytes: Int) {
    self.budgetBytes = budgetBytes
  }

  /// Bytes charged just now.
  var usedBytes: Int { used.load(ordering: .relaxed) }
  /// Blocks read from files since the start.
  var loadCount: Int { loads.load(ordering: .relaxed) }
  /// Blocks that made room for others since the start.
  var evictionCount: Int { evictions.load(ordering: .relaxed) }
  /// Blocks that were looked at to find those since the start.
  var examinationCount: Int { examinations.load(ordering: .relaxed) }

  /// Charges bytes that live elsewhere and cannot be evicted, such as a memtable's. Blocks make
  /// room as others come.
  ///
  /// - Complexity: O(1); takes no lock.
  func reserve(_ bytes: Int) {
    reserved.add(bytes, ordering: .relaxed)
    used.add(bytes, ordering: .relaxed)
  }

  /// Gives back bytes charged by `reserve`.
  func release(_ bytes: Int) {
    reserved.subtract(bytes, ordering: .relaxed)
    used.subtract(bytes, ordering: .relaxed)
  }

  /// Whether a filter of so many bytes may be kept as a whole; to be given back then by
  /// `giveBackFilter`. Its bytes are charged by `reserve`.
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

  /// Frees the table and its blocks, which nobody may hold.
  func unregister(_ table: SlotTable) {
    ring.withLock { $0.remove(table) }
    table.destroy { block, isResident in
      if isResident { resident.subtract(block.allocatedBytes, ordering: .relaxed) }
      Self.discard(block)
    }
    release(SlotTable.size(table.count))
  }

  // MARK: - Blocks

  /// Bytes charged for a block that is not there yet.
  struct Place {
    fileprivate var size: Int
    /// Whether the budget holds the block; otherwise it will be its reader's own.
    fileprivate var fits: Bool
  }

  /// Charges the bytes of a block about to be made, evicting others.
  ///
  /// - Parameter keep: false when the block is read once, as by a compaction, and should push out
  ///   nobody's.
  func makeRoom(_ size: Int, keep: Bool) -> Place {
    guard keep else {
      used.add(size, ordering: .relaxed)
      return Place(size: size, fits: false)
    }
    return Place(size: size, fits: charge(size))
  }

  /// Takes back the charge for a block that could not be made.
  func giveBack(_ place: Place) {
    used.subtract(place.size, ordering: .relaxed)
  }

  /// Puts a block that was just made into its slot, and pins it.
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

  /// Bytes that may be charged while blocks come.
  private var limit: Int {
    let fixed = reserved.load(ordering: .relaxed) + resident.load(ordering: .relaxed)
    return max(budgetBytes, fixed + budgetBytes / 8)
  }

  /// Adds `bytes` and evicts until the budget holds them; false when it does not.
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
    // Safe: set by `setOwner` before anybody else saw the block.
    unsafe Unmanaged<BlockCache>.fromOpaque(
      UnsafeRawPointer(bitPattern: header.owner).unsafelyUnwrapped
    ).takeUnretainedValue()
  }

  fileprivate func setOwner(_ cache: BlockCache) {
    unsafe base.assumingMemoryBound(to: Header.self).pointee.owner = UInt(
      bitPattern: Unmanaged.passUnretained(cache).toOpaque())
  }
}
