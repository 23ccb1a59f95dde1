// WebSocket connections: text frames to a session and from it.

#if Server
  import NIOCore
  import NIOHTTP1
  import NIOWebSocket

  extension TreeFace {
    /// Serves a client until it leaves or the server shuts down.
    func serve(
      _ channel: NIOAsyncChannel<WebSocketFrame, WebSocketFrame>, _ head: HTTPRequestHead,
      _ messageLimit: Int
    ) async throws {
      let request = TreeHTTPRequest(head)
      var options = TreeSession.Options()
      options.host = request.headers["host"] ?? ""
      options.messageLimit = messageLimit
      options.source = Self.source(
        of: request, peer: channel.channel.remoteAddress?.ipAddress ?? "")
      // The connection is a call, which counts the bytes of all its requests and pushes.
      let call = gate.open("database.connection", from: options.source)
      options.call = call
      var status = "refused"
      defer { gate.end(call, status: status) }
      // A channel that is given up outside of this stops the process.
      status = try await channel.executeThenClose { [options] inbound, outbound in
        try gate.admit(call, options.source)
        let (database, access) = try await database(for: request)
        let connection = SocketConnection(writer: outbound, call: call)
        let session = TreeSession(
          database, access, on: connection, number: nextNumber(), options: options)
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await call.bind { await session.run() } }
          group.addTask { [drain] in await drain.wait() }
          group.addTask { try? await Self.read(inbound, outbound, session, call) }
          // The first to end is the session, the server or the client.
          await group.next()
          connection.finish()
          group.cancelAll()
        }
        await session.end()
        return "ok"
      }
    }

    private static func read(
      _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>,
      _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>, _ session: TreeSession,
      _ call: OpenCall
    ) async throws {
      for try await frame in inbound {
        call.countReceived(frame.length)
        switch frame.opcode {
        case .text:
          let data = frame.unmaskedData
          guard let text = String(validating: data.readableBytesView, as: UTF8.self) else { return }
          await session.receive(text)
        case .ping:
          try await outbound.write(
            WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
        case .connectionClose:
          try await outbound.write(
            WebSocketFrame(fin: true, opcode: .connectionClose, data: frame.unmaskedData))
          return
        case .pong, .continuation: break
        default: return
        }
      }
    }
  }

  /// A client that is connected by WebSocket.
  private struct SocketConnection: TreeConnection {
    let writer: NIOAsyncChannelOutboundWriter<WebSocketFrame>
    let call: OpenCall

    func send(_ frame: String) async throws {
      call.countSent(frame.utf8.count)
      try await writer.write(
        WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(string: frame)))
    }

    func close() async { finish() }

    /// Ends the connection after what is being sent.
    func finish() { writer.finish() }
  }
#endif
