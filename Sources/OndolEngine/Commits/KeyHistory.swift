// Which keys were changed lately, for the guards of optimistic commits. Rows in memtables still
// tell the commit they came with; flushed ones are told apart no longer, so the keys of a flushed
// memtable are kept here for a while. Asked in stage 3 of the write path, filled by flushes.
//
// A guard that reaches further back than what is kept is refused: derive again rather than guess.

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

  /// How the key at `index` compares with `key`.
  private func order(_ index: Int, _ key: RawSpan) -> Int {
    let start = index == 0 ? 0 : ends[index - 1]
    let keys = keys
    return keys.bytes.extracting(start..<ends[index]).compare(key)
  }
}

/// What is known of flushed keys, in a bounded number of bytes.
struct RecentKeys: Sendable {
  private struct ShardKeys: Sendable {
    /// Oldest first.
    var histories: [KeyHistory] = []
    /// Nothing is known of commits up to here.
    var forgottenThrough = SequenceNumber.zero

    var knownThrough: SequenceNumber { histories.last?.through ?? forgottenThrough }
  }

  private var shards: [ShardKeys]
  private var sizeBytes = 0
  private let limitBytes: Int
  /// The last commit when a guarded one came.
  private var lastGuarded: SequenceNumber?

  init(shardCount: Int, limitBytes: Int) {
    shards = Array(repeating: ShardKeys(), count: shardCount)
    self.limitBytes = limitBytes
  }

  /// Commits after a guarded one for which the next is expected.
  private static let guardInterval: UInt64 = 100_000

  /// Notes that a guarded commit has come behind `lastPlaced`.
  mutating func noteGuard(behind lastPlaced: SequenceNumber) {
    lastGuarded = lastPlaced
  }

  /// Whether the keys of a memtable whose first commit is `first` may be asked for: not where
  /// commits have not been guarded for long.
  func isWanted(from first: SequenceNumber) -> Bool {
    lastGuarded.map { first.rawValue <= $0.rawValue + Self.guardInterval } ?? false
  }

  /// Adds what was flushed last from a shard, and forgets the oldest where it is too much.
  ///
  /// - Parameter flushedBefore: up to where the shard was flushed before. Of what was flushed
  ///   without being added nothing is known, nor of what came before that.
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

  /// Whether a commit after `basis` may have changed a flushed row for which `isChanged` asks, in a
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
