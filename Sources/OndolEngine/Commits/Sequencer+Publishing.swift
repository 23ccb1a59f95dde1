// Stages 4 and 5 of the write path: a placed commit's frames are written by its committer, synced
// by the log's thread for all who wait, and published in order. After a failure nothing more is,
// and all are told.

extension Sequencer {
  /// Writes a placed commit's frames on the caller's thread and waits until it is published.
  func finish(_ placed: consuming PlacedCommit) async throws(EngineError) {
    let sequence = placed.sequence
    if let write = placed.write.take() {
      try perform(write)
    } else {
      publish()
    }
    if views.published >= sequence { return }
    if let failure = await waitUntilPublished(sequence) { throw failure }
  }

  private func perform(_ write: consuming PendingWrite) throws(EngineError) {
    let (log, offset, isSynced) = (write.log, write.offset, write.isSynced)
    let bytes = write.build()
    do throws(EngineError) {
      if isSynced {
        try log.file.writeSynced(bytes.bytes, at: offset)
      } else {
        try log.file.write(bytes.bytes, at: offset)
      }
    } catch {
      throw fail(error)
    }
    let start = log.position(of: offset)
    if isSynced {
      endSync(through: log.position(of: offset + UInt64(bytes.count)), write: start)
    } else {
      endWrite(start)
    }
  }

  /// Notes a finished write, publishes what can be, and begins a sync where one is waited for.
  private func endWrite(_ start: LogPosition) {
    let (wakeups, startsSync, isAlone) = state.withLock { state in
      state.commits.endWrite(at: start)
      let wakeups = self.publish(&state)
      return (wakeups, self.claimSync(&state), options.callersSync && !state.hasCompany)
    }
    resume(wakeups)
    guard startsSync else { return }
    if isAlone { syncOnce() } else { enqueueSync() }
  }

  private func publish() {
    resume(state.withLock { self.publish(&$0) })
  }

  /// Moves the visible sequence on and takes out the waiters it satisfies.
  private func publish(_ state: inout State) -> Wakeups {
    guard state.failure == nil, let published = state.commits.publish() else { return [] }
    views.publish(published)
    state.announcements.publish(through: published)
    guard !state.publishWaiters.isEmpty else { return [] }
    var wakeups: Wakeups = []
    state.publishWaiters.removeAll { waiter in
      guard waiter.0 <= published else { return false }
      wakeups.append((waiter.1, nil))
      return true
    }
    return wakeups
  }

  /// Waits until everything placed so far is published, or nothing more will be.
  func waitUntilAllPublished() async {
    _ = await waitUntilPublished(state.withLock { $0.commits.lastPlaced })
  }

  /// Waits until everything up to `sequence` is published; the failure when that will not be.
  func waitUntilPublished(_ sequence: SequenceNumber) async -> EngineError? {
    await withCheckedContinuation { waiter in
      let answer: EngineError?? = state.withLock { state in
        if state.commits.published >= sequence { return .some(nil) }
        if let failure = state.failure { return failure }
        state.publishWaiters.append((sequence, waiter))
        return .none
      }
      if let answer { waiter.resume(returning: answer) }
    }
  }

  // MARK: - Syncing

  /// Makes everything placed so far survive a power cut.
  func synchronize() async throws(EngineError) {
    let target = try writeDeferred()
    let failure: EngineError? = await withCheckedContinuation { waiter in
      let (answer, startsSync): (EngineError??, Bool) = state.withLock { state in
        if let failure = state.failure { return (failure, false) }
        if state.commits.syncedThrough >= target { return (.some(nil), false) }
        state.syncWaiters.append((target, waiter))
        return (.none, self.claimSync(&state))
      }
      if let answer { waiter.resume(returning: answer) }
      if startsSync { enqueueSync() }
    }
    if let failure { throw failure }
  }

  /// Has a sync made for a `.periodic` commit unless one is due as early; answers with how many
  /// microseconds that must wait.
  func armPeriodicSync(
    _ state: inout State, _ durability: Durability, now: Int64
  ) -> Int64? {
    guard case .periodic(let delay) = durability else { return nil }
    let (deadline, overflow) = now.addingReportingOverflow(delay)
    if overflow { return nil }
    if let due = state.periodicDeadline, due <= deadline { return nil }
    state.periodicDeadline = deadline
    return delay
  }

  /// Makes everything placed so far survive a power cut, for the `.periodic` commits among it.
  func synchronizePeriodically() async throws(EngineError) {
    state.withLock { $0.periodicDeadline = nil }
    try await synchronize()
  }

  /// Writes the frames put off so far and answers with the end of everything placed by then. The
  /// two are of one moment: what is placed up to there is written, or somebody is writing it.
  /// Frames put off a moment later may stay where they are, and nobody must wait for them.
  private func writeDeferred() throws(EngineError) -> LogPosition {
    let (write, end) = state.withLock { (self.takeDeferred(&$0), $0.commits.placedEnd) }
    guard let write else { return end }
    do throws(EngineError) {
      try write.log.file.write(write.bytes.bytes, at: write.offset)
    } catch {
      throw fail(error)
    }
    endWrite(write.start)
    return end
  }

  /// Frames put off, about to be written.
  private struct DeferredWrite {
    var log: LogFile
    var offset: UInt64
    var bytes: [UInt8]

    var start: LogPosition { log.position(of: offset) }
    var end: LogPosition { log.position(of: offset + UInt64(bytes.count)) }
  }

  private func takeDeferred(_ state: inout State) -> DeferredWrite? {
    guard !state.deferred.isEmpty, state.failure == nil, let log = state.log else { return nil }
    let write = DeferredWrite(log: log, offset: state.deferredOffset, bytes: state.deferred)
    state.deferred = []
    state.gathered = 0
    return write
  }

