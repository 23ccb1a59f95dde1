// Many gets at once. A get is a chain of loads, each of which waits for the previous one, but the
// chains of different keys do not wait for each other. So a group of keys goes through the search
// in step: each stage prefetches the memory that the next one needs, for all keys of the group, and
// most of it has arrived when the next stage begins.
//
// Only the usual state after a major compaction is searched in step: one run in the shard, the key
// in no memtable, the blocks in memory. Every other key is looked up separately.

extension ViewTable {
  /// Looks up the keys at `places` and passes each result to `body`, with its place, in order.
  ///
  /// - Returns: false when it stopped at a key whose answer is in a block that is not in memory.
  /// - Complexity: O(keys x log rows); a few cache misses a key, which overlap.
  func find(
    _ keys: [[UInt8]], at places: Range<Int>, upTo sequence: SequenceNumber, mayBlock: Bool,
    _ body: (Int, RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool {
    var lanes = Lanes()
    var start = places.lowerBound
    while start < places.upperBound {
      let group = start..<min(start + Lanes.count, places.upperBound)
      for place in group {
        let key = keys[place]
        lanes.set(place - start, aim(at: key.bytes, upTo: sequence))
      }
      for place in group { lanes.pin(place - start) }
      for place in group {
        let key = keys[place]
        lanes.search(place - start, key.bytes)
      }
      for place in group where !lanes.give(place - start, { body(place, $0, $1) }) {
        let key = keys[place]
        let isFound = try find(
          key.bytes, inShard: View.shardIndex(of: key.bytes, count: shardCount), upTo: sequence,
          mayBlock: mayBlock
        ) { body(place, $0, $1) }
        if isFound == nil { return false }
      }
      start = group.upperBound
    }
    return true
  }

  /// The only data block that can hold the key; nil when the case is not that simple.
  private func aim(at key: RawSpan, upTo sequence: SequenceNumber) -> SegmentTable.Aim? {
    guard let run = onlyRun(inShard: View.shardIndex(of: key, count: shardCount), besides: key)
    else { return nil }
    let index = run.segmentIndex(atOrAfter: key)
    guard index < run.count else { return nil }
    return run.table(index)?.aim(at: key)
  }
}

extension SegmentTable {
  /// A data block to search, and the likely position of a key in it.
  struct Aim: BitwiseCopyable {
    let slots: SlotTable
    let slot: Int
    let guess: Int
  }

  /// The data block that can hold `key`, whose slot is prefetched; nil when there is none or an
  /// index block is not in memory.
  func aim(at key: RawSpan) -> Aim? {
    let index = top.lowerBound(key)
    guard index < top.rowCount, let indexPin = slots.pinOrResident(index) else { return nil }
    let row = indexPin.block.lowerBound(key)
    guard row < indexPin.block.rowCount else { return nil }
    let position = indexPin.block.position(of: key, before: row) ?? 0
    let slot = dataSlot(index, row)
    slots.prefetch(slot)
    return Aim(slots: slots, slot: slot, guess: Int(position * meanRows))
  }
}

/// The searches of a group of keys, all at the same stage.
@safe private struct Lanes: ~Copyable {
  /// As many as the processor's concurrent loads, and some more.
  static let count = 16

  private struct Lane: ~Copyable {
    var aim: SegmentTable.Aim?
    var pin: PinnedBlock?
    /// The row found in the pinned block; -1 when it is not there.
    var row = -1
  }

  private let lanes: UnsafeMutablePointer<Lane>

  init() {
    unsafe lanes = .allocate(capacity: Self.count)
    for lane in 0..<Self.count { unsafe (lanes + lane).initialize(to: Lane()) }
  }

  deinit {
    unsafe lanes.deinitialize(count: Self.count)
    unsafe lanes.deallocate()
  }

  mutating func set(_ lane: Int, _ aim: SegmentTable.Aim?) {
    unsafe lanes[lane].aim = aim
  }

  /// Pins the target block and prefetches the rows around the guess.
  mutating func pin(_ lane: Int) {
    guard let aim = unsafe lanes[lane].aim, let pin = aim.slots.pin(aim.slot) else { return }
    pin.block.prefetch(around: aim.guess)
    unsafe lanes[lane].pin = consume pin
  }

  /// Finds the row and prefetches its value.
  mutating func search(_ lane: Int, _ key: RawSpan) {
    guard let block = unsafe lanes[lane].pin?.block else { return }
    let row = block.find(key) ?? -1
    unsafe lanes[lane].row = row
    if row >= 0 { block.prefetchValue(row) }
  }

  /// Passes the row to `body`, if there is one, and releases the block; false when the key was not
  /// looked up here, or its value is elsewhere.
  mutating func give(_ lane: Int, _ body: (RowKind, RawSpan) -> Void) -> Bool {
    guard let block = unsafe lanes[lane].pin?.block else { return false }
    defer { unsafe lanes[lane].pin = nil }
    let row = unsafe lanes[lane].row
    guard row >= 0 else { return true }
    let kind = block.kind(row)
    guard kind != .valuePointer else { return false }
    body(kind, block.value(row))
    return true
  }
}
