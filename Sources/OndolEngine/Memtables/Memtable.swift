// The newest rows of a shard, in memory, ordered: a skip list in one block of memory. The sequencer
// is the only writer; any number of readers read concurrently without a lock.
//
// Rows are added, one or many, and then linked together. Invariants: (1) a node is complete before
// the store-release that links it at level 0, so a reader that follows a link with load-acquire
// sees a whole node; (2) nodes are never changed or removed, only the links of their neighbours
// are; (3) the order is (key ascending, sequence descending), so the newest version of a key comes
// first, and a reader skips versions newer than its snapshot. When the last view that uses the
// memtable is released, its memory is freed as a whole, or reused by the next one.
//
// Nodes fill the memory from the front and values from the back. A search only touches nodes, and
// close together they stay in the processor's caches and its TLB, which they would not with values
// of some hundred bytes between them (measured at 64 MiB: an insert took three times as long).
//
// Links are offsets in units of eight bytes from the base: four bytes each, up to 32 GiB. The first
// twelve bytes of a key, its keyspace and eight more, are in its node as two numbers, so that most
// comparisons touch nothing else.
//
// Ascending keys, such as numbers and times, come directly after each other: the list remembers the
// last linked node and the path to it, the finger, and the next one needs no search.

internal import Synchronization

/// An insert-only ordered map from (key, sequence) to rows.
@safe
final class Memtable: @unchecked Sendable {
  // Safe: only the one writer touches the ends of nodes, the beginnings of values and the counters,
  // within the sequencer's lock; readers only follow atomic links into complete memory.

  /// The layout of a node. Links follow the fixed part, then the key.
  private enum Node {
    static let head = 0  // UInt64: the eight bytes behind the key's keyspace, high byte first
    static let tag = 8  // UInt64: sequence << 8 | height << 4 | kind
    static let keyLength = 16  // UInt32
    static let valueLength = 20  // UInt32
    static let value = 24  // UInt32: offset of the value, in units of eight bytes
    static let keyspace = 28  // UInt32: the key's first four bytes, high byte first
    static let links = 32  // height x UInt32
  }

  static let maximumHeight = 14

  private let memory: LargeMemory
  private let base: UnsafeMutableRawPointer
  /// The source of the memory, to which it returns in the end.
  private let pool: MemtableMemory?
  let capacity: Int
  /// Nodes end here, and values begin here. Nodes are in the order of their commits.
  private(set) var nodesEnd: Int
  private var valuesStart: Int
  private var random: UInt64 = 0x2545_F491_4F6C_DD1D
  /// Nodes that are not linked yet, and the places found for them, a lane's level by level.
  private let lanes: UnsafeMutablePointer<Lane>
  private let places: UnsafeMutablePointer<Int>
  private var laneCount = 0
  /// The node that was linked last, and the lane whose places are the path after it.
  private var finger = (node: 0, lane: 0)
  /// Whether the last searched node came directly after the previous one.
  private var isAscending = false
  private let listHeight = Atomic<Int>(1)
  private let rowCount = Atomic<Int>(0)
  /// The bytes of all linked rows, for threads that do not write.
  private let linkedBytes = Atomic<Int>(0)

  /// The budget of the memory in use, and how much has been charged.
  private var budget: BlockCache?
  private var charged = 0

  /// The smallest and the largest sequence in it; the sequencer writes them before anything is
  /// published.
  private(set) var sequences: ClosedRange<SequenceNumber>?
  /// The log that holds the first commit in it.
  private(set) var firstLog: FileNumber?
  /// Where the nodes of some of the commits begin, in their order; at least this many bytes apart.
  private(set) var marks: [(sequence: SequenceNumber, place: Int)] = []
  private var markDistance: Int { max(1 << 10, capacity >> 8) }

  /// The bytes before the nodes: the beginnings of all levels.
  private static let headLength = Node.links + 4 * maximumHeight

  /// The memory that a memtable with room for `capacity` bytes needs.
  static func size(forCapacity capacity: Int) -> Int {
    (capacity + headLength + 15) & ~7
  }

