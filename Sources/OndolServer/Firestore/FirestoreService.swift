// Firestore's service. This file has the parts that all calls share. The files beside it have the
// calls, by subject. Each call maps its request, queries the database and maps the answer. One
// place, here, maps errors.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolMapping
  package import OndolWire
  import SwiftProtobuf

  /// Serves Firestore's protocol.
  struct FirestoreService: WireFirestore.SimpleServiceProtocol {
    let directory: any DatabaseDirectory
    let drain: Drain
    let metrics: CallMetrics
    var policy: AccessPolicy

    /// A call's database, and the mapping of its values.
    struct Call: Sendable {
      let name: DatabaseName
      let served: ServedDatabase
      let principal: Principal
      let access: CallAccess
      let audit: AuditTrail

      var values: ValueMapping { ValueMapping(database: name) }
      var database: Database { served.database }

      /// The only caller that may use the transactions of this call.
      var owner: String {
        switch principal {
        case .nobody: "nobody"
        case .admin: "admin"
        case .user(let token): "user/\(token.uid)"
        }
      }

      /// Whether the token of the caller has expired since the call began.
      var hasEnded: Bool {
        if case .user(let token) = principal { return token.isOver(at: database) }
        return false
      }

      /// Returns the source of the call's reads.
      func reading(_ consistency: Consistency) async throws(DatabaseError) -> Reading {
        try await served.reading(consistency, of: owner, values)
      }
    }

    /// Answers a call about the database of a name or of its beginning.
    func answer<R>(
      _ name: String, _ body: (Call) async throws -> R
    ) async throws -> R {
      let call = try await call(name)
      return try await Self.mapErrors(in: call.name) { try await body(call) }
    }

    /// Makes a call about the database of a name or of its beginning.
    func call(_ name: String) async throws -> Call {
      try await Self.mapErrors(in: nil) {
        let (named, _) = try DatabaseName.split(name)
        let served = try await directory.database(project: named.project, id: named.id)
        let (access, principal) = try await policy.access(to: served, named)
        return Call(
          name: named, served: served, principal: principal, access: access, audit: policy.audit)
      }
    }

    /// Works as `answer` for long reads: the call ends when the client stops waiting. gRPC reports
    /// that outside the task. When the server shuts down, the call may use the grace time to
    /// finish.
    func answerWhileWaitedFor<R: Sendable>(
      _ name: String, _ body: @escaping @Sendable (Call) async throws -> R
    ) async throws -> R {
      let task = Task { try await answer(name, body) }
      return try await withRPCCancellationHandler {
        try await withTaskCancellationHandler {
          try await task.value
        } onCancel: {
          task.cancel()
        }
      } onCancelRPC: {
        if !drain.hasBegun { task.cancel() }
      }
    }

    /// Converts errors of the body to the protocol's.
    static func mapErrors<R>(
      in database: DatabaseName?, _ body: () async throws -> R
    ) async throws -> R {
      do {
        return try await body()
      } catch {
        throw ErrorMapping.rpcError(error, in: database)
      }
    }
  }

  /// Firestore's service without a transport, for a simulation's calls.
  package func firestoreService(
    of directory: any DatabaseDirectory
  ) -> any WireFirestore.SimpleServiceProtocol {
    FirestoreService(
      directory: directory, drain: Drain(), metrics: CallMetrics(), policy: .open)
  }

  /// The moment that a request wants to read. All messages have the same selectors.
  protocol ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency
  }

  extension Consistency {
    init(transaction: Data) {
      self = .transaction(TransactionID([UInt8](transaction)))
    }
  }

  extension WireGetDocumentRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .transaction(let id): Consistency(transaction: id)
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension WireListDocumentsRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .transaction(let id): Consistency(transaction: id)
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension WireBatchGetDocumentsRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .transaction(let id): Consistency(transaction: id)
      case .newTransaction(let options): .new(options)
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension WireRunQueryRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .transaction(let id): Consistency(transaction: id)
      case .newTransaction(let options): .new(options)
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension WireRunAggregationQueryRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .transaction(let id): Consistency(transaction: id)
      case .newTransaction(let options): .new(options)
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension WirePartitionQueryRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension WireListCollectionIdsRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }
#endif
