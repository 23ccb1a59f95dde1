// Opening for reading only: beside whoever has the database open for writing, in this process or
// another, without its leave. Takes no lock and writes nothing. What the files say is read as after
// a crash, the manifest first and then the logs, and every file that the manifest names is opened
// at once: from there on the writer may remove it, and what was read stays.
//
// The writer goes on meanwhile, so a reading may be broken: a file is gone that the manifest named,
// or a later page of a log was read after it was written and an earlier one before. Then the next
// reading finds other files, or fails in another place; what fails in the same way twice in a row
// is damage. A reading that is whole shows a prefix of the one line of commits: it ends at the
// first frame that has not come, as recovery's does. Some of what it shows may not be on the device
// yet.

/// Reads a database's files anew for an engine that only reads.
final class Follower: Sendable {
  private let directory: any Directory
  private let environment: Environment
  private let options: EngineOptions
  private let cache: BlockCache
  private let valueFiles: ValueFiles
  /// What is shown. Replaced on the maintenance thread only.
  private let shown: Guarded<Sighting>

  /// The time of the last commit that is shown.
  var lastTime: Int64 { shown.withLock { $0.recovered.time } }

  /// Readings begun again before giving up: the writer must have changed something each time.
  private static let attempts = 16

  private init(
    showing sighting: Sighting, in directory: any Directory, environment: Environment,
    options: EngineOptions, cache: BlockCache, valueFiles: ValueFiles
  ) {
    shown = Guarded(sighting)
    self.directory = directory
    self.environment = environment
    self.options = options
    self.cache = cache
    self.valueFiles = valueFiles
  }

  /// An engine that shows what the files at `path` say and refuses to write. Blocks.
  static func openEngine(
    at path: String, options: EngineOptions, environment: Environment,
    maintenance: any Worker, logWorker: any Worker
  ) throws(EngineError) -> Engine {
    let directory = try environment.fileSystem.openDirectory(at: path, create: false)
    let identity = try Sighting.superblock(in: directory).identity
    let cache = BlockCache(budgetBytes: options.cacheSize)
    let valueFiles = ValueFiles(
      identity: identity, directory: directory, cache: cache, access: .readOnly)
    let (sighting, shards) = try insist { () throws(EngineError) in
      let sighting = try Sighting(in: directory, environment: environment, options: options)
      return (sighting, try sighting.open(after: nil, in: directory, cache, valueFiles))
    }
    let reads = environment.threads.makeWorker(named: "ondol-reads")
    let views = ViewHolder(
      View(shards: shards, reads: reads), published: sighting.recovered.sequence,
      now: environment.now)
    let sequencer = Sequencer(
      recovered: sighting.recovered, views: views, environment: environment, options: options,
      identity: identity, syncWorker: logWorker, cache: cache, refusal: .readOnly)
    let storage = Storage(
      directory: directory, lock: NoLock(), environment: environment, options: options,
      manifest: sighting.manifest, views: views, sequencer: sequencer, cache: cache,
      valueFiles: valueFiles, maintenance: maintenance)
    let follower = Follower(
      showing: sighting, in: directory, environment: environment, options: options, cache: cache,
      valueFiles: valueFiles)
    return Engine(storage: storage, logWorker: logWorker, reads: reads, follower: follower)
  }

  /// Has `views` show what the files say now; false when that is what they showed. Blocks, and runs
  /// on the maintenance thread.
  func refresh(_ views: ViewHolder) throws(EngineError) -> Bool {
    let old = shown.withLock { $0 }
    var attempts = Self.attempts
    let found: (Sighting, [ShardView])? = try Self.insist { () throws(EngineError) in
      if try old.isCurrent(in: directory) { return nil }
      var new = try Sighting(in: directory, environment: environment, options: options)
      // A log that went between two looks at the directory hides those behind it.
      while new.recovered.sequence < views.published, attempts > 0 {
        attempts -= 1
        new = try Sighting(in: directory, environment: environment, options: options)
      }
      guard new.superblock.identity == old.superblock.identity else {
        throw .notADatabase(path: directory.path, reason: "another one has taken its place")
      }
      return (new, try new.open(after: views.current.shards, in: directory, cache, valueFiles))
    }
    guard let (sighting, shards) = found else { return false }
    views.replace(shards, published: sighting.recovered.sequence)
    shown.withLock { $0 = sighting }
    return true
  }

  /// Runs `body` again as long as it fails because the files changed under it.
  static func insist<R>(_ body: () throws(EngineError) -> R) throws(EngineError) -> R {
    var last: EngineError?
    for _ in 1..<attempts {
      do throws(EngineError) {
        return try body()
      } catch {
        guard error.mayBeFleeting, error != last else { throw error }
        last = error
      }
    }
    return try body()
  }
}

