// The one budget of memory for what was read from files (blocks, filters, tops of indexes) and,
// because memory is memory, for memtables too. Blocks are found through their segment's SlotTable,
// not through the cache; the cache only counts bytes and, when there are too many, takes back
// blocks that were not used lately: a clock whose hand goes over all segments' slots. Whoever loads
// a block turns the hand as far as its block needs, under a lock that readers who find their block
// never see.
//
// The budget is hard: a block that finds no room, because all others are held, is its reader's own
// and goes when the reader is done. Index blocks become resident (held for as long as their segment
// is open, read without counting) while they take less than a quarter of the budget.

import Synchronization

/// Counts bytes and evicts blocks.
package final class BlockCache: Sendable {
  package let budgetBytes: Int
  private let used = Atomic<Int>(0)
  private let resident = Atomic<Int>(0)
  private let loads = Atomic<Int>(0)
  private let evictions = Atomic<Int>(0)
  private let clock = Guarded(Clock())

  /// The tables whose slots the hand goes over, and where it is.
  fileprivate struct Clock {
    var tables: [SlotTable] = []
    var table = 0
    var slot = 0
  }

  package init(budgetBytes: Int) {
    self.budgetBytes = budgetBytes
  }

  /// Bytes charged just now.
  package var usedBytes: Int { used.load(ordering: .relaxed) }
  /// Blocks read from files since the start.
  package var loadCount: Int { loads.load(ordering: .relaxed) }
  /// Blocks that made room for others since the start.
  package var evictionCount: Int { evictions.load(ordering: .relaxed) }

  /// Charges bytes that live elsewhere and cannot be evicted, such as a memtable's; blocks make
  /// room.
  package func reserve(_ bytes: Int) {
    _ = charge(bytes)
  }

  /// Gives back bytes charged by `reserve`.
  package func release(_ bytes: Int) {
    used.subtract(bytes, ordering: .relaxed)
  }

  // MARK: - Tables

  func register(_ table: SlotTable) {
    clock.withLock { $0.tables.append(table) }
    reserve(SlotTable.size(table.count))
  }

  /// Frees the table and its blocks, which nobody may hold.
  func unregister(_ table: SlotTable) {
    clock.withLock { clock in
      guard let index = clock.tables.firstIndex(where: { unsafe $0.words == table.words })
      else { return }
      clock.tables.remove(at: index)
      clock.table = 0
      clock.slot = 0
    }
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
    release(place.size)
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
    if becomesResident && !isInstalled { resident.subtract(place.size, ordering: .relaxed) }
    return pin
  }

  /// Frees a block of any cache.
  static func discard(_ block: Block) {
    let size = block.allocatedBytes
    let owner = block.owner
    block.free()
    owner.release(size)
  }

  private func becomeResident(_ size: Int) -> Bool {
    if resident.add(size, ordering: .relaxed).newValue <= budgetBytes / 4 { return true }
    resident.subtract(size, ordering: .relaxed)
    return false
  }

  /// Adds `bytes` and evicts until the budget holds them; false when it does not.
  private func charge(_ bytes: Int) -> Bool {
    if used.add(bytes, ordering: .relaxed).newValue <= budgetBytes { return true }
    clock.withLock { clock in
      // Twice around: the first time clears what was referenced.
      var rest = 2 * clock.tables.reduce(0) { $0 + $1.count }
      while rest > 0, used.load(ordering: .relaxed) > budgetBytes {
        rest -= 1
        guard let block = clock.advance() else { continue }
        evictions.add(1, ordering: .relaxed)
        Self.discard(block)
      }
    }
    return used.load(ordering: .relaxed) <= budgetBytes
  }
}

extension BlockCache.Clock {
  /// Moves the hand on by one slot, and takes what can be taken there.
  fileprivate mutating func advance() -> Block? {
    while slot >= tables[table].count {
      slot = 0
      table = table + 1 == tables.count ? 0 : table + 1
    }
    defer { slot += 1 }
    return tables[table].sweep(slot)
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
