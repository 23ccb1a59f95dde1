// The interface between the sequencer and upkeep and recovery, beside commits: which logs there are
// and are needed, how much room they have, which part of the history is kept, and which keys a
// flush removed.

extension Sequencer {
  // MARK: - Logs

  /// Continues after `log`, to which recovery has moved all commits, including those whose rows are
  /// in `memtables`. Nothing was placed before.
  func goOn(after log: RecoveredLog, _ memtables: [Memtable]) {
    state.withLock { state in
      state.commits = CommitState(sequence: log.sequence, time: log.time, end: log.end)
      state.logs.goOn(after: log)
      for memtable in memtables { memtable.moveToLog(log.number) }
    }
  }

  /// Offers a log made ahead of its use.
  func offer(_ spare: SpareLog) {
    state.withLock { $0.logs.offer(spare) }
  }

  /// Withdraws the spare log when its number is before `border`.
  func withdrawSpare(before border: FileNumber) -> SpareLog? {
    state.withLock { $0.logs.withdrawSpare(before: border) }
  }

  /// The log that commits go into, or the last one that they went into.
  var lastLog: FileNumber { state.withLock { $0.logs.last } }

  /// Records that no log could be made. Commits continue while there is room in this one.
  func noteNoSpare(_ error: EngineError) {
    state.withLock { $0.logs.noteNoSpare(error) }
  }

  /// The last log that was handed over.
  var newestLog: NamedLog? { state.withLock { $0.logs.newest } }

  /// The log with this number, if syncs must still cover it.
  func unsyncedLog(_ number: FileNumber) -> NamedLog? {
    state.withLock { $0.logs.uncovered.first { $0.number == number }.map { NamedLog($0) } }
  }

  var hasSpareLog: Bool { state.withLock { $0.logs.spare != nil } }

  /// Whether commits can continue only in a log that must be made first.
  var needsLog: Bool { state.withLock { $0.logs.needsLog } }

  /// Whether a log was written to since the database was opened.
  var hasWritten: Bool { state.withLock { $0.logs.current != nil } }

  /// The end of the order of commits.
  var end: RecoveredLog { state.withLock { $0.logs.end(of: $0.commits) } }

  /// The oldest log that recovery would need if `memtable` were flushed, or as it is now.
  func floor(without memtable: Memtable? = nil) -> LogStart {
    state.withLock { state in
      let held = views.current.shards.flatMap { [$0.active] + $0.sealed }
        .filter { $0 !== memtable }.compactMap(\.firstLog).min()
      return state.logs.floor(holding: held)
    }
  }

  // MARK: - Space

  /// The number of bytes reserved at once.
  static func piece(of logSize: Int) -> UInt64 { UInt64(max(logSize / 16, 256)) }

  /// Reserves the room on the disk, and more if there is more.
  func reserve(_ space: MissingSpace) throws(EngineError) {
    let wanted =
      space.range.lowerBound..<(space.range.upperBound + Self.piece(of: options.logSize))
    var through = wanted.upperBound
    var isKnown: Bool
    do throws(EngineError) {
      isKnown = try space.file.reserve(wanted)
    } catch {
      guard error.isLackOfSpace else { throw error }
      isKnown = try space.file.reserve(space.range)
      through = space.range.upperBound
    }
    // If the file system cannot, commits continue without.
    if !isKnown { through = .max }
    state.withLock { $0.logs.noteReserved(space.log, through: through) }
  }

  /// Records that the disk had no space for something.
  func noteLackOfSpace(_ error: EngineError) {
    state.withLock { $0.lackOfSpace = $0.lackOfSpace ?? error }
  }

  /// Records that there is space again.
  func forgetLackOfSpace() {
    state.withLock { $0.lackOfSpace = nil }
  }

  var lackOfSpace: EngineError? { state.withLock { $0.lackOfSpace } }

  // MARK: - History

  /// The last commit that was placed.
  var lastPlaced: CommitPoint {
    state.withLock { CommitPoint(sequence: $0.commits.lastPlaced, time: $0.commits.lastTime) }
  }

  /// A view, and the last commit visible in it.
  var datedSnapshot: (View, CommitPoint) {
    // Commits become visible under this lock.
    state.withLock { state in
      let (view, sequence) = views.snapshot
      return (view, CommitPoint(sequence: sequence, time: state.commits.publishedTime))
    }
  }

  /// The history once recovery needs no log before `floor`, without the part that must not be kept.
  func history(before floor: LogStart, now: Int64) -> History? {
    state.withLock { $0.logs.history(before: floor, options.historyRetention, now: now) }
  }

  func setHistory(_ history: History?) {
    state.withLock { $0.logs.setHistory(history) }
  }

  /// Forgets the logs before the floor, once the manifest has it, except the kept part.
  func forgetLogs(before floor: FileNumber, keeping history: History?) {
    state.withLock { $0.logs.forget(before: floor, keeping: history) }
  }

  /// The currently readable history; nil when no history is kept.
  var historyExtent: HistoryExtent? { state.withLock { $0.logs.extent(of: $0.commits) } }

  // MARK: - Keys

  /// Keeps the keys of a memtable that is about to leave the view after its flush; not when there
  /// have been no guarded commits for long, as when rows are loaded by the million.
  func remember(_ memtable: Memtable, shard: Int, through: SequenceNumber) {
    guard let first = memtable.sequences?.lowerBound,
      state.withLock({ $0.recentKeys.isWanted(from: first) })
    else { return }
    let history = KeyHistory(of: memtable, through: through)
    // The view still has the shard's previous flush point.
    let flushedBefore = views.current.shards[shard].flushedThrough
    state.withLock { $0.recentKeys.add(history, shard: shard, flushedBefore: flushedBefore) }
  }
}
