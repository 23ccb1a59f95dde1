// Places for the pins of a cursor: its index block and its data block. The pins are outside the
// cursor, behind a constant, because in a variable of a class each exchange would be an access with
// dynamic exclusivity checks, which took a fifth of a seek.

/// Holds pinned blocks, one or none in each of two places. A plain reference: its owner calls
/// `free` at the end.
@safe struct HeldBlocks: BitwiseCopyable {
  enum Place: Int {
    case index
    case data
  }

  private let pins: UnsafeMutablePointer<PinnedBlock?>

  init() {
    unsafe pins = .allocate(capacity: 2)
    unsafe pins.initialize(to: nil)
    unsafe (pins + 1).initialize(to: nil)
  }

  /// The block held at `place`.
  @inline(__always)
  subscript(_ place: Place) -> Block? {
    unsafe pins[place.rawValue]?.block
  }

  /// Releases the block held at `place` and holds another, which it returns.
  @inline(__always)
  func hold(_ new: consuming PinnedBlock, at place: Place) -> Block {
    let block = new.block
    unsafe pins[place.rawValue] = consume new
    return block
  }

  /// Releases both blocks.
  @inline(__always)
  func letGo() {
    unsafe pins[Place.data.rawValue] = nil
    unsafe pins[Place.index.rawValue] = nil
  }

  func free() {
    unsafe pins.deinitialize(count: 2)
    unsafe pins.deallocate()
  }
}
