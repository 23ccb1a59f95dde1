// Optimistic commits: whether anything that a batch was derived from has changed since. Keys and
// ranges are asked for in what memory still holds, the memtables and the keys of what was flushed
// lately. A range finds rows that have come into it, so what a query did not find is guarded, too.
//
// All of that is asked where commits get their order, and nobody else gets on meanwhile. So only a
// bounded number of rows is looked at there. What takes longer is done outside, for what there was
// at one moment, and then only what came later is asked for.

/// One batch's guards, and how far its ranges were looked at before it got its place.
struct GuardCheck {
  /// Rows looked at where commits get their order, for all ranges of a batch.
  private static let mostSteps = 512
  /// Times that a batch leaves that place to look at more. Each time there is only what came during
  /// the last one.
  private static let mostLooks = 16

  /// What there was at the moment when a look at ranges turned out to be long.
  private struct Moment {
    var view: View
    var recentKeys: RecentKeys
    /// The rows of each memtable that were not looked at.
    var memtables: [(memtable: Memtable, places: Range<Int>)]
  }

  /// Each memtable's rows before its place were looked at.
  private var ends: [(memtable: Memtable, end: Int)] = []
  /// What was flushed from each shard was looked at up to here.
  private var flushed: [Int: SequenceNumber] = [:]
  private var looks = 0
  private var unknown: Moment?

  /// Throws `.stale` when a guarded row or range was changed after the batch's basis, by any commit
  /// up to `lastPlaced`. False when finding out takes longer than others should wait: then it is
  /// done by `look`, outside, and this is asked again.
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

  /// Does the work that took too long.
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

  /// False when it is not known yet.
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
      // How long that takes nobody knows.
      guard mayAskFlushed else { return false }
      let isChanged = moment.recentKeys.mayHaveChange(
        in: index, after: checked, flushedThrough: shard.flushedThrough
      ) { $0.hasChange(from: lower.bytes, to: upper.bytes, after: checked) }
      if isChanged { throw .stale }
    }
    return true
  }
}
