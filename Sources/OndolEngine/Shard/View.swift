// What readers read: for every shard its memtables and its runs, in one immutable object. A new view is
// swapped in when a memtable is sealed, a flush is done or runs are merged; old views live as long as
// somebody reads them, and keep alive the memtables and files they name.
//
// Why a snapshot needs nothing else: a memtable is flushed only when everything in it is published, and a
// view is taken before the published sequence is read. So every row in a view's runs is visible to every
// snapshot that has the view, runs need one version of a key, and merging them asks for nobody's leave.

internal import Synchronization

/// One shard in a view.
struct ShardView: Sendable {
  /// Takes the sequencer's inserts.
  var active: Memtable
  /// Full memtables that wait for their flush, newest first.
  var sealed: [Memtable] = []
  /// Sorted runs, newest first.
  var runs: [Run] = []
  /// Every row up to here is in the runs.
  var flushedThrough = SequenceNumber.zero
}

/// All shards at one moment of the storage's life.
final class View: Sendable {
  let shards: [ShardView]

  init(shards: [ShardView]) {
    self.shards = shards
  }

  /// A copy in which one shard is changed.
  func replacing(shard index: Int, _ change: (inout ShardView) -> Void) -> View {
    var shards = shards
    change(&shards[index])
    return View(shards: shards)
  }

  /// The shard whose rows have keys like `key`: keyspaces that agree above their low twelve bits share one.
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

  /// The view and the visible sequence, the latter read while the former cannot be swapped: so no commit
  /// that is visible lies in a memtable which the view lacks.
  var snapshot: (View, SequenceNumber) {
    view.withLock { view in
      (view, SequenceNumber(rawValue: visible.load(ordering: .acquiring)))
    }
  }

  /// Makes everything up to `sequence` visible.
  func publish(_ sequence: SequenceNumber) {
    visible.store(sequence.rawValue, ordering: .releasing)
  }

  /// Swaps in what `change` makes of the current view.
  func update<R: Sendable>(_ change: (View) -> (View, R)) -> R {
    view.withLock { view in
      let (new, result) = change(view)
      view = new
      return result
    }
  }
}
