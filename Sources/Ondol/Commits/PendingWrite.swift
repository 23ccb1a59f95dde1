// Writes that a server was sent and has not answered. Whoever made them was told so when its time
// was over, or when its task was cancelled; what became of them is found out all the same, and told
// to whoever asks.

internal import OndolEngine

/// A write of which it was not known yet whether it is made when its call ended, from
/// ``DatabaseError/pendingWrite``. It is worth something in the process that has made it, and while
/// its database is open.
public struct PendingWrite: Sendable, Hashable {
  let ticket: CommitTicket

  /// Whether both are the same write.
  public static func == (left: PendingWrite, right: PendingWrite) -> Bool {
    left.ticket === right.ticket
  }

  /// Feeds which write it is.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(ticket)) }

  private static let nothing = "; nothing was written"

  /// The error, which says that nothing was written.
  static func nothing(_ error: DatabaseError) -> DatabaseError {
    var error = error
    if !error.message.hasSuffix(nothing) { error.message += nothing }
    return error
  }

  /// What whoever goes is told: that nothing is written where the write can be called back, or
  /// which write is pending.
  static func error(
    _ code: DatabaseError.Code, _ words: String, _ ticket: CommitTicket
  ) -> DatabaseError {
    if ticket.withdraw() { return DatabaseError(code, words + nothing) }
    var error = DatabaseError(
      code, "\(words); whether the write is made is not known yet",
      suggestion: "outcome(of:) with the error's pendingWrite tells it once it is")
    error.pendingWrite = PendingWrite(ticket: ticket)
    return error
  }
}

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
