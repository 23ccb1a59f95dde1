// A commit from the view of the caller that waits for it: whether it can still be cancelled, and
// its outcome once that is known. A caller that stops waiting earlier keeps the ticket and asks
// later.

/// One commit on its way to a store.
package final class CommitTicket: Sendable {
  private struct State: Sendable {
    var isSent = false
    var isWithdrawn = false
    var outcome: Outcome?
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  /// The outcome of the commit.
  package enum Outcome: Sendable {
    case committed(CommitReceipt)
    case notCommitted
    /// Only opening the database again can tell whether it was committed.
    case unknown
  }

  private let state = Guarded(State())

  package init() {}

  // MARK: - For the sender

  /// Whether it may be sent, because it was not cancelled.
  func take() -> Bool {
    state.withLock { state in
      state.isSent = !state.isWithdrawn
      return state.isSent
    }
  }

  /// Records that it was not committed after all, and will be sent again.
  func giveBack() { state.withLock { $0.isSent = false } }

  var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

  // MARK: - For the caller

  /// Cancels it. Returns false if it was already sent and may be committed.
  package func withdraw() -> Bool {
    state.withLock { state in
      state.isWithdrawn = state.isWithdrawn || !state.isSent && state.outcome == nil
      return state.isWithdrawn
    }
  }

  /// Records its outcome. Only the first call has an effect.
  package func settle(_ outcome: Outcome) {
    let waiters = state.withLock { state in
      if state.outcome == nil { state.outcome = outcome }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Its outcome; nil as long as it is unknown.
  package var outcome: Outcome? { state.withLock { $0.outcome } }

  /// Returns once its outcome is known.
  package func waitUntilSettled() async {
    await withCheckedContinuation { waiter in
      let isSettled = state.withLock { state in
        if state.outcome == nil { state.waiters.append(waiter) }
        return state.outcome != nil
      }
      if isSettled { waiter.resume() }
    }
  }
}
