// What can go wrong between us and a server, before it is told what that means for the caller.

internal import OndolEngine

/// Why a call to a server has failed.
enum PostgresFailure: Error, Sendable {
  /// The connection is gone, was never made, or there was no answer in time. Whether a statement
  /// that was sent has been done is not known.
  case lost(String)
  /// The server has refused a statement, and all of its transaction is undone.
  case refused(state: String, message: String, constraint: String)
  /// The answer makes no sense.
  case malformed(String)
  /// What is found out without a failure, and cannot go on.
  case told(EngineError)
}
