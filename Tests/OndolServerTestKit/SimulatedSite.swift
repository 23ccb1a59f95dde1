// The servers of one database, and how they end. One server on files loses power or is killed, and
// restarts with the remaining files. Up to three servers on a store, which loses requests and
// answers, die one after another. Requests of a dead server may still take effect.

#if Server
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolServer
  import OndolTestKit
  import OndolWire

  /// A server from its start to its end.
  final class ServerLife: Sendable {
    private struct State: Sendable {
      var isOver = false
      var next = 0
      var connections: [Int: @Sendable () -> Void] = [:]
    }

    let database: OpenedDatabase
    let service: any WireFirestore.SimpleServiceProtocol
    let storage: any HTTPFace
    private let state = Guarded(State())

    init(_ database: OpenedDatabase) {
      self.database = database
      service = firestoreService(of: SingleDatabase(database))
      storage = StorageFace(open: SingleDatabase(database))
    }

    /// Whether it has ended.
    var isOver: Bool { state.withLock(\.isOver) }

    /// The newest commit.
    func newestToken() async throws -> ChangeToken {
      let directory: any DatabaseDirectory = SingleDatabase(database)
      return try await directory.database(project: "p", id: "(default)").database.changeToken()
    }

    /// The database, with all that other servers of it have committed.
    func newestDatabase() async throws -> Database {
      let directory: any DatabaseDirectory = SingleDatabase(database)
      let served = try await directory.database(project: "p", id: "(default)").database
      try await served.refresh()
      return served
    }

    /// Registers `cut`, which runs when the server ends, or at once if it has ended.
    func attach(_ cut: @escaping @Sendable () -> Void) -> Int {
      let number: Int? = state.withLock { state in
        if state.isOver { return nil }
        state.next += 1
        state.connections[state.next] = cut
        return state.next
      }
      if number == nil { cut() }
      return number ?? 0
    }

    func detach(_ number: Int) {
      state.withLock { _ = $0.connections.removeValue(forKey: number) }
    }

    /// Ends the server: no connection sends anything from now on.
    func end() {
      let connections = state.withLock { state in
        state.isOver = true
        defer { state.connections = [:] }
        return state.connections.sorted { $0.key < $1.key }.map(\.value)
      }
      for cut in connections { cut() }
    }
  }

  /// The servers of a trial.
  final class SimulatedSite: Sendable {
    private struct State: Sendable {
      var lives: [ServerLife?]
      /// The databases of all lives, which are closed at the end.
      var databases: [Database] = []
      /// The disk, if the servers have one.
      var disk: SimulatedFileSystem?
      var worlds: [SimulatedWorld] = []
      var lifeCount: UInt64 = 0
    }

    private let executor: SimulationExecutor
    private let seed: UInt64
    private let durability: Ondol.Durability
    private let store: SimulatedStore?
    private let state: Guarded<State>
    let serverCount: Int

    /// - Parameter serverCount: nil for one on files, otherwise the number of servers on a store.
    init(
      seed: UInt64, serverCount: Int?, durability: Ondol.Durability, on executor: SimulationExecutor
    ) {
      self.seed = seed
      self.executor = executor
      self.durability = durability
      self.serverCount = serverCount ?? 1
      var state = State(lives: Array(repeating: nil, count: serverCount ?? 1))
      if serverCount == nil {
        state.disk = SimulatedFileSystem()
        store = nil
      } else {
        // The store has a clock of its own, so that pauses of the servers do not end their pins.
        let machine = SimulatedWorld(seed: seed ^ 1, threads: executor)
        store = SimulatedStore(
          seed: seed, environment: machine.environment, faults: StoreFaults(delay: 2_000))
        state.worlds = [machine]
      }
      self.state = Guarded(state)
    }

    /// Makes the store lose messages from now on, or stop losing them.
    func setFaults(_ areOn: Bool) {
      store?.faults =
        areOn
        ? StoreFaults(
          lostRequests: 20, lostAnswers: 30, lateRequests: 20, failovers: 4, delay: 2_000)
        : StoreFaults(delay: 2_000)
    }

    // MARK: - Lives

    /// Restarts a server that has ended. It tries again if it cannot reach the store.
    func start(_ server: Int) async throws(DatabaseError) {
      let database = OpenedDatabase(on: executor) { [self] () throws(DatabaseError) in
        try await open()
      }
      while true {
        do throws(DatabaseError) {
          try await database.served()
          break
        } catch {
          guard store != nil, error.code == .unavailable else { throw error }
        }
        await executor.doze()
      }
      state.withLock { $0.lives[server] = ServerLife(database) }
    }

    /// Opens the database again.
    func open() async throws(DatabaseError) -> Database {
      let (disk, number) = state.withLock { state in
        state.lifeCount += 1
        return (state.disk, state.lifeCount)
      }
      let time = state.withLock { $0.worlds.last?.environment.now() }
      let world = SimulatedWorld(
        fileSystem: disk ?? SimulatedFileSystem(), seed: SeededRandom.derive(seed, Int(number)),
        startTime: time ?? 1_000_000_000_000_000, threads: executor)
      state.withLock { $0.worlds.append(world) }
      let options = Database.Options(
        durability: durability, shardCount: 2, changeRetention: Database.ChangeRetention(),
        serverTimeout: nil)
      var engineOptions = EngineOptions()
      engineOptions.memtableSize = 16 << 10
      engineOptions.logSize = 32 << 10
      engineOptions.firstPrewrittenSize = 4 << 10
      let database = try await Database.open(
        at: store?.name ?? "/db", options: options, environment: Self.patient(world.environment),
        engineOptions: engineOptions, on: store)
      state.withLock { $0.databases.append(database) }
      return database
    }

    /// A world in which only short sleeps end. Time jumps when a task sleeps, and a timer for next
    /// month would otherwise let a month pass at once.
    static func patient(_ environment: Environment) -> Environment {
      var patient = environment
      let nap = environment.sleep
      patient.sleep = { microseconds in
        if microseconds <= longestNap { return await nap(microseconds) }
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        await withTaskCancellationHandler {
          for await _ in never {}
        } onCancel: {
          end.finish()
        }
      }
      return patient
    }

    private static let longestNap: Int64 = 3_600_000_000

    /// Ends a server abruptly. On files the power may be cut at that moment.
    func end(_ server: Int, cutsPower: Bool, seed: UInt64) {
      let life = state.withLock { state in
        state.disk = cutsPower ? state.disk?.crash(seed: seed) : state.disk?.kill()
        defer { state.lives[server] = nil }
        return state.lives[server]
      }
      life?.end()
    }

    /// Returns a running server; waits until there is one.
    ///
    /// Throws if the task is cancelled.
    func life(of server: Int) async throws -> ServerLife {
      while true {
        try Task.checkCancellation()
        if let life = state.withLock({ $0.lives[server] }) { return life }
        await executor.doze()
      }
    }

    /// Ends all servers in good order, and the rest of those that ended before.
    func close() async {
      let (lives, databases) = state.withLock { state in
        defer { state.databases = [] }
        return (state.lives, state.databases)
      }
      for life in lives { life?.end() }
      for database in databases { try? await database.close() }
    }
  }
#endif
