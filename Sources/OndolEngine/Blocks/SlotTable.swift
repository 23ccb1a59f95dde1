// The in-memory locations of one open segment's blocks: one word for each block, so that a cache
// hit costs an index and an atomic addition, no hash table and no lock.
//
//   bits 63...48   pins: how many readers hold the block at the moment
//   bits 47...6    the block's address (blocks start at multiples of 64), or 0: not in memory
//   bit 1          resident: stays as long as the table; read without a pin
//   bit 0          referenced since the clock's hand last came by
//
// A reader adds a pin and looks at the previous word. If it has an address, that is safe to read
// until the pin is released. If it has none, the pin is released at once, and the block is loaded
// and installed by a compare-and-exchange that keeps the pins of readers in the same situation. Of
// two concurrent loads of the same block, the second discards its copy. The evictor exchanges a
// word without pins for zero: a reader that comes in between changes the word, and the exchange
// fails.
//
// If 32,768 readers hold one block, the next one gets a copy of its own. The other half of the
// count is room for threads that are about to notice that.

import Synchronization

/// The words of one segment's blocks. A plain reference: its owner calls `destroy` at the end.
@safe struct SlotTable: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: words are atomic, and the owner outlives all readers.
  let words: UnsafeMutablePointer<Atomic<UInt64>>
  let count: Int

  static let onePin: UInt64 = 1 << 48
  private static let addressMask: UInt64 = onePin - 64
  private static let referenced: UInt64 = 1
  private static let resident: UInt64 = 2
  private static let mostPins: UInt64 = 1 << 15

  init(count: Int) {
    unsafe words = .allocate(capacity: max(1, count))
    self.count = count
    for index in 0..<count { unsafe (words + index).initialize(to: Atomic(0)) }
  }

  /// Distinguishes it from all other existing tables.
  var address: UInt { unsafe UInt(bitPattern: words) }

  /// Bytes that a table of `count` words takes.
  static func size(_ count: Int) -> Int { count * MemoryLayout<UInt64>.stride }

  // MARK: - Readers

  /// The block in slot `index`, pinned; nil when it is not in memory.
  @inline(__always)
  func pin(_ index: Int) -> PinnedBlock? {
    // Safe: `index` comes from the table's own numbering.
    let word = unsafe words + index
    let old = unsafe word.pointee.add(Self.onePin, ordering: .acquiring).oldValue
    if old & Self.addressMask != 0, old < Self.mostPins &* Self.onePin {
      if old & Self.referenced == 0 {
        unsafe word.pointee.bitwiseOr(Self.referenced, ordering: .relaxed)
      }
      return unsafe PinnedBlock(Self.block(old), countedIn: word)
    }
    unsafe word.pointee.subtract(Self.onePin, ordering: .releasing)
    return nil
  }

  /// Prefetches word `index`.
  func prefetch(_ index: Int) {
    unsafe OndolEngine.prefetch(words + index)
  }

  /// Prefetches the first lines of the block in slot `index`, if it has one, because a walk that
  /// continues comes there next.
  func prefetchBlock(_ index: Int) {
    let address = unsafe words[index].load(ordering: .relaxed) & Self.addressMask
    guard let start = unsafe UnsafeRawPointer(bitPattern: UInt(address)) else { return }
    // Safe: prefetching reads nothing, so it does not matter that the block is not held.
    for line in 0..<4 { unsafe OndolEngine.prefetch(start + 64 * line) }
  }

  /// Prefetches the header and the rows around `row` of the block in slot `index`, if it has one.
  @inline(__always)
  func prefetchBlock(_ index: Int, around row: Int) {
    let word = unsafe words[index].load(ordering: .relaxed)
    // Safe: prefetching reads nothing, so it does not matter that the block is not held.
    if word & Self.addressMask != 0 { Self.block(word).prefetch(around: row) }
  }

  /// Like `pin`, for blocks that may be resident: those are read without counting, so that threads
  /// do not contend for the few words of index blocks.
  @inline(__always)
  func pinOrResident(_ index: Int) -> PinnedBlock? {
    let old = unsafe words[index].load(ordering: .acquiring)
    if old & Self.resident != 0 { return PinnedBlock(resident: Self.block(old)) }
    return pin(index)
  }

  /// Puts a newly loaded block into slot `index` and pins it. When another thread was faster,
  /// `block` is freed and the other's used. `isInstalled` says whether the slot holds `block` now.
  func install(
    _ block: Block, at index: Int, resident isResident: Bool, isInstalled: inout Bool
  ) -> PinnedBlock {
    isInstalled = false
    let word = unsafe words + index
    let address = unsafe UInt64(UInt(bitPattern: block.base))
    precondition(address & ~Self.addressMask == 0, "an address of more than 47 bits, or unaligned")
    while true {
      let old = unsafe word.pointee.load(ordering: .relaxed)
      guard old & Self.addressMask == 0, old < Self.mostPins &* Self.onePin else {
        if let pin = pinOrResident(index) {
          BlockCache.discard(block)
          return pin
        }
        // Evicted again, or held by too many readers.
        if old >= Self.mostPins &* Self.onePin { return PinnedBlock(private: block) }
        continue
      }
      // Not yet referenced: blocks that a scan reads once are evicted before those read twice.
      let new = (old &+ Self.onePin) | address | (isResident ? Self.resident : 0)
      let exchange = unsafe word.pointee.compareExchange(
        expected: old, desired: new, ordering: .releasing)
      if exchange.exchanged {
        isInstalled = true
        return unsafe PinnedBlock(block, countedIn: word)
      }
    }
  }

  // MARK: - Evictor and owner

  /// The evictor's result for a slot.
  enum Swept {
    /// A block that was neither held nor used since the last call; the caller frees it.
    case taken(Block)
    /// A block that stays for now.
    case kept
    case empty
  }

  /// Takes the block out of slot `index` when it is not held and was not used since the last call.
  func sweep(_ index: Int) -> Swept {
    let word = unsafe words + index
    let old = unsafe word.pointee.load(ordering: .relaxed)
    guard old & Self.addressMask != 0 else { return .empty }
    guard old < Self.onePin, old & Self.resident == 0 else { return .kept }
    if old & Self.referenced != 0 {
      unsafe word.pointee.bitwiseAnd(~Self.referenced, ordering: .relaxed)
      return .kept
    }
    let exchange = unsafe word.pointee.compareExchange(
      expected: old, desired: 0, ordering: .acquiring)
    return exchange.exchanged ? .taken(Self.block(old)) : .kept
  }

  /// Frees the table, after passing every block in it to `body`, with whether it was resident. None
  /// may be held.
  func destroy(_ body: (Block, Bool) -> Void) {
    for index in 0..<count {
      let old = unsafe words[index].load(ordering: .acquiring)
      precondition(old < Self.onePin, "a segment was let go of while a block of it was being read")
      if old & Self.addressMask != 0 { body(Self.block(old), old & Self.resident != 0) }
    }
    unsafe words.deinitialize(count: count)
    unsafe words.deallocate()
  }

  @inline(__always)
  private static func block(_ word: UInt64) -> Block {
    // Safe: an address in a word is that of a block that was installed.
    unsafe Block(
      base: UnsafeMutableRawPointer(bitPattern: UInt(word & addressMask)).unsafelyUnwrapped)
  }
}
