// Requests of Firestore's protocol as a connection brings them, to the server's calls on a small
// database. Every request gets an answer or one of the protocol's errors, but never the error for a
// fault of the server. The database continues as before, and an accepted value comes back
// unchanged.

#if Server
  import Dispatch
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  @testable import OndolServer

  enum FirestoreRequestTarget: FuzzTarget {
    static let name = "firestore-request"
    private static let database = "projects/p/databases/(default)"

    static func run(_ bytes: [UInt8]) {
      var input = FuzzInput(bytes)
      let kind = input.below(calls.count)
      let request = input.rest()
      let isDone = DispatchSemaphore(value: 0)
      Task {
        do {
          try await serve(calls[kind], request)
        } catch {
          demand(false, "\(error)")
        }
        isDone.signal()
      }
      isDone.wait()
    }

    /// Sound requests, each after the name of its call.
    static func seeds() -> [[UInt8]] {
      calls.indices.compactMap { kind in
        calls[kind].seed.map { [UInt8(kind)] + $0 }
      }
    }

    // MARK: - Calls

    private struct Call: Sendable {
      let seed: [UInt8]?
      let run: @Sendable (FirestoreService, [UInt8]) async throws -> Void

      init<Request: Message>(
        _ seed: Request,
        _ run: @escaping @Sendable (FirestoreService, Request, ServerContext) async throws -> Void
      ) {
        self.seed = try? seed.serializedBytes()
        self.run = { service, bytes in
          // Bytes that are not a message never reach a call.
          guard let request = try? Request(serializedBytes: bytes) else { return }
          try await run(service, request, FirestoreRequestTarget.context)
        }
      }
    }

    private static var context: ServerContext {
      ServerContext(
        descriptor: WireFirestore.Method.Commit.descriptor, remotePeer: "fuzzer", localPeer: "here",
        cancellation: ServerContext.RPCCancellationHandle())
    }

    private static var lamp: String { "\(database)/documents/items/lamp" }

    private static let query = WireStructuredQuery.with {
      $0.from = [.with { $0.collectionID = "items" }]
      $0.where.compositeFilter.op = .or
      $0.where.compositeFilter.filters = [
        .with {
          $0.fieldFilter.field.fieldPath = "price"
          $0.fieldFilter.op = .in
          $0.fieldFilter.value.arrayValue.values = [.with { $0.integerValue = 30 }]
        },
        .with {
          $0.unaryFilter.field.fieldPath = "a.`b c`"
          $0.unaryFilter.op = .isNotNull
        },
      ]
      $0.orderBy = [.with { $0.field.fieldPath = "__name__" }]
      $0.startAt.values = [.with { $0.referenceValue = lamp }]
      $0.limit = 3
    }

    private static let calls: [Call] = [
      Call(WireGetDocumentRequest.with { $0.name = lamp }) {
        _ = try await $0.getDocument(request: $1, context: $2)
      },
      Call(
        WireBatchGetDocumentsRequest.with {
          $0.database = database
          $0.documents = [lamp]
          $0.newTransaction.readWrite = .init()
        }
      ) { try await $0.batchGetDocuments(request: $1, response: ignored(), context: $2) },
      Call(
        WireCommitRequest.with {
          $0.database = database
          $0.writes = [
            .with {
              $0.update.name = lamp
              $0.update.fields = [
                .with {
                  $0.key = "a"
                  $0.value.mapValue.fields = [
                    .with {
                      $0.key = "__decimal128__"
                      $0.value.stringValue = "1.5"
                    }
                  ]
                }
              ]
              $0.updateMask.fieldPaths = ["a", "b"]
              $0.updateTransforms = [
                .with {
                  $0.fieldPath = "n"
                  $0.increment.integerValue = 1
                }
              ]
            }
          ]
        }
      ) { _ = try await $0.commit(request: $1, context: $2) },
      Call(
        WireRunQueryRequest.with {
          $0.parent = "\(database)/documents"
          $0.structuredQuery = query
        }
      ) { try await $0.runQuery(request: $1, response: ignored(), context: $2) },
      Call(
        WireRunAggregationQueryRequest.with {
          $0.parent = "\(database)/documents"
          $0.structuredAggregationQuery.structuredQuery = query
          $0.structuredAggregationQuery.aggregations = [
            .with { $0.count.upTo = 5 }, .with { $0.sum.field.fieldPath = "price" },
          ]
        }
      ) { try await $0.runAggregationQuery(request: $1, response: ignored(), context: $2) },
      Call(
        WireListDocumentsRequest.with {
          $0.parent = "\(database)/documents"
          $0.collectionID = "items"
          $0.orderBy = "price desc, name"
          $0.pageSize = 2
        }
      ) { _ = try await $0.listDocuments(request: $1, context: $2) },
      Call(WireListCollectionIdsRequest.with { $0.parent = "\(database)/documents" }) {
        _ = try await $0.listCollectionIds(request: $1, context: $2)
      },
      Call(
        WirePartitionQueryRequest.with {
          $0.parent = "\(database)/documents"
          $0.structuredQuery.from = [.with { $0.collectionID = "items" }]
          $0.partitionCount = 2
        }
      ) { _ = try await $0.partitionQuery(request: $1, context: $2) },
      Call(WireBatchWriteRequest.with { $0.database = database }) {
        _ = try await $0.batchWrite(request: $1, context: $2)
      },
      Call(WireBeginTransactionRequest.with { $0.database = database }) {
        _ = try await $0.beginTransaction(request: $1, context: $2)
      },
      Call(
        WireListenRequest.with {
          $0.database = database
          $0.addTarget.targetID = 1
          $0.addTarget.query.parent = "\(database)/documents"
          $0.addTarget.query.structuredQuery = query
          $0.addTarget.resumeToken = Data("1-2-3-4".utf8)
        }
      ) { service, request, context in
        let requests = RPCAsyncSequence<WireListenRequest, any Error>(
          wrapping: AsyncThrowingStream { continuation in
            continuation.yield(request)
            continuation.finish()
          })
        try await service.listen(request: requests, response: ignored(), context: context)
      },
      Call(WireValue.with { $0.stringValue = "é" }) { _, value, _ in try roundTrip(value) },
    ]

    private static func ignored<Element: Sendable>() -> RPCWriter<Element> {
      RPCWriter(wrapping: IgnoringWriter())
    }

    /// An accepted value comes back unchanged.
    private static func roundTrip(_ wire: WireValue) throws {
      let values = ValueMapping(database: try DatabaseName(database))
      guard let value = try? values.value(wire) else { return }
      let bytes: [UInt8] = try values.wire(value).serializedBytes()
      let again = try values.value(try WireValue(serializedBytes: bytes))
      demand("\(again)" == "\(value)", "\(value) comes back as \(again)")
    }

    // MARK: - A database

    private static func serve(_ call: Call, _ request: [UInt8]) async throws {
      let database = try await Database.inMemory()
      let items = database.collection("items")
      try await items.document("lamp").setData(["price": 30, "a": ["b c": 1]])
      try await items.document("lamp").collection("parts").document("bulb").setData(["n": 1])
      let service = FirestoreService(
        directory: SingleDatabase(ServedDatabase(database)), drain: Drain(),
        metrics: CallMetrics(), policy: .open)
      do {
        try await call.run(service, request)
      } catch let error as RPCError {
        demand(
          error.code != .internalError && error.code != .unknown, "the server has a fault: \(error)"
        )
      }
      _ = try await items.getDocuments()
      try await database.close()
    }
  }

  /// Receives messages and discards them.
  private struct IgnoringWriter<Element: Sendable>: RPCWriterProtocol {
    func write(_ element: Element) async throws {}
    func write(contentsOf elements: some Sequence<Element>) async throws {}
  }
#endif
