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

/// A row, borrowed from a block in the cache.
package struct PinnedRow: ~Copyable, ~Escapable {
  private let pin: PinnedBlock
  private let row: Int

  /// `owner` is what keeps the table of the block's slot alive.
  @inline(__always)
  @_lifetime(borrow owner)
  init<Owner: AnyObject>(_ pin: consuming PinnedBlock, row: Int, owner: borrowing Owner) {
    self.pin = pin
    self.row = row
  }

  @inline(__always)
  package var kind: RowKind { pin.block.kind(row) }

  /// Gives the value to `body`. Costs nothing, whereas `value` makes the optimizer put the row into
  /// a box.
  @inline(__always)
  package func withValue<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(value)
  }

  /// The value; nothing in a tombstone. Where every nanosecond counts, use `withValue`.
  @inline(__always)
  package var value: RawSpan {
    @_lifetime(borrow self)
    get {
      let block = pin.block
      // Safe: the bytes stay as long as the pin, which this row owns.
      return unsafe _overrideLifetime(block.value(row), borrowing: self)
    }
  }
}

/// What a search for a key in one run or segment came to.
package enum Lookup: ~Copyable, ~Escapable {
  /// The row, which may be a tombstone.
  case found(PinnedRow)
  case absent
  /// The answer is in a block that is not in memory, and the caller did not want to wait for the
  /// file.
  case wouldBlock
}

extension Lookup {
  /// The same, for an owner that holds the owner it was made for.
  @inline(__always)
  @_lifetime(borrow owner)
  consuming func held<Owner: AnyObject>(by owner: borrowing Owner) -> Lookup {
    // Safe: the caller vouches that the new owner keeps the old one.
    unsafe _overrideLifetime(self, borrowing: owner)
  }
}
