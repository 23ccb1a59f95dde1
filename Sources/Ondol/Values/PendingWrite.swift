// Writes that were sent to a server that has not answered, as errors refer to them.
// Commits/WriteOutcome determines their outcome.

internal import OndolEngine

/// A write whose outcome was unknown when its call ended, from ``DatabaseError/pendingWrite``. It
/// is valid only in the process that made the write, while its database is open.
public struct PendingWrite: Sendable, Hashable {
  let ticket: CommitTicket

  /// Whether both are the same write.
  public static func == (left: PendingWrite, right: PendingWrite) -> Bool {
    left.ticket === right.ticket
  }

  /// Hashes the identity of the write.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(ticket)) }

  private static let nothing = "; nothing was written"

  /// The error, marked as having written nothing.
  static func nothing(_ error: DatabaseError) -> DatabaseError {
    var error = error
    if !error.message.contains(nothing) { error.message += nothing }
    return error
  }

  /// The error for a caller that stops waiting: nothing is written if the write can be withdrawn;
  /// otherwise it identifies the pending write.
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
