// Firestore's service, call by call. This file has what all calls have in common; the calls are in
// the files beside it, by what they are about. Each maps its request, asks the database, and maps
// the answer; errors are mapped in one place, here.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  package import OndolWire
  import SwiftProtobuf

  /// Serves Firestore's protocol.
  struct FirestoreService: WireFirestore.SimpleServiceProtocol {
    let directory: any DatabaseDirectory
    let drain: Drain
    let metrics: CallMetrics

    /// A call's database, and how its values are mapped.
    struct Call: Sendable {
      let name: DatabaseName
      let served: ServedDatabase
      /// Who asks.
      let owner: String

      var values: ValueMapping { ValueMapping(database: name) }
      var database: Database { served.database }

      /// What the call reads from.
      func reading(_ consistency: Consistency) async throws(DatabaseError) -> Reading {
        try await served.reading(consistency, of: owner, values)
      }
    }

    /// Answers a call about the database that a name names or begins with.
    func answer<R>(
      _ name: String, _ body: (Call) async throws -> R
    ) async throws -> R {
      let call = try await call(name)
      return try await Self.mapErrors(in: call.name) { try await body(call) }
    }

    /// A call about the database that a name names or begins with.
    func call(_ name: String) async throws -> Call {
      try await Self.mapErrors(in: nil) {
        let (named, _) = try DatabaseName.split(name)
        let served = try await directory.database(project: named.project, id: named.id)
        return Call(name: named, served: served, owner: Self.owner)
      }
    }

    /// As `answer`, for what may read for long: it ends when the client does not wait any more.
    /// gRPC says that beside the task. When the server shuts down, it has its time to finish.
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

    /// Has errors of the body become those of the protocol.
    static func mapErrors<R>(
      in database: DatabaseName?, _ body: () async throws -> R
    ) async throws -> R {
      do {
        return try await body()
      } catch {
        throw ErrorMapping.rpcError(error, in: database)
      }
    }

    /// Everyone, as long as nobody signs in.
    static let owner = "owner"
  }

  /// Firestore's service without a transport: its calls, as a simulation makes them.
  package func firestoreService(
    of directory: any DatabaseDirectory
  ) -> any WireFirestore.SimpleServiceProtocol {
    FirestoreService(directory: directory, drain: Drain(), metrics: CallMetrics())
  }

  /// As of when a request wants to read: the selectors of all messages are alike.
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
