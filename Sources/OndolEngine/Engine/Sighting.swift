// The state of a database's files at one moment, as read without a lock: the superblock and the
// manifest, and after them the commits in the logs. The follower uses it.

/// The contents of the superblock and the manifest.
struct Groundwork: Sendable {
  let superblock: Superblock
  let manifest: Manifest
  private let manifestSize: UInt64

  /// Reads them, and sets the directory's keys accordingly.
  init(
    in directory: KeyedDirectory, _ environment: Environment, _ options: EngineOptions
  ) throws(EngineError) {
    superblock = try Self.superblock(in: directory)
    directory.use(
      try superblock.unlock(
        after: directory.keyring, with: environment.vault, at: directory.path,
        random: environment.random))
    directory.keyring?.groups.lookAgain()
    // Its size first: an edit that comes in between is then noticed by the next check.
    manifestSize = try Self.manifestSize(superblock, in: directory)
    manifest = try Manifest.load(
      superblock, directory: directory, environment: environment,
      rotationSize: options.manifestSize, access: .readOnly)
    directory.keyring?.groups.note(manifest.state.groups)
  }

  /// Whether the files are still the same, which two small reads determine.
  func isCurrent(in directory: any Directory) throws(EngineError) -> Bool {
    guard try Self.superblock(in: directory) == superblock else { return false }
    return try Self.manifestSize(superblock, in: directory) == manifestSize
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

  /// Every run of each shard, with as many of its files open as possible. Runs of `old` are reused.
  func openRuns(
    after old: [ShardView]?, in directory: any Directory, _ cache: BlockCache,
    _ valueFiles: ValueFiles
  ) throws(EngineError) -> [[Run]] {
    valueFiles.follow(manifest.state)
    var shards: [[Run]] = []
    for (index, state) in manifest.state.shards.enumerated() {
      let before = old?[index] ?? ShardView(active: Memtable(capacity: 0))
      let runs = before.runs(for: state) { segment in
        Segment(
          segment, identity: superblock.identity, shard: UInt32(index), directory: directory,
          cache: cache, valueFiles: valueFiles.files(segment.valueReferences))
      }
      shards.append(runs)
    }
    try hold(shards, in: directory)
    return shards
  }

  /// Opens files before the writer removes them, as many as possible, first those that merges
  /// replace soonest. The names show that the others exist; a read that comes too late for one of
  /// them reports that.
  private func hold(_ shards: [[Run]], in directory: any Directory) throws(EngineError) {
    let depth = shards.map(\.count).max() ?? 0
    let runs = (0..<depth).flatMap { place in shards.compactMap { $0.dropFirst(place).first } }
    for run in runs {
      for segment in run.segments where directory.heldRoom > 0 { try segment.data.hold() }
      for file in run.valueFiles.all where directory.heldRoom > 0 { try file.data.hold() }
    }
    guard directory.heldRoom == 0 else { return }
    let names = Set(try directory.list())
    for run in runs {
      let wanted =
        run.segments.map(\.metadata.number.segmentName)
        + run.valueFiles.all.map(\.metadata.number.valueFileName)
      if let gone = wanted.first(where: { !names.contains($0) }) { throw .superseded(file: gone) }
    }
  }
}

/// The state of a database's files at one moment.
struct Sighting: Sendable {
  private(set) var groundwork: Groundwork
  /// The end of the order of commits.
  private(set) var line: RecoveredLog
  private var rows: RecoveredRows
  /// Whether the memtables have rows of commits that cannot be shown.
  var isSpoiled = false

  /// Reads all logs from the manifest's floor on, including their commits.
  static func read(
    _ groundwork: Groundwork, in directory: any Directory, _ options: EngineOptions,
    _ cache: BlockCache
  ) throws(EngineError) -> (Sighting, [RecoveredCommit]) {
    var recovery = Recovery(
      directory: directory, identity: groundwork.superblock.identity,
      manifest: groundwork.manifest.state, memtableSize: options.memtableSize, budget: cache)
    try recovery.replay(try directory.list())
    let sighting = Sighting(
      groundwork: groundwork, line: recovery.recovered, rows: recovery.rows)
    return (sighting, recovery.commits)
  }

  /// Takes in what is new. The rows go into the memtables in use, and become visible when the new
  /// end is published. When it throws, this value must not be used any more.
  mutating func goOn(with tail: LogTail, _ groundwork: Groundwork) throws(MalformedBytes) {
    for commit in tail.commits { try rows.insert(commit, log: tail.line.number) }
    rows.link()
    self.groundwork = groundwork
    rows.drop(through: groundwork.manifest.state.shards.map(\.flushedThrough))
    line = tail.line
  }

  /// The shards that reads use.
  func shards(with runs: [[Run]]) -> [ShardView] {
    zip(rows.memtables, runs).enumerated().map { index, parts in
      ShardView(
        active: parts.0.last ?? Memtable(capacity: 0), sealed: parts.0.dropLast().reversed(),
        runs: parts.1, state: groundwork.manifest.state.shards[index])
    }
  }

  /// Whether no memtable has been added or removed.
  func hasSameMemtables(as other: Sighting) -> Bool {
    zip(rows.memtables, other.rows.memtables).allSatisfy { mine, others in
      mine.count == others.count && zip(mine, others).allSatisfy { $0 === $1 }
    }
  }
}
