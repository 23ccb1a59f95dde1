// Errors of the database as HTTP status, in one place. What the client did wrong is said to the
// client; what went wrong here is in the log and nowhere else.

import Hummingbird
import Ondol

/// Answers for what the database throws.
struct DatabaseErrors<Context: RequestContext>: RouterMiddleware {
  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let error as DatabaseError {
      if error.httpStatus.kind == .serverError {
        context.logger.error("the database failed", metadata: ["error": "\(error)"])
        throw HTTPError(error.httpStatus)
      }
      throw HTTPError(error.httpStatus, message: error.message)
    }
  }
}

extension DatabaseError {
  /// What a client is answered.
  var httpStatus: HTTPResponse.Status {
    switch code {
    case .invalidArgument, .outOfRange: .badRequest
    case .unauthenticated: .unauthorized
    case .notFound: .notFound
    case .alreadyExists, .aborted: .conflict
    case .cancelled, .deadlineExceeded, .unavailable: .serviceUnavailable
    case .resourceExhausted: HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage")
    // A document that does not fit its type, a closed database, damage: not the client's doing.
    default: .internalServerError
    }
  }
}
