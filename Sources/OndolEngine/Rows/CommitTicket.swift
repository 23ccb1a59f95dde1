// A commit as the one who waits for it knows it: whether it can still be called back, and what
// became of it once that is known. One who goes before that keeps the ticket and asks later.

/// One commit on its way to a store.
package final class CommitTicket: Sendable {
  private struct State: Sendable {
    var isSent = false
    var isWithdrawn = false
    var outcome: Outcome?
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  /// What became of it.
  package enum Outcome: Sendable {
    case committed(CommitReceipt)
    case notCommitted
    /// Whether it is committed only opening the database again tells.
    case unknown
  }

  private let state = Guarded(State())

  package init() {}

  // MARK: - For the sender

  /// Whether it may be sent: nobody has called it back.
  func take() -> Bool {
    state.withLock { state in
      state.isSent = !state.isWithdrawn
      return state.isSent
    }
  }

  /// Notes that it was not committed after all, and will be sent again.
  func giveBack() { state.withLock { $0.isSent = false } }

  var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

  // MARK: - For the caller

  /// Calls it back; false when it is on its way, and may be committed.
  package func withdraw() -> Bool {
    state.withLock { state in
      state.isWithdrawn = state.isWithdrawn || !state.isSent && state.outcome == nil
      return state.isWithdrawn
    }
  }

  /// Tells what became of it; what is told first stays.
  package func settle(_ outcome: Outcome) {
    let waiters = state.withLock { state in
      if state.outcome == nil { state.outcome = outcome }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// What became of it; nil as long as nobody knows.
  package var outcome: Outcome? { state.withLock { $0.outcome } }

  /// Returns once it is known what became of it.
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
