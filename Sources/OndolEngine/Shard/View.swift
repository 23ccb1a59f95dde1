// What readers read: for every shard its memtables and its runs, in one immutable object. A new
// view is swapped in when a memtable is sealed, a flush is done or runs are merged; old views live
// as long as somebody reads them, and keep alive the memtables and files they name.
//
// Why a snapshot needs nothing else: a memtable is flushed only when everything in it is published,
// and a view is taken before the published sequence is read. So every row in a view's runs is
// visible to every snapshot that has the view, runs need one version of a key, and merging them
// asks for nobody's leave.

internal import Synchronization

/// One shard in a view.
final class ShardView: Sendable {
  /// Takes the sequencer's inserts.
  let active: Memtable
  /// Full memtables that wait for their flush, newest first.
  let sealed: [Memtable]
  /// Sorted runs, newest first.
  let runs: [Run]
  /// Every row up to here is in the runs.
  let flushedThrough: SequenceNumber

  init(
    active: Memtable, sealed: [Memtable] = [], runs: [Run] = [],
    flushedThrough: SequenceNumber = .zero
  ) {
    self.active = active
    self.sealed = sealed
    self.runs = runs
    self.flushedThrough = flushedThrough
  }

  /// `memtable` in the place of the active one, which is sealed, or let go when it has no rows.
  func sealing(into memtable: Memtable) -> ShardView {
    ShardView(
      active: memtable, sealed: active.isEmpty ? sealed : [active] + sealed, runs: runs,
      flushedThrough: flushedThrough)
  }

  /// `run`, if any, in the place of the sealed `memtable`.
  func replacing(_ memtable: Memtable, with run: Run?, flushedThrough: SequenceNumber) -> ShardView
  {
    ShardView(
      active: active, sealed: sealed.filter { $0 !== memtable },
      runs: (run.map { [$0] } ?? []) + runs, flushedThrough: flushedThrough)
  }

  /// `run`, if any, below all others in the place of `inputs`; runs flushed meanwhile stay above.
  func merging(_ inputs: [Run], into run: Run?) -> ShardView {
    let kept = runs.filter { run in !inputs.contains { $0 === run } }
    return ShardView(
      active: active, sealed: sealed, runs: kept + (run.map { [$0] } ?? []),
      flushedThrough: flushedThrough)
  }
}

/// All shards at one moment of the storage's life.
final class View: Sendable {
  let shards: [ShardView]
  /// What gets go by.
  let table: ViewTable
  /// The thread for reads that need a file.
  let reads: any Worker

  init(shards: [ShardView], reads: any Worker) {
    self.shards = shards
    self.reads = reads
    table = ViewTable(shards)
  }

  deinit {
    table.free()
  }

  /// A copy in which one shard is another.
  func replacing(shard index: Int, with shard: ShardView) -> View {
    var shards = shards
    shards[index] = shard
    return View(shards: shards, reads: reads)
  }

  /// The shard whose rows have keys like `key`: keyspaces that agree above their low twelve bits
  /// share one.
  func shardIndex(of key: RawSpan) -> Int {
    Self.shardIndex(of: key, count: shards.count)
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

  init(_ view: View, published: SequenceNumber) {
    self.view = Guarded(view)
    visible = Atomic(published.rawValue)
  }

  var current: View { view.withLock { $0 } }

  /// The view and the visible sequence, the latter read while the former cannot be swapped: so no
  /// commit that is visible lies in a memtable which the view lacks.
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

  /// Swaps in a view in which one shard is what `change` makes of it.
  func update(shard index: Int, _ change: (ShardView) -> ShardView) {
    view.withLock { view in
      view = view.replacing(shard: index, with: change(view.shards[index]))
    }
  }
}
