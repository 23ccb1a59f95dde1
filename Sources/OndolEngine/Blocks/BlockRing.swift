// The evictable blocks of a cache, each once, in the order in which they will be examined. A
// segment that is released takes its blocks with it and leaves their places in the ring. These are
// skipped, and removed when the ring would have to grow.

/// Places of blocks, in a ring.
struct BlockRing {
  private struct Place {
    /// The address of the table's words, and its number among the tables that had this address over
    /// time.
    var table: UInt
    var number: Int
    var slot: Int
  }

  private struct Registered {
    var number: Int
    var table: SlotTable
  }

  private var tables: [UInt: Registered] = [:]
  private var lastNumber = 0
  /// A ring buffer: `count` places from `first` on.
  private var places: [Place] = []
  private var first = 0
  private(set) var count = 0

  private static let least = 64

  mutating func add(_ table: SlotTable) {
    lastNumber += 1
    tables[table.address] = Registered(number: lastNumber, table: table)
  }

  mutating func remove(_ table: SlotTable) {
    tables[table.address] = nil
  }

  /// Adds the block in a slot of a registered table.
  ///
  /// - Complexity: O(1) on average.
  mutating func append(_ slot: Int, of table: SlotTable) {
    guard let registered = tables[table.address] else { return }
    append(Place(table: table.address, number: registered.number, slot: slot))
  }

  /// Examines the next place, and takes its block when that can be evicted. Only for a ring that is
  /// not empty.
  ///
  /// - Complexity: O(1).
  mutating func turn() -> Block? {
    let place = places[first]
    first = first + 1 == places.count ? 0 : first + 1
    count -= 1
    guard let table = table(of: place) else { return nil }
    switch table.sweep(place.slot) {
    case .taken(let block): return block
    case .kept: append(place)
    case .empty: break
    }
    return nil
  }

  private func table(of place: Place) -> SlotTable? {
    guard let registered = tables[place.table], registered.number == place.number else {
      return nil
    }
    return registered.table
  }

  private mutating func append(_ place: Place) {
    if count == places.count { makeRoom() }
    let end = first + count
    places[end < places.count ? end : end - places.count] = place
    count += 1
  }

  /// Removes places of tables that are gone; the buffer grows when more than half remain.
  private mutating func makeRoom() {
    var kept: [Place] = []
    kept.reserveCapacity(max(Self.least, 2 * count))
    for place in places[first...] where table(of: place) != nil { kept.append(place) }
    for place in places[..<first] where table(of: place) != nil { kept.append(place) }
    count = kept.count
    first = 0
    let size = max(Self.least, 2 * kept.count, places.count)
    while kept.count < size { kept.append(Place(table: 0, number: 0, slot: 0)) }
    places = kept
  }
}
