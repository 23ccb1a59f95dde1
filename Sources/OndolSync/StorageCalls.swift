// Requests to the storage of a server, as the exchange of contents makes them, and the connection
// that brings them over a network. One connection has one request: the bytes are many, so another
// handshake costs little, and nothing of a broken connection is left for the next request.

#if Sync
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOSSL
  package import Ondol

  /// A request of Google Cloud Storage's protocol.
  package struct StorageRequest: Sendable {
    package let method: String
    /// The path and the query.
    package let target: String
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8] = []
    /// The most bytes of an answer's body.
    package var mostBytes = 64 << 10

    init(_ method: String, _ target: String) {
      self.method = method
      self.target = target
    }
  }

  /// What a server's storage answers.
  package struct StorageAnswer: Sendable {
    package let status: Int
    /// The headers by their names in lower case.
    package let headers: [String: String]
    package let body: [UInt8]

    package init(status: Int, headers: [String: String], body: [UInt8]) {
      self.status = status
      self.headers = headers
      self.body = body
    }
  }

  extension DatabaseError {
    /// The error for an answer of more bytes than were asked for.
    package static func endlessAnswer(_ most: Int) -> DatabaseError {
      DatabaseError(.dataLoss, "the server's storage has answered with more than \(most) bytes")
    }
  }

  /// Makes requests over a network.
  struct StorageConnection: Sendable {
    /// How long a connection and a request may take, in seconds.
    private static let connectSeconds: Int64 = 10
    private static let requestSeconds: Int64 = 120

    private typealias Channel = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    let place: SyncServer.Place

    /// - Throws: `.dataLoss` for an answer of too many bytes, and the errors of connections.
    func call(
      _ credential: String?, _ request: StorageRequest
    ) async throws -> StorageAnswer {
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connectTimeout(.seconds(Self.connectSeconds))
        .connect(host: place.host, port: place.port) { [place] channel in
          channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            if place.isSecure {
              let context = try NIOSSLContext(configuration: .makeClientConfiguration())
              // An address has no name that a certificate could be asked for.
              let isAddress = (try? SocketAddress(ipAddress: place.host, port: 0)) != nil
              try pipeline.addHandler(
                NIOSSLClientHandler(
                  context: context, serverHostname: isAddress ? nil : place.host))
            }
            try pipeline.addHTTPClientHandlers()
            return try Channel(wrappingChannelSynchronously: channel)
          }
        }
      return try await withThrowingTaskGroup(of: StorageAnswer.self) { group in
        group.addTask {
          try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(contentsOf: parts(credential, request))
            return try await Self.answer(inbound, request.mostBytes)
          }
        }
        group.addTask {
          try await Task.sleep(for: .seconds(Self.requestSeconds))
          throw DatabaseError(.unavailable, "the server's storage does not answer")
        }
        defer { group.cancelAll() }
        guard let answer = try await group.next() else { throw CancellationError() }
        return answer
      }
    }

    private func parts(
      _ credential: String?, _ request: StorageRequest
    ) -> [HTTPClientRequestPart] {
      var headers = HTTPHeaders([
        ("host", "\(place.host):\(place.port)"), ("connection", "close"),
        ("content-length", "\(request.body.count)"),
      ])
      for (name, value) in request.headers { headers.add(name: name, value: value) }
      if let credential { headers.add(name: "authorization", value: "Bearer \(credential)") }
      let head = HTTPRequestHead(
        version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: request.target,
        headers: headers)
      let body: [HTTPClientRequestPart] =
        request.body.isEmpty ? [] : [.body(.byteBuffer(ByteBuffer(bytes: request.body)))]
      return [.head(head)] + body + [.end(nil)]
    }

    private static func answer(
      _ parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>, _ most: Int
    ) async throws -> StorageAnswer {
      var (status, headers, body) = (0, [String: String](), [UInt8]())
      for try await part in parts {
        switch part {
        case .head(let head):
          status = Int(head.status.code)
          headers = Dictionary(
            head.headers.map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { $1 })
        case .body(let buffer):
          guard buffer.readableBytes <= most - body.count else {
            throw DatabaseError.endlessAnswer(most)
          }
          body += buffer.readableBytesView
        case .end: return StorageAnswer(status: status, headers: headers, body: body)
        }
      }
      throw DatabaseError(.unavailable, "the connection to the server's storage has ended")
    }
  }
#endif
