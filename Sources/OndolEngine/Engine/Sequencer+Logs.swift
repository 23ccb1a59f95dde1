// Which log commits go into: the change to the next one when a log is full, and the oldest one that
// recovery would need.

extension Sequencer {
  /// Goes on in the spare log when this one is full or there is none. Memtables whose oldest rows
  /// are too far back are sealed, so that logs do not pile up behind a shard that is seldom
  /// written; answers with their shards.
  func switchLogWhenFull(_ state: inout State) -> [Int] {
    let isFull = state.log == nil || state.offset >= options.logSize
    guard isFull, state.deferred.isEmpty, let spare = state.spare else { return [] }
    if let log = state.log {
      state.previousLog = log.number
      state.previousLength = state.offset
      state.unsyncedLogs.append(log)
    }
    state.log = LogFile(
      number: spare.number, file: spare.file, salt: spare.salt, base: state.commits.placedEnd)
    state.starts.append(
      LogStart(
        number: spare.number, base: state.commits.placedEnd,
        sequence: state.commits.lastPlaced, time: state.commits.lastTime))
    state.offset = 0
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
    for index in behind { seal(shard: index, capacity: options.memtableSize) }
    return behind
  }

  func logHeader(_ log: LogFile, _ state: State) -> LogHeader {
    LogHeader(
      number: log.number, identity: identity, salt: log.salt, kind: .normal, base: log.base,
      previous: state.previousLog, previousLength: state.previousLength,
      firstSequence: state.commits.lastPlaced.next)
  }

  /// True once for every log, when it has passed half its size.
  func promiseSpare(_ state: inout State) -> Bool {
    guard state.spare == nil, !state.sparePromised, state.offset >= options.logSize / 2 else {
      return false
    }
    state.sparePromised = true
    return true
  }

  /// Hands in a log made ahead of its use.
  func offer(_ spare: SpareLog) {
    state.withLock { $0.spare = spare }
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
  var newestLog: FileNumber? {
    state.withLock { $0.spare?.number ?? $0.log?.number }
  }

  var hasSpareLog: Bool {
    state.withLock { $0.spare != nil }
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

  /// Forgets the logs before the floor, once the manifest has it.
  func forgetLogs(before floor: FileNumber) {
    state.withLock { state in
      state.starts.removeAll { $0.number < floor }
    }
  }
}
