// Opening, step by step: lock, superblock, manifest, logs; then, after an unclean end, a fresh log
// and manifest, for which no reader has to wait. A directory without a database becomes one. All of
// it blocks. A database that was closed cleanly needs a few small reads. The opener's own thread
// makes them, because starting another thread first takes as long again. The maintenance thread
// opens a database that must be created, or that has more than a few kilobytes of logs to recover.

/// The first half: the directory is locked, and the remaining work is known.
struct DirectoryClaim: Sendable {
  let path: String
  let directory: SyncedDirectory
  /// Supplies the directory's keys.
  let keyed: KeyedDirectory
  let lock: any DirectoryLock
  /// The files when the lock was taken.
  let names: [String]
  /// The superblock's file as it was before the lock was taken, if there was one.
  private let slots: (any File)?

  /// Takes the lock of the directory at `path`, which must not be held by another.
  init(
    path: String, fileLimit: Int?, environment: Environment
  ) throws(EngineError) {
    self.path = path
    keyed = KeyedDirectory(
      FrugalDirectory(
        try environment.fileSystem.openDirectory(at: path, create: true),
        environment.openFiles(under: fileLimit), isShared: false))
    directory = SyncedDirectory(keyed)
    // Nothing is put into a directory that has other files and no database.
    slots = try? directory.open(Superblock.name, access: .readOnly)
    if slots == nil { try Opening.refuseForeign(try directory.list(), path: path) }
    lock = try directory.lock(owner: "since \(environment.now())")
    do throws(EngineError) {
      // Listed again, because the previous holder of the lock may have made the database meanwhile.
      names = try directory.list()
    } catch {
      lock.release()
      throw error
    }
  }

  /// The current superblock. A readable superblock is overwritten and never replaced, so the file
  /// that was opened before the lock was taken is still valid; otherwise it is opened again.
  func readSuperblock() throws(EngineError) -> Superblock {
    if let slots, let superblock = try? Superblock.read(from: slots) { return superblock }
    return try Superblock.read(from: try directory.open(Superblock.name, access: .readOnly))
  }

  /// The database's only log, when it is so short that all of it was read at once; nil when opening
  /// takes longer than a few reads, or fails.
  func readSmallLog() -> OpenedLog? {
    let logs = names.compactMap { FileNumber.parse($0, prefix: "LOG-") }
    guard names.contains(Superblock.name), logs.count == 1,
      let log = try? OpenedLog(logs[0], in: directory)
    else { return nil }
    return log.isWhole ? log : nil
  }
}

/// All parts of an engine, read or made.
struct Opening: Sendable {
  private let options: EngineOptions
  private var environment: Environment
  private let directory: SyncedDirectory
  private let keyed: KeyedDirectory
  private let lock: any DirectoryLock
  private let manifest: Manifest
  private let memtables: [[Memtable]]
  private let recovered: RecoveredLog
  /// The work after an unclean end, and the files that were found.
  private let replacement: LogReplacement?
  private let names: [String]

  /// The second half. Releases the lock when it throws.
  ///
  /// - Parameter log: the only log, if it was read already.
  init(
    _ claim: DirectoryClaim, log: OpenedLog? = nil, options: EngineOptions,
    environment: Environment
  ) throws(EngineError) {
    self.options = options
    self.environment = environment
    directory = claim.directory
    keyed = claim.keyed
    lock = claim.lock
    let recovery: Recovery
    do throws(EngineError) {
      let isBlank = try Self.isBlank(claim.names, directory)
      if isBlank {
        manifest = try Self.create(claim, options, environment)
        (names, recovery) = try Self.recover(manifest, try directory.list(), directory, options)
      } else {
        (manifest, names, recovery) = try Self.read(claim, log, options, environment)
      }
      let isClean = recovery.isClean && !manifest.hasTornTail
      manifest.noteRecovered(through: recovery.recovered.sequence)
      replacement = isClean ? nil : recovery.replacement
      memtables = recovery.memtables
      recovered = recovery.recovered
      if isClean { try manifest.removeUnnamed(names) }
      // The vault is not needed any more.
      self.environment.vault = nil
    } catch {
      lock.release()
      throw error
    }
  }

  // MARK: - Making a database

