// Everything that a get needs of an open segment when all is in memory, in one small value that is
// copied without reference counting: the top of the index, the slots, the filter.

/// The result of a search for a key.
enum Lookup: ~Copyable {
  /// A row, which may be a tombstone, and the block that it is in.
  case found(PinnedBlock, row: Int)
  case absent
  /// A block that the search needs is not in memory, and it may not read the file.
  case notInMemory
}

/// The parts of an open segment that reads use. A plain reference: its owner calls `free` at the
/// end.
@safe struct SegmentTable: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: not written after init; slots are atomic.

  /// Points to the index blocks.
  let top: Block
  let slots: SlotTable
  let filter: FilterBits
  /// For each index block the slot of its first data block, and one more: the end.
  private let firstDataSlots: UnsafeMutablePointer<UInt32>
  /// The average number of rows in a data block.
  let meanRows: Double

  /// Index blocks have the first slots, data blocks the following ones, the parts of the filter the
  /// last.
  init(top: Block, slots: SlotTable, filter: FilterBits, firstDataSlots: [UInt32], meanRows: Double)
  {
    precondition(firstDataSlots.count == top.rowCount + 1, "a number for each index block")
    self.top = top
    self.slots = slots
    self.filter = filter
    self.meanRows = meanRows
    unsafe self.firstDataSlots = .allocate(capacity: firstDataSlots.count)
    unsafe self.firstDataSlots.initialize(from: firstDataSlots, count: firstDataSlots.count)
  }

  /// The slot of data block `row` of index block `index`, which must have that many.
  @inline(__always)
  func dataSlot(_ index: Int, _ row: Int) -> Int {
    // Safe: `index` is a row of `top`.
    unsafe Int(firstDataSlots[index]) + row
  }

  /// The slot of a part of the filter.
  func filterSlot(_ part: Int) -> Int { slots.count - filter.partCount + part }

  /// False when the part of the filter in memory shows that no key with this hash is present.
  func mayContain(_ hash: UInt64) -> Bool {
    guard filter.partCount > 0 else { return filter.mayContain(hash) }
    guard let pin = slots.pin(filterSlot(filter.part(of: hash))) else { return true }
    return filter.mayContain(hash, in: pin.block)
  }

  /// Searches for `key` in the blocks that are in memory.
  @inline(__always)
  func find(_ key: RawSpan) -> Lookup {
    let index = top.lowerBound(key)
    guard index < top.rowCount else { return .absent }
    guard let indexPin = slots.pinOrResident(index) else { return .notInMemory }
    let row = indexPin.block.lowerBound(key)
    guard row < indexPin.block.rowCount else { return .absent }
    let slot = dataSlot(index, row)
    // Prefetched before the pin: counting it delays later loads.
    if let position = indexPin.block.position(of: key, before: row) {
      slots.prefetchBlock(slot, around: Int(position * meanRows))
    }
    guard let pin = slots.pin(slot) else { return .notInMemory }
    guard let row = pin.block.find(key) else { return .absent }
    return .found(pin, row: row)
  }

  /// Its memory in bytes, without slots and blocks.
  var byteCount: Int {
    top.allocatedBytes + filter.byteCount + (top.rowCount + 1) * MemoryLayout<UInt32>.stride
  }

  func free() {
    unsafe firstDataSlots.deallocate()
    filter.free()
    top.free()
  }
}
