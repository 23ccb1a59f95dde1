// What became of writes whose callers went before it was known: their time was over, or their task
// was cancelled. It is found out all the same, and told to those who ask.

internal import OndolEngine

/// What became of a write whose call had ended before it was known.
public enum WriteOutcome: Sendable, Hashable {
  /// It is made, as the commit with this version.
  case committed(Version)
  /// It is not made, and never will be.
  case notCommitted
  /// It is not known yet: the server still does not answer.
  case pending
  /// This process does not find it out any more, because the database must be opened again or was
  /// closed before it was known.
  case unknown
}

extension Database {
  /// What became of a write whose call ended with ``DatabaseError/pendingWrite``. Waits for it as
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
  /// - Complexity: O(1); nothing is asked that is not being asked anyway.
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
