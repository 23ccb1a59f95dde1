// A block that cannot go away while somebody looks at it. Pins are counted in the block's slot, so
// taking and giving back costs one atomic addition each and no lock; see SlotTable for the
// protocol.

import Synchronization

/// A block and the right to read it. Letting go of it gives the right back.
@safe struct PinnedBlock: ~Copyable {
  let block: Block
  /// The slot whose pin count includes this pin; nil for a block that needs none.
  private let slot: UnsafeMutablePointer<Atomic<UInt64>>?
  /// Whether nobody but this pin knows the block.
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

  /// A block that only this pin knows and that goes with it.
  init(private block: Block) {
    self.block = block
    unsafe slot = nil
    isPrivate = true
  }

  @inline(__always)
  deinit {
    if let slot = unsafe slot {
      // Releasing: what we read is read before the evictor, which acquires, frees it.
      unsafe slot.pointee.subtract(SlotTable.onePin, ordering: .releasing)
    } else if isPrivate {
      BlockCache.discard(block)
    }
  }
}
