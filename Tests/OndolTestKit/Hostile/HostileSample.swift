// The damaged database: small, so that every bit of it can be flipped, but with everything that
// files can hold: several levels, value files, indexes of every kind, a manifest with edits, a log,
// and logs that are kept for followers. One is closed in good order. Another was killed, so that
// its log is still open.

internal import Ondol
internal import OndolEngine

struct HostileSample: Sendable {
  private static let commits = 36
  static let options = SubjectOptions(
    shardCount: 2, memtableSize: 4 << 10, logSize: 6 << 10, manifestSize: 2 << 10,
    segmentSize: 2 << 10, blockSize: 512, deferredBytes: 100, runLimit: 2, smallShardSize: 0,
    valueThreshold: 300, valueFileSize: 2 << 10, historySize: 1 << 20)

  /// The files that programs see on the disk.
  var files: [String: [UInt8]]
  /// The rows after each commit, beginning before the first.
  var states: [Rows]
  /// The kept annotations of all commits, for followers.
  var history: [LoggedCommit]
  var isClosed: Bool

  /// Makes a sample, the same one for the same seed.
  static func make(seed: UInt64, closing: Bool) throws -> HostileSample {
    let fileSystem = SimulatedFileSystem()
    let (sample, storage) = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      let subject = try await DocumentSubject.open(world.environment, options)
      let states = try await write(to: subject, seed: seed)
      let history = try await history(of: subject.database)
      if closing { try await subject.close() }
      return (
        HostileSample(files: [:], states: states, history: history, isClosed: closing),
        fileSystem.storage
      )
    }
    let path = DocumentSubject.path
    let names = storage.names(in: path)
    let files = names.map { ($0, storage.contents(of: $0, in: path) ?? []) }
    var made = sample
    made.files = Dictionary(uniqueKeysWithValues: files)
    return made
  }

  /// The commits that can be read again, all of them without damage.
  static func history(of database: Database) async throws(EngineError) -> [LoggedCommit] {
    var history = database.engine.history(after: CommitPoint(sequence: .zero, time: 0))
    var commits: [LoggedCommit] = []
    while case let some = try await history.next(), !some.isEmpty { commits += some }
    return commits
  }

  private static func write(to subject: DocumentSubject, seed: UInt64) async throws -> [Rows] {
    var states: [Rows] = [[:]]
    for number in 1...commits {
      let changes = Workload.commit(seed: SeededRandom.derive(seed, number)).changes
      // Each of the last ones is on the disk before the next, so a reader may doubt only the very
      // last.
      _ = try await subject.commit(changes, .power)
      var rows = states[states.count - 1]
      rows.apply(changes)
      states.append(rows)
      if number == commits / 2 { try await subject.settle() }
      if number == commits - 6 { try await subject.flush() }
    }
    return states
  }

  /// A disk with these files instead of the sample's.
  static func disk(of files: [String: [UInt8]]) -> SimulatedStorage {
    var storage = SimulatedStorage()
    var directory = StoredDirectory(isNameDurable: true)
    for (name, bytes) in files.sorted(by: { $0.key < $1.key }) {
      let number = storage.makeNumber()
      var file = StoredFile()
      file.write(bytes, at: 0, operation: 0)
      file.sync()
      storage.files[number] = file
      directory.current[name] = number
    }
    directory.durable = directory.current
    storage.directories[DocumentSubject.path] = directory
    return storage
  }
}
