// Opening a database whose rows a store has. What the engine has of files it has in memory, and
// empty: nothing of it is used but for small things that know where they are, such as metrics.

extension Engine {
  /// What calls about files get.
  package static let noFiles = "the database is on a server and has no files"

  /// Whether a store has the rows.
  package var isOnStore: Bool { remote != nil }

  /// What this process is called among those that share a store; nil where there is none.
  package var process: Int64? { remote?.process }

  /// The processes that have the store open, this one among them, but for those that have said
  /// nothing for two minutes.
  package func livingProcesses() async throws(EngineError) -> Set<Int64> {
    try await remote?.livingProcesses() ?? []
  }

  /// Opens the database that `store` keeps, and makes one where there is none. Others may have it
  /// open, and write it, at the same time.
  @concurrent
  package static func open(
    on store: any RemoteStore, options: EngineOptions = EngineOptions(),
    environment: Environment = .live()
  ) async throws(EngineError) -> Engine {
    var (options, environment) = (options, environment.forDatabase())
    options.shardCount = 1
    options.smallestPour = .max
    // What is not in its row is in parts.
    options.packedContentSize = 0
    environment.fileSystem = MemoryFileSystem()
    environment.vault = nil
    let process = Int64(bitPattern: environment.random()) & .max
    if let timeout = options.serverTimeout { store.limitAnswers(to: timeout) }
    let head = try await store.open(process)
    var retention = options.historyRetention
    // Files keep none of it.
    options.historyRetention = nil
    if retention == nil, options.continuesHistory, try await store.isKeeping(head.point) {
      retention = HistoryRetention(microseconds: .max, bytes: .max)
    }
    let claim = try DirectoryClaim(
      path: "/store", fileLimit: options.fileLimit, environment: environment)
    let opening = try Opening(claim, options: options, environment: environment)
    let bases = RemoteBases()
    let rows = RemoteRows(
      store, asOf: head.point, budgetBytes: options.cacheSize, seed: environment.random(), bases)
    return opening.makeEngine(
      maintenance: environment.threads.makeWorker(named: "ondol-upkeep", for: .upkeep),
      logWorker: environment.threads.makeWorker(named: "ondol-log", for: .syncs), on: rows
    ) { [options, environment, retention] views in
      RemoteSession(
        store,
        RemoteWindow(views: views, at: head.point, capacity: options.memtableSize),
        identity: head.identity, process: process, retention: retention, bases: bases,
        options: options, environment: environment)
    }
  }

  /// On a store, has `observer` told when it cannot be reached, and when it answers again and what
  /// others have committed is shown. Set once.
  package func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    remote?.observeReach(observer)
  }

  /// Whether something has ended all reading and writing on a store.
  package var hasEnded: Bool { remote?.line.failure != nil }

  /// Waits so that others get on.
  package func rest(microseconds: Int64) async { await storage.environment.rest(microseconds) }

  /// How long calls wait for a store; nil where there is none, and where they wait for ever.
  package var patience: Patience? { remote?.patience }

  /// On a store, lets go of versions of rows that nobody reads any more, as is done now and then.
  package func forgetVersions() async { await remote?.tidy() }

  /// On a store, commits what `fill` makes of the row at `key`, anew while others change the row;
  /// nil, and nothing is committed, when it makes nothing of it.
  ///
  /// - Parameter fill: fills the batch, which guards the row. It is called anew for each try.
  package func commit<R>(
    about key: [UInt8], durability: Durability,
    _ fill: (_ row: [UInt8]?, inout Batch) async throws(EngineError) -> R?
  ) async throws(EngineError) -> R? {
    guard let remote else { throw .unsupported(reason: "only a store has rows of processes") }
    return try await remote.commit(about: key, durability, fill)
  }
}
