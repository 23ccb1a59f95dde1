// The outcome of writes whose calls ended before it was known, because their time was over or their
// task was cancelled. The process still determines the outcome, and apps can ask for it.

internal import OndolEngine

/// The outcome of a write whose call ended before it was known.
public enum WriteOutcome: Sendable, Hashable {
  /// The write happened, in the commit with this version.
  case committed(Version)
  /// The write did not happen, and never will.
  case notCommitted
  /// The outcome is not known yet: the server still does not answer.
  case pending
  /// This process can no longer determine it, because the database must be opened again or was
  /// closed before.
  case unknown
}

extension Database {
  /// The outcome of a write whose call ended with ``DatabaseError/pendingWrite``. Waits for it as
  /// calls wait for the server.
  ///
  /// ```swift
  /// do {
  ///   try await order.setData(["state": "paid"])
  /// } catch where error.pendingWrite != nil {
  ///   guard let write = error.pendingWrite else { throw error }
  ///   if try await database.outcome(of: write) == .notCommitted { print("to be repeated") }
  /// }
  /// ```
  ///
  /// - Parameter write: the write.
  /// - Returns: `.pending` when it is not known within ``Options/serverTimeout``.
  /// - Throws: `.cancelled` when the task is cancelled.
  /// - Complexity: O(1); it makes no requests beyond those already under way.
  public func outcome(of write: PendingWrite) async throws(DatabaseError) -> WriteOutcome {
    let ticket = write.ticket
    if ticket.outcome == nil, let patience = engine.patience {
      _ = await patience.wait { await ticket.waitUntilSettled() }
      if ticket.outcome == nil { try refuseWhenCancelled() }
    }
    switch ticket.outcome {
    case .committed(let receipt): return .committed(Version(rawValue: receipt.sequence.rawValue))
    case .notCommitted: return .notCommitted
    case .unknown: return .unknown
    case nil: return .pending
    }
  }
}
