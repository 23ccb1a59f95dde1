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
      _ message: WireWriteRequest, after last: WriteStreamToken, _ call: Call,
      _ response: RPCWriter<WireWriteResponse>
    ) async throws -> WriteStreamToken {
      let (token, writes, commit): (WriteStreamToken, [ClientWrite], ClientCommit)
      if let named = try last.named([UInt8](message.streamToken)) {
        token = named.token
        (writes, commit) = try await commitOnce(message.writes, as: named, call)
      } else {
        let next = try last.next()
        token = next.token
        (writes, commit) = try await self.commit(message.writes, as: next.group, call)
      }
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
      _ wire: [WireWrite], as group: WriteGroup, reading footprints: [QueryFootprint] = [],
      _ call: Call
    ) async throws(DatabaseError) -> ([ClientWrite], ClientCommit) {
      let writes = try call.values.writes(wire)
      guard !footprints.isEmpty else {
        return (writes, try await call.database.commit(writes, as: group, call.access))
      }
      var expected: [ExpectedResult] = []
      for footprint in footprints {
        expected.append(try await Self.expected(footprint, call))
      }
      let commit = try await call.database.commit(
        writes, as: group, allowedBy: call.writeGuard, expecting: expected)
      return (writes, commit)
    }

    /// What the query of a footprint must find when the writes are committed. A caller who may
    /// not list its documents does not learn what it finds.
    private static func expected(
      _ footprint: QueryFootprint, _ call: Call
    ) async throws(DatabaseError) -> ExpectedResult {
      let (wire, parent) = (footprint.target.structuredQuery, footprint.target.parent)
      let mapped = try query(wire, parent, call)
      try refuseAllCollections(mapped)
      // One more shows that there are others.
      let most = footprint.count + 1
      let limit = wire.hasLimit ? min(Int(wire.limit.value), most) : most
      let query = mapped.query.limit(to: limit)
      let moment = try call.database.readMoment()
      if let list = try await call.ruled(
        wire, below: try DatabaseName.parent(parent).path, at: moment)
      {
        var (documents, walk) = ([DocumentSnapshot](), moment.documents(of: query))
        while let document = try await walk.next() { documents.append(document) }
        try await list.check(documents, at: moment)
      }
      return ExpectedResult(of: query.select([])) { footprint.isMet(by: $0) }
    }

    /// Commits a named group, or records why it is refused for good.
    private func commitOnce(
      _ wire: [WireWrite], as named: NamedGroup, _ call: Call
    ) async throws -> ([ClientWrite], ClientCommit) {
      let group = named.group
      do throws(DatabaseError) {
        return try await commit(wire, as: group, reading: named.footprints, call)
      } catch {
        if ForeignGroup.isReason(of: error) { throw Self.foreign }
        guard error.isFinal else { throw error }
        try await call.database.refuse(group, for: error)
        do throws(DatabaseError) {
          // Throws the recorded reason, unless a late copy was committed in between.
          return try await commit(wire, as: group, call)
        } catch {
          throw try Self.dated(error, call)
        }
      }
    }

    /// A refusal that says as of when it is, for a device that listens to another server.
    private static func dated(_ error: DatabaseError, _ call: Call) throws -> RPCError {
      var dated = ErrorMapping.rpcError(error, in: call.name)
      let time = try call.database.readMoment().time
      dated.metadata.replaceOrAddString("\(time.microsecondsSince1970)", forKey: "ondol-time")
      return dated
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
