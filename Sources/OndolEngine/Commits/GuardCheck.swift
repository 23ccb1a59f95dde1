// Optimistic commits: checks whether anything that a batch was derived from has changed since. Keys
// and ranges are looked up in what memory still has, the memtables and the keys of recent flushes.
// A range also finds new rows in it, so rows that a query did not find are also guarded.
//
// The check happens where commits get their order, which blocks all other commits. So it looks only
// at a bounded number of rows there. A longer check is made outside, for the state at one moment,
// and then only what came later is checked.

/// One batch's guards, and how far its ranges were checked before it got its place.
struct GuardCheck {
  /// Rows checked where commits get their order, for all ranges of a batch.
  private static let mostSteps = 512
  /// How often a batch leaves that place to check more. Each time, only what came during the
  /// previous check remains.
  private static let mostLooks = 16

  /// The state at the moment when a check of ranges turned out to be long.
  private struct Moment {
    var view: View
    var recentKeys: RecentKeys
    /// The rows of each memtable that were not checked.
    var memtables: [(memtable: Memtable, places: Range<Int>)]
  }

  /// Each memtable's rows before this place were checked.
  private var ends: [(memtable: Memtable, end: Int)] = []
  /// Each shard's flushed rows were checked up to this commit.
  private var flushed: [Int: SequenceNumber] = [:]
  private var looks = 0
  private var unknown: Moment?

  /// Throws `.stale` when a guarded row or range was changed after the batch's basis, by any commit
  /// up to `lastPlaced`. Returns false when the check takes longer than others should wait: then
  /// `look` makes it outside, and this is called again.
  mutating func isKnown(
    _ batch: borrowing Batch, _ lastPlaced: SequenceNumber, _ view: View,
    _ recentKeys: RecentKeys
  ) throws(EngineError) -> Bool {
    guard let basis = batch.basis, basis < lastPlaced else { return true }
    for key in batch.guardedKeys {
      try Self.refuseChange(of: key, after: basis, view, recentKeys)
    }
    if batch.guardedRanges.isEmpty { return true }
    let memtables = view.shards.flatMap { [$0.active] + $0.sealed }
      .filter { $0.sequences?.upperBound ?? .zero > basis }
      .map { memtable in
        let start = ends.last { $0.memtable === memtable }?.end
        return (
          memtable, (start ?? memtable.place(ofCommitsAfter: basis))..<memtable.nodesEnd
        )
      }
    let moment = Moment(view: view, recentKeys: recentKeys, memtables: memtables)
    let mustKnow = looks == Self.mostLooks
    let isKnown = try refuseChange(
      in: batch.guardedRanges, after: basis, moment, mayAskFlushed: mustKnow,
      steps: mustKnow ? .max : Self.mostSteps)
    unknown = isKnown ? nil : moment
    return isKnown
  }

  /// Makes the check that took too long.
  mutating func look(_ batch: borrowing Batch) throws(EngineError) {
    guard let basis = batch.basis, let moment = unknown else { return }
    _ = try refuseChange(
      in: batch.guardedRanges, after: basis, moment, mayAskFlushed: true, steps: .max)
    for (memtable, places) in moment.memtables { ends.append((memtable, places.upperBound)) }
    for (index, shard) in moment.view.shards.enumerated() {
      flushed[index] = shard.flushedThrough
    }
    unknown = nil
    looks += 1
  }

  private static func refuseChange(
    of key: [UInt8], after basis: SequenceNumber, _ view: View, _ recentKeys: RecentKeys
  ) throws(EngineError) {
    let index = view.shardIndex(of: key.bytes)
    let shard = view.shards[index]
    if let newest = shard.active.newestSequence(of: key.bytes), newest > basis { throw .stale }
    for memtable in shard.sealed {
      if let newest = memtable.newestSequence(of: key.bytes), newest > basis { throw .stale }
    }
    let isChanged = recentKeys.mayHaveChange(
      in: index, after: basis, flushedThrough: shard.flushedThrough
    ) { $0.hasChange(of: key.bytes, after: basis) }
    if isChanged { throw .stale }
  }

  /// Returns false when it is not known yet.
  private func refuseChange(
    in ranges: [Batch.GuardedRange], after basis: SequenceNumber, _ moment: Moment,
    mayAskFlushed: Bool, steps: Int
  ) throws(EngineError) -> Bool {
    var steps = steps
    for range in ranges {
      let (lower, upper) = (range.lower, range.upper)
      let index = lower.count < Batch.keyspaceLength ? 0 : moment.view.shardIndex(of: lower.bytes)
      let shard = moment.view.shards[index]
      for memtable in [shard.active] + shard.sealed {
        let rows = moment.memtables.first { $0.memtable === memtable }
        guard let places = rows?.places else { continue }
        let isChanged = memtable.hasChange(
          from: lower.bytes, to: upper.bytes, after: basis, among: places, steps: &steps)
        guard let isChanged else { return false }
        if isChanged { throw .stale }
      }
      let checked = max(basis, flushed[index] ?? basis)
      guard shard.flushedThrough > checked else { continue }
      // The time for that is unknown.
      guard mayAskFlushed else { return false }
      let isChanged = moment.recentKeys.mayHaveChange(
        in: index, after: checked, flushedThrough: shard.flushedThrough
      ) { $0.hasChange(from: lower.bytes, to: upper.bytes, after: checked) }
      if isChanged { throw .stale }
    }
    return true
  }
}
