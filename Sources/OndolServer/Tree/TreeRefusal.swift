// Why a request of the Realtime Database's protocol is refused, in the words of the WebSocket
// protocol and of the REST interface. The texts are those that clients compare with.

#if Server
  import Ondol

  /// A refused request.
  struct TreeRefusal: Error, Sendable, Equatable {
    enum Kind: Sendable {
      case invalid
      case permissionDenied
      case invalidToken
      case expiredToken
      /// The data has another hash than the request names.
      case stale
      case tooBig
      /// A limit is reached, or the server has no room.
      case exhausted
      case unavailable
      case fault
    }

    var kind: Kind
    var message: String

    init(_ kind: Kind, _ message: String) {
      self.kind = kind
      self.message = message
    }

    static let denied = TreeRefusal(.permissionDenied, "Permission denied")
    static let stale = TreeRefusal(.stale, "Transaction hash does not match")

    /// Converts any error of a call.
    init(_ error: any Error) {
      switch error {
      case let error as TreeRefusal: self = error
      case let error as DatabaseError:
        self.init(Self.kind(of: error.code), error.message)
      case is CancellationError: self.init(.unavailable, "the call was cancelled")
      default: self.init(.fault, "the server has a fault; its log names it")
      }
    }

    private static func kind(of code: DatabaseError.Code) -> Kind {
      switch code {
      case .invalidArgument, .failedPrecondition, .outOfRange, .alreadyExists, .notFound: .invalid
      case .permissionDenied: .permissionDenied
      case .unauthenticated: .invalidToken
      case .resourceExhausted: .exhausted
      case .unavailable, .cancelled, .deadlineExceeded, .aborted: .unavailable
      case .ok, .unknown, .unimplemented, .internal, .dataLoss: .fault
      }
    }

    /// The status in an answer of the WebSocket protocol.
    var status: String {
      switch kind {
      case .invalid: "invalid_data"
      case .permissionDenied: "permission_denied"
      case .invalidToken: "invalid_token"
      case .expiredToken: "expired_token"
      case .stale: "datastale"
      case .tooBig: "too_big"
      // The protocol has no status of its own for limits.
      case .unavailable, .exhausted: "unavailable"
      case .fault: "internal_error"
      }
    }

    /// The status of an HTTP response.
    var httpStatus: Int {
      switch kind {
      case .invalid, .tooBig: 400
      case .permissionDenied, .invalidToken, .expiredToken: 401
      case .stale: 412
      case .exhausted: 429
      case .unavailable: 503
      case .fault: 500
      }
    }
  }
#endif
