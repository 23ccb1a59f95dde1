// What reads use of a database on a store: memtables with the commits after a base, and the pages
// of rows as of the base. Only one task adds to it. Readers see a commit once it is published.
//
// There are at most two memtables. When the newer one is full, the older one's rows go into the
// pages, and its last commit becomes the new base. All commits in a memtable are published before
// it is sealed, so a reader of the new view never needs a state before its base.

/// The view of a database on a store, and its progress.
final class RemoteWindow: Sendable {
  let views: ViewHolder
  private let capacity: Int
  private struct State: Sendable {
    var point: CommitPoint
    /// The last commit in the sealed memtable.
    var sealed: CommitPoint?
  }

  private let state: Guarded<State>

  /// - Parameter capacity: bytes of each memtable.
  init(views: ViewHolder, at point: CommitPoint, capacity: Int) {
    self.views = views
    self.capacity = capacity
    state = Guarded(State(point: point))
  }

  /// The newest visible commit.
  var point: CommitPoint { state.withLock { $0.point } }

  /// A view, and the newest commit visible in it.
  var datedSnapshot: (View, CommitPoint) {
    state.withLock { state in (views.current, state.point) }
  }

  /// The number of visible commits after the base of reads.
  var lag: UInt64 {
    let (view, point) = datedSnapshot
    guard let base = view.shards[0].remote?.base.sequence, base < point.sequence else { return 0 }
    return point.sequence.rawValue - base.rawValue
  }

  /// The current rows.
  var snapshot: Snapshot {
    let (view, point) = datedSnapshot
    return Snapshot(view, point.sequence)
  }

  /// Moves the rows of both memtables into the pages, so that the newest commit becomes the base.
  func moveBase() {
    let shard = views.current.shards[0]
    let point = point
    guard let remote = shard.remote, remote.base != point else { return }
    var moved = remote
    if let sealed = state.withLock({ $0.sealed }), let oldest = shard.sealed.last {
      moved = moved.moved(to: sealed, by: oldest.changes)
    }
    if !shard.active.isEmpty { moved = moved.moved(to: point, by: shard.active.changes) }
    var shardState = shard.state
    shardState.flushedThrough = point.sequence
    let active = Memtable(capacity: capacity)
    views.update(shard: 0) { [moved, shardState] _ in
      ShardView(active: active, sealed: [], state: shardState, remote: moved)
    }
    state.withLock { $0.sealed = nil }
  }

  /// Ensures that commits with this many rows and bytes fit into the memtable together. Everything
  /// in it is visible.
  func makeRoom(forRows rows: Int, bytes: Int) {
    let shard = views.current.shards[0]
    if shard.active.hasRoom(forRows: rows, bytes: bytes) { return }
    let active = Memtable(capacity: max(capacity, bytes + rows * Memtable.nodeOverhead))
    let (point, sealed) = state.withLock { ($0.point, $0.sealed) }
    guard !shard.active.isEmpty else {
      return views.update(shard: 0) { shard in
        ShardView(
          active: active, sealed: shard.sealed, state: shard.state, remote: shard.remote)
      }
    }
    var (remote, shardState) = (shard.remote, shard.state)
    if let sealed, let oldest = shard.sealed.last {
      remote = shard.remote?.moved(to: sealed, by: oldest.changes)
      shardState.flushedThrough = sealed.sequence
    }
    views.update(shard: 0) { [shardState, remote] shard in
      ShardView(active: active, sealed: [shard.active], state: shardState, remote: remote)
    }
    state.withLock { $0.sealed = point }
  }

  /// Adds a commit, which is invisible until it is published. Space must have been made for it.
  func insert(_ commit: RecoveredCommit) {
    let active = views.current.shards[0].active
    active.begin(commit.sequence, log: .firstLog)
    let bytes = commit.bytes
    Self.add(bytes.bytes.extracting(commit.payload), commit.sequence, to: active)
    active.link()
  }

  private static func add(_ payload: RawSpan, _ sequence: SequenceNumber, to memtable: Memtable) {
    var reader = OperationReader(payload)
    do throws(MalformedBytes) {
      while let operation = try reader.next() {
        memtable.add(operation.key, sequence, operation.kind, operation.value)
      }
    } catch {
      preconditionFailure("a commit of our own making cannot be malformed: \(error)")
    }
  }

  /// A snapshot as it will be once `point` is published.
  func snapshot(at point: CommitPoint) -> Snapshot { Snapshot(views.current, point.sequence) }

  /// Makes everything up to `point` visible.
  func publish(_ point: CommitPoint) {
    state.withLock { state in
      views.publish(point.sequence)
      state.point = point
    }
  }
}

extension Memtable {
  /// The rows after its commits, in key order.
  fileprivate var changes: [RemoteChange] {
    var changes: [RemoteChange] = []
    var previous = 0
    var node = node(after: 0)
    while node != 0 {
      // The newest version of a key comes first.
      if previous == 0 || !haveEqualKeys(node, previous) {
        changes.append(
          RemoteChange(
            key: key(of: node).array, value: kind(of: node) == .put ? value(of: node).array : nil))
      }
      previous = node
      node = self.node(after: node)
    }
    return changes
  }
}

extension RecoveredCommit {
  /// The bytes of its rows, and slightly more.
  var rowsLength: Int { payload.count }
}
