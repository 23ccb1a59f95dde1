// Opens a database for reading only, beside a writer in this process or another, without its
// cooperation. It takes no lock and writes nothing. It reads the files as after a crash, the
// manifest first and then the logs, and opens the files that the manifest names at once, as many as
// possible. From then on the writer may remove them, and they stay readable. A read that comes too
// late for one of the other files reports that it was superseded. Later commits are read from where
// the logs ended (LogTail), and put into the same memtables that readers use.
//
// The writer continues meanwhile, so a reading may be inconsistent: a file that the manifest names
// is gone, or a later page of a log was read after it was written and an earlier one before. The
// next reading then finds other files, or fails in another place. The same failure twice in a row
// is damage. A consistent reading shows a prefix of the order of commits: it ends at the first
// frame that is missing, like recovery. Some of what it shows may not be on the device yet.

/// Refreshes a database's files for an engine that only reads.
final class Follower: Sendable {
  private let directory: KeyedDirectory
  private let environment: Environment
  private let options: EngineOptions
  private let cache: BlockCache
  private let valueFiles: ValueFiles
  /// What is shown. Replaced only on the maintenance thread, together with what reads see.
  private let shown: Guarded<Sighting>
  private let observer = Guarded<(@Sendable (FollowerStep) -> Void)?>(nil)

  /// The most repeated readings: the writer must have changed something each time.
  static let attempts = 16

  private init(
    showing sighting: Sighting, in directory: KeyedDirectory, environment: Environment,
    options: EngineOptions, cache: BlockCache, valueFiles: ValueFiles
  ) {
    shown = Guarded(sighting)
    self.directory = directory
    self.environment = environment
    self.options = options
    self.cache = cache
    self.valueFiles = valueFiles
  }

  /// An engine that shows the current state of the files at `path` and refuses writes. Blocks.
  static func openEngine(
    at path: String, options: EngineOptions, environment: Environment,
    maintenance: any Worker, logWorker: any Worker
  ) throws(EngineError) -> Engine {
    let files = FrugalDirectory(
      try environment.fileSystem.openDirectory(at: path, create: false),
      environment.openFiles(under: options.fileLimit), isShared: true)
    let superblock = try Groundwork.superblock(in: files)
    let identity = superblock.identity
    let directory = KeyedDirectory(
      files,
      try superblock.unlock(with: environment.vault, at: path, random: environment.random))
    let cache = BlockCache(budgetBytes: options.cacheSize)
    let valueFiles = ValueFiles(
      identity: identity, directory: directory, cache: cache, access: .readOnly)
    let (sighting, shards) = try insist { () throws(EngineError) in
      let groundwork = try Groundwork(in: directory, environment, options)
      let (sighting, _) = try Sighting.read(groundwork, in: directory, options, cache)
      let runs = try groundwork.openRuns(after: nil, in: directory, cache, valueFiles)
      return (sighting, sighting.shards(with: runs))
    }
    let reads = ReadingThreads(environment.threads)
    let views = ViewHolder(
      View(shards: shards, reads: reads), published: sighting.line.sequence, now: environment.now)
    let sequencer = Sequencer(
      recovered: sighting.line, views: views, environment: environment, options: options,
      identity: identity, syncWorker: logWorker, cache: cache, refusal: .readOnly)
    let storage = Storage(
      directory: directory, keyed: directory, lock: NoLock(), environment: environment,
      options: options, manifest: sighting.groundwork.manifest, views: views,
      sequencer: sequencer, cache: cache, valueFiles: valueFiles, maintenance: maintenance)
    let follower = Follower(
      showing: sighting, in: directory, environment: environment, options: options, cache: cache,
      valueFiles: valueFiles)
    return Engine(storage: storage, logWorker: logWorker, reads: reads, follower: follower)
  }

  // MARK: - Visible commits

  /// The time of the last commit that is shown.
  var lastTime: Int64 { shown.withLock { $0.line.time } }

  /// A view, and the last commit visible in it.
  func datedSnapshot(of views: ViewHolder) -> (View, CommitPoint) {
    shown.withLock { shown in
      let (view, sequence) = views.snapshot
      return (view, CommitPoint(sequence: sequence, time: shown.line.time))
    }
  }

  /// The commits that can be read again; nil when none are kept.
  var historyExtent: HistoryExtent? {
    shown.withLock { shown in
      shown.line.history.map {
        HistoryExtent(
          $0, since: shown.line.starts, writtenThrough: shown.line.end,
          published: shown.line.sequence)
      }
    }
  }

  /// Calls `observer` for each refresh that shows more commits, one after the other, on the
  /// maintenance thread.
  func setObserver(_ observer: @escaping @Sendable (FollowerStep) -> Void) {
    self.observer.withLock { $0 = observer }
  }

  // MARK: - Refreshing

