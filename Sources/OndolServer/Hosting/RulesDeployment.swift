// Deploying rules to a server that runs, by Firestore's own protocol: the rules are documents,
// which administrators may write. The server checks them again and follows them.

#if Server
  import Foundation
  import GRPCCore
  import GRPCNIOTransportHTTP2Posix
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// A server to which rules are deployed.
  package struct RulesServer: Sendable {
    package var host: String
    package var port: Int
    package var project: String
    package var database: String
    /// An administrator's token.
    package var token: String
    /// Whether the connection is encrypted; with nil, by this machine's certificates.
    package var isEncrypted: Bool
    /// The file with the certificates to trust instead of the machine's own.
    package var certificates: String?

    package init(
      host: String, port: Int, project: String, database: String, token: String,
      isEncrypted: Bool = false, certificates: String? = nil
    ) {
      self.host = host
      self.port = port
      self.project = project
      self.database = database
      self.token = token
      self.isEncrypted = isEncrypted
      self.certificates = certificates
    }

    private var security: HTTP2ClientTransport.Posix.TransportSecurity {
      guard isEncrypted else { return .plaintext }
      guard let certificates else { return .tls }
      return .tls {
        $0.trustRoots = .certificates([.file(path: certificates, format: .pem)])
      }
    }

    /// Deploys rules as `ServerRules.deploy(_:to:)` does.
    ///
    /// - Throws: `.invalidArgument` for wrong rules; the server's error otherwise.
    package func deploy(_ texts: RulesTexts) async throws -> Int64? {
      try ServerRules.check(texts)
      let name = DatabaseName(project: project, id: database)
      do {
        return try await withGRPCClient(
          transport: .http2NIOPosix(
            target: .dns(host: host, port: port), transportSecurity: security)
        ) { client in
          while true {
            do {
              return try await deploy(texts, to: name, by: client)
            } catch let error as RPCError where error.code == .alreadyExists {
              // Somebody else has deployed meanwhile.
            }
          }
        }
      } catch let error as RPCError {
        throw DatabaseError(
          DatabaseError.Code(rawValue: error.code.rawValue) ?? .unknown, error.message)
      }
    }

    private func deploy(
      _ texts: RulesTexts, to name: DatabaseName,
      by client: GRPCClient<HTTP2ClientTransport.Posix>
    ) async throws -> Int64? {
      let values = ValueMapping(database: name)
      let metadata: Metadata = ["authorization": "Bearer \(token)"]
      let stored = try await stored(in: name, metadata, by: client)
      let ids = stored.map { $0.name.split(separator: "/").last.map(String.init) ?? "" }
      let before = RulesTexts(try stored.last.map { try values.fields($0.fields) } ?? [:])
      let after = texts.replacing(before)
      try ServerRules.check(after)
      guard stored.isEmpty || after != before else { return nil }
      let number = ServerRules.number(after: ids.last)
      let collection = "\(name.documents)/\(ServerRules.root)"
      let write = WireWrite.with {
        $0.update.name = "\(collection)/\(ServerRules.id(number))"
        $0.update.fields = values.wire(after.fields)
        $0.updateTransforms = [
          .with {
            $0.fieldPath = "deployed"
            $0.setToServerValue = .requestTime
          }
        ]
        $0.currentDocument.exists = false
      }
      let outdated = ids.filter { $0 <= ServerRules.id(number - Int64(ServerRules.most)) }
      let commit = WireCommitRequest.with {
        $0.database = "\(name)"
        $0.writes = [write] + outdated.map { id in .with { $0.delete = "\(collection)/\(id)" } }
      }
      try await client.unary(
        request: ClientRequest(message: commit, metadata: metadata),
        descriptor: WireFirestore.Method.Commit.descriptor,
        serializer: MeasuredSerializer<WireCommitRequest>(),
        deserializer: MeasuredDeserializer<WireCommitResponse>(), options: .defaults
      ) { response in _ = try response.message }
      return number
    }

    /// The documents of the deployments that the server has.
    private func stored(
      in name: DatabaseName, _ metadata: Metadata,
      by client: GRPCClient<HTTP2ClientTransport.Posix>
    ) async throws -> [WireDocument] {
      let request = WireRunQueryRequest.with {
        $0.parent = name.documents
        $0.structuredQuery.from = [.with { $0.collectionID = ServerRules.root }]
      }
      return try await client.serverStreaming(
        request: ClientRequest(message: request, metadata: metadata),
        descriptor: WireFirestore.Method.RunQuery.descriptor,
        serializer: MeasuredSerializer<WireRunQueryRequest>(),
        deserializer: MeasuredDeserializer<WireRunQueryResponse>(), options: .defaults
      ) { response in
        var found: [WireDocument] = []
        for try await answer in response.messages where answer.hasDocument {
          found.append(answer.document)
        }
        return found
      }
    }
  }
#endif
