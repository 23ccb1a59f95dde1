// Keeps a database equal to its server: one task listens (Listening), one sends (Sending), and one
// asks the server for moments that answered writes wait for. They meet here: an actor with what all
// three know. Everything that must survive is in rows, so the engine can be thrown away at any time
// and made again from them.

#if Sync
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolWire

  /// The pauses between attempts to reach a server, in microseconds.
  struct Backoff: Sendable {
    private static let first: Int64 = 1_000_000
    /// What only waking ends: a device without a network would try at every write.
    static let least: Int64 = 100_000
    private static let longest: Int64 = 60_000_000

    private var next = Backoff.first

    mutating func reset() { next = Self.first }

    /// Between half of the pause and all of it, so that devices do not come back all at once.
    mutating func pause(_ environment: Environment) -> Int64 {
      let pause = next
      next = min(next * 2, Self.longest)
      return pause / 2 + Int64(environment.random() % UInt64(pause / 2))
    }
  }

  /// What a device does about its server.
  actor SyncEngine {
    let database: Database
    let transport: any SyncTransport
    let witness: SyncWitness
    let commits: LocalCommits
    let values: ValueMapping
    let session: String
    nonisolated let board: StateBoard
    nonisolated let exchange: ContentExchange
    nonisolated let isGoogles: Bool
    /// Whether contents are fetched before anybody reads them.
    nonisolated let isEager: Bool
    var awaited = FetchQueue()
    nonisolated let contentBell = Bell()
    var environment: Environment { database.environment }

    private var credentials: (any SyncSession)?
    private var isRefused = false
    /// Counts calls that want an attempt at once.
    private var wakes = 0

    // MARK: - What is followed

    var follows: [Int64: FollowedQuery] = [:]
    private var problems: [Int64: DatabaseError] = [:]
    var gathering: Gathering
    /// Takes requests while a stream is open.
    var requests: AsyncStream<WireListenRequest>.Continuation?
    nonisolated let listenBell = Bell()
    /// Moments that wait while another is committed.
    var pending: PendingMoment?
    nonisolated let momentBell = Bell()
    var isShowing = false
    /// Who waits until nothing is being committed.
    var showing: [CheckedContinuation<Void, Never>] = []
    nonisolated let probeBell = Bell()

    // MARK: - What is sent

    var client: SyncClient
    /// Entries that the server has committed and has not shown.
    var answered: [OutboxEntry] = []
    /// Entries that wait to be merged.
    var held: [String: HeldEntry] = [:]
    /// Those of them that were refused before the next moment that was asked for.
    var heldBefore: Set<String> = []
    var isFirstMoment = false
    /// Entries that the server may have and has not answered.
    var sent = SentEntries()
    nonisolated let answerBell = Bell()
    nonisolated var sendBell: Bell { witness.bell }
    /// End the pauses after failures at once, however short they were.
    nonisolated let listenWakeBell = Bell()
    nonisolated let sendWakeBell = Bell()
    /// Takes writes while a stream is open.
    var writing: AsyncStream<WireWriteRequest>.Continuation?

    init(
      _ database: Database, _ transport: any SyncTransport, as name: DatabaseName,
      _ witness: SyncWitness, _ client: SyncClient, session: String, board: StateBoard,
      credentials: (any SyncSession)?, _ exchange: ContentExchange, isGoogles: Bool, isEager: Bool
    ) {
      self.exchange = exchange
      self.isGoogles = isGoogles
      self.isEager = isEager
      self.database = database
      self.transport = transport
      self.witness = witness
      self.client = client
      self.session = session
      self.board = board
      self.credentials = credentials
      commits = LocalCommits(database: database, witness: witness)
      values = ValueMapping(database: name)
      gathering = Gathering(values)
    }

    /// Reads what earlier sessions left.
    func load(_ follows: [FollowedQuery], _ entries: [OutboxEntry]) {
      self.follows = Dictionary(
        follows.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
      for entry in entries {
        if let refusal = entry.held, let path = entry.paths.first {
          held[entry.name] = HeldEntry(path: path, time: refusal.time)
        } else if entry.answer == nil {
          // What relies on an earlier entry is sent after that one's answer.
          guard entry.reliedOn.isEmpty else { continue }
          sent.insert(entry)
        } else {
          answered.append(entry)
        }
      }
      tell()
    }

    /// Works until its task is cancelled.
    nonisolated func run() async {
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.listen() }
        group.addTask { await self.send() }
        group.addTask { await self.probe() }
        if isEager { group.addTask { await self.fetchContents() } }
      }
      board.change { $0.isOnline = false }
    }

    // MARK: - Who

    /// Identifies as another user from now on.
    func use(_ credentials: (any SyncSession)?) {
      self.credentials = credentials
      isRefused = false
      requests?.finish()
      writing?.finish()
      wake()
    }

    /// Tries again at once what failed.
    func wake() {
      wakes += 1
      if requests == nil, writing == nil { transport.renew() }
      listenBell.ring()
      listenWakeBell.ring()
      sendWakeBell.ring()
      sendBell.ring()
      contentBell.ring()
    }

    /// Tries again at once when the server could not be reached.
    func wakeWhenOffline() {
      if !board.newest.isOnline { wake() }
    }

    /// Waits until a bell rings, or for the next pause. Only the bell that wakes ends it from the
    /// beginning. When somebody has waked the device, pauses begin from the shortest one.
    func rest(_ bell: Bell, wakedBy wakeBell: Bell, _ backoff: inout Backoff) async {
      let before = wakes
      let pause = backoff.pause(environment)
      await wakeBell.wait(atMost: Backoff.least, in: environment)
      if wakes == before {
        await bell.wait(atMost: pause - Backoff.least, in: environment)
      }
      if wakes != before { backoff.reset() }
    }

    func credential() async throws -> String? {
      guard let credentials else { return nil }
      let token = try await credentials.token(isRefused: isRefused)
      isRefused = false
      return token
    }

    /// Notes why a stream has ended. Returns whether to try again at once, with another token.
    func note(failure error: any Error) -> Bool {
      guard !(error is CancellationError) else { return false }
      let reason = DatabaseError(sync: error)
      board.change { state in
        state.isOnline = false
        state.problem = reason
      }
      guard reason.code == .unauthenticated, credentials != nil, !isRefused else { return false }
      isRefused = true
      return true
    }

    func noteReached() {
      if !board.newest.isOnline { contentBell.ring() }
      board.change { state in
        state.isOnline = true
        state.problem = nil
      }
    }

    func note(_ problem: DatabaseError?, of follow: Int64) {
      problems[follow] = problem
      tell()
    }

    /// Shows the present state to those who watch.
    func tell() {
      let listed = follows.values.sorted { $0.number < $1.number }.map { follow in
        SyncState.Followed(
          id: follow.number, collection: follow.source.text, isComplete: follow.isComplete,
          documentCount: Int(follow.count), readTime: follow.readTime,
          problem: problems[follow.number])
      }
      board.change { $0.follows = listed }
    }

    // MARK: - Follows

    /// Begins a follow that has its row.
    func begin(_ follow: FollowedQuery) {
      guard follows[follow.number] == nil else { return }
      follows[follow.number] = follow
      if let requests { requests.yield(gathering.add(follow)) }
      listenBell.ring()
      tell()
    }

    /// Ends a follow; its documents are removed by the caller.
    func end(_ number: Int64) {
      follows[number] = nil
      problems[number] = nil
      if let requests, let request = gathering.remove(number) { requests.yield(request) }
      tell()
    }

    /// Makes the follow's documents what the server has, from nothing.
    func restart(_ follow: FollowedQuery) {
      guard let requests else { return }
      if let request = gathering.remove(follow.number) { requests.yield(request) }
      requests.yield(gathering.add(follow, isFresh: true))
    }
  }

  extension QueryDescription.Source {
    /// The collection's path or id.
    var text: String {
      switch self {
      case .collection(let path): "\(path)"
      case .group(let id): id
      }
    }
  }

  extension DatabaseError {
    /// The error of a stream.
    init(sync error: any Error) {
      switch error {
      case let error as DatabaseError: self = error
      case let error as RPCError:
        let code = DatabaseError.Code(rawValue: error.code.rawValue) ?? .unknown
        self.init(code == .ok ? .unknown : code, error.message)
      case is CancellationError: self.init(.cancelled, "the stream was ended")
      default: self.init(.unavailable, "\(error)")
      }
    }
  }
#endif