  /// Whether a sync begun now would satisfy anybody; then it is the caller's to begin.
  func claimSync(_ state: inout State) -> Bool {
    let reachable = state.commits.writtenThrough
    guard !state.isSyncing, state.failure == nil,
      // A log that might be gone after a power cut need not be synced.
      state.log?.number ?? .zero <= state.securedLog,
      state.gathered > 0 || state.commits.wantsSync
        || state.syncWaiters.contains(where: { $0.0 <= reachable })
    else { return false }
    state.isSyncing = true
    return true
  }

  /// Whether `write`, the last one placed, may sync its own bytes on its committer's thread: when
  /// it is alone, and everything in front of it is on the device. If anything were not, a power cut
  /// could leave a hole in front of a commit that was acknowledged.
  func claimRangeSync(_ state: inout State, from write: borrowing PendingWrite) -> Bool {
    guard options.callersSync, !state.hasCompany, !state.isSyncing,
      write.log.number <= state.securedLog,
      state.commits.syncedThrough == write.log.position(of: write.offset)
    else { return false }
    state.isSyncing = true
    return true
  }

  func enqueueSync() {
    syncWorker.enqueue {
      self.gather()
      self.syncOnce()
    }
  }

  /// One sync for all who wait, group commit: frames that came during the last one are written
  /// first, all at once, and by a write that syncs itself where nothing else is left to sync.
  private func syncOnce() {
    let (gathered, syncedThrough) = state.withLock { state in
      (state.gathered > 0 ? self.takeDeferred(&state) : nil, state.commits.syncedThrough)
    }
    let began = environment.now()
    let target: LogPosition
    var write: LogPosition?
    do throws(EngineError) {
      if let gathered, gathered.start == syncedThrough {
        try gathered.log.file.writeSynced(gathered.bytes.bytes, at: gathered.offset)
        (target, write) = (gathered.end, gathered.start)
      } else {
        if let gathered {
          try gathered.log.file.write(gathered.bytes.bytes, at: gathered.offset)
        }
        target = try syncLogs(writtenNow: gathered?.start)
      }
    } catch {
      _ = fail(error)
      return
    }
    noteSync(duration: environment.now() &- began)
    endSync(through: target, write: write)
  }

  /// Syncs every log that needs it; answers with the position up to which all is on the device.
  private func syncLogs(writtenNow start: LogPosition?) throws(EngineError) -> LogPosition {
    let (target, logs) = state.withLock { state in
      if let start { state.commits.endWrite(at: start) }
      return (state.commits.writtenThrough, state.unsyncedLogs + [state.log].compactMap { $0 })
    }
    for log in logs where log.base < target { try log.file.sync() }
    return target
  }

  /// Has the log say how far it is on the device, in front of whoever is told so: frames that came
  /// last have none behind them that would. Not where frames wait, which say it themselves.
  private func mark(_ target: LogPosition) throws(EngineError) {
    let log = state.withLock { state -> LogFile? in
      if state.gathered > 0 { return nil }
      return (state.unsyncedLogs + [state.log].compactMap { $0 }).last { $0.base < target }
    }
    guard let log else { return }
    let mark = FrameBuilder.buildMark(target, time: environment.now(), salt: log.salt)
    try log.file.write(mark.bytes, at: LogHeader.markOffset)
  }

  /// Notes a finished sync, and the write that it was part of, if any.
  private func endSync(through target: LogPosition, write: LogPosition?) {
    do throws(EngineError) {
      try mark(target)
    } catch {
      _ = fail(error)
      return
    }
    let (wakeups, again) = state.withLock { state in
      state.isSyncing = false
      if let write { state.commits.endWrite(at: write) }
      state.commits.markSynced(through: target)
      state.use.syncs += 1
      // A log whose successor begins at or before the target is synced to its end.
      while let next = state.unsyncedLogs.dropFirst().first ?? state.log,
        !state.unsyncedLogs.isEmpty, next.base <= target
      {
        state.unsyncedLogs.removeFirst()
      }
      var wakeups = self.publish(&state)
      state.syncWaiters.removeAll { waiter in
        guard waiter.0 <= target else { return false }
        wakeups.append((waiter.1, nil))
        return true
      }
      // Who wrote meanwhile found a sync under way; who still writes asks when the write ends.
      let again = self.claimSync(&state)
      state.hasCompany = again || wakeups.count > 1
      state.awaited = state.gathered + wakeups.count
      return (wakeups, again)
    }
    resume(wakeups)
    if again { enqueueSync() }
  }

  // MARK: - Failing and closing

  /// Stops all writing for good, and tells whoever waits. Returns what later callers get.
  func fail(_ error: EngineError) -> EngineError {
    if case .poisoned = error { return stop(with: error) }
    return stop(with: .poisoned(reason: error.description))
  }

  /// Throws what stopped all writing, if anything did.
  func refuseAfterFailure() throws(EngineError) {
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  /// Refuses commits from now on; those placed before still finish.
  func close() {
    _ = stop(with: .closed)
  }

  private func stop(with reason: EngineError) -> EngineError {
    let (wakeups, failure) = state.withLock { state in
      let failure = state.failure ?? reason
      state.failure = failure
      let wakeups: Wakeups =
        state.publishWaiters.map { ($0.1, failure) } + state.syncWaiters.map { ($0.1, failure) }
      state.publishWaiters = []
      state.syncWaiters = []
      return (wakeups, failure)
    }
    resume(wakeups)
    return failure
  }

  private func resume(_ wakeups: Wakeups) {
    for (waiter, failure) in wakeups { waiter.resume(returning: failure) }
  }
}
