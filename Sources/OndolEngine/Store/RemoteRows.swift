// A cache of a store's rows as of one commit, the base. Pages are fetched on a cache miss and
// evicted when there are too many. Commits after the base are in the memtables above, which show
// what has changed since, so pages stay valid as long as the base is used. When the memtables have
// become too large, the base is moved: their rows are applied to the pages of a new cache, and
// views in use keep this one.
//
// Single rows are found by their hash. Ranges are in the order of their keys and do not overlap: of
// two concurrent reads that fetch the same rows, one keeps its page to itself.

internal import Synchronization

/// The rows of a store as of one commit.
final class RemoteRows: Sendable {
  fileprivate struct State: Sendable {
    /// By the hashes of their keys.
    var points: [UInt64: RemotePage] = [:]
    /// In the order of their keys.
    var ranges: [RemotePage] = []
    /// All of them, for the eviction hand.
    var ring: [RemotePage] = []
    var hand = 0
    var sizeBytes = 0
  }

  /// The commit as of which the rows are valid.
  let base: CommitPoint
  private let store: any RemoteStore
  private let budgetBytes: Int
  private let seed: UInt64
  private let bases: RemoteBases
  private let state: Guarded<State>

  /// - Parameter seed: for hashes that a person who chooses keys cannot predict.
  init(
    _ store: any RemoteStore, asOf base: CommitPoint, budgetBytes: Int, seed: UInt64,
    _ bases: RemoteBases
  ) {
    self.store = store
    self.base = base
    self.budgetBytes = budgetBytes
    self.seed = seed
    self.bases = bases
    state = Guarded(State())
    bases.add(base)
  }

  deinit { bases.remove(base) }

  // MARK: - Single rows

  /// Passes the value at `key` to `body`.
  ///
  /// - Returns: whether there is one; nil when it must be fetched and may not block.
  func find(
    _ key: RawSpan, mayBlock: Bool, _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    if let page = known(key) { return Self.give(page, key, body) }
    guard mayBlock else { return nil }
    return Self.give(try load([key.array])[0], key, body)
  }

  /// The same for a key that is not cached, when the store answers at once; nil when it does not.
  func findAtOnce(
    _ key: RawSpan, _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    let keys = [key.array]
    guard let rows = try store.rowsAtOnce(at: keys, asOf: base) else { return nil }
    return Self.give(try keep(rows, at: keys)[0], key, body)
  }

  private static func give(
    _ page: RemotePage, _ key: RawSpan, _ body: (RowKind, RawSpan) -> Void
  ) -> Bool {
    guard let row = page.find(key) else { return false }
    body(.put, page.value(row, heldBy: page))
    return true
  }

  /// A page that covers `key`.
  private func known(_ key: RawSpan) -> RemotePage? {
    let hash = KeyHash.hash(key, seed: seed)
    let page = state.withLock { state -> RemotePage? in
      if let page = state.points[hash], page.covers(key) { return page }
      return state.range(covering: key)
    }
    page?.isUsed.store(true, ordering: .relaxed)
    return page
  }

  /// Fetches the keys that are not cached, all at once. Blocks.
  func warm(_ keys: some Sequence<[UInt8]>) throws(EngineError) {
    let missing = Set(keys.filter { known($0.bytes) == nil })
    if !missing.isEmpty { _ = try load(Array(missing)) }
  }

  /// Fetches the rows of the keys; returns their pages in the keys' order.
  private func load(_ keys: [[UInt8]]) throws(EngineError) -> [RemotePage] {
    try keep(try store.rows(at: keys, asOf: base), at: keys)
  }

  /// Caches the store's answer for the keys; returns a page for each, in their order.
  private func keep(
    _ rows: [RemoteRow], at keys: [[UInt8]]
  ) throws(EngineError) -> [RemotePage] {
    var values: [[UInt8]: [UInt8]] = [:]
    for row in rows {
      values[row.key] = try RemoteValue.decode(row.value, row.sequence, from: store.name)
    }
    let pages = keys.map { RemotePage(at: $0, value: values[$0]) }
    let hashes = keys.map { KeyHash.hash($0.bytes, seed: seed) }
    state.withLock { state in
      for (page, hash) in zip(pages, hashes) where state.points[hash] == nil {
        state.points[hash] = page
        state.admit(page)
      }
      evict(&state)
    }
    return pages
  }

