// Opens a database whose rows are on a store. The engine's files are in memory and empty. Only
// small things that know their location, such as metrics, use them.

extension Engine {
  /// The error message for calls about files.
  package static let noFiles = "the database is on a server and has no files"

  /// Whether a store has the rows.
  package var isOnStore: Bool { remote != nil }

  /// This process's number among those that share a store; nil when there is no store.
  package var process: Int64? { remote?.process }

  /// The processes that have the store open, including this one, except those without a sign of
  /// life for two minutes.
  package func livingProcesses() async throws(EngineError) -> Set<Int64> {
    try await remote?.livingProcesses() ?? []
  }

  /// Opens the database on `store`, and makes one when there is none. Other processes may have it
  /// open, and write it, at the same time.
  @concurrent
  package static func open(
    on store: any RemoteStore, options: EngineOptions = EngineOptions(),
    environment: Environment = .live()
  ) async throws(EngineError) -> Engine {
    var (options, environment) = (options, environment.forDatabase())
    options.shardCount = 1
    options.smallestPour = .max
    // Contents are either in their row or in parts.
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

  /// On a store, notifies `observer` when the store cannot be reached, and when it answers again
  /// and other processes' commits are shown. Set once.
  package func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    remote?.observeReach(observer)
  }

  /// Whether a failure has ended all reading and writing on a store.
  package var hasEnded: Bool { remote?.line.failure != nil }

  /// Waits, so that other work can proceed.
  package func rest(microseconds: Int64) async { await storage.environment.rest(microseconds) }

  /// How long calls wait for a store; nil without a store, and when they wait for ever.
  package var patience: Patience? { remote?.patience }

  /// On a store, removes versions of rows that no process reads any more. This also happens from
  /// time to time.
  package func forgetVersions() async { await remote?.tidy() }

  /// On a store, commits the batch that `fill` makes from the row at `key`, and repeats this while
  /// other processes change the row. Returns nil, and commits nothing, when `fill` makes nothing.
  ///
  /// - Parameter fill: fills the batch, which guards the row. Called again for each try.
  package func commit<R>(
    about key: [UInt8], durability: Durability,
    _ fill: (_ row: [UInt8]?, inout Batch) async throws(EngineError) -> R?
  ) async throws(EngineError) -> R? {
    guard let remote else { throw .unsupported(reason: "only a store has rows of processes") }
    return try await remote.commit(about: key, durability, fill)
  }
}
