// HTTP connections: requests of the REST interface one after the other, and streams of events.

#if Server
  import NIOCore
  import NIOHTTP1
  import Ondol

  extension TreeHTTPRequest {
    init(_ head: HTTPRequestHead, body: [UInt8] = []) {
      var headers: [String: String] = [:]
      for (name, value) in head.headers where headers[name.lowercased()] == nil {
        headers[name.lowercased()] = value
      }
      self.init(method: head.method.rawValue, target: head.uri, headers: headers, body: body)
    }

    /// Whether a stream of events is asked for.
    fileprivate var isStream: Bool {
      method == "GET" && headers["accept"]?.lowercased().contains("text/event-stream") == true
    }
  }

  extension TreeFace {
    typealias HTTPWriter = NIOAsyncChannelOutboundWriter<HTTPPart<HTTPResponseHead, ByteBuffer>>

    /// Serves a client until it leaves or the server shuts down.
    func serve(
      _ channel: NIOAsyncChannel<HTTPServerRequestPart, HTTPPart<HTTPResponseHead, ByteBuffer>>
    ) async throws {
      try await channel.executeThenClose { inbound, outbound in
        try await drain.run { [self] in
          var head: HTTPRequestHead?
          var body: [UInt8] = []
          for try await part in inbound {
            switch part {
            case .head(let next): (head, body) = (next, [])
            case .body(let buffer):
              guard body.count + buffer.readableBytes <= Self.messageLimit else {
                return try await Self.refuse(outbound)
              }
              body += buffer.readableBytesView
            case .end:
              guard let head, try await answer(head, body, outbound) else { return }
            }
          }
        }
      }
    }

    private static func refuse(_ outbound: HTTPWriter) async throws {
      let refusal = TreeRefusal(.tooBig, "a request may have \(messageLimit) bytes")
      try await write(TreeHTTPResponse(refusal), keepsAlive: false, outbound)
    }

    /// Answers a request. Returns whether the connection continues.
    private func answer(
      _ head: HTTPRequestHead, _ body: [UInt8], _ outbound: HTTPWriter
    ) async throws -> Bool {
      let request = TreeHTTPRequest(head, body: body)
      guard TreeOrigin.isLocal(request.headers) else {
        var response = TreeHTTPResponse(
          TreeRefusal(.permissionDenied, "the server answers this machine only"))
        response.status = 403
        try await Self.write(response, keepsAlive: false, outbound)
        return false
      }
      if request.isStream {
        try await stream(request, outbound)
        return false
      }
      try await Self.write(
        await respond(to: request), isHead: head.method == .HEAD, keepsAlive: head.isKeepAlive,
        outbound)
      return head.isKeepAlive
    }

    private func respond(to request: TreeHTTPRequest) async -> TreeHTTPResponse {
      do throws(DatabaseError) {
        let (database, access) = try await database(for: request)
        return await TreeREST(database, access).respond(to: request)
      } catch {
        return TreeHTTPResponse(TreeRefusal(error))
      }
    }

    private static func write(
      _ response: TreeHTTPResponse, isHead: Bool = false, keepsAlive: Bool, _ outbound: HTTPWriter
    ) async throws {
      var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
      let mayHaveBody = response.status != 204 && response.status != 304
      if mayHaveBody { headers.add(name: "Content-Length", value: "\(response.body.utf8.count)") }
      headers.add(name: "Connection", value: keepsAlive ? "keep-alive" : "close")
      let status = HTTPResponseStatus(statusCode: response.status)
      try await outbound.write(
        .head(HTTPResponseHead(version: .http1_1, status: status, headers: headers)))
      if mayHaveBody, !isHead, !response.body.isEmpty {
        try await outbound.write(.body(ByteBuffer(string: response.body)))
      }
      try await outbound.write(.end(nil))
    }

    // MARK: - Streams

    private func stream(_ request: TreeHTTPRequest, _ outbound: HTTPWriter) async throws {
      let events: TreeEventStream
      do {
        let (database, access) = try await database(for: request)
        events = try await TreeEventStream(request, TreeREST(database, access))
      } catch {
        let response = TreeHTTPResponse(TreeRefusal(error))
        return try await Self.write(response, keepsAlive: false, outbound)
      }
      let headers = HTTPHeaders([
        ("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"),
        ("Connection", "close"),
      ])
      try await outbound.write(
        .head(HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)))
      for try await event in events {
        try await outbound.write(.body(ByteBuffer(string: event.text)))
      }
      try await outbound.write(.end(nil))
    }
  }
#endif
