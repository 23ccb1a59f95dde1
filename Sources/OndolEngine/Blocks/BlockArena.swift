// The blocks' allocator. The system's own puts blocks of a few kilobytes on small pages. A cache of
// some hundred megabytes has more of these than the processor's TLB has entries, so that every
// block of a get costs a walk through the page tables; it also suffers from fragmentation. Here
// memory comes in slabs of one large page each.
//
// A slab is divided into units. Consecutive units form runs, free or in use. At the beginning of a
// slab there is a tag for each unit. The tags of a run's first and last unit hold its length and
// whether it is free, so that a freed run is joined with its free neighbours at once. Free runs of
// similar length are in a list that goes through the runs themselves. A slab that is all free goes
// back to the system, except one, which the next block may need.
//
// A unit is five cache lines, not a power of two: otherwise all blocks would begin in the same few
// sets of the processor's caches.

/// Runs of units in slabs. Must not be shared without a lock.
@safe struct BlockArena: ~Copyable {
  static let unit = 320
  static let slabSize = 2 << 20
  private static let unitCount = slabSize / unit
  /// Units at the beginning of a slab: the tags, and then the number of units in use.
  private static let firstUnit = (2 * unitCount + unit - 1) / unit + 1
  /// The units of a slab that is all free.
  static let longestRun = unitCount - firstUnit
  private static let freeBit: UInt16 = 1 << 15

  /// At the beginning of a free run: its neighbours in the list.
  private struct Links {
    var next: UInt
    var previous: UInt
  }

  /// The first run of each list, 0 when it is empty, and a bit for each non-empty list.
  private var lists = [UInt](repeating: 0, count: 128)
  private var filled = (low: UInt64(0), high: UInt64(0))
  private var slabCount = 0
  private var emptySlabs = 0
  /// The first slab, as long as it has small pages.
  private var plainSlab: UInt = 0

  var mappedBytes: Int { slabCount * Self.slabSize }

  // MARK: - Allocating

  /// The address of `count` units, at the start of a cache line; 0 when the system has no memory.
  mutating func allocate(_ count: Int) -> UInt {
    var run = findRun(count)
    if run == 0 {
      guard mapSlab() else { return 0 }
      run = findRun(count)
    }
    remove(run)
    let length = length(run)
    if length > count {
      insert(run + UInt(count * Self.unit), length - count)
    }
    if usedUnits(run) == 0 { emptySlabs -= 1 }
    addUsedUnits(run, count)
    setTags(run, UInt16(count))
    unsafe unpoison(pointer(run), count * Self.unit)
    return run
  }

  /// Frees the run at `address`.
  mutating func free(_ address: UInt) {
    var run = address
    let count = length(run)
    unsafe poison(pointer(run), count * Self.unit)
    addUsedUnits(run, -count)
    var length = count
    let unit = Self.unitNumber(run)
    let before = tag(run, unit - 1)
    if unit > Self.firstUnit, before & Self.freeBit != 0 {
      let neighbour = run - UInt(Int(before & ~Self.freeBit) * Self.unit)
      length += self.length(neighbour)
      remove(neighbour)
      run = neighbour
    }
    let end = unit + count
    if end < Self.unitCount, tag(run, end) & Self.freeBit != 0 {
      let neighbour = address + UInt(count * Self.unit)
      length += self.length(neighbour)
      remove(neighbour)
    }
    if usedUnits(run) == 0 {
      if emptySlabs > 0 { return unmapSlab(Self.slab(run)) }
      emptySlabs += 1
    }
    insert(run, length)
  }

  // MARK: - Slabs

  /// The first slab has small pages until there is a second: a small database must not take a large
  /// page, nor its first read wait for one.
  private mutating func mapSlab() -> Bool {
    guard let memory = unsafe SystemMemory.map(Self.slabSize, alignedTo: Self.slabSize)
    else { return false }
    let slab = UInt(bitPattern: memory)
    if slabCount == 0 {
      plainSlab = slab
    } else {
      unsafe adviseLargePages(memory, Self.slabSize)
      if plainSlab != 0 { unsafe adviseLargePages(pointer(plainSlab), Self.slabSize) }
      plainSlab = 0
    }
    slabCount += 1
    emptySlabs += 1
    let run = slab + UInt(Self.firstUnit * Self.unit)
    unsafe poison(pointer(run), Self.longestRun * Self.unit)
    insert(run, Self.longestRun)
    return true
  }

  private mutating func unmapSlab(_ slab: UInt) {
    if slab == plainSlab { plainSlab = 0 }
    slabCount -= 1
    unsafe unpoison(pointer(slab), Self.slabSize)
    unsafe SystemMemory.unmap(pointer(slab), Self.slabSize)
  }