  // MARK: - Ranges

  /// The number of rows that a cursor fetches at once, at first and at most.
  static let leastFetched = 256
  static let mostFetched = 4096

  /// The page with the rows from `key` on; if it must be fetched, it ends at `upper` at the latest.
  func page(
    from key: [UInt8], to upper: [UInt8], atMost count: Int, mayBlock: Bool
  ) throws(EngineError) -> RemotePage {
    let (known, end) = state.withLock { state -> (RemotePage?, [UInt8]) in
      if let page = state.range(covering: key.bytes) { return (page, []) }
      return (nil, state.lower(behind: key.bytes) ?? upper)
    }
    if let known {
      known.isUsed.store(true, ordering: .relaxed)
      return known
    }
    guard mayBlock else { throw .wouldBlock }
    let bound = end.isEmpty || !upper.isEmpty && upper.bytes.compare(end.bytes) < 0 ? upper : end
    let rows = try fetch(from: key, to: bound, reversed: false, atMost: count)
    let isWhole = rows.count < count
    return keep(
      RemotePage(from: key, to: isWhole ? bound : (rows.last?.key ?? key) + [0], rows))
  }

  /// The page with the rows before `key`, no bound when empty; if it must be fetched, it begins at
  /// `lower` at the earliest.
  func page(
    before key: [UInt8], from lower: [UInt8], atMost count: Int, mayBlock: Bool
  ) throws(EngineError) -> RemotePage {
    let (known, start) = state.withLock { state in state.range(before: key) }
    if let known {
      known.isUsed.store(true, ordering: .relaxed)
      return known
    }
    guard mayBlock else { throw .wouldBlock }
    let bound = start.bytes.compare(lower.bytes) > 0 ? start : lower
    let rows = try fetch(from: bound, to: key, reversed: true, atMost: count)
    let isWhole = rows.count < count
    return keep(RemotePage(from: isWhole ? bound : rows.first?.key ?? bound, to: key, rows))
  }

  private func fetch(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int
  ) throws(EngineError) -> [(key: [UInt8], value: [UInt8])] {
    let rows = try store.rows(
      from: lower, to: upper, reversed: reversed, atMost: count, asOf: base)
    var decoded: [(key: [UInt8], value: [UInt8])] = []
    decoded.reserveCapacity(rows.count)
    var previous = lower
    for row in rows {
      let order = row.key.bytes.compare(previous.bytes)
      guard order > 0 || order == 0 && decoded.isEmpty,
        upper.isEmpty || row.key.bytes.compare(upper.bytes) < 0
      else {
        throw .corrupt(file: store.name, offset: 0, reason: "its rows are out of order")
      }
      previous = row.key
      let value = try RemoteValue.decode(row.value, row.sequence, from: store.name)
      decoded.append((row.key, value))
    }
    return decoded
  }

  /// Caches a page, unless another read has cached part of it meanwhile.
  private func keep(_ page: RemotePage) -> RemotePage {
    state.withLock { state in
      guard state.insert(page) else { return }
      evict(&state)
    }
    return page
  }

  // MARK: - Memory

  /// Evicts pages that were not used for a round, until the rest is within the budget.
  private func evict(_ state: inout State) {
    var looks = 2 * state.ring.count
    while state.sizeBytes > budgetBytes, looks > 0, !state.ring.isEmpty {
      looks -= 1
      if state.hand >= state.ring.count { state.hand = 0 }
      let page = state.ring[state.hand]
      if page.isUsed.exchange(false, ordering: .relaxed) {
        state.hand += 1
        continue
      }
      state.ring.swapAt(state.hand, state.ring.count - 1)
      state.ring.removeLast()
      state.sizeBytes -= page.sizeBytes
      let hash = page.hash(seed: seed)
      if state.points[hash] === page {
        state.points[hash] = nil
      } else {
        state.remove(page)
      }
    }
  }

  /// Bytes of the pages.
  var sizeBytes: Int { state.withLock { $0.sizeBytes } }

  // MARK: - Moving the base

