// Optimistic commits: whether anything that a batch was derived from has changed since. Keys and
// ranges are asked for in what memory still holds, the memtables and the keys of what was flushed
// lately. A range finds rows that have come into it, so what a query did not find is guarded, too.
//
// All of that is asked where commits get their order, and nobody else gets on meanwhile. So only a
// bounded number of rows is looked at there. What takes longer is done outside, for what there was
// at one moment, and then only what came later is asked for.

/// How far the ranges of a batch were looked at before it got its place.
struct RangeCheck: Sendable {
  /// Each memtable's rows before its place.
  private var ends: [(memtable: Memtable, end: Int)] = []
  /// What was flushed from each shard.
  private var flushed: [Int: SequenceNumber] = [:]

  fileprivate func start(in memtable: Memtable, after basis: SequenceNumber) -> Int {
    ends.last { $0.memtable === memtable }?.end ?? memtable.place(ofCommitsAfter: basis)
  }

  /// The commit after which flushed rows of a shard were not looked at.
  fileprivate func flushed(from shard: Int, after basis: SequenceNumber) -> SequenceNumber {
    max(basis, flushed[shard] ?? basis)
  }

  fileprivate mutating func note(_ work: RangeWork) {
    for rows in work.memtables { ends.append((rows.memtable, rows.places.upperBound)) }
    for (index, shard) in work.view.shards.enumerated() {
      flushed[index] = shard.flushedThrough
    }
  }
}

/// What there was at the moment when a look at ranges turned out to be long.
struct RangeWork: Sendable {
  fileprivate struct Rows: Sendable {
    var memtable: Memtable
    var places: Range<Int>
  }

  fileprivate var view: View
  fileprivate var recentKeys: RecentKeys
  fileprivate var memtables: [Rows]

  fileprivate func places(in memtable: Memtable) -> Range<Int>? {
    memtables.first { $0.memtable === memtable }?.places
  }
}

extension Sequencer {
  /// Rows looked at where commits get their order, for all ranges of a batch.
  private static let mostSteps = 512
  /// Times that a batch leaves that place to look at more. Each time there is only what came during
  /// the last one.
  static let mostChecks = 16

  /// Throws `.stale` when a guarded row or range was changed after the batch's basis, by any commit
  /// placed so far. Where that takes longer than others should wait it answers with the work, to be
  /// done outside by `check`; not when it must be known now.
  func refuseStale(
    _ batch: borrowing Batch, _ state: borrowing State, _ view: View, _ check: RangeCheck,
    now mustKnow: Bool
  ) throws(EngineError) -> RangeWork? {
    guard let basis = batch.basis, basis < state.commits.lastPlaced else { return nil }
    for key in batch.guardedKeys {
      try refuseChange(of: key, after: basis, view, state.recentKeys)
    }
    if batch.guardedRanges.isEmpty { return nil }
    let memtables = view.shards.flatMap { [$0.active] + $0.sealed }
      .filter { $0.sequences?.upperBound ?? .zero > basis }
      .map { memtable in
        RangeWork.Rows(
          memtable: memtable,
          places: check.start(in: memtable, after: basis)..<memtable.nodesEnd)
      }
    let work = RangeWork(view: view, recentKeys: state.recentKeys, memtables: memtables)
    var steps = mustKnow ? Int.max : Self.mostSteps
    let isKnown = try refuseChange(
      in: batch.guardedRanges, after: basis, work, check, mayAskFlushed: mustKnow, &steps)
    return isKnown ? nil : work
  }

  /// Does the work that took too long, and adds to `check` how far it went.
  func check(
    _ batch: borrowing Batch, _ work: RangeWork, _ check: inout RangeCheck
  ) throws(EngineError) {
    guard let basis = batch.basis else { return }
    var steps = Int.max
    _ = try refuseChange(
      in: batch.guardedRanges, after: basis, work, check, mayAskFlushed: true, &steps)
    check.note(work)
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

  /// False when it is not known yet.
  private func refuseChange(
    in ranges: [Batch.GuardedRange], after basis: SequenceNumber, _ work: RangeWork,
    _ check: RangeCheck, mayAskFlushed: Bool, _ steps: inout Int
  ) throws(EngineError) -> Bool {
    for range in ranges {
      let (lower, upper) = (range.lower, range.upper)
      let index = lower.count < Batch.keyspaceLength ? 0 : work.view.shardIndex(of: lower.bytes)
      let shard = work.view.shards[index]
      for memtable in [shard.active] + shard.sealed {
        guard let places = work.places(in: memtable) else { continue }
        let isChanged = memtable.hasChange(
          from: lower.bytes, to: upper.bytes, after: basis, among: places, steps: &steps)
        guard let isChanged else { return false }
        if isChanged { throw .stale }
      }
      let checked = check.flushed(from: index, after: basis)
      guard shard.flushedThrough > checked else { continue }
      // How long that takes nobody knows.
      guard mayAskFlushed else { return false }
      let isChanged = work.recentKeys.mayHaveChange(
        in: index, after: checked, flushedThrough: shard.flushedThrough
      ) { $0.hasChange(from: lower.bytes, to: upper.bytes, after: checked) }
      if isChanged { throw .stale }
    }
    return true
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