  private static func slab(_ run: UInt) -> UInt { run & ~UInt(slabSize - 1) }

  private static func unitNumber(_ run: UInt) -> Int { Int(run & UInt(slabSize - 1)) / unit }

  /// Units of the run's slab that are in use; mapped as 0.
  private func usedUnits(_ run: UInt) -> Int {
    unsafe pointer(Self.slab(run)).load(
      fromByteOffset: (Self.firstUnit - 1) * Self.unit, as: Int.self)
  }

  private func addUsedUnits(_ run: UInt, _ count: Int) {
    let used = usedUnits(run) + count
    unsafe pointer(Self.slab(run)).storeBytes(
      of: used, toByteOffset: (Self.firstUnit - 1) * Self.unit, as: Int.self)
  }

  // MARK: - Tags

  /// The tag of unit `number` in the slab of `run`.
  private func tag(_ run: UInt, _ number: Int) -> UInt16 {
    unsafe pointer(Self.slab(run)).load(fromByteOffset: 2 * number, as: UInt16.self)
  }

  private func length(_ run: UInt) -> Int {
    Int(tag(run, Self.unitNumber(run)) & ~Self.freeBit)
  }

  /// Writes the tags of a run as long as `tag` says.
  private func setTags(_ run: UInt, _ tag: UInt16) {
    let first = Self.unitNumber(run)
    let last = first + Int(tag & ~Self.freeBit) - 1
    let slab = unsafe pointer(Self.slab(run))
    unsafe slab.storeBytes(of: tag, toByteOffset: 2 * first, as: UInt16.self)
    unsafe slab.storeBytes(of: tag, toByteOffset: 2 * last, as: UInt16.self)
  }

  // MARK: - Lists

  /// The list for runs of `length` units: one for each length at first, then eight for each
  /// doubling.
  private static func list(_ length: Int) -> Int {
    if length < 64 { return length }
    let log = Int.bitWidth - 1 - length.leadingZeroBitCount
    return 64 + (log - 6) * 8 + (length >> (log - 3)) & 7
  }

  /// A free run of at least `count` units, usually of the smallest such length; 0 when there is
  /// none.
  private func findRun(_ count: Int) -> UInt {
    let list = Self.list(count)
    if list >= 64 {
      // This list also has runs that are too short.
      var run = lists[list]
      var rest = Self.longestLook
      while run != 0, rest > 0 {
        if length(run) >= count { return run }
        run = unsafe links(run).pointee.next
        rest -= 1
      }
    }
    let first = list < 64 ? list : list + 1
    let low = first < 64 ? filled.low & (~0 << UInt64(first)) : 0
    if low != 0 { return lists[low.trailingZeroBitCount] }
    let high = first < 64 ? filled.high : filled.high & (~0 << UInt64(first - 64))
    return high != 0 ? lists[64 + high.trailingZeroBitCount] : 0
  }

  /// How many runs of a list are checked for a sufficient length.
  private static let longestLook = 8

  private mutating func insert(_ run: UInt, _ length: Int) {
    setTags(run, UInt16(length) | Self.freeBit)
    let list = Self.list(length)
    let next = lists[list]
    unsafe unpoison(pointer(run), MemoryLayout<Links>.size)
    unsafe links(run).initialize(to: Links(next: next, previous: 0))
    if next != 0 { unsafe links(next).pointee.previous = run }
    lists[list] = run
    mark(list)
  }

  private mutating func remove(_ run: UInt) {
    let list = Self.list(length(run))
    let own = unsafe links(run).pointee
    if own.next != 0 { unsafe links(own.next).pointee.previous = own.previous }
    if own.previous != 0 {
      unsafe links(own.previous).pointee.next = own.next
    } else {
      lists[list] = own.next
      mark(list)
    }
    unsafe poison(pointer(run), MemoryLayout<Links>.size)
  }

  private mutating func mark(_ list: Int) {
    let bit: UInt64 = 1 << UInt64(list & 63)
    if list < 64 {
      filled.low = lists[list] != 0 ? filled.low | bit : filled.low & ~bit
    } else {
      filled.high = lists[list] != 0 ? filled.high | bit : filled.high & ~bit
    }
  }

  private func links(_ run: UInt) -> UnsafeMutablePointer<Links> {
    unsafe pointer(run).assumingMemoryBound(to: Links.self)
  }

  /// Safe to use for addresses of slabs and runs, which are never 0.
  private func pointer(_ address: UInt) -> UnsafeMutableRawPointer {
    unsafe UnsafeMutableRawPointer(bitPattern: address).unsafelyUnwrapped
  }
}