  /// The rows as of a later commit: the cached rows with `changes`, the results of the commits in
  /// between, in the order of their keys.
  ///
  /// - Complexity: O(pages + changes), and the rows of the pages that change.
  func moved(to base: CommitPoint, by changes: [RemoteChange]) -> RemoteRows {
    let moved = RemoteRows(store, asOf: base, budgetBytes: budgetBytes, seed: seed, bases)
    let (points, ranges) = state.withLock { ($0.points, $0.ranges) }
    var state = State()
    state.points = points
    for change in changes {
      let hash = KeyHash.hash(change.key.bytes, seed: seed)
      guard let page = points[hash], page.covers(change.key.bytes) else { continue }
      state.points[hash] = RemotePage(at: change.key, value: change.value)
    }
    var place = 0
    for range in ranges {
      while place < changes.count, changes[place].key.order(range.lower) < 0 {
        place += 1
      }
      let start = place
      while place < changes.count, range.isBefore(upper: changes[place]) { place += 1 }
      state.ranges.append(start == place ? range : range.applying(changes[start..<place]))
    }
    state.ring = Array(state.points.values) + state.ranges
    state.sizeBytes = state.ring.reduce(0) { $0 + $1.sizeBytes }
    moved.state.withLock { [state] in $0 = state }
    return moved
  }
}

extension RemoteRows.State {
  /// The place of the first range that begins after `key`.
  private func place(behind key: RawSpan) -> Int {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].lower.order(key) <= 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private func place(behind page: RemotePage) -> Int {
    let lower = page.lower
    return place(behind: lower.bytes)
  }

  fileprivate func range(covering key: RawSpan) -> RemotePage? {
    let place = place(behind: key)
    guard place > 0, ranges[place - 1].isBefore(upper: key) else { return nil }
    return ranges[place - 1]
  }

  /// Where the next range after `key` begins.
  fileprivate func lower(behind key: RawSpan) -> [UInt8]? {
    let place = place(behind: key)
    return place < ranges.count ? ranges[place].lower : nil
  }

  /// The range with the rows before `key`, no bound when empty; if there is none, the end of the
  /// last one before.
  fileprivate func range(before key: [UInt8]) -> (RemotePage?, [UInt8]) {
    var place = ranges.count
    if !key.isEmpty {
      place = self.place(behind: key.bytes)
      if place > 0, ranges[place - 1].lower == key { place -= 1 }
    }
    guard place > 0 else { return (nil, []) }
    let range = ranges[place - 1]
    let reaches =
      range.upper.isEmpty || !key.isEmpty && range.upper.order(key) >= 0
    return reaches ? (range, []) : (nil, range.upper)
  }

  /// Inserts a range; false when it overlaps another or has no key.
  fileprivate mutating func insert(_ page: RemotePage) -> Bool {
    guard page.upper.isEmpty || page.lower.order(page.upper) < 0 else { return false }
    let place = place(behind: page)
    if place > 0, ranges[place - 1].isBefore(upper: page) { return false }
    if place < ranges.count, page.isBefore(upper: ranges[place]) { return false }
    ranges.insert(page, at: place)
    admit(page)
    return true
  }

  fileprivate mutating func admit(_ page: RemotePage) {
    ring.append(page)
    sizeBytes += page.sizeBytes
  }

  fileprivate mutating func remove(_ page: RemotePage) {
    let place = place(behind: page)
    if place > 0, ranges[place - 1] === page { ranges.remove(at: place - 1) }
  }
}

/// Keeps the rows visible as of a snapshot's base from being removed, in all processes, while it
/// exists.
package final class HeldBase: Sendable {
  private let bases: RemoteBases
  private let base: CommitPoint

  fileprivate init(_ base: CommitPoint, in bases: RemoteBases) {
    (self.base, self.bases) = (base, bases)
    bases.add(base)
  }

  deinit { bases.remove(base) }
}

extension RemoteRows {
  /// Keeps the rows as of this base from being removed.
  func hold() -> HeldBase { HeldBase(base, in: bases) }
}

/// The bases in use: nothing after the oldest may be removed.
final class RemoteBases: Sendable {
  private let counts = Guarded<[CommitPoint: Int]>([:])

  func add(_ base: CommitPoint) {
    counts.withLock { $0[base, default: 0] += 1 }
  }

  func remove(_ base: CommitPoint) {
    counts.withLock { counts in
      let left = (counts[base] ?? 1) - 1
      counts[base] = left == 0 ? nil : left
    }
  }

  var oldest: CommitPoint? {
    counts.withLock { $0.keys.min { $0.sequence < $1.sequence } }
  }
}
