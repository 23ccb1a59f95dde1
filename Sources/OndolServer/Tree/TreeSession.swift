// One connection of a client of the Realtime Database over WebSocket, version 5 of the protocol. It
// is given frames and sends frames, and knows no socket. Start reading here: TreeSession+Requests
// has what requests do, TreeSession+Listening what is pushed.
//
// All work of a session is done in turns, one at a time and in the order in which it came: a
// request with its answer, or a round of pushes. A client relies on this: it sees its own write,
// and every other one before it, before the write is acknowledged. Sending waits until the client
// takes more, so a client that does not read stops its own requests and pushes, and nothing else:
// what changes in the meantime is merged.

#if Server
  import Ondol

  /// The way to a client.
  protocol TreeConnection: Sendable {
    /// Sends a frame. Returns when the client can be sent another one.
    ///
    /// - Throws: when the connection has ended.
    func send(_ frame: String) async throws
    /// Ends the connection.
    func close() async
  }

  /// One connection of a client.
  actor TreeSession {
    struct Options: Sendable {
      /// The address that the client connects to from now on: the one that it has used.
      var host = ""
      /// The longest message in bytes.
      var messageLimit = 16 << 20
      /// The most places that a client listens to, and the most operations on disconnect.
      var mostListens = 10_000
      var mostOnDisconnect = 10_000
      /// The principal until the client authenticates.
      var principal = TreePrincipal.nobody
      /// Where the connection comes from.
      var source = CallSource(peer: "")
      /// The connection, as a call.
      var call: OpenCall?
    }

    let database: Database
    let access: TreeAccess
    let options: Options
    let operations: ConnectionOperations
    private let connection: any TreeConnection
    private let number: UInt64
    let news = TreeNews()
    var principal: TreePrincipal {
      didSet { options.call?.show(principal.caller) }
    }
    /// The deployment of the rules that the listens were last checked with.
    var rulesNumber: Int64?
    private var rulesChange: Handlers.Registration?
    var listens: [TreeListenKey: TreeListen] = [:]
    /// How many operations on disconnect were stored.
    var onDisconnectCount = 0
    private var frames: TreeFrames
    private var isOver = false
    private let turn = TreeTurn()

    /// - Parameter number: drawn at random; it names the session, also to the client.
    init(
      _ database: Database, _ access: TreeAccess, on connection: any TreeConnection,
      number: UInt64, options: Options = Options()
    ) {
      self.database = database
      self.access = access
      self.connection = connection
      self.number = number
      self.options = options
      operations = ConnectionOperations(database, connection: number)
      principal = options.principal
      rulesNumber = access.rulesNumber
      frames = TreeFrames(messageLimit: options.messageLimit)
    }

    // MARK: - Life

    /// Greets the client and pushes changes until the session ends or the task is cancelled.
    func run() async {
      rulesChange = access.deployments.handlers.add { [news] in news.signal.notify() }
      await inTurn {
        let name = String(number, radix: 36)
        try await send(
          "{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{\"ts\":\(milliseconds),\"v\":\"5\",\"h\":"
            + TreeText.json(options.host) + ",\"s\":\"\(name)\"}}}")
      }
      while !isOver, !Task.isCancelled {
        if let expiry = principal.expiry {
          let rest = max(0, expiry - database.wallClock)
          _ = await news.signal.wait(atMost: .microseconds(rest))
        } else {
          await news.signal.wait()
        }
        await inTurn {
          try await checkExpiry()
          try await checkRules()
          try await push()
        }
      }
    }

    /// Takes a frame. Returns when what it asks for is done and answered, so that a task that reads
    /// from the client reads no faster.
    func receive(_ frame: String) async {
      await inTurn {
        guard let message = try frames.take(frame) else { return }
        try await checkExpiry()
        switch try TreeMessage(message) {
        case .ping: try await send("{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}")
        case .other: break
        case .wrong(let number, let fault): try await answer(number, fault)
        case .request(let number, let request): try await pass(request, number)
        }
      }
    }

    /// Ends the session: stops listening, and writes what is to be written when the connection
    /// ends. Called however it ended, by a task that is not cancelled; again it does nothing.
    func end() async {
      await turn.take()
      stop()
      if onDisconnectCount > 0 { await operations.carryOut() }
      onDisconnectCount = 0
      turn.give()
    }

    private func stop() {
      isOver = true
      rulesChange = nil
      listens = [:]
      options.call?.endListening()
      news.signal.notify()
    }

    /// Does work in its turn. An error that a request cannot be answered with stops the session.
    private func inTurn(_ body: () async throws -> Void) async {
      await turn.take()
      defer { turn.give() }
      guard !isOver else { return }
      do {
        try await body()
      } catch {
        await connection.close()
        stop()
      }
    }

    // MARK: - Sending

    var milliseconds: Int64 { database.wallClock / 1_000 }

    /// Sends a message in one or several frames.
    func send(_ message: String) async throws {
      for frame in TreeFrames.frames(of: message) { try await connection.send(frame) }
    }

    /// Answers a request with success.
    ///
    /// - Parameter data: JSON.
    func answer(_ number: Int64, _ data: String = "\"\"") async throws {
      try await send(
        "{\"t\":\"d\",\"d\":{\"r\":\(number),\"b\":{\"s\":\"ok\",\"d\":\(data)}}}")
    }

    /// Answers a request with an error.
    func answer(_ number: Int64, _ fault: TreeRefusal) async throws {
      try await send(
        "{\"t\":\"d\",\"d\":{\"r\":\(number),\"b\":{\"s\":\"\(fault.status)\",\"d\":"
          + TreeText.json(fault.message) + "}}}")
    }

    /// Sends what no request asked for.
    ///
    /// - Parameter body: JSON.
    func push(_ action: String, _ body: String) async throws {
      try await send("{\"t\":\"d\",\"d\":{\"a\":\"\(action)\",\"b\":\(body)}}")
    }
  }
#endif
