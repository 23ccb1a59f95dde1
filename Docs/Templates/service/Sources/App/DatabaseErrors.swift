// The database's errors as HTTP status, in one place. The client learns about its own mistakes.
// Failures of the service appear only in the log.

import Hummingbird
import Ondol

/// Answers errors that the database throws.
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
  /// The status for the client.
  var httpStatus: HTTPResponse.Status {
    switch code {
    case .invalidArgument, .outOfRange: .badRequest
    case .unauthenticated: .unauthorized
    case .notFound: .notFound
    case .alreadyExists, .aborted: .conflict
    case .cancelled, .deadlineExceeded, .unavailable: .serviceUnavailable
    case .resourceExhausted: HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage")
    // A document that does not fit its type, a closed database, damage: not the client's fault.
    default: .internalServerError
    }
  }
}
