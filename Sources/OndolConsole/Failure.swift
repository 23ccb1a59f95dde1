// The response to a refused request, with its status.

import Ondol
import OndolJSON

/// A request that the console refused or could not finish.
struct ConsoleFailure: Error {
  var status: Int
  var code: String
  var message: String
  var path: String?
  var field: String?
  var hint: String?
  var offset: Int?
  /// The stored state, if a precondition failed.
  var current: JSON?
  var retryAfter: Int?

  init(_ status: Int, _ code: String, _ message: String, hint: String? = nil) {
    self.status = status
    self.code = code
    self.message = message
    self.hint = hint
  }

  init(_ error: DatabaseError) {
    self.init(Self.status(of: error.code), "\(error.code)", error.message, hint: error.suggestion)
    path = error.path
    field = error.field
  }

  /// Converts any thrown error.
  init(any error: any Error) {
    switch error {
    case let failure as ConsoleFailure: self = failure
    case let error as DatabaseError: self.init(error)
    case let error as WhereError:
      self.init(400, "invalidArgument", error.reason)
      offset = error.offset
    case let error as JSONError:
      self.init(400, "invalidArgument", "\(error.reason), at byte \(error.column)")
    case is CancellationError: self.init(503, "cancelled", "the request was cancelled")
    default: self.init(500, "unknown", "\(error)")
    }
  }

  static func wrong(_ message: String) -> ConsoleFailure {
    ConsoleFailure(400, "invalidArgument", message)
  }

  var json: JSON {
    [
      "code": .text(code), "message": .text(message), "path": path.map { .text($0) },
      "field": field.map { .text($0) }, "hint": hint.map { .text($0) },
      "offset": offset.map { .number($0) }, "current": current,
    ]
  }

  private static func status(of code: DatabaseError.Code) -> Int {
    switch code {
    case .invalidArgument, .outOfRange: 400
    case .unauthenticated: 401
    case .permissionDenied: 403
    case .notFound: 404
    case .unimplemented: 405
    case .aborted, .alreadyExists, .failedPrecondition: 409
    case .resourceExhausted: 413
    case .unavailable, .deadlineExceeded, .cancelled: 503
    case .ok, .unknown, .internal, .dataLoss: 500
    }
  }
}
