// Writes a database from rows in the order of their keys: segments without a log behind them, and
// at the end what makes a database of them. The rows of the catalog come last, because what they
// must say is known last; they are runs of their own, above the others.

/// A database in the making.
package final class SalvageTarget {
  private let target: BackupTarget
  private let directory: KeyedDirectory
  private let environment: Environment
  private let files: SegmentFiles
  /// The rows of each shard on their way.
  private let shards: [SegmentSink]
  private let groups: MadeGroups

  /// A database of `shardCount` shards in the directory at `path`, which must be new or empty.
  /// Blocks.
  package init(
    at path: String, environment: Environment, options: EngineOptions, shardCount: Int
  ) throws(EngineError) {
    target = try BackupTarget(at: path, in: environment.fileSystem)
    self.environment = environment
    let identity = DatabaseIdentity(low: environment.random(), high: environment.random())
    directory = KeyedDirectory(
      target.directory, try environment.makeKeyring(for: identity))
    // Numbers that a new database begins with would make one without a superblock look new.
    files = SegmentFiles(
      directory: directory, numbers: FileNumbers(next: .firstLog.next), identity: identity,
      options: options, random: environment.random, emptied: [:])
    let (files, groups) = (files, MadeGroups(directory.keyring?.groups))
    self.groups = groups
    shards = (0..<max(1, min(1024, shardCount))).map { SegmentSink(files, shard: $0, groups) }
  }

  /// Adds a row. Its key must be above the last one's. Blocks.
  ///
  /// - Parameter sequence: no commit is later that any row added so far is of.
  package func add(_ row: SalvagedRow, upTo sequence: SequenceNumber) throws(EngineError) {
    let shard = View.shardIndex(of: row.key.bytes, count: shards.count)
    try shards[shard].add(row, upTo: sequence)
  }

  /// Whether rows of keyed groups get keys of their own: not where files are in the clear.
  package var makesKeys: Bool { directory.keyring != nil }

  /// Makes a keyed group, also one of which no row comes. Its number must be one of those that
  /// `makesKeys` is about.
  package func makeKeyedGroup(_ number: UInt32) { if makesKeys { groups.meet(number) } }

  /// Writes the rest and makes it count: a database that ends with commit `sequence` at `time`.
  /// Blocks.
  ///
  /// - Parameter catalog: rows of any shards that were not added, in order.
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
    let list = try writeKeys()
    try target.secureNames()
    let foundation = DatabaseFoundation(
      identity: files.identity, sequence: sequence, time: time, numbers: files.numbers)
    try foundation.write(
      states, DroppedKeyspaces(), list, to: directory, environment: environment)
    try target.directory.sync()
  }

  /// Writes the keys of the groups that were met.
  private func writeKeys() throws(EngineError) -> GroupList {
    let list = groups.list
    if list.isUsed { try groups.keys?.write(list.live, in: directory) }
    return list
  }

  /// Removes everything that was made. Blocks.
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

/// The keyed groups that rows were met of: each has its number, and a new key.
private final class MadeGroups: Sendable {
  let keys: GroupKeys?
  private let met = Guarded<Set<UInt32>>([])

  init(_ keys: GroupKeys?) {
    self.keys = keys
  }

  func meet(_ group: UInt32) {
    let isNew = met.withLock { $0.insert(group).inserted }
    if isNew { keys?.add(group) }
  }

  var list: GroupList {
    var list = GroupList()
    list.live = met.withLock { $0.sorted() }
    if let last = list.live.last { list.next = last + 1 }
    return list
  }
}

/// Pours rows into the segments of one run.
private final class SegmentSink {
  private let files: SegmentFiles
  private let shard: Int
  private let groups: MadeGroups
  /// The keyed group of the last row.
  private var group: UInt32?
  private var separator: ValueSeparator
  private var segment: (writer: SegmentWriter, file: any File)?
  private var output = RunOutput()
  private var sequence = SequenceNumber.zero.next

  init(_ files: SegmentFiles, shard: Int, _ groups: MadeGroups) {
    self.files = files
    self.shard = shard
    self.groups = groups
    separator = files.makeSeparator(shard: shard, group: nil) { _ in }
  }

  func add(_ row: SalvagedRow, upTo sequence: SequenceNumber) throws(EngineError) {
    self.sequence = max(self.sequence, sequence)
    let next = files.group(of: row.key.bytes)
    if next != group { try enter(next) }
    let writer = if let segment { segment.writer } else { try beginSegment() }
    if let pointer = try separator.separate(.put, row.value.bytes) {
      let bytes = pointer.encode()
      try writer.add(.valuePointer, key: row.key.bytes, value: bytes.bytes)
    } else {
      try writer.add(.put, key: row.key.bytes, value: row.value.bytes)
    }
    if writer.rawBytesWritten >= UInt64(files.options.segmentSize) { try finishSegment() }
  }

  /// Begins other files: each is of one group, or of none.
  private func enter(_ next: UInt32?) throws(EngineError) {
    try finishSegment()
    output.valueFiles += try separator.finish()
    if let next { groups.meet(next) }
    group = next
    separator = files.makeSeparator(shard: shard, group: next) { _ in }
  }

  /// The files, synced.
  func finish() throws(EngineError) -> RunOutput {
    try finishSegment()
    output.valueFiles += try separator.finish()
    return output
  }

  private func beginSegment() throws(EngineError) -> SegmentWriter {
    let made = try files.makeSegment(files.numbers.allocate(), shard: shard, group: group)
    segment = made
    return made.writer
  }

  private func finishSegment() throws(EngineError) {
    guard let (writer, file) = segment else { return }
    output.segments.append(
      try files.finish(writer, file, SequenceNumber.zero.next...sequence, group: group))
    segment = nil
  }
}
