// The front door: open a directory, and there is a database. Start reading here. A write goes on in
// Commits/WritePath, a read of one document in Catalog/ReadPath, a query in Query/Executor; all
// of them stand on the engine's snapshots and commits.

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
/// A database can be used from any task or actor. Reads never wait for writes, and a read that
/// begins after an awaited write sees it. What Firestore has behind `Firestore.firestore()` is here
/// a value that the app opens and keeps; there are no apps, projects, settings of a cache, or
/// network to enable.
///
/// Beside the documents there are files and blobs (`storage`) and one JSON tree (`tree`), in the
/// same commits. A database that is let go of without `close()` loses nothing that was
/// acknowledged.
public final class Database: Sendable {
  package let engine: Engine
  /// Where it is, as whoever opened it says.
  package let path: String
  let catalog: Catalog
  /// The bytes of blobs.
  let contents: ContentStore
  let latches = Latches()
  /// Who listens.
  let observers: Observers
  /// Makes the keys of children of the tree that are added without one.
  let pushIDs = PushIDs()
  /// What wakes those who follow the changes.
  let arrivals: CommitArrivals
  /// Those who are told of every commit.
  let taps = CommitTaps()
  /// All of them.
  let audience = Audience()
  /// How long commits take.
  let commitTimes = CommitTimes()
  /// What queries found out beside their results.
  let feedback = QueryFeedback()
  /// Plans that are used again.
  let plans = PlanCache()
  /// What is known of the queries that need no plan.
  let pointReads = PointReads()
  /// Types of which no rows are made without fields.
  let refusedTypes = RefusedTypes()
  /// How far the indexes are that are being built.
  let builds = IndexBuilds()
  /// Which indexes of words have documents to gather.
  let searches = SearchGathering()
  /// What searches have learnt of runs of words.
  let searchStatistics = SearchStatisticsCache()
  /// Removes documents whose time is over.
  let reaper = Reaper()
  let options: Options
  let gates = Gates()
  let runningTransactions = RunningTransactions()
  package let environment: Environment
  /// Why the last step of a database that another writes could not be followed through.
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

  /// Has those who listen told of what others commit.
  private func followOthers() {
    if engine.isReadOnly { audience.serve { [weak self] in self?.startFollowing() } }
    engine.lookAfterOthers { [weak self] isThorough in self?.lookAfterOthers(isThorough) }
    // Listeners who wait would go on waiting, and show what the store does not have any more.
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

  /// Looks for what others have left who share the database and have died.
  private func lookAfterOthers(_ isThorough: Bool) {
    engine.startInBackground { [weak self] in
      await self?.carryOutCloseOperationsOfOthers()
      if isThorough { await self?.finishWhatWasBegun(isOfOthers: true) }
    }
  }

  /// Wall clock in microseconds since 1970.
  package func now() -> Int64 { environment.now() }

  /// Waits as many microseconds; returns at once when the task is cancelled.
  func rest(_ microseconds: Int64) async { await environment.rest(microseconds) }

  /// A random number below `limit`.
  func random(below limit: Int64) -> Int64 {
    Int64(environment.random() % UInt64(max(1, limit)))
  }

  /// Opens the database in the directory at `path`, making one when there is none. What a crash
  /// left is recovered. Indexes that were being built go on being built in the background, and
  /// queries do without them meanwhile.
  ///
  /// With `Options.access` of `.readOnly` nothing is made, recovered or finished, and a writer may
  /// have the directory open at the same time: see `refresh()`.
  ///
  /// - Parameters:
  ///   - path: the database's directory, in a directory that is there.
  ///   - options: how it is to be opened.
  /// - Throws: `.invalidArgument` when an option cannot be; `.failedPrecondition` naming the holder
  ///   when another process, or this one, has the directory open for writing; `.notFound` when
  ///   there is no directory to read; `.dataLoss` when files are damaged; `.permissionDenied` when
  ///   the database is encrypted and `Options.encryption` is not its key; `.permissionDenied`,
  ///   `.resourceExhausted` or `.internal` when the system refuses.
  /// - Complexity: O(bytes of the logs) that an opening before did not finish: nothing after
  ///   `close()`, some tens of megabytes after a crash. Files of rows are not read.
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

  /// How long bytes that were put wait for a document.
  package var blobLease: Duration { options.blobLease }

  /// Whether a store keeps it.
  package var isOnStore: Bool { engine.isOnStore }

  /// What people call it: its directory, or its store's address without passwords.
  package var name: String { path == Self.memoryPath ? "memory" : path }

  /// Makes an empty database that lives in memory only: the same engine and semantics, without
  /// files.
  ///
  /// - Parameter options: as on disk. Every durability means the process's own life here.
  /// - Throws: `.invalidArgument` when an option cannot be.
  /// - Complexity: O(1).
  public static func inMemory(
    options: Options = Options()
  ) async throws(DatabaseError) -> Database {
    try await open(at: memoryPath, options: options, environment: .memory())
  }

  /// Opens the database that a store keeps, making one when there is none. Others may have it open
  /// and write it at the same time: what they commit is shown, and told to those who listen, in the
  /// one order of all commits. A read sees all that this process has committed, and what others
  /// have shortly after they did; a transaction is made as of the newest commit of all.
  ///
  /// - Parameters:
  ///   - store: where the database is kept.
  ///   - options: how it is to be opened; `shardCount` and `fileLimit` have no meaning here.
  /// - Throws: `.unavailable` when the store cannot be reached; `.unimplemented` for `.readOnly`
  ///   access and encryption, which cannot be had there; `.invalidArgument` when an option cannot
  ///   be.
  /// - Complexity: a few round trips to the store.
  public static func open(
    on store: DatabaseStore, options: Options = Options()
  ) async throws(DatabaseError) -> Database {
    let store = try rethrowing { () throws(EngineError) in try store.make() }
    return try await open(at: store.name, options: options, environment: .live(), on: store)
  }

  /// Opens a database in a world of the caller's making; on `store` in the place of a directory,
  /// when there is one.
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
    // Keys stay with the files, and nowhere else.
    environment.vault = nil
    var options = options
    options.encryption = nil
    if engine.isReadOnly { options.automaticIndexes = false }
    let database = Database(
      engine: engine, path: path, options: options, environment: environment)
    if engine.isReadOnly { return database }
    await database.carryOutCloseOperationsOfNobody()
    database.resume()
    return database
  }

