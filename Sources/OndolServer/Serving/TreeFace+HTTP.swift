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
      forwarded = head.headers[canonicalForm: "x-forwarded-for"].last.map(String.init)
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
      _ channel: NIOAsyncChannel<HTTPServerRequestPart, HTTPPart<HTTPResponseHead, ByteBuffer>>,
      _ messageLimit: Int
    ) async throws {
      let peer = channel.channel.remoteAddress?.ipAddress ?? ""
      try await channel.executeThenClose { inbound, outbound in
        try await drain.run { [self] in
          var head: HTTPRequestHead?
          var body: [UInt8] = []
          for try await part in inbound {
            switch part {
            case .head(let next): (head, body) = (next, [])
            case .body(let buffer):
              guard buffer.readableBytes <= messageLimit - body.count else {
                return try await Self.refuse(outbound, messageLimit)
              }
              body += buffer.readableBytesView
            case .end:
              guard let head else { return }
              let request = TreeHTTPRequest(head, body: body)
              body = []
              guard try await answer(request, peer, head.isKeepAlive, outbound) else { return }
            }
          }
        }
      }
    }

    private static func refuse(_ outbound: HTTPWriter, _ messageLimit: Int) async throws {
      let refusal = TreeRefusal(.tooBig, "a request may have \(messageLimit) bytes")
      try await write(TreeHTTPResponse(refusal), keepsAlive: false, outbound)
    }

    /// Answers a request. Returns whether the connection continues.
    private func answer(
      _ request: TreeHTTPRequest, _ peer: String, _ keepsAlive: Bool, _ outbound: HTTPWriter
    ) async throws -> Bool {
      guard !gate.admission.isLoopback || TreeOrigin.isLocal(request.headers) else {
        var response = TreeHTTPResponse(
          TreeRefusal(.permissionDenied, "the server answers this machine only"))
        response.status = 403
        try await Self.write(response, keepsAlive: false, outbound)
        return false
      }
      let source = Self.source(of: request, peer: peer)
      let name = request.isStream ? "stream" : Self.name(of: request.method)
      let call = gate.open("database.\(name)", from: source)
      call.countReceived(request.body.count)
      var response = TreeHTTPResponse(TreeRefusal(.unavailable, "the client has left"))
      defer {
        gate.end(
          call, status: String(response.status), error: response.refusal?.message,
          isDenial: response.refusal?.kind == .permissionDenied,
          isFault: response.refusal?.kind == .fault)
      }
      do throws(LimitReached) {
        try gate.admit(call, source)
      } catch {
        response = TreeHTTPResponse(TreeRefusal(error.error))
        response.headers.append(("Retry-After", "\(error.seconds)"))
        try await Self.write(response, keepsAlive: false, outbound)
        return false
      }
      if request.isStream {
        response = try await call.bind { try await stream(request, call, outbound) }
        return false
      }
      response = await call.bind { await respond(to: request) }
      call.countSent(response.body.utf8.count)
      try await Self.write(
        response, isHead: request.method == "HEAD", keepsAlive: keepsAlive, outbound)
      return keepsAlive
    }

    /// A method's name in the log and in the metrics: one of few.
    private static func name(of method: String) -> String {
      ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"].contains(method) ? method : "unknown"
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

    /// Sends a stream of events. Returns how it began, or how it ended if it was cancelled.
    private func stream(
      _ request: TreeHTTPRequest, _ call: OpenCall, _ outbound: HTTPWriter
    ) async throws -> TreeHTTPResponse {
      let events: TreeEventStream
      do {
        let (database, access) = try await database(for: request)
        events = try await TreeEventStream(request, TreeREST(database, access))
      } catch {
        let response = TreeHTTPResponse(TreeRefusal(error))
        try await Self.write(response, keepsAlive: false, outbound)
        return response
      }
      let headers = HTTPHeaders([
        ("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"),
        ("Connection", "close"),
      ])
      try await outbound.write(
        .head(HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)))
      call.listen("", to: request.path)
      var response = TreeHTTPResponse("")
      for try await event in events {
        if event == .cancel { response.refusal = .denied }
        call.countSent(event.text.utf8.count)
        try await outbound.write(.body(ByteBuffer(string: event.text)))
      }
      try await outbound.write(.end(nil))
      return response
    }
  }
#endif
