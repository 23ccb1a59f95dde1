// Which log commits go into: the change to the next one when a log is full, and the oldest one that
// recovery would need.

/// What a log was used for so far.
struct LogUse: Sendable {
  /// A prewritten byte costs about a nanosecond of the device's time, and a sync in a file that
  /// grows about forty microseconds of the file system's journal.
  private static let bytesPerSync: UInt64 = 32 << 10
  private static let fewestSyncs: UInt64 = 4

  var syncs: UInt64 = 0

  /// Whether a log that had been written with zeros before would have served better, so far.
  func favorsPrewriting(_ bytes: UInt64) -> Bool {
    syncs >= Self.fewestSyncs && syncs * Self.bytesPerSync >= bytes
  }
}

extension Sequencer {
  /// Whether there is nowhere to put `length` more bytes: no log yet, or the room that was written
  /// ahead is used up and the disk had none for another log.
  func mustMakeLog(_ state: borrowing State, length: Int) -> Bool {
    if state.spare != nil { return false }
    guard let log = state.log else { return true }
    return state.spareFailure != nil && state.deferred.isEmpty
      && isFull(log, state.offset, length: length)
  }

  private func isFull(_ log: LogFile, _ offset: UInt64, length: Int) -> Bool {
    if log.prewritten == 0 { return offset >= options.logSize }
    return offset > LogHeader.length && offset + UInt64(length) > log.prewritten
  }

  /// Whether the next commit goes into the spare log.
  func switchesLog(_ state: borrowing State, length: Int) -> Bool {
    guard state.deferred.isEmpty, let spare = state.spare else { return false }
    guard let log = state.log else { return true }
    return isFull(log, state.offset, length: length)
      || log.prewritten < spare.prewritten && log.prewritten == 0
  }

  /// Goes on in the spare log when this one is full or there is none, or when only the spare was
  /// written with zeros. Memtables whose oldest rows
  /// are too far back are sealed, so that logs do not pile up behind a shard that is seldom
  /// written; answers with their shards.
  func switchLogWhenFull(_ state: inout State, length: Int) -> [Int] {
    guard switchesLog(state, length: length), let spare = state.spare else { return [] }
    if let log = state.log {
      state.previousLog = log.number
      state.previousLength = state.offset
      state.unsyncedLogs.append(log)
    }
    state.log = LogFile(spare, base: state.commits.placedEnd)
    state.use = LogUse()
    state.starts.append(
      LogStart(
        number: spare.number, base: state.commits.placedEnd,
        sequence: state.commits.lastPlaced, time: state.commits.lastTime))
    state.offset = 0
    state.reserved = spare.reserved
    state.spare = nil
    state.sparePromised = false

    let view = views.current
    let oldest = state.starts.last { start in
      state.commits.placedEnd.rawValue - start.base.rawValue >= UInt64(options.logRetention)
    }
    guard let oldest else { return [] }
    let behind = view.shards.indices.filter { index in
      view.shards[index].active.firstLog.map { $0 <= oldest.number } ?? false
    }
    for index in behind { seal(shard: index, capacity: 0) }
    return behind
  }

  /// Goes on after `log`, to which recovery has moved all commits, among them those whose rows are
  /// in `memtables`. Nothing was placed before.
  func goOn(after log: RecoveredLog, _ memtables: [Memtable]) {
    state.withLock { state in
      state.commits = CommitState(sequence: log.sequence, time: log.time, end: log.end)
      state.previousLog = log.number
      state.previousLength = log.length
      state.securedLog = log.number
      state.starts = log.starts
      for memtable in memtables { memtable.moveToLog(log.number) }
    }
  }

  func logHeader(_ log: LogFile, _ state: State) -> LogHeader {
    LogHeader(
      number: log.number, identity: identity, salt: log.salt, kind: .normal, base: log.base,
      previous: state.previousLog, previousLength: state.previousLength,
      firstSequence: state.commits.lastPlaced.next)
  }

  /// Asks once for every log, when it has passed half its size or turns out to be of the wrong
  /// kind, for the next one.
  func promiseSpare(_ state: inout State) -> SpareRequest? {
    guard state.spare == nil, !state.sparePromised, let log = state.log else { return nil }
    let prewrites = state.use.favorsPrewriting(state.offset)
    let size = log.prewritten > 0 ? log.prewritten : UInt64(options.logSize)
    guard state.offset >= size / 2 || prewrites && log.prewritten == 0 else { return nil }
    state.sparePromised = true
    guard prewrites else { return SpareRequest(prewritten: 0) }
    defer {
      state.nextPrewritten = min(state.nextPrewritten * 4, UInt64(options.logSize))
    }
    return SpareRequest(prewritten: state.nextPrewritten)
  }

  /// Hands in a log made ahead of its use.
  func offer(_ spare: SpareLog) {
    state.withLock { state in
      state.spare = spare
      state.spareFailure = nil
    }
  }

  /// Notes that no log could be made. Commits go on while there is room in this one.
  func noteNoSpare(_ error: EngineError) {
    state.withLock { state in
      state.spareFailure = error
      state.sparePromised = false
    }
  }

  /// Notes that logs up to `number` are found after a power cut; syncs that waited for it begin.
  func noteSecured(_ number: FileNumber) {
    let startsSync = state.withLock { state in
      state.securedLog = max(state.securedLog, number)
      return self.claimSync(&state)
    }
    if startsSync { enqueueSync() }
  }

  /// The last log handed out.
  var newestLog: NamedLog? {
    state.withLock { state in
      state.spare.map { NamedLog($0) } ?? state.log.map { NamedLog($0) }
    }
  }

  /// The log with this number, when it is one of those that syncs have yet to cover.
  func unsyncedLog(_ number: FileNumber) -> NamedLog? {
    state.withLock { state in
      (state.unsyncedLogs + [state.log].compactMap { $0 }).first { $0.number == number }
        .map { NamedLog($0) }
    }
  }

  var hasSpareLog: Bool {
    state.withLock { $0.spare != nil }
  }

  /// Whether commits can go on only in a log that is yet to be made.
  var needsLog: Bool {
    state.withLock { $0.spare == nil && ($0.log == nil || $0.spareFailure != nil) }
  }

  /// The oldest log that recovery would need if `memtable` were flushed.
  func floor(without memtable: Memtable) -> LogStart {
    state.withLock { state in
      let held = views.current.shards.flatMap { [$0.active] + $0.sealed }
        .filter { $0 !== memtable }.compactMap(\.firstLog).min()
      let floor = held ?? state.log?.number ?? state.previousLog
      guard let start = state.starts.first(where: { $0.number >= floor }) else {
        preconditionFailure("the floor is a log")
      }
      return start
    }
  }

  /// Forgets the logs before the floor, once the manifest has it, but for what is kept of them.
  func forgetLogs(before floor: FileNumber, keeping history: History?) {
    state.withLock { state in
      state.starts.removeAll { $0.number < floor }
      state.history = history
    }
  }
}
