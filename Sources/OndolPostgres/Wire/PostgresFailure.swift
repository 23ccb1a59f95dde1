// Failures between this process and a server, before their meaning for the caller is determined.

internal import OndolEngine

/// Why a call to a server has failed.
enum PostgresFailure: Error, Sendable {
  /// The connection is gone, was never made, or there was no answer in time. It is unknown whether
  /// a sent statement was executed.
  case lost(String)
  /// The server has rejected a statement, and its whole transaction is rolled back.
  case refused(state: String, message: String, constraint: String)
  /// The answer is malformed.
  case malformed(String)
  /// A condition that was found without a failure and prevents further work.
  case told(EngineError)
}
