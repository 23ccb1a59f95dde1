// Errors as Google's clients of storage know them: a status of HTTP, and a text. One table gives
// each error of the database its status.

#if Server
  import Ondol

  /// An error of a call about objects.
  struct StorageFailure: Error, Hashable {
    /// The status of HTTP.
    let status: Int
    let message: String

    init(_ status: Int, _ message: String) {
      self.status = status
      self.message = message
    }

    var answer: HTTPAnswer {
      // An answer of this status has no body.
      if status == 304 { return HTTPAnswer(status: status) }
      var answer = HTTPAnswer.failure(status, message)
      answer.isDenial = self == .refused
      return answer
    }

    static let notFound = StorageFailure(404, "Not Found")
    /// Says nothing of what is stored.
    static let refused = StorageFailure(403, "Permission denied.")
    static let unmet = StorageFailure(
      412, "At least one of the pre-conditions you specified did not hold.")
    static let notModified = StorageFailure(304, "Not Modified")
    static let wrongChecksum = StorageFailure(
      400, "The bytes do not have the checksum that came with them.")
    static let unimplemented = StorageFailure(501, "Ondol does not have this call.")

    static func invalid(_ reason: String) -> StorageFailure { StorageFailure(400, reason) }

    static func noObject(_ name: String, in bucket: String) -> StorageFailure {
      StorageFailure(404, "No such object: \(bucket)/\(name)")
    }

    /// The failure for any error.
    init(_ error: any Error) {
      switch error {
      case let error as StorageFailure: self = error
      case let error as DatabaseError: self.init(error)
      case is CancellationError: self.init(499, "The call was cancelled.")
      default: self.init(500, "The server has a fault, or the connection ended.")
      }
    }

    /// The failure for an error of the database. Its text is shown only where it is about the
    /// request.
    init(_ error: DatabaseError) {
      switch error.code {
      case .invalidArgument, .outOfRange: self.init(400, error.message)
      case .unauthenticated: self.init(401, error.message)
      case .permissionDenied: self = .refused
      case .notFound: self.init(404, error.message)
      case .alreadyExists: self = .unmet
      case .failedPrecondition: self.init(400, error.message)
      case .aborted, .unavailable, .deadlineExceeded:
        self.init(503, "The service is not available at the moment.")
      case .cancelled: self.init(499, "The call was cancelled.")
      case .resourceExhausted: self.init(507, "There is no room for these bytes.")
      case .unimplemented: self.init(501, error.message)
      default: self.init(500, "The server has a fault; its log names it.")
      }
    }
  }
#endif
