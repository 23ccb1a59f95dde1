// The entry point: `open` makes a database of a directory. Start reading here. A write continues in
// Commits/WritePath, a read of one document in Catalog/ReadPath, and a query in Query/Executor. All
// of them use the engine's snapshots and commits.

internal import Logging
package import OndolEngine

/// An open database: collections of documents in a directory, or in memory.
///
/// ```swift
/// let database = try await Database.open(at: "shop.ondol")
/// let items = database.collection("items")
/// try await items.document("lamp").setData(["name": "Lamp", "price": 30])
/// for document in try await items.order(by: "price").getDocuments().documents {
///   print(document.documentID, document["name"] as String? ?? "")
/// }
/// try await database.close()
/// ```
///
/// You can use a database from any task or actor. Reads never wait for writes, and a read that
/// begins after an awaited write sees it. Where Firestore has `Firestore.firestore()`, Ondol has a
/// value that the app opens and keeps. There are no apps, no cache settings and no network to
/// enable.
///
/// Beside documents, the database stores files and blobs (`storage`) and one JSON tree (`tree`),
/// and one commit can change all of them. Releasing a database without calling `close()` loses no
/// acknowledged write.
public final class Database: Sendable {
  package let engine: Engine
  /// The path as the opener gave it.
  package let path: String
  let catalog: Catalog
  /// The bytes of blobs.
  let contents: ContentStore
  let latches = Latches()
  /// The listeners.
  let observers: Observers
  /// Makes the keys of children of the tree that are added without one.
  let pushIDs = PushIDs()
  /// Wakes the tasks that follow changes.
  let arrivals: CommitArrivals
  /// Handlers that receive every commit.
  let taps = CommitTaps()
  /// All listeners and change feeds.
  let audience = Audience()
  /// How long commits take.
  let commitTimes = CommitTimes()
  /// What queries learned while they ran, for later plans.
  let feedback = QueryFeedback()
  /// Plans that queries reuse.
  let plans = PlanCache()
  /// Cached facts about queries that need no plan.
  let pointReads = PointReads()
  /// Types whose rows cannot be made without fields.
  let refusedTypes = RefusedTypes()
  /// The progress of index builds.
  let builds = IndexBuilds()
  /// The word indexes that have documents to gather.
  let searches = SearchGathering()
  /// Cached statistics of runs of words.
  let searchStatistics = SearchStatisticsCache()
  /// Removes expired documents.
  let reaper = Reaper()
  let options: Options
  let gates = Gates()
  let runningTransactions = RunningTransactions()
  package let environment: Environment
  /// Connections that have ended and whose operations are not carried out yet.
  let endedConnections = Guarded<Set<UInt64>>([])
  /// The error that ended the last refresh of a database that another process writes.
  private let refreshFailure = Guarded<DatabaseError?>(nil)

  private init(engine: Engine, path: String, options: Options, environment: Environment) {
    self.engine = engine
    self.path = path
    self.options = options
    self.environment = environment
    let keepsChanges = engine.isOnStore ? engine.keepsHistory : options.changeRetention != nil
    catalog = Catalog(
      clock: environment.now, keepsChanges: keepsChanges, hasOtherWriters: engine.hasOtherWriters,
      tokenizers: options.tokenizers, keys: CollectionKeys(of: engine))
    contents = ContentStore(
      engine: engine, catalog: catalog, options: options, environment: environment)
    observers = Observers(engine, audience)
    arrivals = CommitArrivals(after: engine.newestCommit.sequence)
    // The engine keeps the observers, so these must not keep the engine.
    engine.follow { [observers, arrivals, taps] announcement in
      observers.announce(announcement)
      taps.tell(announcement)
      if keepsChanges { arrivals.note(announcement.sequence) }
    }
    if engine.hasOtherWriters { followOthers() }
  }

