// Calls that write: commits, batches, transactions, and the write stream of devices.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  extension FirestoreService {
    // MARK: - Transactions

    func beginTransaction(
      request: WireBeginTransactionRequest, context: ServerContext
    ) async throws -> WireBeginTransactionResponse {
      try await answer(request.database) { call in
        let transaction = try await call.served.begin(
          request.options, of: call.owner, call.values)
        return .with { $0.transaction = Data(transaction.id.bytes) }
      }
    }

    func commit(
      request: WireCommitRequest, context: ServerContext
    ) async throws -> WireCommitResponse {
      try await answer(request.database) { call in
        let writes = try call.values.writes(request.writes)
        let id = TransactionID([UInt8](request.transaction))
        let commit =
          request.transaction.isEmpty
          ? try await call.database.commit(writes, call.access)
          : try await call.served.transactions.commit(
            id, of: call.owner, writes, allowedBy: call.writeGuard)
        call.noteChanges(writes)
        return .with {
          $0.writeResults = commit.answers.map { call.values.wire($0) }
          $0.commitTime = call.values.wire(commit.time)
        }
      }
    }

    func rollback(
      request: WireRollbackRequest, context: ServerContext
    ) async throws -> Google_Protobuf_Empty {
      try await answer(request.database) { call in
        try await call.served.transactions.rollBack(
          TransactionID([UInt8](request.transaction)), of: call.owner)
        return Google_Protobuf_Empty()
      }
    }

    // MARK: - Batches

    /// Commits each write on its own, in no order. The writes are to different documents.
    func batchWrite(
      request: WireBatchWriteRequest, context: ServerContext
    ) async throws -> WireBatchWriteResponse {
      try await answer(request.database) { call in
        let writes = try call.values.writes(request.writes)
        guard Set(writes.map(\.path)).count == writes.count else {
          throw DatabaseError(
            .invalidArgument, "a batch of separate writes has one write for a document at most")
        }
        var results = Array(
          repeating: Result<ClientCommit, DatabaseError>?.none, count: writes.count)
        await withTaskGroup(of: (Int, Result<ClientCommit, DatabaseError>).self) { group in
          for (place, write) in writes.enumerated() {
            group.addTask {
              do throws(DatabaseError) {
                let commit = try await call.database.commit([write], call.access)
                call.noteChanges([write])
                return (place, .success(commit))
              } catch {
                if error.code == .permissionDenied { call.audit.note(.denial) }
                return (place, .failure(error))
              }
            }
          }
          for await (place, result) in group { results[place] = result }
        }
        return .with { response in
          for result in results {
            switch result {
            case .success(let commit)?:
              response.writeResults += commit.answers.map { call.values.wire($0) }
              response.status.append(WireStatus())
            case .failure(let error)?:
              response.writeResults.append(WireWriteResult())
              response.status.append(ErrorMapping.status(error, in: call.name))
            case nil: break
            }
          }
        }
      }
    }

    // MARK: - The stream that devices write by

    func write(
      request: RPCAsyncSequence<WireWriteRequest, any Error>,
      response: RPCWriter<WireWriteResponse>,
      context: ServerContext
    ) async throws {
      try await drain.run { [self] in
        var open: (call: Call, token: WriteStreamToken)?
        for try await message in request {
          guard let (call, token) = open else {
            let call = try await call(message.database)
            open = (call, try await begin(message, call, response))
            continue
          }
          open?.token = try await Self.mapErrors(in: call.name) {
            try await commit(message, after: token, call, response)
          }
        }
      }
    }

    /// Answers the first message of a write stream.
    private func begin(
      _ message: WireWriteRequest, _ call: Call, _ response: RPCWriter<WireWriteResponse>
    ) async throws -> WriteStreamToken {
      try await Self.mapErrors(in: call.name) {
        guard message.writes.isEmpty else {
          throw DatabaseError(.invalidArgument, "a stream of writes begins without any")
        }
        let token =
          message.streamToken.isEmpty
          ? WriteStreamToken(newIn: call.database)
          : try WriteStreamToken([UInt8](message.streamToken))
        try await call.database.prepareForWriteGroups()
        try await response.write(
          .with {
            $0.streamID = token.stream
            $0.streamToken = Data(token.bytes)
          })
        return token
      }
    }

    /// Commits the group of writes that follows a token, and returns the group's token.
    private func commit(
      _ message: WireWriteRequest, after token: WriteStreamToken, _ call: Call,
      _ response: RPCWriter<WireWriteResponse>
    ) async throws -> WriteStreamToken {
      let named = try token.named([UInt8](message.streamToken))
      let (group, token) = try named ?? token.next()
      let (writes, commit) =
        named == nil
        ? try await commit(message.writes, as: group, call)
        : try await commitOnce(message.writes, as: group, call)
      call.noteChanges(writes)
      try await response.write(
        .with {
          $0.streamToken = Data(token.bytes)
          $0.writeResults = commit.answers.map { call.values.wire($0) }
          $0.commitTime = call.values.wire(commit.time)
        })
      return token
    }

    private func commit(
      _ wire: [WireWrite], as group: WriteGroup, _ call: Call
    ) async throws(DatabaseError) -> ([ClientWrite], ClientCommit) {
      let writes = try call.values.writes(wire)
      return (writes, try await call.database.commit(writes, as: group, call.access))
    }

    /// Commits a named group, or records why it is refused for good.
    private func commitOnce(
      _ wire: [WireWrite], as group: WriteGroup, _ call: Call
    ) async throws -> ([ClientWrite], ClientCommit) {
      do throws(DatabaseError) {
        return try await commit(wire, as: group, call)
      } catch {
        if ForeignGroup.isReason(of: error) { throw Self.foreign }
        guard error.isFinal else { throw error }
        try await call.database.refuse(group, for: error)
        // Throws the recorded reason, unless a late copy was committed in between.
        return try await commit(wire, as: group, call)
      }
    }

    /// The error for a device whose identity another one has as well, as OndolSync knows it.
    private static var foreign: RPCError {
      RPCError(
        code: .aborted, message: "another device has this one's identity",
        metadata: ["ondol-client": "foreign"])
    }
  }

  extension DatabaseError {
    /// Whether the same group of writes would be refused again.
    fileprivate var isFinal: Bool {
      switch code {
      case .invalidArgument, .notFound, .alreadyExists, .permissionDenied, .failedPrecondition,
        .outOfRange, .unimplemented:
        true
      default: false
      }
    }
  }
#endif
