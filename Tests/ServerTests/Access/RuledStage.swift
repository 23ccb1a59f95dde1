// The stage of the tests of rules over a service: a database, rules that are deployed to it, and
// callers whose token is their name.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Synchronization

  @testable import OndolServer

  /// Takes what a service answers.
  final class Answers<Element: Sendable>: RPCWriterProtocol {
    let stream: AsyncThrowingStream<Element, any Error>
    private let continuation: AsyncThrowingStream<Element, any Error>.Continuation
    private let all = Mutex<[Element]>([])

    init() {
      (stream, continuation) = AsyncThrowingStream.makeStream(
        of: Element.self, throwing: (any Error).self)
    }

    var elements: [Element] { all.withLock { $0 } }

    func write(_ element: Element) async throws {
      all.withLock { $0.append(element) }
      continuation.yield(element)
    }

    func write(contentsOf elements: some Sequence<Element>) async throws {
      for element in elements { try await write(element) }
    }

    func end(_ error: (any Error)? = nil) { continuation.finish(throwing: error) }
  }

  struct RuledStage: Sendable {
    static let name = "projects/demo/databases/(default)"
    static let documents = "\(name)/documents"
    /// Everyone sees open documents, owners see theirs and write them.
    static let owners = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          match /items/{item} {
            allow read: if resource.data.owner == request.auth.uid;
            allow create: if request.resource.data.owner == request.auth.uid;
            allow update: if resource.data.owner == request.auth.uid
              && request.resource.data.owner == resource.data.owner;
            allow delete: if resource.data.owner == request.auth.uid;
          }
        }
      }
      """

    let database: Database
    let served: ServedDatabase
    let service: FirestoreService

    /// - Parameters:
    ///   - rules: what stands within the database's documents; a whole file when it begins with
    ///     `rules_version`.
    init(
      _ rules: String?, isStrict: Bool = false, isLocal: Bool = true
    ) async throws {
      database = try await Database.open(
        at: "/db", environment: SimulatedWorld(seed: 1).environment)
      served = ServedDatabase(database)
      var policy = AccessPolicy { (header, _) throws(DatabaseError) in
        let token = header.split(separator: " ").last.map(String.init) ?? ""
        switch token {
        case "admin": return .admin
        case "unknown": throw DatabaseError(.unauthenticated, "the token is not known")
        default:
          return .user(VerifiedToken(uid: token, claims: ["name": .string(token)]))
        }
      }
      policy.isStrict = isStrict
      policy.isLocal = isLocal
      service = FirestoreService(
        directory: SingleDatabase(served), drain: Drain(), metrics: CallMetrics(), policy: policy)
      if let rules { try await deploy(rules) }
    }

    func deploy(_ rules: String) async throws {
      _ = try await ServerRules.deploy(RulesTexts(firestore: Self.file(rules)), to: database)
    }

    static func file(_ rules: String) -> String {
      if rules.hasPrefix("rules_version") { return rules }
      return """
        rules_version = '2';
        service cloud.firestore { match /databases/{database}/documents { \(rules) } }
        """
    }

    // MARK: - Calls

    /// Does something as a caller; nil is nobody.
    func with<R>(_ token: String?, _ body: () async throws -> R) async throws -> R {
      try await CallCredentials.$current.withValue(token.map { ["Bearer \($0)"] } ?? []) {
        try await body()
      }
    }

    static let context = ServerContext(
      descriptor: MethodDescriptor(
        service: ServiceDescriptor(package: "p", service: "s"), method: "m"),
      remotePeer: "client", localPeer: "server", cancellation: ServerContext.RPCCancellationHandle()
    )

    func get(_ path: String, as user: String?) async throws -> WireDocument {
      try await with(user) {
        try await service.getDocument(
          request: .with { $0.name = "\(Self.documents)/\(path)" }, context: Self.context)
      }
    }

    /// The ids that a query finds.
    func list(
      as user: String?, below parent: String? = nil, _ query: (inout WireStructuredQuery) -> Void
    ) async throws -> [String] {
      let answers = Answers<WireRunQueryResponse>()
      try await with(user) {
        try await service.runQuery(
          request: .with {
            $0.parent = parent.map { "\(Self.documents)/\($0)" } ?? Self.documents
            query(&$0.structuredQuery)
          }, response: RPCWriter(wrapping: answers), context: Self.context)
      }
      return answers.elements.filter(\.hasDocument).map {
        $0.document.name.split(separator: "/").last.map(String.init) ?? ""
      }
    }

    func count(as user: String?, _ query: (inout WireStructuredQuery) -> Void) async throws -> Int64
    {
      let answers = Answers<WireRunAggregationQueryResponse>()
      try await with(user) {
        try await service.runAggregationQuery(
          request: .with {
            $0.parent = Self.documents
            query(&$0.structuredAggregationQuery.structuredQuery)
            $0.structuredAggregationQuery.aggregations = [
              .with {
                $0.alias = "n"
                $0.count = .init()
              }
            ]
          }, response: RPCWriter(wrapping: answers), context: Self.context)
      }
      return answers.elements.first?.result.aggregateFields.first?.value.integerValue ?? -1
    }

    @discardableResult
    func commit(
      _ writes: [WireWrite], as user: String?, in transaction: Data = Data()
    ) async throws -> WireCommitResponse {
      try await with(user) {
        try await service.commit(
          request: .with {
            $0.database = Self.name
            $0.writes = writes
            $0.transaction = transaction
          }, context: Self.context)
      }
    }

    // MARK: - Words

    static func set(
      _ path: String, _ fields: [String: Value], exists: Bool? = nil
    ) throws -> WireWrite {
      let values = ValueMapping(database: try DatabaseName(name))
      return .with {
        $0.update.name = "\(documents)/\(path)"
        $0.update.fields = values.wire(fields)
        if let exists { $0.currentDocument.exists = exists }
      }
    }

    /// Replaces one field.
    static func set(_ path: String, _ field: String, _ value: Value) throws -> WireWrite {
      var write = try set(path, [field: value])
      write.updateMask.fieldPaths = [field]
      return write
    }

    static func delete(_ path: String) -> WireWrite { .with { $0.delete = "\(documents)/\(path)" } }

    /// Selects a collection.
    static func from(
      _ query: inout WireStructuredQuery, _ collection: String, isGroup: Bool = false
    ) {
      query.from = [
        .with {
          $0.collectionID = collection
          $0.allDescendants = isGroup
        }
      ]
    }

    static func equal(_ field: String, _ value: String) -> WireStructuredQuery.Filter {
      .with {
        $0.fieldFilter.field.fieldPath = field
        $0.fieldFilter.op = .equal
        $0.fieldFilter.value.stringValue = value
      }
    }
  }

  /// The code of the error that a call ends with; nil when it succeeds.
  func code(of body: () async throws -> some Any) async -> RPCError.Code? {
    do {
      _ = try await body()
      return nil
    } catch {
      return (error as? RPCError)?.code ?? .unknown
    }
  }
#endif
