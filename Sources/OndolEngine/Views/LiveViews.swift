// The views in use, since when, and for whom: a view that a reader keeps also keeps files that
// compaction has replaced. The list changes when a view is swapped in or released, and when a
// snapshot is taken with an owner's name; reads never use it.

/// The readers that keep replaced files.
package struct PinnedFiles: Sendable, Equatable {
  /// The names that holders of the oldest view gave.
  package var owners: [String]
  /// The age of the oldest view other than the current one; 0 when there is none.
  package var ageMicroseconds: Int64
  /// Bytes of files that are removed when these views are released.
  package var bytes: UInt64

  package static let none = PinnedFiles(owners: [], ageMicroseconds: 0, bytes: 0)
}

/// The views of a database that are in use.
final class LiveViews: Sendable {
  private struct Entry: Sendable {
    var since: Int64
    var states: [ShardState]
    /// Names of snapshots' owners, by a number of their own.
    var owners: [Int: String] = [:]
  }

  private struct State: Sendable {
    var entries: [Int: Entry] = [:]
    var next = 0
  }

  private let state = Guarded(State())
  private let now: @Sendable () -> Int64

  init(now: @escaping @Sendable () -> Int64) {
    self.now = now
  }

  /// A view's place in the list, as long as the view exists.
  final class Ticket: Sendable {
    private let number: Int
    private let list: LiveViews

    fileprivate init(_ number: Int, in list: LiveViews) {
      self.number = number
      self.list = list
    }

    deinit {
      list.state.withLock { [number] state in _ = state.entries.removeValue(forKey: number) }
    }

    /// Records the name of a snapshot's owner until the label is released.
    func label(_ owner: String) -> SnapshotLabel {
      let label = list.state.withLock { [number] state in
        state.next += 1
        state.entries[number]?.owners[state.next] = owner
        return state.next
      }
      return SnapshotLabel(label, ticket: self)
    }

    fileprivate func remove(_ label: Int) {
      list.state.withLock { [number] state in
        _ = state.entries[number]?.owners.removeValue(forKey: label)
      }
    }
  }

  func admit(_ shards: [ShardView]) -> Ticket {
    let entry = Entry(since: now(), states: shards.map(\.state))
    let number = state.withLock { state in
      state.next += 1
      state.entries[state.next] = entry
      return state.next
    }
    return Ticket(number, in: self)
  }

  /// The shard's least flush point in any view in use: no snapshot, present or future, is of an
  /// older state of the shard, and no power cut restores one.
  func flushedThrough(shard: Int) -> SequenceNumber {
    state.withLock { state in
      state.entries.values.map { $0.states[shard].flushedThrough }.min() ?? .zero
    }
  }

  /// The oldest of the views other than the current one, and the bytes of segments that only these
  /// views keep.
  func pins(beside current: [ShardState]) -> PinnedFiles {
    let entries = state.withLock { state in
      state.entries.sorted { $0.key < $1.key }.map(\.value)
    }
    let kept = Set(current.flatMap(\.segments).map(\.number))
    var pinned: [FileNumber: UInt64] = [:]
    for segment in entries.flatMap(\.states).flatMap(\.segments)
    where !kept.contains(segment.number) {
      pinned[segment.number] = segment.sizeBytes
    }
    let oldest = entries.first
    return PinnedFiles(
      owners: (oldest?.owners.values.sorted()) ?? [],
      ageMicroseconds: entries.count > 1 ? max(0, now() - (oldest?.since ?? 0)) : 0,
      bytes: pinned.values.reduce(0, +))
  }
}

/// Keeps an owner's name with the view of a snapshot.
final class SnapshotLabel: Sendable {
  private let number: Int
  private let ticket: LiveViews.Ticket

  fileprivate init(_ number: Int, ticket: LiveViews.Ticket) {
    self.number = number
    self.ticket = ticket
  }

  deinit { ticket.remove(number) }
}
