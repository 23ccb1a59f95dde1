// Converts the database's errors to the protocol's. The codes are Firestore's own, so the numbers
// are the same. A few texts are Firestore's, because its clients check them.

#if Server
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  enum ErrorMapping {
    /// Returns the error as gRPC sends it.
    ///
    /// - Parameters:
    ///   - database: the database of the call, for names of documents.
    static func rpcError(_ error: any Error, in database: DatabaseName?) -> RPCError {
      switch error {
      case let error as RPCError: error
      case let error as DatabaseError:
        RPCError(code: code(error.code), message: text(error, database))
      case is CancellationError: RPCError(code: .cancelled, message: "the call was cancelled")
      default: RPCError(code: .internalError, message: "the server has a fault; its log names it")
      }
    }

    static func code(_ code: DatabaseError.Code) -> RPCError.Code {
      switch code {
      case .ok, .unknown: .unknown
      case .cancelled: .cancelled
      case .invalidArgument: .invalidArgument
      case .deadlineExceeded: .deadlineExceeded
      case .notFound: .notFound
      case .alreadyExists: .alreadyExists
      case .permissionDenied: .permissionDenied
      case .resourceExhausted: .resourceExhausted
      case .failedPrecondition: .failedPrecondition
      case .aborted: .aborted
      case .outOfRange: .outOfRange
      case .unimplemented: .unimplemented
      case .internal: .internalError
      case .unavailable: .unavailable
      case .dataLoss: .dataLoss
      case .unauthenticated: .unauthenticated
      }
    }

    /// The status of one of several writes.
    static func status(_ error: DatabaseError, in database: DatabaseName) -> WireStatus {
      .with {
        $0.code = Int32(error.code.rawValue)
        $0.message = text(error, database)
      }
    }

    private static func text(_ error: DatabaseError, _ database: DatabaseName?) -> String {
      let name = error.path.flatMap { path in
        database.flatMap { database in (try? DocumentPath(path)).map { database.name(of: $0) } }
      }
      switch (error.code, name) {
      case (.notFound, let name?): return "No document to update: \(name)"
      case (.alreadyExists, let name?): return "Document already exists: \(name)"
      default: return error.errorDescription ?? error.message
      }
    }
  }
#endif
