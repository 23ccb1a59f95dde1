// The Realtime Database's port: HTTP for its REST interface, and the upgrade to WebSocket for its
// clients. Everything that the protocol means is in Tree; here are only connections.

#if Server
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOWebSocket
  import Ondol
  import Synchronization

  /// Serves the tree of databases to the Realtime Database's clients.
  final class TreeFace: Sendable {
    /// A connection, once it is known what it is for.
    enum Connection: Sendable {
      case http(NIOAsyncChannel<HTTPServerRequestPart, HTTPPart<HTTPResponseHead, ByteBuffer>>)
      case webSocket(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>, HTTPRequestHead)
    }

    /// The longest request and the longest message in bytes.
    static let messageLimit = 16 << 20
    /// After this time without a frame a client counts as gone: clients send one every 45 seconds.
    /// A connection of HTTP ends after as long without anything in either direction.
    static let idleTime = TimeAmount.seconds(150)

    let drain: Drain
    private let directory: any DatabaseDirectory
    private let admission: Admission
    private let isOneDatabase: Bool
    private let books = Mutex<[String: (book: TreeRuleBook, following: Handlers.Registration)]>([:])
    private let numbers: @Sendable () -> UInt64

    /// - Parameters:
    ///   - admission: finds out who calls.
    ///   - numbers: draws the numbers of connections.
    init(
      _ directory: any DatabaseDirectory, _ admission: Admission, drain: Drain,
      numbers: @escaping @Sendable () -> UInt64 = { UInt64.random(in: 1...UInt64.max) }
    ) {
      self.directory = directory
      self.admission = admission
      self.drain = drain
      self.numbers = numbers
      isOneDatabase = directory is SingleDatabase
    }

    /// Serves until the task is cancelled. Connections end when the server shuts down.
    ///
    /// - Parameter whenReady: called with the port once it listens.
    /// - Throws: when the port is taken.
    func run(
      host: String, port: Int, whenReady: @Sendable (Int) async -> Void
    ) async throws {
      let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .bind(host: host, port: port) { channel in
          channel.eventLoop.makeCompletedFuture { try Self.configure(channel) }
        }
      await whenReady(server.channel.localAddress?.port ?? port)
      try await withThrowingDiscardingTaskGroup { group in
        try await server.executeThenClose { connections in
          for try await connection in connections {
            group.addTask { [self] in await serve(connection) }
          }
        }
      }
    }

    private static func configure(_ channel: any Channel) throws -> EventLoopFuture<Connection> {
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
      try pipeline.addHandler(UpgradeFilter(), position: .before(handler))
      return connection
    }

    /// Serves one connection. Whatever goes wrong in it ends it and nothing else.
    private func serve(_ connection: EventLoopFuture<Connection>) async {
      do {
        switch try await connection.get() {
        case .http(let channel): try await serve(channel)
        case .webSocket(let channel, let head): try await serve(channel, head)
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
      let name = isOneDatabase ? "" : namespace
      let book = try await book(named: name, of: served)
      let caller = AdmittedCaller(
        admission: admission, directory: directory, project: namespace, database: served.database)
      return (
        served.database,
        TreeAccess(caller, rules: book, isOpenWithoutRules: admission.isLoopback)
      )
    }

    /// The rules of a database, which follow its deployments.
    private func book(
      named name: String, of served: ServedDatabase
    ) async throws(DatabaseError) -> TreeRuleBook {
      if let known = books.withLock({ $0[name]?.book }) { return known }
      let book = TreeRuleBook()
      // A deployment while this waits is announced to the handler.
      let following = served.rules.handlers.add { [weak book, weak served] in
        Task { if let book, let served { try? await Self.adopt(served, into: book) } }
      }
      try await Self.adopt(served, into: book)
      return books.withLock { books in
        if let known = books[name] { return known.book }
        books[name] = (book, following)
        return book
      }
    }

    private static func adopt(
      _ served: ServedDatabase, into book: TreeRuleBook
    ) async throws(DatabaseError) {
      guard let current = try await served.rules.current(), let rules = current.tree,
        let text = current.treeText
      else { return }
      book.adopt(rules, text)
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

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(var head) = unwrapInboundIn(data) else {
        return context.fireChannelRead(data)
      }
      let request = TreeHTTPRequest(head)
      let isSocket =
        request.headers["upgrade"]?.lowercased() == "websocket" && request.method == "GET"
        && request.path == "/.ws" && TreeOrigin.isLocal(request.headers)
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
    let database: Database

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
        return caller
      }
    }
  }
#endif