  /// Writes everything down, marks the database as closed in good order and gives the directory
  /// back. Later calls throw `.failedPrecondition`; closing again does nothing.
  ///
  /// - Throws: `.internal`, `.resourceExhausted` or `.permissionDenied` when the system refuses;
  ///   the database is closed all the same.
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
  /// While somebody listens to the database it refreshes by itself, at once where the system tells
  /// of written files and some twenty milliseconds later elsewhere. Whatever refreshes it,
  /// listeners are told of all that came as of one step.
  ///
  /// - Returns: whether anything was new.
  /// - Throws: `.dataLoss`, `.notFound` or `.internal` when the files cannot be read; then what was
  ///   shown is still shown. `.failedPrecondition` when the database is closed.
  /// - Complexity: a few small reads, and O(bytes of the commits that came). Where the writer has
  ///   moved them to files or has recovered from a crash since, O(bytes of the logs), some
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
  /// - Throws: `.unavailable` when writing failed, now or before; `.failedPrecondition` when the
  ///   database is closed.
  /// - Complexity: one sync of the device, none when everything has been synced.
  @concurrent
  public func synchronize() async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in try await engine.synchronize() }
  }

  /// The collection at `path`: an odd number of segments, as in `users` or `users/alice/posts`. A
  /// wrong path makes the calls throw that use it.
  ///
  /// - Parameter path: ids with `/` between, each 1 to 1,500 bytes of UTF-8; see
  ///   `CollectionReference`.
  /// - Complexity: O(segments); nothing is read.
  public func collection(_ path: String) -> CollectionReference {
    CollectionReference(database: self, place: .parsed(path))
  }

  /// The collection at `path`.
  ///
  /// - Parameter path: a path that is known to be one.
  public func collection(_ path: CollectionPath) -> CollectionReference {
    CollectionReference(database: self, place: .success(path))
  }

  /// The document at `path`: an even number of segments, as in `users/alice`. A wrong path makes
  /// the calls throw that use it.
  ///
  /// - Parameter path: ids with `/` between, each 1 to 1,500 bytes of UTF-8.
  /// - Complexity: O(segments); nothing is read.
  public func document(_ path: String) -> DocumentReference {
    DocumentReference(database: self, place: .parsed(path))
  }

  /// The document at `path`, as a value of a field gives it.
  ///
  /// - Parameter path: a path that is known to be one.
  public func document(_ path: DocumentPath) -> DocumentReference {
    DocumentReference(database: self, place: .success(path))
  }

  func automaticID() -> String {
    if let make = options.automaticID { return make() }
    var generator = SystemRandomNumberGenerator()
    return AutomaticID.make { generator.next() }
  }

  /// The rows as of now.
  func engineSnapshot() throws(DatabaseError) -> Snapshot {
    try rethrowing { () throws(EngineError) in try engine.snapshot() }
  }
}

extension Database: Hashable {
  /// Whether both are the same opening.
  public static func == (left: Database, right: Database) -> Bool { left === right }

  /// Feeds which opening it is.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
