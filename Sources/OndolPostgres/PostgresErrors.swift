// What a server's failure means for the engine: whether it is worth another try, and which error
// says so.

internal import OndolEngine
internal import OndolPlatform

extension PostgresFailure {
  /// Codes of the server that pass: it goes down or comes up, has no connection to spare, is a
  /// standby, or has undone a transaction for the sake of another.
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

  /// Whether the connection is of no more use.
  var endsConnection: Bool {
    switch self {
    case .lost: true
    case .refused(let state, _, _):
      state.hasPrefix("08") || state.hasPrefix("57P") || state == "25006"
    case .malformed, .told: false
    }
  }

  /// The error for whoever has called.
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

  /// What our functions say of a commit that is not one of theirs.
  static let notInHistory = "OD001"

  /// Whether somebody else has taken the number of a commit, where no lock has kept them off.
  var isTakenNumber: Bool {
    if case .refused("23505", _, "ondol_log_pkey") = self { return true }
    return false
  }
}
