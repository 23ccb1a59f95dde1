// What synchronisation means for snapshots and listeners: which documents have writes that the
// server lacks, and which followed collections are still loading. Each commit says so itself
// (SyncedChanges). The committer notes it here before the commit's call returns. The announcement
// of the commit notes it again, in the order of commits, so that listeners and this state agree.
//
// A database that is not synchronised never has a note, and pays for one look at a flag.

internal import OndolEngine
internal import Synchronization

/// What synchronisation has still to do, as of the newest commits.
final class SyncedState: Sendable {
  /// Whether a document waits, since a commit.
  private struct Mark: Sendable {
    var version: UInt64
    var isWaiting: Bool
    /// Before that commit.
    var wasWaiting: Bool
  }

  private struct State: Sendable {
    var marks: [DocumentPath: Mark] = [:]
    /// The last announced commit that changed the marks.
    var announced: UInt64 = 0
    var follows: [String: FollowFact] = [:]
    /// The last commits that changed them.
    var followed: [String: UInt64] = [:]
    /// The last commit that completed a follow.
    var completed: UInt64 = 0
  }

  private let active = Atomic(false)
  private let state = Guarded(State())

  /// Whether the database is synchronised: all that others look at.
  var isActive: Bool { active.load(ordering: .acquiring) }

  /// Takes what the rows say at the beginning.
  func load(waiting: [DocumentPath], _ follows: [String: FollowFact]) {
    state.withLock { state in
      for path in waiting where state.marks[path] == nil {
        state.marks[path] = Mark(version: 0, isWaiting: true, wasWaiting: true)
      }
      state.follows.merge(follows) { known, _ in known }
    }
    active.store(true, ordering: .releasing)
  }

  /// Notes a commit that is visible. Commits need not come in their order.
  func note(_ changes: SyncedChanges, at sequence: SequenceNumber) {
    state.withLock { state in
      // An announced commit was noted then.
      guard sequence.rawValue > state.announced else { return }
      Self.apply(changes, sequence.rawValue, &state)
    }
    active.store(true, ordering: .releasing)
  }

  /// Notes a commit that is being announced, in the order of commits. Returns whether follows have
  /// changed.
  func announce(_ changes: SyncedChanges, at sequence: SequenceNumber) -> Bool {
    defer { active.store(true, ordering: .releasing) }
    return state.withLock { state in
      Self.apply(changes, sequence.rawValue, &state)
      state.announced = sequence.rawValue
      for (path, isWaiting) in changes.waiting where !isWaiting {
        if let mark = state.marks[path], !mark.isWaiting, mark.version <= sequence.rawValue {
          state.marks[path] = nil
        }
      }
      return !changes.follows.isEmpty
    }
  }

  private static func apply(_ changes: SyncedChanges, _ version: UInt64, _ state: inout State) {
    for (path, isWaiting) in changes.waiting {
      let known = state.marks[path]
      guard version > known?.version ?? 0 else { continue }
      state.marks[path] = Mark(
        version: version, isWaiting: isWaiting, wasWaiting: known?.isWaiting ?? !isWaiting)
    }
    for (id, fact) in changes.follows where version > state.followed[id] ?? 0 {
      state.followed[id] = version
      state.follows[id] = fact
      if fact?.isComplete == true { state.completed = max(state.completed, version) }
    }
  }

  // MARK: - Asking

  /// Whether a document had waiting writes, as of a commit or of now.
  func isWaiting(_ path: DocumentPath, asOf sequence: SequenceNumber? = nil) -> Bool {
    guard isActive else { return false }
    return state.withLock { state in
      guard let mark = state.marks[path] else { return false }
      guard let sequence, sequence.rawValue < mark.version else { return mark.isWaiting }
      return mark.wasWaiting
    }
  }

  /// Whether a follow that covers one of the collections has not had all its documents.
  func isLoading(_ sources: some Sequence<QueryShape.Source>) -> Bool {
    guard isActive else { return false }
    return state.withLock { state in
      let loading = state.follows.values.filter { !$0.isComplete }
      return !loading.isEmpty && sources.contains { one in loading.contains { $0.covers(one) } }
    }
  }

  /// Whether a follow has become complete after a commit.
  func hasCompleted(after sequence: SequenceNumber) -> Bool {
    isActive && state.withLock { $0.completed > sequence.rawValue }
  }

  /// The documents with what is known of them, as of a commit or of now.
  func marked(
    _ documents: [DocumentSnapshot], asOf sequence: SequenceNumber? = nil
  ) -> [DocumentSnapshot] {
    guard isActive, !documents.isEmpty else { return documents }
    let (marks, follows) = state.withLock { ($0.marks, Array($0.follows.values)) }
    return documents.map { document in
      guard let path = try? document.reference.place.get() else { return document }
      var isWaiting = false
      if let mark = marks[path] {
        let isEarlier = sequence.map { $0.rawValue < mark.version } ?? false
        isWaiting = isEarlier ? mark.wasWaiting : mark.isWaiting
      }
      let covering = follows.filter { $0.covers(.collection(path.collection)) }
      return document.marked(
        hasPendingWrites: isWaiting, isComplete: covering.allSatisfy(\.isComplete),
        covering.isEmpty || isWaiting ? .local : .server)
    }
  }
}
