// What readers read: for every shard its memtables and its runs, in one immutable object. A new
// view is swapped in when a memtable is sealed, a flush is done or runs are merged. Old views live
// as long as a reader uses them, and keep the memtables and files they refer to.
//
// A snapshot needs nothing else, because a memtable is flushed only when everything in it is
// published, and a view is taken before the published sequence is read. So every row in a view's
// runs is visible to every snapshot that has the view, runs need one version of a key, and merging
// them needs no coordination with readers.

internal import Synchronization

/// One shard in a view.
final class ShardView: Sendable {
  /// Receives the sequencer's inserts.
  let active: Memtable
  /// Full memtables that wait for their flush, newest first.
  let sealed: [Memtable]
  /// Sorted runs, newest first: flushed ones, then one for each level.
  let runs: [Run]
  /// The manifest's entry of the runs.
  let state: ShardState
  /// The rows below the memtables when a store has them; then there are no runs.
  let remote: RemoteRows?

  init(
    active: Memtable, sealed: [Memtable] = [], runs: [Run] = [], state: ShardState = ShardState(),
    remote: RemoteRows? = nil
  ) {
    self.active = active
    self.sealed = sealed
    self.runs = runs
    self.state = state
    self.remote = remote
  }

  /// Every row up to this commit is in the runs.
  var flushedThrough: SequenceNumber { state.flushedThrough }

  /// Replaces the active memtable with `memtable`; the old one is sealed, or released when it has
  /// no rows.
  func sealing(into memtable: Memtable) -> ShardView {
    memtable.charge(like: active)
    return ShardView(
      active: memtable, sealed: active.isEmpty ? sealed : [active] + sealed, runs: runs,
      state: state, remote: remote)
  }

  /// The view with other runs, and without `flushed`, whose rows are in them.
  func replacingRuns(
    _ runs: [Run], _ state: ShardState, without flushed: Memtable? = nil
  ) -> ShardView {
    ShardView(
      active: active, sealed: sealed.filter { $0 !== flushed }, runs: runs, state: state)
  }

  /// The runs of `state`. Unchanged runs are reused, and so are unchanged segments of others;
  /// `open` makes new ones.
  func runs(for state: ShardState, open: (SegmentMetadata) -> Segment) -> [Run] {
    let kept = Dictionary(
      runs.flatMap(\.segments).map { ($0.metadata.number, $0) }, uniquingKeysWith: { $1 })
    return state.runs.map { wanted in
      let same = runs.first { run in
        run.segments.count == wanted.segments.count
          && zip(run.segments, wanted.segments).allSatisfy { $0.metadata.number == $1.number }
      }
      return same ?? Run(wanted.segments.map { kept[$0.number] ?? open($0) })
    }
  }
}

/// All shards at one moment of the storage's life.
final class View: Sendable {
  let shards: [ShardView]
  /// The table that gets use.
  let table: ViewTable
  /// The threads for reads that need a file.
  let reads: ReadingThreads
  /// Its entry among the views in use; none in a view without a database.
  let ticket: LiveViews.Ticket?
  /// Whether there are segments whose key is missing.
  let hasLocked: Bool

  init(shards: [ShardView], reads: ReadingThreads, ticket: LiveViews.Ticket? = nil) {
    self.shards = shards
    self.reads = reads
    self.ticket = ticket
    table = ViewTable(shards)
    hasLocked = shards.contains { !$0.state.locked.isEmpty }
  }

  deinit {
    table.free()
  }

  /// The shard of rows with keys like `key`: keyspaces that agree above their low twelve bits share
  /// one.
  func shardIndex(of key: RawSpan) -> Int {
    Self.shardIndex(of: key, count: shards.count)
  }

  /// Throws when the key of some of this group's segments is missing, so that it is unknown which
  /// of its rows exist.
  func refuseLocked(_ key: RawSpan) throws(EngineError) {
    guard hasLocked, let group = KeyedGroups.group(of: key) else { return }
    let locked = shards[shardIndex(of: key)].state.locked
    guard let place = locked.firstIndex(where: { $0.segment.group == group }) else { return }
    throw .locked(
      path: locked[place].segment.number.segmentName,
      reason: "it is sealed with the key of group \(group), which is not here")
  }

  /// The size in bytes of the memtable that follows a full one of a shard. It doubles each time,
  /// because larger runs are merged less often, as long as memory is left for blocks. After a
  /// memtable that was sealed before it was full, it starts again.
  func memtableSize(after index: Int, _ options: EngineOptions) -> Int {
    let usual = options.memtableSize
    let active = shards[index].active
    let wanted = min(2 * max(active.capacity, usual / 2), options.largestMemtableSize)
    let taken = shards.reduce(0) { sum, shard in
      sum + shard.sealed.reduce(shard.active.sizeBytes) { $0 + $1.sizeBytes }
    }
    return wanted > usual && taken + wanted <= options.memtableBudget ? wanted : usual
  }

  static func shardIndex(of key: RawSpan, count: Int) -> Int {
    guard count > 1 else { return 0 }
    return Int((keyHead(key) >> 44) % UInt64(count))
  }
}

/// The current view and the sequence up to which its rows are visible.
final class ViewHolder: Sendable {
  private let view: Guarded<View>
  private let visible: Atomic<UInt64>
  let live: LiveViews

  /// - Parameter now: the wall clock, for the age of views.
  init(
    _ view: View, published: SequenceNumber, now: @escaping @Sendable () -> Int64 = { 0 }
  ) {
    live = LiveViews(now: now)
    self.view = Guarded(
      View(shards: view.shards, reads: view.reads, ticket: live.admit(view.shards)))
    visible = Atomic(published.rawValue)
  }

  var current: View { view.withLock { $0 } }

  /// The view and the visible sequence. The sequence is read while the view cannot be swapped, so
  /// no visible commit is in a memtable that the view lacks.
  var snapshot: (View, SequenceNumber) {
    view.withLock { view in
      (view, SequenceNumber(rawValue: visible.load(ordering: .acquiring)))
    }
  }

  /// The last visible commit.
  var published: SequenceNumber { SequenceNumber(rawValue: visible.load(ordering: .acquiring)) }

  /// Makes everything up to `sequence` visible.
  func publish(_ sequence: SequenceNumber) {
    visible.store(sequence.rawValue, ordering: .releasing)
  }

  /// Swaps in other shards and, with them, their visible sequence.
  func replace(_ shards: [ShardView], published: SequenceNumber) {
    let old = view.withLock { view in
      let old = view
      view = View(shards: shards, reads: view.reads, ticket: live.admit(shards))
      visible.store(published.rawValue, ordering: .releasing)
      return old
    }
    withExtendedLifetime(old) {}
  }

  /// Swaps in a view in which `change` has replaced one shard.
  func update(shard index: Int, _ change: (ShardView) -> ShardView) {
    // Moved out of the lock: releasing the last reader's view releases files.
    let old = view.withLock { view in
      let old = view
      var shards = old.shards
      shards[index] = change(shards[index])
      view = View(shards: shards, reads: view.reads, ticket: live.admit(shards))
      return old
    }
    withExtendedLifetime(old) {}
  }
}
