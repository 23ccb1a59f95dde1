// The changes that commits leave for one listening session: in order, each commit's at once, for
// all of the session's targets together. So the session can stop between two commits and show all
// targets as of the same one.

internal import OndolEngine

/// The commits that a session has not applied yet.
final class SessionInbox: CommitListener {
  /// A commit's changes.
  struct Entry: Sendable {
    var version: Version
    var changes: [ObservedChange]
  }

  /// The most documents, and the most bytes of memory that they take. With more, the session
  /// evaluates its targets again.
  private static let mostDocuments = 2_000
  private static let mostBytes = 4 << 20

  fileprivate struct State: Sendable {
    var entries: [Entry] = []
    var documents = 0
    var bytes = 0
    /// Some changes are missing from the entries.
    var hasLost = false
    /// The session has work to do other than a commit.
    var isNudged = false
    var waiting = WaitingListeners()
    var isFinished = false
    var failure: DatabaseError?
  }

  private let state = Guarded(State())
  private let listening = Listening()

  // MARK: - Commits

  func take(_ changes: [ObservedChange], _ version: Version, _ wakeups: inout [Wakeup]) {
    wakeups += state.withLock { state in
      guard !state.hasLost, !state.isFinished else { return [] }
      state.entries.append(Entry(version: version, changes: changes))
      state.documents += changes.count
      state.bytes += changes.reduce(0) { $0 + $1.memoryBytes }
      if state.documents > Self.mostDocuments || state.bytes > Self.mostBytes { state.lose() }
      return state.waiting.takeAll()
    }
  }

  func invalidate(_ version: Version, _ wakeups: inout [Wakeup]) {
    wakeups += state.withLock { state in
      state.lose()
      return state.waiting.takeAll()
    }
  }

  func note(isAway: Bool) {}
  func note(isLoading: Bool) {}

  func finish() {
    wake { $0.isFinished = true }
  }

  func fail(with error: DatabaseError) {
    wake { $0.failure = error }
  }

  var pendingCount: Int { state.withLock(\.documents) }

  // MARK: - The session

  /// Makes the session check for work again.
  func nudge() {
    wake { $0.isNudged = true }
  }

  private func wake(_ change: (inout State) -> Void) {
    let woken = state.withLock { state in
      change(&state)
      return state.waiting.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Waits until there is work; false when there will be none.
  ///
  /// - Parameter isBusy: whether there is work in any case.
  func wait(isBusy: Bool) async throws(DatabaseError) -> Bool {
    await listening.wait { wakeup in
      state.withLock { state in
        guard !isBusy, state.isIdle, !listening.isCancelled else { return false }
        state.waiting.add(listening, wakeup)
        return true
      }
    } leave: { [state, listening] in
      state.withLock { $0.waiting.remove(listening) }
    }
    return try state.withLock { (state) throws(DatabaseError) in
      if let failure = state.failure { throw failure }
      state.isNudged = false
      return !state.isFinished && !listening.isCancelled
    }
  }

  /// Whether entries were lost. From now on they are complete again.
  func takeLoss() -> Bool {
    state.withLock { state in
      defer { state.hasLost = false }
      return state.hasLost
    }
  }

  /// The entries up to a commit; all when nil, and none when some were lost.
  func takeEntries(through version: Version? = nil) -> [Entry] {
    state.withLock { state in
      guard !state.hasLost else { return [] }
      let count = version.map { version in state.entries.prefix { $0.version <= version }.count }
      let taken = Array(state.entries.prefix(count ?? state.entries.count))
      state.entries.removeFirst(taken.count)
      for entry in taken {
        state.documents -= entry.changes.count
        state.bytes -= entry.changes.reduce(0) { $0 + $1.memoryBytes }
      }
      return taken
    }
  }
}

extension SessionInbox.State {
  /// Whether there is no work.
  fileprivate var isIdle: Bool {
    entries.isEmpty && !hasLost && !isNudged && !isFinished && failure == nil
  }

  /// Drops the entries, because they are incomplete.
  fileprivate mutating func lose() {
    entries = []
    (documents, bytes) = (0, 0)
    hasLost = true
  }
}