/// What the files of a database say at one moment.
struct Sighting: Sendable {
  let superblock: Superblock
  let manifest: Manifest
  let recovered: RecoveredLog
  private let manifestSize: UInt64
  private let memtables: [[Memtable]]

  /// Reads superblock, manifest and logs.
  init(
    in directory: any Directory, environment: Environment, options: EngineOptions
  ) throws(EngineError) {
    superblock = try Self.superblock(in: directory)
    // First its size: an edit that comes between the two is then seen by the next look.
    manifestSize = try Self.manifestSize(superblock, in: directory)
    manifest = try Manifest.load(
      superblock, directory: directory, environment: environment,
      rotationSize: options.manifestSize, access: .readOnly)
    var recovery = Recovery(
      directory: directory, identity: superblock.identity, manifest: manifest.state,
      memtableSize: options.memtableSize)
    try recovery.replay(try directory.list())
    recovered = recovery.recovered
    memtables = recovery.memtables
  }

  static func superblock(in directory: any Directory) throws(EngineError) -> Superblock {
    guard try directory.list().contains(Superblock.name) else {
      throw .notADatabase(path: directory.path, reason: "it has no superblock")
    }
    return try Superblock.read(from: try directory.open(Superblock.name, access: .readOnly))
  }

  private static func manifestSize(
    _ superblock: Superblock, in directory: any Directory
  ) throws(EngineError) -> UInt64 {
    try directory.open(superblock.manifest.manifestName, access: .readOnly).size()
  }

  // MARK: - Files

  /// What reads use, with every file open. Files that `old` has open are not opened again.
  func open(
    after old: [ShardView]?, in directory: any Directory, _ cache: BlockCache,
    _ valueFiles: ValueFiles
  ) throws(EngineError) -> [ShardView] {
    valueFiles.follow(manifest.state)
    for file in valueFiles.all { try file.open() }
    var shards: [ShardView] = []
    for (index, state) in manifest.state.shards.enumerated() {
      let active = memtables[index].last ?? Memtable(capacity: 0)
      let sealed = Array(memtables[index].dropLast().reversed())
      for memtable in [active] + sealed { memtable.charge(to: cache) }
      let before = old?[index] ?? ShardView(active: active)
      let runs = before.runs(for: state) { segment in
        Segment(
          segment, identity: superblock.identity, shard: UInt32(index), directory: directory,
          cache: cache, valueFiles: valueFiles.files(segment.valueReferences))
      }
      for segment in runs.flatMap(\.segments) { _ = try segment.open() }
      shards.append(ShardView(active: active, sealed: sealed, runs: runs, state: state))
    }
    return shards
  }

  // MARK: - Changes

  /// Whether the files still say the same, which a few small reads tell.
  func isCurrent(in directory: any Directory) throws(EngineError) -> Bool {
    guard try Self.superblock(in: directory) == superblock,
      try Self.manifestSize(superblock, in: directory) == manifestSize
    else { return false }
    for number in try directory.list().compactMap({ FileNumber.parse($0, prefix: "LOG-") })
    where number >= recovered.number {
      let log = try directory.open(number.logName, access: .readOnly)
      if try number == recovered.number ? hasMore(log) : !isBlank(log) { return false }
    }
    return true
  }

  /// Whether a frame stands where there was none in the last log.
  private func hasMore(_ log: any File) throws(EngineError) -> Bool {
    if recovered.length == 0 { return try !isBlank(log) }
    let page = try log.read(at: 0, count: LogHeader.length)
    guard case .header(let header) = try LogHeader.read(page.bytes, file: log.name) else {
      return true
    }
    let next = try log.read(at: recovered.length, count: FrameHeader.length)
    return FrameHeader.read(next.bytes, salt: header.salt, offset: recovered.length) != nil
  }

  /// Whether a log was made ahead and not yet used.
  private func isBlank(_ log: any File) throws(EngineError) -> Bool {
    try log.read(at: 0, count: 8).allSatisfy { $0 == 0 }
  }
}

/// Stands for the lock where none is taken.
private final class NoLock: DirectoryLock {
  func release() {}
}

extension EngineError {
  /// Whether a writer at work beside the reader can be the reason.
  var mayBeFleeting: Bool {
    switch self {
    case .corrupt: true
    case .io(_, _, _, let errno): SystemFailure(errno: errno) == .missing
    default: false
    }
  }
}
