// The streams over a network: gRPC over HTTP/2, with TLS unless the address says otherwise. One
// connection has both streams. gRPC opens it again by itself, and the streams above begin again
// from their rows.

#if Sync
  import GRPCCore
  import GRPCNIOTransportHTTP2Posix
  import Ondol
  import OndolEngine
  import OndolWire
  import SwiftProtobuf

  /// Connects to a server.
  final class GRPCTransport: SyncTransport {
    private typealias Client = GRPCClient<HTTP2ClientTransport.Posix>

    /// A connection that is kept open.
    private struct Connection: Sendable {
      let client: Client
      let task: Task<Void, Never>

      init(to server: SyncServer) throws {
        let transport = try HTTP2ClientTransport.Posix(
          target: .dns(host: server.place.host, port: server.place.port),
          transportSecurity: server.place.isSecure ? .tls : .plaintext,
          config: .defaults { config in
            // A phone's network vanishes without a word.
            config.connection.keepalive = .init(
              time: .seconds(30), timeout: .seconds(10), allowWithoutCalls: false)
            config.backoff = .init(
              initial: .milliseconds(500), max: .seconds(5), multiplier: 1.6, jitter: 0.2)
          })
        let client = GRPCClient(transport: transport)
        self.client = client
        task = Task {
          // Its errors are those of the streams.
          try? await client.runConnections()
        }
      }

      func end() {
        client.beginGracefulShutdown()
        task.cancel()
      }
    }

    private struct State: Sendable {
      var connection: Connection
      var isOver = false
    }

    private let server: SyncServer
    private let storage: StorageConnection?
    /// What each call says beside its messages.
    private let routing: Metadata
    private let state: Guarded<State>

    private var client: Client { state.withLock(\.connection.client) }

    /// - Throws: when the address cannot be used.
    init(to server: SyncServer) throws {
      self.server = server
      storage = server.storage.map { StorageConnection(place: $0) }
      // By these, Google's servers find the one that has the database.
      let name = PercentCoding.encoded("\(server.name)") { _, _ in false }
      routing =
        server.isGoogles
        ? [
          "google-cloud-resource-prefix": "\(server.name)",
          "x-goog-request-params": "database=\(name)",
        ] : [:]
      state = Guarded(State(connection: try Connection(to: server)))
    }

    func renew() {
      // The address could be used before.
      guard let new = try? Connection(to: server) else { return }
      let old = state.withLock { state in
        guard !state.isOver else { return new }
        defer { state.connection = new }
        return state.connection
      }
      old.end()
    }

    func close() async {
      let connection = state.withLock { state in
        state.isOver = true
        return state.connection
      }
      connection.end()
      await connection.task.value
    }

    private func metadata(_ credential: String?) -> Metadata {
      var metadata = routing
      if let credential { metadata.addString("Bearer \(credential)", forKey: "authorization") }
      return metadata
    }

    /// A stream does not wait for a connection: the device wants to know that it is offline.
    private static var options: CallOptions {
      var options = CallOptions.defaults
      options.waitForReady = false
      return options
    }

    func listen(
      _ credential: String?, _ requests: AsyncStream<WireListenRequest>,
      _ receive: @escaping @Sendable (WireListenResponse) async throws -> Void
    ) async throws {
      try await stream(
        WireFirestore.Method.Listen.descriptor, credential, requests, receive)
    }

    func write(
      _ credential: String?, _ requests: AsyncStream<WireWriteRequest>,
      _ receive: @escaping @Sendable (WireWriteResponse) async throws -> Void
    ) async throws {
      try await stream(WireFirestore.Method.Write.descriptor, credential, requests, receive)
    }

    func call(
      _ credential: String?, _ request: StorageRequest
    ) async throws -> StorageAnswer {
      guard let storage else {
        throw DatabaseError(.unimplemented, "nobody has said where the server's storage is")
      }
      return try await storage.call(credential, request)
    }

    private func stream<Request: Message & Sendable, Response: Message & Sendable>(
      _ method: MethodDescriptor, _ credential: String?, _ requests: AsyncStream<Request>,
      _ receive: @escaping @Sendable (Response) async throws -> Void
    ) async throws {
      let request = StreamingClientRequest(
        of: Request.self, metadata: metadata(credential)
      ) { writer in
        for await request in requests { try await writer.write(request) }
      }
      try await client.bidirectionalStreaming(
        request: request, descriptor: method, serializer: MeasuredSerializer<Request>(),
        deserializer: MeasuredDeserializer<Response>(), options: Self.options
      ) { response in
        for try await message in response.messages { try await receive(message) }
      }
    }
  }
#endif