  /// Reports other processes' commits to the listeners.
  private func followOthers() {
    if engine.isReadOnly { audience.serve { [weak self] in self?.startFollowing() } }
    engine.lookAfterOthers { [weak self] isThorough in self?.lookAfterOthers(isThorough) }
    // Without this, waiting listeners would wait forever and show data that the store no longer
    // has.
    engine.observeFailure { [observers, arrivals] error in
      observers.fail(with: DatabaseError(error))
      arrivals.fail(with: DatabaseError(error))
    }
    engine.observeReach { [observers] isAway in observers.note(isAway: isAway) }
    let reader = StepReader(catalog, observers)
    engine.prepareForRefreshes { step in reader.prepare(for: step) }
    engine.observeRefreshes { [observers, arrivals, refreshFailure, taps] step in
      var changes = StepChanges.unknown
      do throws(DatabaseError) {
        changes = try reader.changes(of: step)
      } catch {
        refreshFailure.withLock { $0 = error }
      }
      observers.announce(changes, through: Version(rawValue: step.after.sequence.rawValue))
      arrivals.note(step.after.sequence)
      taps.tell(SeenCommit(step: step.after.sequence))
    }
  }

  /// Cleans up after processes that shared the database and have died.
  private func lookAfterOthers(_ isThorough: Bool) {
    engine.startInBackground { [weak self] in
      await self?.carryOutCloseOperationsOfOthers()
      if isThorough { await self?.finishWhatWasBegun(isOfOthers: true) }
    }
  }

  /// Wall clock in microseconds since 1970.
  package func now() -> Int64 { environment.now() }

  /// Waits that many microseconds; returns at once when the task is cancelled.
  func rest(_ microseconds: Int64) async { await environment.rest(microseconds) }

  /// Runs `body` in the background after each pause, until it returns false or the database is
  /// closed.
  ///
  /// - Parameter pause: in microseconds.
  package func repeatInBackground(
    every pause: Int64, _ body: @escaping @Sendable () async -> Bool
  ) {
    engine.startInBackground { [self] in
      repeat {
        await rest(pause)
        guard !Task.isCancelled else { return }
      } while await body()
    }
  }

  /// A random number below `limit`.
  func random(below limit: Int64) -> Int64 {
    Int64(environment.random() % UInt64(max(1, limit)))
  }

  /// Opens the database in the directory at `path`, and makes one when there is none. Opening
  /// recovers what a crash left behind. Unfinished index builds continue in the background, and
  /// queries run without those indexes meanwhile.
  ///
  /// With `.readOnly` as `Options.access`, opening makes, recovers and finishes nothing, and a
  /// writer may have the directory open at the same time: see `refresh()`.
  ///
  /// - Parameters:
  ///   - path: the database's directory. Its parent directory must exist.
  ///   - options: how to open it.
  /// - Throws: `.invalidArgument` for an invalid option; `.failedPrecondition`, naming the holder,
  ///   when another process or this one has the directory open for writing; `.notFound` when there
  ///   is no directory to read; `.dataLoss` when files are damaged; `.permissionDenied` when the
  ///   database is encrypted and `Options.encryption` is not its key; `.permissionDenied`,
  ///   `.resourceExhausted` or `.internal` when a system call fails.
  /// - Complexity: O(bytes of the logs) that the previous session did not finish: nothing after
  ///   `close()`, some tens of megabytes after a crash. Segments are not read.
  public static func open(
    at path: String, options: Options = Options()
  ) async throws(DatabaseError) -> Database {
    try await open(at: path, options: options, environment: .live())
  }

  private static let memoryPath = "/memory.ondol"

  /// The directory; nil for a database in memory or on a store.
  package var directory: String? {
    path == Self.memoryPath || isOnStore ? nil : path
  }

  /// How long uploaded bytes wait for a document that refers to them.
  package var blobLease: Duration { options.blobLease }

  /// Bytes that the stages of a pipeline keep at most.
  var pipelineMemory: Int { options.pipelineMemory }

  /// Whether the database is on a store.
  package var isOnStore: Bool { engine.isOnStore }

