// The blocks of a cache that can be evicted, each once, in the order in which they will be looked
// at. A segment that goes takes its blocks with it and leaves their places in the ring, where they
// are passed over: a place names a table only by the address of its words, which is looked up
// before it is followed. Should another table have that address by then, the place leads to a slot
// of that one, which is as good as any.

/// Places of blocks, in a ring.
struct BlockRing {
  private struct Place {
    var table: UInt
    var slot: Int
  }

  private var tables: [UInt: SlotTable] = [:]
  /// A buffer that is gone around: `count` places from `first` on.
  private var places: [Place] = []
  private var first = 0
  private(set) var count = 0

  mutating func add(_ table: SlotTable) {
    tables[table.address] = table
  }

  mutating func remove(_ table: SlotTable) {
    tables[table.address] = nil
  }

  /// Notes that there is a block in a slot.
  mutating func append(_ slot: Int, of table: SlotTable) {
    append(Place(table: table.address, slot: slot))
  }

  /// Looks at the next place, and takes the block that is there when it can go. Only for a ring
  /// that is not empty.
  ///
  /// - Complexity: O(1).
  mutating func turn() -> Block? {
    let place = places[first]
    first = first + 1 == places.count ? 0 : first + 1
    count -= 1
    guard let table = tables[place.table], place.slot < table.count else { return nil }
    switch table.sweep(place.slot) {
    case .taken(let block): return block
    case .kept: append(place)
    case .empty: break
    }
    return nil
  }

  private mutating func append(_ place: Place) {
    if count == places.count { grow() }
    let end = first + count
    places[end < places.count ? end : end - places.count] = place
    count += 1
  }

  private mutating func grow() {
    var grown: [Place] = []
    grown.reserveCapacity(max(64, 2 * count))
    grown += places[first...]
    grown += places[..<first]
    while grown.count < max(64, 2 * count) { grown.append(Place(table: 0, slot: 0)) }
    places = grown
    first = 0
  }
}
