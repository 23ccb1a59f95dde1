// The Realtime Database's port: HTTP for its REST interface, and the upgrade to WebSocket for its
// clients. Everything that the protocol means is in Tree; here are only connections.

#if Server
  import NIOCore
  import NIOHTTP1
  import NIOCertificateReloading
  import NIOPosix
  import NIOSSL
  import NIOWebSocket
  import Ondol
  import OndolMapping

  /// Serves the tree of databases to the Realtime Database's clients.
  final class TreeFace: Sendable {
    /// A connection, once it is known what it is for.
    enum Connection: Sendable {
      case http(NIOAsyncChannel<HTTPServerRequestPart, HTTPPart<HTTPResponseHead, ByteBuffer>>)
      case webSocket(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>, HTTPRequestHead)
    }

    /// After this time without a frame a client counts as gone: clients send one every 45 seconds.
    /// A connection of HTTP ends after as long without anything in either direction.
    static let idleTime = TimeAmount.seconds(150)

    let drain: Drain
    let gate: CallGate
    private let directory: any DatabaseDirectory
    private let numbers: @Sendable () -> UInt64

    /// - Parameters:
    ///   - gate: what each call goes through.
    ///   - numbers: draws the numbers of connections.
    init(
      _ directory: any DatabaseDirectory, _ gate: CallGate, drain: Drain,
      numbers: @escaping @Sendable () -> UInt64 = { UInt64.random(in: 1...UInt64.max) }
    ) {
      self.directory = directory
      self.gate = gate
      self.drain = drain
      self.numbers = numbers
    }

    /// Serves until the task is cancelled. Connections end when the server shuts down.
    ///
    /// - Parameter whenReady: called with the port once it listens.
    /// - Throws: when the port is taken.
    func run(at port: ServedPort, whenReady: @Sendable (Int) async -> Void) async throws {
      let security = try port.reloader.map { reloader in
        try NIOSSLContext(
          configuration: TLSConfiguration.makeServerConfiguration(certificateReloader: reloader))
      }
      let isLocal = gate.admission.isLoopback
      let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .bind(host: port.host, port: port.number) { channel in
          port.connections.admit(channel).flatMapThrowing {
            if let security {
              try channel.pipeline.syncOperations.addHandler(
                NIOSSLServerHandler(context: security))
            }
            return try Self.configure(channel, port.requestLimit, isLocal: isLocal)
          }
        }
      await whenReady(server.channel.localAddress?.port ?? port.number)
      try await withThrowingDiscardingTaskGroup { group in
        try await server.executeThenClose { connections in
          for try await connection in connections {
            group.addTask { [self] in await serve(connection, port.requestLimit) }
          }
        }
      }
    }

    private static func configure(
      _ channel: any Channel, _ messageLimit: Int, isLocal: Bool
    ) throws -> EventLoopFuture<Connection> {
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(IdleStateHandler(allTimeout: idleTime))
      try pipeline.addHandler(IdleCloser())
      let upgrader = NIOTypedWebSocketServerUpgrader<Connection>(
        maxFrameSize: messageLimit,
        shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(HTTPHeaders()) },
        upgradePipelineHandler: { channel, head in
          channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(IdleStateHandler(readTimeout: idleTime))
            try pipeline.addHandler(IdleCloser())
            try pipeline.addHandler(
              NIOWebSocketFrameAggregator(
                minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 4_096,
                maxAccumulatedFrameSize: messageLimit))
            return .webSocket(try NIOAsyncChannel(wrappingChannelSynchronously: channel), head)
          }
        })
      let upgrade = NIOTypedHTTPServerUpgradeConfiguration<Connection>(
        upgraders: [upgrader],
        notUpgradingCompletionHandler: { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(ResponseBytes())
            return .http(try NIOAsyncChannel(wrappingChannelSynchronously: channel))
          }
        })
      let connection = try pipeline.configureUpgradableHTTPServerPipeline(
        configuration: .init(upgradeConfiguration: upgrade))
      let handler = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Connection>.self)
      try pipeline.addHandler(UpgradeFilter(isLocal: isLocal), position: .before(handler))
      return connection
    }

    /// Serves one connection. Whatever goes wrong in it ends it and nothing else.
    private func serve(
      _ connection: EventLoopFuture<Connection>, _ messageLimit: Int
    ) async {
      do {
        switch try await connection.get() {
        case .http(let channel): try await serve(channel, messageLimit)
        case .webSocket(let channel, let head): try await serve(channel, head, messageLimit)
        }
      } catch {
        // The client is gone, or it is told so by the closed connection.
      }
    }

    // MARK: - Databases

    /// The database that a request names with `ns`, and what may be done in it.
    func database(
      for request: TreeHTTPRequest
    ) async throws(DatabaseError) -> (Database, TreeAccess) {
      let namespace = request.value("ns") ?? "default"
      let served = try await directory.database(project: namespace, id: DatabaseName.usual)
      _ = try await served.rules.current()
      let caller = AdmittedCaller(
        admission: gate.admission, directory: directory, project: namespace)
      let access = TreeAccess(
        caller, served.rules, isOpenWithoutRules: gate.admission.isLoopback, gate)
      return (served.database, access)
    }

    /// Where a request comes from, and with which credential.
    static func source(of request: TreeHTTPRequest, peer: String) -> CallSource {
      CallSource(
        peer: peer, forwarded: request.forwarded, bearer: request.credential.map { "Bearer \($0)" })
    }

    func nextNumber() -> UInt64 { numbers() }
  }

  /// Makes the parts of responses what the encoder takes: ours can be sent between threads.
  private final class ResponseBytes: ChannelOutboundHandler {
    typealias OutboundIn = HTTPPart<HTTPResponseHead, ByteBuffer>
    typealias OutboundOut = HTTPServerResponsePart

    func write(
      context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
      let part: HTTPServerResponsePart
      switch unwrapOutboundIn(data) {
      case .head(let head): part = .head(head)
      case .body(let bytes): part = .body(.byteBuffer(bytes))
      case .end(let trailers): part = .end(trailers)
      }
      context.write(wrapOutboundOut(part), promise: promise)
    }
  }

  /// Takes the offer to change the protocol out of a connection's first request unless it is for a
  /// WebSocket here. The upgrade handler loses the head of a request whose offer it does not take.
  private final class UpgradeFilter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let isLocal: Bool

    /// - Parameter isLocal: whether only this machine may reach the server.
    init(isLocal: Bool) {
      self.isLocal = isLocal
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(var head) = unwrapInboundIn(data) else {
        return context.fireChannelRead(data)
      }
      let request = TreeHTTPRequest(head)
      let isSocket =
        request.headers["upgrade"]?.lowercased() == "websocket" && request.method == "GET"
        && request.path == "/.ws" && (!isLocal || TreeOrigin.isLocal(request.headers))
      if !isSocket { head.headers.remove(name: "Upgrade") }
      context.fireChannelRead(wrapInboundOut(.head(head)))
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
  }

  /// Closes a connection that has been silent for too long.
  private final class IdleCloser: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if event is IdleStateHandler.IdleStateEvent {
        context.close(promise: nil)
      } else {
        context.fireUserInboundEventTriggered(event)
      }
    }
  }

  /// Finds out who a credential is for, as for all other services.
  private struct AdmittedCaller: TreeAuthentication {
    let admission: Admission
    let directory: any DatabaseDirectory
    let project: String

    func principal(ofCredential credential: String) async throws -> TreePrincipal {
      let principal: Principal
      do throws(DatabaseError) {
        principal = try await admission.principal(
          ofBearer: "Bearer \(credential)", project: project, in: directory)
      } catch {
        guard error.code == .unauthenticated else { throw error }
        throw TreeRefusal(.invalidToken, "the server does not know this credential")
      }
      switch principal {
      case .admin: return .administrator
      case .nobody: return .nobody
      case .user(let token):
        var caller = TreePrincipal(auth: principal.auth(in: DatabaseName.usual))
        let (end, isNever) = token.expirationTime.multipliedReportingOverflow(by: 1_000_000)
        if end > 0, !isNever { caller.expiry = end }
        caller.account = CallerAccount(project: project, uid: token.uid)
        return caller
      }
    }
  }
#endif