  /// The name to show: the directory, or the store's address without passwords.
  package var name: String { path == Self.memoryPath ? "memory" : path }

  /// Makes an empty database that lives in memory only. It has the same engine and semantics,
  /// without files.
  ///
  /// - Parameter options: as on disk. Here every durability lasts only as long as the process.
  /// - Throws: `.invalidArgument` for an invalid option.
  /// - Complexity: O(1).
  public static func inMemory(
    options: Options = Options()
  ) async throws(DatabaseError) -> Database {
    try await open(at: memoryPath, options: options, environment: .memory())
  }

  /// Opens the database on a store, and makes one when there is none. Several processes may open
  /// and write it at the same time. Reads and listeners see the commits of all of them, in one
  /// order. A read sees everything that this process has committed, and other processes' commits
  /// shortly after they were made. A transaction reads as of the newest commit of all processes.
  ///
  /// - Parameters:
  ///   - store: where the database is kept.
  ///   - options: how to open it; `shardCount` and `fileLimit` have no meaning here.
  /// - Throws: `.unavailable` when the store cannot be reached; `.unimplemented` for `.readOnly`
  ///   access and for encryption, which a store does not support; `.invalidArgument` for an invalid
  ///   option.
  /// - Complexity: a few round trips to the store.
  public static func open(
    on store: DatabaseStore, options: Options = Options()
  ) async throws(DatabaseError) -> Database {
    let store = try rethrowing { () throws(EngineError) in try store.make() }
    return try await open(at: store.name, options: options, environment: .live(), on: store)
  }

  /// Opens a database in an environment that the caller supplies, on `store` instead of a directory
  /// when one is given.
  package static func open(
    at path: String, options: Options = Options(), environment: Environment,
    engineOptions: EngineOptions = EngineOptions(), on store: (any RemoteStore)? = nil
  ) async throws(DatabaseError) -> Database {
    try options.check(for: path)
    if store != nil { try options.checkForStore(path) }
    var environment = environment
    if let clock = options.clock { environment.now = clock }
    environment = environment.opening(with: options.encryption)
    var engineOptions = engineOptions
    engineOptions.cacheSize = options.cacheSize
    engineOptions.fileLimit = options.fileLimit
    engineOptions.shardCount = options.shardCount
    engineOptions.serverTimeout = options.serverTimeout.map { max(1, $0.microseconds) }
    engineOptions.historyRetention = options.changeRetention.map { HistoryRetention($0) }
    engineOptions.continuesHistory = options.continuesChanges
    engineOptions.reportDamage = { [logger = options.logger] damage in
      logger.critical("a file is damaged, and merges leave it alone: \(damage)")
    }
    let engine = try await rethrowing { () async throws(EngineError) in
      if let store {
        return try await Engine.open(on: store, options: engineOptions, environment: environment)
      }
      return try await Engine.open(
        at: path, options: engineOptions, environment: environment,
        access: options.access == .readOnly ? .readOnly : .readWrite)
    }
    // Keys are kept only with files.
    environment.vault = nil
    var options = options
    options.encryption = nil
    if engine.isReadOnly { options.automaticIndexes = false }
    let database = Database(
      engine: engine, path: path, options: options, environment: environment)
    if engine.isReadOnly { return database }
    do throws(DatabaseError) {
      try await database.refuseUnsynchronisedWrites()
    } catch {
      // What the engine runs in the background would keep the directory.
      try? await database.close()
      throw error
    }
    await database.carryOutCloseOperationsOfNobody()
    database.resume()
    return database
  }

  /// Writes everything to disk, marks the database as closed cleanly and releases the directory.
  /// Later calls throw `.failedPrecondition`. Closing again does nothing.
  ///
  /// - Throws: `.internal`, `.resourceExhausted` or `.permissionDenied` when a system call fails.
  ///   The database is closed even then.
  /// - Complexity: O(bytes in memory that are not yet in files), written and synced.
  public func close() async throws(DatabaseError) {
    gates.openAll()
    await carryOutCloseOperations()
    latches.close()
    contents.turns.close()
    observers.close()
    arrivals.close()
    try await rethrowing { () async throws(EngineError) in try await engine.close() }
  }

