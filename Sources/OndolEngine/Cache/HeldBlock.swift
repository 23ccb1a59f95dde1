// A place for a pin that changes hands often: what a cursor stands on. The pin lies outside the
// cursor, behind a constant, because in a variable of a class each exchange would be an access that
// the runtime watches over, which took a fifth of a seek.

/// Holds one pinned block, or none. A plain reference: its owner calls `free` at the end.
@safe struct HeldBlock {
  private let pin: UnsafeMutablePointer<PinnedBlock?>

  init() {
    unsafe pin = .allocate(capacity: 1)
    unsafe pin.initialize(to: nil)
  }

  /// The block held.
  @inline(__always)
  var block: Block? {
    unsafe pin.pointee?.block
  }

  /// Lets go of the block held and holds another, which it gives back.
  @inline(__always)
  func hold(_ new: consuming PinnedBlock) -> Block {
    let block = new.block
    unsafe pin.pointee = consume new
    return block
  }

  /// Lets go of the block held.
  @inline(__always)
  func letGo() {
    unsafe pin.pointee = nil
  }

  func free() {
    unsafe pin.deinitialize(count: 1)
    unsafe pin.deallocate()
  }
}
