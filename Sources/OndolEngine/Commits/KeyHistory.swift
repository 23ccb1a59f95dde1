// The recently changed keys, for the guards of optimistic commits. Rows in memtables still have
// their commit; flushed ones do not, so the keys of a flushed memtable are kept here for a while.
// Stage 3 of the write path reads it, flushes fill it.
//
// A guard that reaches further back than the kept keys is refused: derive again rather than guess.

/// The keys of one flushed memtable, ordered, each with the last commit that changed it.
final class KeyHistory: Sendable {
  /// The last commit in it.
  let through: SequenceNumber
  private let keys: [UInt8]
  /// Where each key ends in `keys`.
  private let ends: [Int]
  private let sequences: [SequenceNumber]

  /// Copies the keys of `memtable`, which takes no more rows.
  init(of memtable: Memtable, through: SequenceNumber) {
    var keys: [UInt8] = []
    var ends: [Int] = []
    var sequences: [SequenceNumber] = []
    var previous = 0
    var node = memtable.node(after: 0)
    while node != 0 {
      // The newest version of a key comes first.
      if previous == 0 || !memtable.haveEqualKeys(node, previous) {
        keys.append(memtable.key(of: node))
        ends.append(keys.count)
        sequences.append(memtable.sequence(of: node))
      }
      previous = node
      node = memtable.node(after: node)
    }
    self.through = through
    self.keys = keys
    self.ends = ends
    self.sequences = sequences
  }

  var sizeBytes: Int { keys.count + 16 * ends.count }

  /// Whether a commit after `basis` changed the row at `key`.
  func hasChange(of key: RawSpan, after basis: SequenceNumber) -> Bool {
    let index = firstIndex(atOrAfter: key)
    return index < ends.count && sequences[index] > basis && order(index, key) == 0
  }

  /// Whether a commit after `basis` changed a row from `lower` on and before `upper`, no bound when
  /// empty.
  func hasChange(
    from lower: RawSpan, to upper: RawSpan, after basis: SequenceNumber
  ) -> Bool {
    var index = firstIndex(atOrAfter: lower)
    while index < ends.count, upper.byteCount == 0 || order(index, upper) < 0 {
      if sequences[index] > basis { return true }
      index += 1
    }
    return false
  }

  private func firstIndex(atOrAfter key: RawSpan) -> Int {
    var low = 0
    var high = ends.count
    while low < high {
      let middle = (low + high) / 2
      if order(middle, key) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The order of the key at `index` relative to `key`.
  private func order(_ index: Int, _ key: RawSpan) -> Int {
    let start = index == 0 ? 0 : ends[index - 1]
    let keys = keys
    return keys.bytes.extracting(start..<ends[index]).compare(key)
  }
}

/// The known flushed keys, in a bounded number of bytes.
struct RecentKeys: Sendable {
  private struct ShardKeys: Sendable {
    /// Oldest first.
    var histories: [KeyHistory] = []
    /// Commits up to this one are not known any more.
    var forgottenThrough = SequenceNumber.zero

    var knownThrough: SequenceNumber { histories.last?.through ?? forgottenThrough }
  }

  private var shards: [ShardKeys]
  private var sizeBytes = 0
  private let limitBytes: Int
  /// The last commit at the time of the last guarded one.
  private var lastGuarded: SequenceNumber?

  init(shardCount: Int, limitBytes: Int) {
    shards = Array(repeating: ShardKeys(), count: shardCount)
    self.limitBytes = limitBytes
  }

  /// The number of commits after a guarded one within which the next is expected.
  private static let guardInterval: UInt64 = 100_000

  /// Records that a guarded commit has come after `lastPlaced`.
  mutating func noteGuard(behind lastPlaced: SequenceNumber) {
    lastGuarded = lastPlaced
  }

  /// Whether the keys of a memtable whose first commit is `first` may be needed: not when there
  /// have been no guarded commits for long.
  func isWanted(from first: SequenceNumber) -> Bool {
    lastGuarded.map { first.rawValue <= $0.rawValue + Self.guardInterval } ?? false
  }

  /// Adds the last flush of a shard, and drops the oldest keys when there are too many.
  ///
  /// - Parameter flushedBefore: the shard's previous flush point. Flushes that were not added are
  ///   unknown, and so is everything before them.
  mutating func add(_ history: KeyHistory, shard: Int, flushedBefore: SequenceNumber) {
    if shards[shard].knownThrough < flushedBefore {
      sizeBytes -= shards[shard].histories.reduce(0) { $0 + $1.sizeBytes }
      shards[shard] = ShardKeys(forgottenThrough: flushedBefore)
    }
    shards[shard].histories.append(history)
    sizeBytes += history.sizeBytes
    while sizeBytes > limitBytes, let oldest = shardOfOldest {
      let forgotten = shards[oldest].histories.removeFirst()
      shards[oldest].forgottenThrough = forgotten.through
      sizeBytes -= forgotten.sizeBytes
    }
  }

  private var shardOfOldest: Int? {
    shards.indices.filter { !shards[$0].histories.isEmpty }.min {
      shards[$0].histories[0].through < shards[$1].histories[0].through
    }
  }

  /// Whether a commit after `basis` may have changed a flushed row that `isChanged` checks, in a
  /// shard whose rows are flushed through `flushedThrough`.
  func mayHaveChange(
    in shard: Int, after basis: SequenceNumber, flushedThrough: SequenceNumber,
    _ isChanged: (KeyHistory) -> Bool
  ) -> Bool {
    if flushedThrough <= basis { return false }
    let known = shards[shard]
    if basis < known.forgottenThrough { return true }
    guard let last = known.histories.last, last.through >= flushedThrough else { return true }
    return known.histories.contains { $0.through > basis && isChanged($0) }
  }
}
