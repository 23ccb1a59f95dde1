// A block that cannot be freed while it is being read. Pins are counted in the block's slot, so
// pinning and releasing cost one atomic addition each and no lock; see SlotTable for the protocol.

import Synchronization

/// A block and the right to read it. Letting go of it gives the right back.
@safe struct PinnedBlock: ~Copyable {
  let block: Block
  /// The slot whose pin count includes this pin; nil for a block that needs none.
  private let slot: UnsafeMutablePointer<Atomic<UInt64>>?
  /// Whether only this pin refers to the block.
  let isPrivate: Bool

  /// Takes over a pin already counted in `slot`.
  @inline(__always)
  init(_ block: Block, countedIn slot: UnsafeMutablePointer<Atomic<UInt64>>) {
    self.block = block
    unsafe self.slot = slot
    isPrivate = false
  }

  /// A block that stays as long as its table does.
  @inline(__always)
  init(resident block: Block) {
    self.block = block
    unsafe slot = nil
    isPrivate = false
  }

  /// A block that only this pin refers to and that is freed with it.
  init(private block: Block) {
    self.block = block
    unsafe slot = nil
    isPrivate = true
  }

  @inline(__always)
  deinit {
    if let slot = unsafe slot {
      // Releasing: our reads happen before the evictor, which acquires, frees it.
      unsafe slot.pointee.subtract(SlotTable.onePin, ordering: .releasing)
    } else if isPrivate {
      BlockCache.discard(block)
    }
  }
}
