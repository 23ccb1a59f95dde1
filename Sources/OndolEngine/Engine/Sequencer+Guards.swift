// Optimistic commits: whether anything that a batch was derived from has changed since. Keys and
// ranges are asked for in what memory still holds, the memtables and the keys of what was flushed
// lately. A range finds rows that have come into it, so what a query did not find is guarded, too.

extension Sequencer {
  /// Throws `.stale` when a guarded row or range was changed after the batch's basis, by any commit
  /// placed so far.
  func refuseStale(
    _ batch: borrowing Batch, _ state: borrowing State, _ view: View,
    checkedThrough: SequenceNumber
  ) throws(EngineError) {
    guard let basis = batch.basis, basis < state.commits.lastPlaced else { return }
    for key in batch.guardedKeys {
      try refuseChange(of: key, after: basis, view, state.recentKeys)
    }
    let rangeBasis = max(basis, checkedThrough)
    guard rangeBasis < state.commits.lastPlaced else { return }
    for range in batch.guardedRanges {
      try refuseChange(
        in: range, after: rangeBasis, view, state.recentKeys, mayAskSequences: true)
    }
  }

  /// Checks ranges before the sequencer's lock is taken, because a long one takes a while. Answers
  /// with the commit up to which that was done: under the lock only what came later is looked for.
  func checkRanges(of batch: borrowing Batch) throws(EngineError) -> SequenceNumber {
    guard let basis = batch.basis, !batch.guardedRanges.isEmpty else { return .zero }
    let published = views.published
    // First the view: what is flushed after it was taken is still in its memtables, and what was
    // flushed before is among the recent keys.
    let view = views.current
    let recentKeys = state.withLock { $0.recentKeys }
    for range in batch.guardedRanges {
      try refuseChange(in: range, after: basis, view, recentKeys, mayAskSequences: false)
    }
    return published
  }

  private func refuseChange(
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

  /// - Parameter mayAskSequences: a memtable's newest sequence may be read under the lock only.
  private func refuseChange(
    in range: Batch.GuardedRange, after basis: SequenceNumber, _ view: View,
    _ recentKeys: RecentKeys, mayAskSequences: Bool
  ) throws(EngineError) {
    let (lower, upper) = (range.lower, range.upper)
    let index = lower.count < Batch.keyspaceLength ? 0 : view.shardIndex(of: lower.bytes)
    let shard = view.shards[index]
    for memtable in [shard.active] + shard.sealed {
      if mayAskSequences, memtable.sequences?.upperBound ?? .zero <= basis { continue }
      if memtable.hasChange(from: lower.bytes, to: upper.bytes, after: basis) { throw .stale }
    }
    let isChanged = recentKeys.mayHaveChange(
      in: index, after: basis, flushedThrough: shard.flushedThrough
    ) { $0.hasChange(from: lower.bytes, to: upper.bytes, after: basis) }
    if isChanged { throw .stale }
  }

  /// Commits after a guarded one for which the next is expected.
  private static let guardInterval: UInt64 = 100_000

  /// Keeps the keys of a memtable that is about to leave the view, because it is flushed; not where
  /// commits have not been guarded for long, as when rows are loaded by the million.
  func remember(_ memtable: Memtable, shard: Int, through: SequenceNumber) {
    let lastGuarded = state.withLock { $0.lastGuarded }
    guard let lastGuarded, let first = memtable.sequences?.lowerBound,
      first.rawValue <= lastGuarded.rawValue + Self.guardInterval
    else { return }
    let history = KeyHistory(of: memtable, through: through)
    // The view still shows how far the shard was flushed before.
    let flushedBefore = views.current.shards[shard].flushedThrough
    state.withLock { $0.recentKeys.add(history, shard: shard, flushedBefore: flushedBefore) }
  }
}
