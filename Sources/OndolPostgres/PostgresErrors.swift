// What a server's failure means for the engine: whether to retry, and which error to report.

internal import OndolEngine
internal import OndolPlatform

extension PostgresFailure {
  /// Temporary error codes: the server is shutting down or starting, has no free connection, is a
  /// standby, or has rolled back a transaction because of another one.
  private static let passing: Set<String> = [
    "25006", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "57P04",
    "57P05",
  ]

  /// Whether the same call may succeed later.
  var passes: Bool {
    switch self {
    case .lost: true
    case .refused(let state, _, _): Self.passing.contains(state) || state.hasPrefix("08")
    case .malformed, .told: false
    }
  }

  /// Whether the connection is no longer usable.
  var endsConnection: Bool {
    switch self {
    case .lost: true
    case .refused(let state, _, _):
      state.hasPrefix("08") || state.hasPrefix("57P") || state == "25006"
    case .malformed, .told: false
    }
  }

  /// The error for the caller.
  func error(of store: String) -> EngineError {
    switch self {
    case .told(let error): return error
    case .malformed(let reason):
      return .corrupt(file: store, offset: 0, reason: "its answer makes no sense: \(reason)")
    case .lost(let reason): return .unreachable(reason: "\(store) cannot be reached: \(reason)")
    case .refused(let state, let message, _):
      if passes { return .unreachable(reason: "\(store) cannot answer: \(message) (\(state))") }
      switch state {
      case Self.notInHistory: return .notInHistory(reason: "\(store): \(message)")
      case "53100": return .noSpace(file: store, errno: ENOSPC)
      case "XX001", "XX002": return .corrupt(file: store, offset: 0, reason: message)
      case "42501": return .denied(path: store, reason: message)
      case "3F000", "42703", "42883", "42P01":
        return .notADatabase(path: store, reason: "\(message) (\(state))")
      default: return .invalid(reason: "\(store) refuses: \(message) (\(state))")
      }
    }
  }

  /// The error code of our functions for a commit that is not part of the history.
  static let notInHistory = "OD001"

  /// Whether another process has taken the number of a commit because no lock prevented it.
  var isTakenNumber: Bool {
    if case .refused("23505", _, "ondol_log_pkey") = self { return true }
    return false
  }
}