  /// Makes room for `capacity` bytes of nodes.
  init(capacity: Int, from pool: MemtableMemory? = nil) {
    self.pool = pool
    self.capacity = Self.size(forCapacity: capacity)
    memory = pool?.take(self.capacity) ?? LargeMemory(self.capacity)
    unsafe base = memory.base
    unsafe lanes = .allocate(capacity: Self.laneLimit)
    unsafe places = .allocate(capacity: Self.laneLimit * Self.maximumHeight)
    unsafe places.initialize(repeating: 0, count: Self.laneLimit * Self.maximumHeight)
    nodesEnd = (Self.headLength + 7) & ~7
    valuesStart = self.capacity
    linkedBytes.store(nodesEnd, ordering: .relaxed)
    unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: nodesEnd)
    for level in 0..<Self.maximumHeight {
      unsafe link(of: 0, level).initialize(to: Atomic(0))
    }
  }

  deinit {
    budget?.release(charged)
    pool?.giveBack(memory)
    unsafe lanes.deallocate()
    unsafe places.deallocate()
  }

  // MARK: - Budget

  /// Charges the bytes in use to `budget` from now on, in steps, until the memtable is freed. Must
  /// be called before any other thread sees the memtable.
  func charge(to budget: BlockCache?) {
    self.budget = budget
    if !isEmpty { chargeBytesInUse() }
  }

  /// Charges to the budget that `other` is charged to.
  func charge(like other: Memtable) {
    charge(to: other.budget)
  }

  private func chargeBytesInUse() {
    guard let budget, usedBytes > charged else { return }
    let step = max(4 << 10, capacity >> 6)
    let bytes = (usedBytes - charged + step - 1) / step * step
    charged += bytes
    budget.reserve(bytes)
  }

  var isEmpty: Bool { rowCount.load(ordering: .acquiring) == 0 }
  var rows: Int { rowCount.load(ordering: .relaxed) }
  /// Bytes in use by rows that readers find.
  var sizeBytes: Int { linkedBytes.load(ordering: .relaxed) }

  private var usedBytes: Int { capacity - room }
  private var room: Int { valuesStart - nodesEnd }

  /// Whether rows with this many bytes of keys and values are certain to fit.
  func hasRoom(forRows count: Int, bytes: Int) -> Bool {
    let (nodes, overflow) = count.multipliedReportingOverflow(by: Self.nodeOverhead)
    return !overflow && nodes < room && bytes <= room - nodes
  }

  /// The most that a row takes beyond its key and value.
  static let nodeOverhead = Node.links + 4 * maximumHeight + 16

  // MARK: - Writing

  /// Announces that the rows of commit `sequence`, which is in `log`, are about to be inserted.
  func begin(_ sequence: SequenceNumber, log: FileNumber) {
    // Not before: a memtable that stays empty, as after most opens, must cost only one small page.
    if sequences == nil { memory.expectUse() }
    sequences = (sequences?.lowerBound ?? sequence)...sequence
    if firstLog == nil { firstLog = log }
    if nodesEnd - (marks.last?.place ?? -markDistance) >= markDistance {
      marks.append((sequence, nodesEnd))
    }
  }

  /// Records that recovery has moved its commits to another log.
  func moveToLog(_ log: FileNumber) {
    if firstLog != nil { firstLog = log }
  }

  /// Adds a row, which readers find once `link()` has been called. The caller must have checked the
  /// room.
  func add(_ key: RawSpan, _ sequence: SequenceNumber, _ kind: RowKind, _ value: RawSpan) {
    if laneCount == Self.laneLimit { link() }
    let height = randomHeight()
    let node = allocate(height: height, key: key, value: value, sequence, kind)
    if usedBytes > charged { chargeBytesInUse() }
    unsafe lanes[laneCount] = Lane(node: node, height: height)
    laneCount += 1
  }

  /// Makes every row added so far visible. The searches for their places run interleaved, because
  /// each of them mostly waits for memory.
  func link() {
    guard laneCount > 0 else { return }
    var linked = 0
    if isAscending {
      while linked < laneCount, linkAtFinger(unsafe lanes[linked]) { linked += 1 }
    }
    if linked < laneCount {
      findPlaces(of: linked..<laneCount)
      for number in linked..<laneCount { linkNode(of: number) }
    }
    rowCount.store(rowCount.load(ordering: .relaxed) + laneCount, ordering: .releasing)
    linkedBytes.store(usedBytes, ordering: .relaxed)
    laneCount = 0
    pool?.touchAhead(in: memory, front: nodesEnd, back: capacity - valuesStart)
  }

  /// A node that is being linked, and the state of the search for its place.
  private struct Lane {
    var node: Int
    var height: Int
    var predecessor = 0
    var next = 0
    var level = 0
  }

  /// The number of memory accesses that a processor can wait for at once.
  private static let laneLimit = 16

  /// Brings each lane to its node's place on every level, one step of each in turn.
  private func findPlaces(of numbers: Range<Int>) {
    let top = listHeight.load(ordering: .relaxed) - 1
    let first = load(0, top)
    for number in numbers {
      unsafe lanes[number].level = top
      unsafe lanes[number].next = first
      for level in (top + 1)..<Self.maximumHeight {
        unsafe places[number * Self.maximumHeight + level] = 0
      }
    }
    var searching = numbers.count
    while searching > 0 {
      for number in numbers where unsafe lanes[number].level >= 0 {
        if !step(number) { searching -= 1 }
      }
    }
  }

  /// A step forward or down; false when the lane has reached its end.
  @inline(__always)
  private func step(_ number: Int) -> Bool {
    var lane = unsafe lanes[number]
    if lane.next != 0, isNode(lane.next, beforeNode: lane.node) {
      lane.predecessor = lane.next
    } else {
      unsafe places[number * Self.maximumHeight + lane.level] = lane.predecessor
      lane.level -= 1
    }
    if lane.level >= 0 {
      lane.next = load(lane.predecessor, lane.level)
      unsafe prefetch(base + lane.next)
      unsafe prefetch(base + lane.next + Node.links)
    }
    unsafe lanes[number] = lane
    return lane.level >= 0
  }

  /// Links the node of a lane whose search has ended.
  private func linkNode(of number: Int) {
    let lane = unsafe lanes[number]
    let predecessor = unsafe link(lane, behind: places + number * Self.maximumHeight)
    isAscending = predecessor == finger.node
    finger = (lane.node, number)
  }

  /// Links the node of a lane directly after the finger, if it belongs there.
  ///
  /// - Complexity: O(1), whatever the list has.
  private func linkAtFinger(_ lane: Lane) -> Bool {
    guard isNode(finger.node, beforeNode: lane.node) else { return false }
    let next = load(finger.node, 0)
    guard next == 0 || !isNode(next, beforeNode: lane.node) else { return false }
    _ = unsafe link(lane, behind: places + finger.lane * Self.maximumHeight)
    finger.node = lane.node
    return true
  }

  /// Links a node after `places`, or after nodes that were linked there since they were found, and
  /// makes them the path after the node. Returns the node before it.
  private func link(_ lane: Lane, behind places: UnsafeMutablePointer<Int>) -> Int {
    let (node, height) = (lane.node, lane.height)
    for level in 0..<height {
      var next = unsafe load(places[level], level)
      while next != 0, isNode(next, beforeNode: node) {
        unsafe places[level] = next
        next = load(next, level)
      }
      // The new node's own links are all set before the first link to it.
      unsafe link(of: node, level).initialize(to: Atomic(UInt32(next >> 3)))
    }
    if height > listHeight.load(ordering: .relaxed) {
      listHeight.store(height, ordering: .releasing)
    }
    let predecessor = unsafe places[0]
    for level in 0..<height {
      unsafe link(of: places[level], level).pointee
        .store(UInt32(node >> 3), ordering: .releasing)
      unsafe places[level] = node
    }
    return predecessor
  }

  /// Whether `node` comes before `other`, which is not in the list yet: before other rows of the
  /// same key and commit, because the last one of a batch wins.
  @inline(__always)
  private func isNode(_ node: Int, beforeNode other: Int) -> Bool {
    let (head, otherHead) = (head(of: node), head(of: other))
    if head != otherHead { return head < otherHead }
    let order = key(of: node).compare(key(of: other))
    return order != 0 ? order < 0 : tag(of: node) > tag(of: other) | 0xff
  }

  /// Bytes of a node.
  static func length(height: Int, keyLength: Int) -> Int {
    (Node.links + 4 * height + keyLength + 7) & ~7
  }

  private func allocate(
    height: Int, key: RawSpan, value: RawSpan, _ sequence: SequenceNumber, _ kind: RowKind
  ) -> Int {
    let links = Node.links + 4 * height
    let length = Self.length(height: height, keyLength: key.byteCount)
    let valueLength = (value.byteCount + 7) & ~7
    precondition(
      length + valueLength <= room, "room is made sure of before rows are inserted")
    let node = nodesEnd
    nodesEnd += length
    valuesStart -= valueLength
    let place = unsafe base + node
    let head = KeyHead(key)
    unsafe place.storeBytes(of: head.rest, toByteOffset: Node.head, as: UInt64.self)
    unsafe place.storeBytes(
      of: sequence.rawValue << 8 | UInt64(height) << 4 | UInt64(kind.rawValue),
      toByteOffset: Node.tag, as: UInt64.self)
    unsafe place.storeBytes(
      of: UInt32(key.byteCount), toByteOffset: Node.keyLength, as: UInt32.self)
    unsafe place.storeBytes(
      of: UInt32(value.byteCount), toByteOffset: Node.valueLength, as: UInt32.self)
    unsafe place.storeBytes(
      of: UInt32(valuesStart >> 3), toByteOffset: Node.value, as: UInt32.self)
    unsafe place.storeBytes(of: head.keyspace, toByteOffset: Node.keyspace, as: UInt32.self)
    unsafe copy(key, to: place + links)
    unsafe copy(value, to: base + valuesStart)
    return node
  }

  private func copy(_ bytes: RawSpan, to place: UnsafeMutableRawPointer) {
    unsafe bytes.withUnsafeBytes { source in
      if let start = source.baseAddress {
        unsafe place.copyMemory(from: start, byteCount: source.count)
      }
    }
  }

  /// One more level with a probability of one in four.
  private func randomHeight() -> Int {
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    var height = 1
    var bits = random
    while height < Self.maximumHeight, bits & 3 == 0 {
      height += 1
      bits >>= 2
    }
    return height
  }

  // MARK: - Reading

  /// The key of `node`, borrowed.
  @_lifetime(borrow self)
  func key(of node: Int) -> RawSpan {
    let start = unsafe base + node + Node.links + 4 * height(of: node)
    // Safe: nodes live and stay unchanged as long as the memtable does.
    let span = unsafe RawSpan(_unsafeStart: start, byteCount: keyLength(of: node))
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// The value of `node`, borrowed.
  @_lifetime(borrow self)
  func value(of node: Int) -> RawSpan {
    let offset = unsafe base.load(fromByteOffset: node + Node.value, as: UInt32.self)
    let start = unsafe base + Int(offset) << 3
    let length = unsafe base.load(fromByteOffset: node + Node.valueLength, as: UInt32.self)
    // Safe: as for keys.
    let span = unsafe RawSpan(_unsafeStart: start, byteCount: Int(length))
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// The key of `node`, for a holder of this memtable.
  @_lifetime(borrow owner)
  func key<Owner: AnyObject>(of node: Int, heldBy owner: borrowing Owner) -> RawSpan {
    held(key(of: node), by: owner)
  }

  /// The value of `node`, for a holder of this memtable.
  @_lifetime(borrow owner)
  func value<Owner: AnyObject>(of node: Int, heldBy owner: borrowing Owner) -> RawSpan {
    held(value(of: node), by: owner)
  }

  func kind(of node: Int) -> RowKind {
    tag(of: node) & 0xf == UInt64(RowKind.put.rawValue) ? .put : .delete
  }

  func sequence(of node: Int) -> SequenceNumber {
    SequenceNumber(rawValue: tag(of: node) >> 8)
  }

  // MARK: - Parts of nodes

  /// The highest level at which there are nodes.
  var topLevel: Int { listHeight.load(ordering: .acquiring) - 1 }

  @inline(__always)
  private func head(of node: Int) -> KeyHead {
    unsafe KeyHead(
      keyspace: base.load(fromByteOffset: node + Node.keyspace, as: UInt32.self),
      rest: base.load(fromByteOffset: node + Node.head, as: UInt64.self))
  }

  private func tag(of node: Int) -> UInt64 {
    unsafe base.load(fromByteOffset: node + Node.tag, as: UInt64.self)
  }

  func keyLength(of node: Int) -> Int {
    unsafe Int(base.load(fromByteOffset: node + Node.keyLength, as: UInt32.self))
  }

  func height(of node: Int) -> Int {
    Int(tag(of: node) >> 4 & 0xf)
  }

  private func link(of node: Int, _ level: Int) -> UnsafeMutablePointer<Atomic<UInt32>> {
    unsafe (base + node + Node.links + 4 * level).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// The node that follows `node` at a level.
  func load(_ node: Int, _ level: Int) -> Int {
    unsafe Int(link(of: node, level).pointee.load(ordering: .acquiring)) << 3
  }

  /// Whether `node` comes before the pair of `key` and `tag`.
  func isNode(_ node: Int, beforeHead head: KeyHead, _ key: RawSpan, tag: UInt64) -> Bool {
    let nodeHead = self.head(of: node)
    if nodeHead != head { return nodeHead < head }
    let order = self.key(of: node).compare(key)
    return order != 0 ? order < 0 : self.tag(of: node) > tag
  }
}