  /// The result of reading the files.
  private enum Look {
    case nothing
    /// The logs continue, and perhaps the segments are others.
    case goesOn(LogTail, Groundwork, runs: [[Run]]?)
    case isOther(Sighting, commits: [RecoveredCommit], runs: [[Run]])
  }

  /// Makes `views` show the current state of the files; returns false when nothing has changed.
  /// Blocks, and runs on the maintenance thread.
  func refresh(_ views: ViewHolder) throws(EngineError) -> Bool {
    let old = shown.withLock { $0 }
    let found = try Self.insist { () throws(EngineError) -> Look in try look(after: old, views) }
    let before = views.snapshot
    let commits: [RecoveredCommit]
    switch found {
    case .nothing: return false
    case .goesOn(let tail, let groundwork, let runs):
      try goOn(old, tail, groundwork, runs, views)
      commits = tail.commits
    case .isOther(let sighting, let all, let runs):
      show(sighting, sighting.shards(with: runs), views)
      commits = all
    }
    let after = views.snapshot
    if after.1 > before.1, let observer = observer.withLock({ $0 }) {
      observer(
        FollowerStep(
          before: Snapshot(before.0, before.1), after: Snapshot(after.0, after.1),
          commits: commits))
    }
    return true
  }

  private func look(after old: Sighting, _ views: ViewHolder) throws(EngineError) -> Look {
    var groundwork = old.groundwork
    var runs: [[Run]]?
    if try !groundwork.isCurrent(in: directory) {
      groundwork = try Groundwork(in: directory, environment, options)
      guard groundwork.superblock.identity == old.groundwork.superblock.identity else {
        throw .notADatabase(path: directory.path, reason: "another one has replaced it")
      }
      runs = try groundwork.openRuns(after: views.current.shards, in: directory, cache, valueFiles)
    }
    var tail = LogTail(behind: old.line, in: directory, groundwork.superblock.identity)
    if !old.isSpoiled, try tail.readOn(groundwork.manifest.state) {
      if runs == nil, tail.line.length == old.line.length, tail.line.number == old.line.number {
        return .nothing
      }
      return .goesOn(tail, groundwork, runs: runs)
    }
    return try readAll(views)
  }

  /// Reads everything.
  private func readAll(_ views: ViewHolder) throws(EngineError) -> Look {
    var attempts = Self.attempts
    while true {
      let groundwork = try Groundwork(in: directory, environment, options)
      let (sighting, commits) = try Sighting.read(groundwork, in: directory, options, cache)
      // A log that was removed between two listings of the directory hides the later ones.
      if sighting.line.sequence < views.published, attempts > 0 {
        attempts -= 1
        continue
      }
      let runs = try groundwork.openRuns(
        after: views.current.shards, in: directory, cache, valueFiles)
      return .isOther(sighting, commits: commits, runs: runs)
    }
  }

  /// Adds the new commits to what is shown.
  private func goOn(
    _ old: Sighting, _ tail: LogTail, _ groundwork: Groundwork, _ runs: [[Run]]?,
    _ views: ViewHolder
  ) throws(EngineError) {
    var new = old
    do throws(MalformedBytes) {
      try new.goOn(with: tail, groundwork)
    } catch {
      // Some rows may be in memtables in use, where they are invisible.
      shown.withLock { $0.isSpoiled = true }
      throw .corrupt(
        file: tail.line.number.logName, offset: tail.line.length,
        reason: "in the rows of a commit before this place: \(error.reason)")
    }
    if runs == nil, new.hasSameMemtables(as: old) {
      return shown.withLock { shown in
        views.publish(new.line.sequence)
        shown = new
      }
    }
    show(new, new.shards(with: runs ?? views.current.shards.map(\.runs)), views)
  }

  private func show(_ sighting: Sighting, _ shards: [ShardView], _ views: ViewHolder) {
    shown.withLock { shown in
      views.replace(shards, published: sighting.line.sequence)
      shown = sighting
    }
  }

  /// Repeats `body` as long as it fails because the files changed meanwhile.
  static func insist<R>(_ body: () throws(EngineError) -> R) throws(EngineError) -> R {
    var last: EngineError?
    for _ in 1..<attempts {
      do throws(EngineError) {
        return try body()
      } catch {
        guard error.mayBeFleeting else { throw error }
        if error == last { throw error.lasting }
        last = error
      }
    }
    return try body()
  }
}

/// A lock that locks nothing.
private final class NoLock: DirectoryLock {
  func release() {}
}

extension EngineError {
  /// The error when it occurs twice in the same way: a file is missing that was not replaced by
  /// another.
  fileprivate var lasting: EngineError {
    guard case .superseded(let file) = self else { return self }
    return .io(operation: "openat", file: file, offset: nil, errno: SystemFailure.missingFile)
  }

  /// Whether a concurrent writer can be the reason.
  var mayBeFleeting: Bool {
    switch self {
    case .corrupt, .superseded: true
    case .io(_, _, _, let errno): SystemFailure(errno: errno) == .missing
    default: false
    }
  }
}
