// Writes a database from rows in key order: segments without a log, and at the end the files that
// make them a database. The catalog's rows come last, because their contents are known last. They
// are separate runs above the others.

/// A database that is being built.
package final class SalvageTarget {
  private let target: BackupTarget
  private let directory: KeyedDirectory
  private let environment: Environment
  private let files: SegmentFiles
  /// The pending rows of each shard.
  private let shards: [SegmentSink]
  private let groups: MadeGroups

  /// Creates a database of `shardCount` shards in the directory at `path`, which must be new or
  /// empty. Blocks.
  package init(
    at path: String, environment: Environment, options: EngineOptions, shardCount: Int
  ) throws(EngineError) {
    target = try BackupTarget(at: path, in: environment.fileSystem)
    self.environment = environment
    let identity = DatabaseIdentity(low: environment.random(), high: environment.random())
    directory = KeyedDirectory(
      target.directory, try environment.makeKeyring(for: identity))
    // With the initial numbers of a new database, one without a superblock would look new.
    files = SegmentFiles(
      directory: directory, numbers: FileNumbers(next: .firstLog.next), identity: identity,
      options: options, random: environment.random, emptied: [:])
    let (files, groups) = (files, MadeGroups(in: directory))
    self.groups = groups
    shards = (0..<max(1, min(1024, shardCount))).map { SegmentSink(files, shard: $0, groups) }
  }

  /// Adds a row. Its key must be above the previous one. Blocks.
  ///
  /// - Parameter sequence: at least the latest commit that any row added so far belongs to.
  package func add(_ row: SalvagedRow, upTo sequence: SequenceNumber) throws(EngineError) {
    let shard = View.shardIndex(of: row.key.bytes, count: shards.count)
    try shards[shard].add(row, upTo: sequence)
  }

  /// Whether rows of keyed groups receive keys of their own. Without encryption they do not.
  package var makesKeys: Bool { directory.keyring != nil }

  /// Creates a keyed group, even if it has no rows. Its number must be one of those that
  /// `makesKeys` refers to.
  package func makeKeyedGroup(_ number: UInt32) throws(EngineError) {
    if makesKeys { try groups.meet(number) }
  }

  /// Writes the rest and puts it into effect: a database that ends with commit `sequence` at
  /// `time`. Blocks.
  ///
  /// - Parameter catalog: rows of any shard that were not added, in order.
  package func finish(
    _ catalog: [SalvagedRow], sequence: SequenceNumber, time: Int64
  ) throws(EngineError) {
    let sequence = max(sequence, SequenceNumber.zero.next)
    let uppers = shards.indices.map { SegmentSink(files, shard: $0, groups) }
    for row in catalog {
      let shard = View.shardIndex(of: row.key.bytes, count: shards.count)
      try uppers[shard].add(row, upTo: sequence)
    }
    var states: [ShardState] = []
    for (index, shard) in shards.enumerated() {
      var state = ShardState()
      state.flushedThrough = sequence
      try state.add(try shard.finish(), level: ShardState.lowestLevel)
      try state.add(try uppers[index].finish(), level: 0)
      states.append(state)
    }
    let list = groups.list
    try target.secureNames()
    let foundation = DatabaseFoundation(
      identity: files.identity, sequence: sequence, time: time, numbers: files.numbers)
    try foundation.write(
      states, DroppedKeyspaces(), list, to: directory, environment: environment)
    try target.directory.sync()
  }

  /// Removes everything that was created. Blocks.
  package func removeAll() {
    target.removeAll()
  }
}

extension FileNumber {
  fileprivate var next: FileNumber { FileNumber(rawValue: rawValue + 1) }
}

extension ShardState {
  fileprivate mutating func add(_ output: RunOutput, level: Int) throws(EngineError) {
    for file in output.valueFiles { add(file) }
    let run = output.segments.first?.number.rawValue ?? 0
    do throws(MalformedBytes) {
      for segment in output.segments { try add(segment, level: level, run: run) }
    } catch {
      throw .invalid(reason: error.reason)
    }
  }
}

/// The keyed groups of the rows so far. Each has its number and a new key.
private final class MadeGroups {
  private let directory: KeyedDirectory
  private(set) var list = GroupList()

  init(in directory: KeyedDirectory) {
    self.directory = directory
  }

  /// Creates the group's key before anything is encrypted with it.
  func meet(_ group: UInt32) throws(EngineError) {
    guard !list.live.contains(group) else { return }
    if let keys = directory.keyring?.groups {
      let set = try keys.changed(for: list.live) { $0.add(group, from: $1) }
      try keys.write(set, in: directory)
      list.generation = set.generation
    }
    list.live = (list.live + [group]).sorted()
    list.next = max(list.next, group + 1)
  }
}

/// Writes rows directly into the segments of one run.
private final class SegmentSink {
  private let groups: MadeGroups
  private var run: OpenRun

  init(_ files: SegmentFiles, shard: Int, _ groups: MadeGroups) {
    self.groups = groups
    let first = SequenceNumber.zero.next
    run = OpenRun(files, shard: shard, sequences: first...first)
  }

  func add(_ row: SalvagedRow, upTo sequence: SequenceNumber) throws(EngineError) {
    let group = run.files.group(of: row.key.bytes)
    if let group, group != run.group { try groups.meet(group) }
    try run.enter(group)
    let sequences = run.sequences
    run.sequences = sequences.lowerBound...max(sequences.upperBound, sequence)
    try run.add(.put, key: row.key.bytes, value: row.value.bytes)
    if run.isSegmentFull { try run.finishSegment() }
  }

  /// The synced files.
  func finish() throws(EngineError) -> RunOutput {
    try run.finish()
    return run.output
  }
}