  /// Whether the files are those of a database that lost power while it was made, or none at all.
  /// The first commit makes another log, so without one nothing can have been committed.
  private static func isBlank(
    _ names: [String], _ directory: any Directory
  ) throws(EngineError) -> Bool {
    let files = Set(names).subtracting(["LOCK", SpaceReserve.name])
    guard
      files.isSubset(of: [
        FileNumber.firstManifest.manifestName, FileNumber.firstLog.logName, Superblock.name,
      ])
    else { return false }
    guard files.contains(Superblock.name) else { return true }
    guard files.count == 3 else { return false }
    let file = try directory.open(Superblock.name, access: .readOnly)
    return try !Superblock.hasSoundSlot(in: file)
  }

  /// Throws when the directory holds foreign files and no database.
  fileprivate static func refuseForeign(_ names: [String], path: String) throws(EngineError) {
    guard !names.contains(Superblock.name) else { return }
    guard names.allSatisfy(FileNumber.mayBeOfFile) else {
      throw .notADatabase(path: path, reason: "the directory holds other files")
    }
    let first = [FileNumber.firstManifest, FileNumber.firstLog]
    guard names.allSatisfy({ name in FileNumber.ofFile(name).map(first.contains) ?? true }) else {
      throw .corrupt(file: Superblock.name, offset: 0, reason: "the superblock is missing")
    }
  }

  private static func create(
    _ claim: DirectoryClaim, _ options: EngineOptions, _ environment: Environment
  ) throws(EngineError) -> Manifest {
    let (names, directory) = (claim.names, claim.directory)
    // The process may have been killed between making the directory and this.
    try directory.syncName()
    // The superblock first: without it, any leftover files still count as blank.
    if names.contains(Superblock.name) {
      try directory.remove(Superblock.name)
      try directory.sync()
    }
    for name in names where name != "LOCK" && name != Superblock.name {
      try directory.remove(name)
    }
    try directory.sync()
    let identity = DatabaseIdentity(low: environment.random(), high: environment.random())
    claim.keyed.use(try environment.makeKeyring(for: identity))
    let start = LogStart(number: .firstLog, base: .zero, sequence: .zero, time: 0)
    let header = LogHeader(
      number: .firstLog, identity: identity, salt: environment.random(), kind: .normal,
      base: .zero, previous: .zero, previousLength: 0, firstSequence: SequenceNumber.zero.next)
    let log = try LogFile.writeSealed(header, start, directory: directory)

    let now = environment.now()
    var superblock = Superblock(
      identity: identity, epoch: 1, manifest: .firstManifest,
      shardCount: UInt32(options.shardCount), created: now, written: now)
    superblock.prove(with: directory.keyring)
    let state = ManifestState(
      nextFile: FileNumber(rawValue: 3), floor: start, newestLog: .firstLog,
      shards: Array(repeating: ShardState(), count: options.shardCount),
      history: options.historyRetention.map { _ in History(start: start.before) },
      namedLogs: [log.number: log])
    let manifest = try Manifest.create(
      state, superblock: superblock, directory: directory, environment: environment,
      rotationSize: options.manifestSize, limits: options.manifestLimits)
    try directory.sync()
    // Last, because a directory without a superblock is one where nothing has happened yet.
    let slots = try directory.create(Superblock.name)
    try Superblock.makeRoom(in: slots)
    try superblock.write(to: slots)
    try directory.sync()
    return manifest
  }

  // MARK: - Reading a database

  /// Reads the manifest and the logs. Repeats this for each group whose key turns out from the logs
  /// to be another.
  private static func read(
    _ claim: DirectoryClaim, _ log: OpenedLog?, _ options: EngineOptions,
    _ environment: Environment
  ) throws(EngineError) -> (Manifest, [String], Recovery) {
    let superblock = try claim.readSuperblock()
    claim.keyed.use(
      try superblock.unlock(
        with: environment.vault, at: claim.path, random: environment.random))
    while true {
      let manifest = try load(superblock, claim.directory, options, environment)
      let (names, recovery) = try recover(
        manifest, claim.names, claim.directory, options, opened: log)
      if !recovery.hasLockedOut { return (manifest, names, recovery) }
    }
  }