  /// Why the database must be opened again before it can be written; nil while it works. A write
  /// to its files has failed, or its server has lost commits that were seen.
  package var failure: DatabaseError? { engine.failure.map { DatabaseError($0) } }

  /// Has a database that was opened with `.readOnly` access show what its writer has written since:
  /// all commits up to some one. Reads under way and snapshots taken before go on with what they
  /// see. A commit may be shown before the write that made it has returned, even before it would
  /// survive a power cut. A database that is open for writing always shows the newest.
  ///
  /// While the database has listeners, it refreshes itself: at once where the system reports
  /// written files, and some twenty milliseconds later elsewhere. Each refresh reaches listeners as
  /// one step, however many commits it brings.
  ///
  /// - Returns: whether anything was new.
  /// - Throws: `.dataLoss`, `.notFound` or `.internal` when the files cannot be read. The database
  ///   then still shows what it showed before. `.failedPrecondition` when the database is closed.
  /// - Complexity: a few small reads, and O(bytes of the new commits). When the writer has flushed
  ///   these commits to segments or has recovered from a crash since, O(bytes of the logs), some
  ///   megabytes at most.
  @concurrent @discardableResult
  public func refresh() async throws(DatabaseError) -> Bool {
    let isNew = try await rethrowing { () async throws(EngineError) in try await engine.refresh() }
    let failure = refreshFailure.withLock { $0.take() }
    if let failure { throw failure }
    return isNew
  }

  /// Makes everything acknowledged so far survive a power cut, whatever durability it was written
  /// with.
  ///
  /// - Throws: `.unavailable` when a write failed, now or earlier; `.failedPrecondition` when the
  ///   database is closed.
  /// - Complexity: one sync of the device, none when everything has been synced.
  @concurrent
  public func synchronize() async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in try await engine.synchronize() }
  }

  /// The collection at `path`, which has an odd number of segments, as in `users` or
  /// `users/alice/posts`. With an invalid path, the calls that use the reference throw.
  ///
  /// - Parameter path: ids with `/` between, each 1 to 1,500 bytes of UTF-8; see
  ///   `CollectionReference`.
  /// - Complexity: O(segments); nothing is read.
  public func collection(_ path: String) -> CollectionReference {
    CollectionReference(database: self, place: .parsed(path))
  }

  /// The collection at `path`.
  ///
  /// - Parameter path: a valid path.
  public func collection(_ path: CollectionPath) -> CollectionReference {
    CollectionReference(database: self, place: .success(path))
  }

  /// The document at `path`, which has an even number of segments, as in `users/alice`. With an
  /// invalid path, the calls that use the reference throw.
  ///
  /// - Parameter path: ids with `/` between, each 1 to 1,500 bytes of UTF-8.
  /// - Complexity: O(segments); nothing is read.
  public func document(_ path: String) -> DocumentReference {
    DocumentReference(database: self, place: .parsed(path))
  }

  /// The document at `path`, as read from a field's value.
  ///
  /// - Parameter path: a valid path.
  public func document(_ path: DocumentPath) -> DocumentReference {
    DocumentReference(database: self, place: .success(path))
  }

  func automaticID() -> String {
    if let make = options.automaticID { return make() }
    var generator = SystemRandomNumberGenerator()
    return AutomaticID.make { generator.next() }
  }

  /// The engine's snapshot as of now.
  func engineSnapshot() throws(DatabaseError) -> Snapshot {
    try rethrowing { () throws(EngineError) in try engine.snapshot() }
  }
}

extension Database: Hashable {
  /// Whether both values are the same open database.
  public static func == (left: Database, right: Database) -> Bool { left === right }

  /// Hashes the identity of the open database.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
