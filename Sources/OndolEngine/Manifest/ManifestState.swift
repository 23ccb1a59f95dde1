// The contents of the manifest: the runs of each shard, how far each shard is flushed, the dropped
// keyspaces, and the log that recovery starts from. It is a plain value. ManifestChange has the
// changes to it, and ShardState the part of a shard.

/// The state that results from all edits so far.
struct ManifestState: Sendable, Equatable {
  /// Every file number below this one has been handed out.
  var nextFile: FileNumber
  /// The first log that recovery needs.
  var floor: LogStart
  /// The last log that was created. It exists, whether or not it was used.
  var newestLog: FileNumber
  var shards: [ShardState]
  /// The logs before the floor that are kept, if commits are to remain readable.
  var history: History?
  /// Logs from the floor on whose frames can be read without their header.
  var namedLogs: [FileNumber: NamedLog] = [:]
  /// Keyspaces whose rows are permanently removed.
  var dropped = DroppedKeyspaces()
  /// The keyed groups.
  var groups = GroupList()

  /// Whether recovery needs a log, or history keeps it.
  func references(log number: FileNumber) -> Bool {
    number >= floor.number || history?.logs.contains { $0.number == number } ?? false
  }

  /// Whether a segment is referenced.
  func references(segment number: FileNumber) -> Bool {
    shards.contains { $0.references(segment: number) }
  }

  /// Whether a value file is in use.
  func references(valueFile number: FileNumber) -> Bool {
    shards.contains { $0.valueFiles[number] != nil }
  }
}

extension ManifestState {
  /// The whole state as changes from an empty one.
  var asChanges: [ManifestChange] {
    var changes: [ManifestChange] = [
      .nextFile(nextFile), .logs(floor: floor, newest: newestLog),
    ]
    changes += namedLogs.values.sorted { $0.number < $1.number }.map { .nameLog($0) }
    changes += History.changes(from: nil, to: history)
    changes += dropped.asChanges
    if groups.isUsed { changes.append(.groups(groups)) }
    for (index, shard) in shards.enumerated() {
      changes.append(.flushed(shard: index, through: shard.flushedThrough))
      let files = shard.valueFiles.values.sorted { $0.number < $1.number }
      changes += files.map { .addValueFile(shard: index, $0) }
      for run in shard.runs {
        for segment in run.segments {
          changes.append(.addSegment(shard: index, level: run.level, run: run.id, segment))
        }
      }
      changes += shard.locked.map { locked in
        .addSegment(shard: index, level: locked.level, run: locked.run, locked.segment)
      }
    }
    return changes
  }

  /// Applies one change. An impossible change makes the manifest invalid.
  mutating func apply(_ change: ManifestChange) throws(MalformedBytes) {
    switch change {
    case .nextFile(let number):
      try check(number)
      nextFile = max(nextFile, number)
    case .logs(let floor, let newest):
      for counter in [floor.base.rawValue, floor.sequence.rawValue] {
        try check(counter: counter)
      }
      for number in [floor.number, newest] { try check(number) }
      self.floor = floor
      newestLog = newest
      namedLogs = namedLogs.filter { $0.key >= floor.number }
    case .nameLog(let log):
      guard log.number >= floor.number, log.length <= Bounds.largestAmount else {
        throw MalformedBytes(at: 0, "names log \(log.number.rawValue), which nobody needs")
      }
      namedLogs[log.number] = log
    case .history(let start):
      if let start { try check(counter: start.sequence.rawValue) }
      history = start.map { History(start: $0, logs: history?.logs ?? []) }
      history?.dropLogs(before: floor.sequence)
    case .keepLog(let log):
      try check(counter: log.sequence.rawValue)
      guard history != nil, log.number < floor.number, log.sequence <= floor.sequence,
        log.length <= Bounds.largestAmount, log.follows(history?.logs.last)
      else { throw MalformedBytes(at: 0, "keeps log \(log.number.rawValue) out of order") }
      history?.logs.append(log)
    case .flushed(let shard, let through):
      try check(shard)
      try check(counter: through.rawValue)
      shards[shard].flushedThrough = through
    case .addSegment(let shard, let level, let run, let segment):
      try check(shard)
      try check(segment.number)
      try shards[shard].checkValueFiles(of: segment)
      try shards[shard].add(segment, level: level, run: run)
    case .dropSegment(let shard, let number):
      try check(shard)
      guard shards[shard].drop(number) else {
        throw MalformedBytes(at: 0, "drops segment \(number.rawValue), which it lacks")
      }
    case .addValueFile(let shard, let file):
      try check(shard)
      try check(file.number)
      shards[shard].add(file)
    case .dropValueFile(let shard, let number):
      try check(shard)
      try shards[shard].dropValueFile(number)
    case .dropKeyspaces(let keyspaces, let before):
      for keyspace in keyspaces { dropped.insert(keyspace, before: before) }
    case .groups(let groups):
      self.groups = groups
    }
  }

  private func check(counter: UInt64) throws(MalformedBytes) {
    guard counter <= Bounds.greatestCounter else {
      throw MalformedBytes(at: 0, "counts from \(counter), which nothing can have come to")
    }
  }

  private func check(_ number: FileNumber) throws(MalformedBytes) {
    guard number.isPossible else {
      throw MalformedBytes(at: 0, "names file \(number.rawValue), which nothing can have come to")
    }
  }

  private func check(_ shard: Int) throws(MalformedBytes) {
    guard shards.indices.contains(shard) else {
      throw MalformedBytes(at: 0, "names shard \(shard) of \(shards.count)")
    }
  }

  /// The same state without drops that cannot matter again: no segment from before the drop may
  /// contain rows, and all logs from before it are gone. A log that recovery has rewritten is
  /// younger than its commits, so it must be gone as well.
  ///
  /// - Parameter recovered: the last commit that the open found in the logs.
  func forgettingDrops(recoveredThrough recovered: SequenceNumber) -> ManifestState {
    guard !dropped.isEmpty, floor.sequence >= recovered else { return self }
    var touched: Set<UInt32> = []
    for (index, shard) in shards.enumerated() {
      for run in shard.runs {
        touched.formUnion(dropped.touched(by: run.segments, of: index, in: shards.count))
      }
    }
    var rest = self
    rest.dropped = dropped.keeping(touched, before: floor.number)
    return rest
  }

  /// The changes that drop value files which no segment refers to.
  var dropsOfUnreferencedValueFiles: [ManifestChange] {
    shards.enumerated().flatMap { index, shard in
      shard.values.unreferenced.map { .dropValueFile(shard: index, number: $0) }
    }
  }
}