  /// Reads the logs. Also returns the names of files that may be ours.
  private static func recover(
    _ manifest: Manifest, _ names: [String], _ directory: SyncedDirectory,
    _ options: EngineOptions, opened log: OpenedLog? = nil
  ) throws(EngineError) -> ([String], Recovery) {
    directory.keyring?.groups.note(manifest.state.groups)
    let next = manifest.state.nextFile
    // Files that cannot be ours are ignored.
    let names = names.filter { name in FileNumber.ofFile(name)?.isOurs(next: next) ?? true }
    for name in names {
      if let number = FileNumber.ofFile(name) { manifest.reserve(through: number) }
    }
    var recovery = Recovery(
      directory: directory, identity: manifest.superblock.identity, manifest: manifest.state,
      memtableSize: options.memtableSize)
    // Under the lock, no other process changes the directory.
    try recovery.replay(names, opened: log)
    return (names, recovery)
  }

  private static func load(
    _ superblock: Superblock, _ directory: SyncedDirectory, _ options: EngineOptions,
    _ environment: Environment
  ) throws(EngineError) -> Manifest {
    let manifest = try Manifest.load(
      superblock, directory: directory, environment: environment,
      rotationSize: options.manifestSize, limits: options.manifestLimits)
    // Files made from here on are sealed as the superblock says.
    if let change = superblock.change { manifest.numbers.stepTo(change.firstOfOthers) }
    return manifest
  }

  // MARK: - The engine

  /// Assembles the parts.
  ///
  /// - Parameter remote: makes what sends and follows commits when a store has the rows, as of some
  ///   commit. The contents of the directory are then unused but must exist.
  func makeEngine(
    maintenance: any Worker, logWorker: any Worker, on remote: RemoteRows? = nil,
    _ makeSession: (ViewHolder) -> RemoteSession? = { _ in nil }
  ) -> Engine {
    let cache = BlockCache(budgetBytes: options.cacheSize)
    let valueFiles = ValueFiles(
      identity: manifest.superblock.identity, directory: directory, cache: cache)
    valueFiles.follow(manifest.state)
    let shards = manifest.state.shards.enumerated().map { index, state in
      // The first commit makes one of the right size.
      let active = memtables[index].last ?? Memtable(capacity: 0)
      for memtable in memtables[index].dropLast() + [active] { memtable.charge(to: cache) }
      return ShardView(
        active: active,
        sealed: memtables[index].dropLast().reversed(),
        runs: state.runs.map { run in
          Run(
            run.segments.map { segment in
              Segment(
                segment, identity: manifest.superblock.identity, shard: UInt32(index),
                directory: directory, cache: cache,
                valueFiles: valueFiles.files(segment.valueReferences))
            })
        }, state: state)
    }
    let isRemote = remote != nil
    let reads = ReadingThreads(environment.threads, mayWaitForever: isRemote)
    let views = ViewHolder(
      View(shards: remote.map { [ShardView(on: $0)] } ?? shards, reads: reads),
      published: remote?.base.sequence ?? recovered.sequence, now: environment.now)
    let sequencer = Sequencer(
      recovered: recovered, views: views, environment: environment, options: options,
      identity: manifest.superblock.identity, syncWorker: logWorker, cache: cache,
      refusal: isRemote ? .unsupported(reason: Engine.noFiles) : nil)
    directory.observeFailure { [weak sequencer] in _ = sequencer?.fail($0) }
    let storage = Storage(
      directory: directory, keyed: keyed, lock: lock, environment: environment, options: options,
      manifest: manifest, views: views, sequencer: sequencer, cache: cache,
      valueFiles: valueFiles, maintenance: maintenance, unfinished: replacement.map { ($0, names) })
    // If that fails for the moment, the first writer tries again.
    let live = manifest.state.groups.live
    let keepsOtherKeys = (try? keyed.keyring?.groups.correction(for: live)) != nil
    if replacement != nil || keepsOtherKeys {
      maintenance.enqueue { try? storage.attempt { _ in } }
    }
    return Engine(
      storage: storage, logWorker: logWorker, reads: reads, remote: makeSession(views))
  }
}

extension ShardView {
  /// The rows of a store, with nothing on top.
  fileprivate convenience init(on remote: RemoteRows) {
    var state = ShardState()
    state.flushedThrough = remote.base.sequence
    self.init(active: Memtable(capacity: 0), state: state, remote: remote)
  }
}
