// Writes that a server was sent and has not answered, as the errors have them that say so. What
// becomes of them is in Commits/WriteOutcome.

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
    if !error.message.contains(nothing) { error.message += nothing }
    return error
  }

  /// What a caller who goes is told: that nothing is written where the write can be called back, or
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
