// Stages 4 and 5 of the write path: the committer writes a placed commit's frames, the log's thread
// syncs them for all waiting commits, and they are published in order. After a failure nothing more
// is published, and all waiters get the error.

extension Sequencer {
  /// Writes a placed commit's frames on the caller's thread and waits until it is published. Then
  /// notifies the follower, unless another thread is doing so.
  func finish(_ placed: consuming PlacedCommit) async throws(EngineError) {
    let sequence = placed.sequence
    if let write = placed.write.take() {
      try perform(write)
    } else {
      resume(state.withLock { self.publish(&$0) })
    }
    if views.published < sequence, let failure = await waitUntilPublished(sequence) {
      throw failure
    }
    deliverAnnouncements()
  }

  private func perform(_ write: consuming PendingWrite) throws(EngineError) {
    let (log, offset, isSynced) = (write.log, write.offset, write.isSynced)
    let waitsForSync = write.waitsForSync
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
    let end = log.position(of: offset + UInt64(bytes.count))
    FrameMemory.giveBack(bytes)
    if isSynced {
      endSync(through: end, write: start)
    } else {
      endWrite(start, waitsForSync: waitsForSync)
    }
  }

  /// Records a finished write, publishes everything possible, and begins a sync if one is needed.
  /// It syncs on this thread only for a commit that itself waits for the sync. Other waiters, such
  /// as a flush, must not keep a committer that does not wait for as long as the device takes.
  private func endWrite(_ start: LogPosition, waitsForSync: Bool) {
    let (satisfied, startsSync, isCallers) = state.withLock { state in
      state.commits.endWrite(at: start)
      let satisfied = self.publish(&state)
      return (satisfied, self.beginSync(&state), state.sync.isCallers)
    }
    resume(satisfied)
    guard startsSync else { return }
    if waitsForSync, isCallers { syncOnce() } else { enqueueSync() }
  }

  /// Moves the visible sequence on and removes the waiters it satisfies.
  private func publish(_ state: inout State) -> [Waiter] {
    guard state.failure == nil, let published = state.commits.publish() else { return [] }
    views.publish(published)
    return state.publishWaiters.take(through: published)
  }

  private func resume(_ waiters: [Waiter], telling failure: EngineError? = nil) {
    for waiter in waiters { waiter.resume(returning: failure) }
  }

  // MARK: - Waiting

  /// Waits until everything placed so far is published, or nothing more will be.
  func waitUntilAllPublished() async {
    _ = await waitUntilPublished(state.withLock { $0.commits.lastPlaced })
  }

  /// Waits until everything up to `sequence` is published; returns the failure when that will not
  /// happen.
  func waitUntilPublished(_ sequence: SequenceNumber) async -> EngineError? {
    await withCheckedContinuation { waiter in
      let answer: EngineError?? = state.withLock { state in
        if state.commits.published >= sequence { return .some(nil) }
        if let failure = state.failure { return failure }
        state.publishWaiters.add(waiter, for: sequence)
        return .none
      }
      if let answer { waiter.resume(returning: answer) }
    }
  }

  /// Makes everything placed so far survive a power cut.
  func synchronize() async throws(EngineError) {
    let target = try writeDeferred()
    let failure: EngineError? = await withCheckedContinuation { waiter in
      let (answer, startsSync): (EngineError??, Bool) = state.withLock { state in
        if let failure = state.failure { return (failure, false) }
        if state.commits.syncedThrough >= target { return (.some(nil), false) }
        state.syncWaiters.add(waiter, for: target)
        return (.none, self.beginSync(&state))
      }
      if let answer { waiter.resume(returning: answer) }
      if startsSync { enqueueSync() }
    }
    if let failure { throw failure }
  }

  /// The same for the `.periodic` commits among it.
  func synchronizePeriodically() async throws(EngineError) {
    state.withLock { $0.sync.disarm() }
    try await synchronize()
  }

  /// Writes the frames deferred so far and returns the end of everything placed by then. Both are
  /// of one moment: everything placed up to there is written or being written. Frames deferred a
  /// moment later may stay, and no caller may wait for them.
  private func writeDeferred() throws(EngineError) -> LogPosition {
    let (write, end) = state.withLock { (self.takeDeferred(&$0), $0.commits.placedEnd) }
    if let write { try perform(write) }
    return end
  }

  /// Makes the next commit go into the spare log, whatever room is left in the one in use; returns
  /// false when that has no commit yet.
  func leaveLog() throws(EngineError) -> Bool {
    let (write, isLeft) = try state.withLock {
      state throws(EngineError) -> (GroupSync.DeferredWrite?, Bool) in
      if let failure = state.failure { throw failure }
      // Deferred frames stay in the log in which they have their place.
      let write = self.takeDeferred(&state)
      return (write, state.logs.leave(after: state.commits))
    }
    if let write { try perform(write) }
    return isLeft
  }

  private func perform(_ write: GroupSync.DeferredWrite) throws(EngineError) {
    do throws(EngineError) {
      try write.log.file.write(write.bytes.bytes, at: write.offset)
    } catch {
      throw fail(error)
    }
    endWrite(write.start, waitsForSync: false)
  }

  private func takeDeferred(_ state: inout State) -> GroupSync.DeferredWrite? {
    state.failure == nil ? state.sync.takeDeferred(for: state.logs.current) : nil
  }

  // MARK: - Syncing

  /// Whether a sync begun now would satisfy any waiter; then the caller must make it.
  private func beginSync(_ state: inout State) -> Bool {
    state.failure == nil
      && state.sync.begin(
        state.commits, waiting: state.syncWaiters.earliest, isSecured: state.logs.isSecured)
  }

  /// Records that logs up to `number` are found after a power cut; syncs that waited for it begin.
  func noteSecured(_ number: FileNumber) {
    let startsSync = state.withLock { state in
      state.logs.noteSecured(number)
      return self.beginSync(&state)
    }
    if startsSync { enqueueSync() }
  }

  private func enqueueSync() {
    syncWorker.enqueue {
      self.gather()
      self.syncOnce()
    }
  }

  /// Waits on the log's thread while commits arrive, until all awaited ones have.
  private func gather() {
    var (present, patience) = state.withLock {
      ($0.sync.gathered(beyond: -1), $0.sync.patience)
    }
    let start = environment.now()
    while let before = present, environment.now() &- start < patience {
      syncWorker.pause(microseconds: GroupSync.pause)
      present = state.withLock { $0.sync.gathered(beyond: before) }
    }
  }

  /// Group commit, one sync for all waiters: frames that came during the previous sync are written
  /// first, all at once, by a write that syncs itself if nothing else must be synced.
  private func syncOnce() {
    let (gathered, syncedThrough) = state.withLock { state in
      (state.sync.gathered > 0 ? self.takeDeferred(&state) : nil, state.commits.syncedThrough)
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
    let duration = environment.now() &- began
    state.withLock { $0.sync.noteDuration(duration) }
    endSync(through: target, write: write)
  }

  /// Syncs every log that needs it; returns the position up to which everything is on the device.
  private func syncLogs(writtenNow start: LogPosition?) throws(EngineError) -> LogPosition {
    let (target, logs) = state.withLock { state in
      if let start { state.commits.endWrite(at: start) }
      return (state.commits.writtenThrough, state.logs.uncovered)
    }
    for log in logs where log.base < target { try log.file.sync() }
    return target
  }

  /// Makes the log record how far it is on the device, before any caller is told: the last frames
  /// have none after them that would. Not when frames are waiting, because these record it
  /// themselves.
  private func mark(_ target: LogPosition) throws(EngineError) {
    let log = state.withLock { state -> LogFile? in
      state.sync.gathered > 0 ? nil : state.logs.uncovered.last { $0.base < target }
    }
    guard let log else { return }
    let mark = FrameBuilder.buildMark(target, time: environment.now(), salt: log.salt)
    try log.file.write(mark.bytes, at: LogHeader.markOffset)
  }

  /// Records a finished sync, and the write that was part of it, if any.
  private func endSync(through target: LogPosition, write: LogPosition?) {
    do throws(EngineError) {
      try mark(target)
    } catch {
      _ = fail(error)
      return
    }
    let (satisfied, again) = state.withLock { state in
      if let write { state.commits.endWrite(at: write) }
      state.commits.markSynced(through: target)
      state.logs.noteSynced(through: target)
      state.sync.end()
      let satisfied = self.publish(&state) + state.syncWaiters.take(through: target)
      // A write that finished meanwhile found a sync under way; a write still under way checks when
      // it ends.
      let again = self.beginSync(&state)
      state.sync.noteSatisfied(satisfied.count, goesOn: again)
      return (satisfied, again)
    }
    resume(satisfied)
    if again { enqueueSync() }
  }

  // MARK: - Announcements

  func setFollower(_ follower: @escaping Announcements.Follower) {
    state.withLock { $0.announcements.follower = follower }
  }

  /// Delivers the newly visible commits. A thread that finds another one delivering leaves it to
  /// that one.
  func deliverAnnouncements() {
    var next = state.withLock {
      $0.announcements.take(through: $0.commits.published, goingOn: false)
    }
    while let (announcements, follower) = next {
      for announcement in announcements { follower(announcement) }
      next = state.withLock {
        $0.announcements.take(through: $0.commits.published, goingOn: true)
      }
    }
  }

  /// Whether the follower has received all commits up to `sequence`.
  func hasAnnounced(through sequence: SequenceNumber) -> Bool {
    state.withLock { $0.announcements.isDone(through: sequence) }
  }

  // MARK: - Failing and closing

  /// Stops all writing permanently, and notifies all waiters. Returns the error for later callers.
  func fail(_ error: EngineError) -> EngineError {
    if case .poisoned = error { return stop(with: error) }
    return stop(with: .poisoned(reason: error.description))
  }

  /// Throws the error that stopped all writing, if any.
  func refuseAfterFailure() throws(EngineError) {
    if let failure { throw failure }
  }

  /// The error that stopped all writing; `.closed` when there was none.
  var failure: EngineError? { state.withLock { $0.failure } }

  /// Places nothing more; placed commits are still completed.
  func refuseCommits() {
    state.withLock { $0.isClosing = true }
  }

  var isClosing: Bool { state.withLock { $0.isClosing } }

  /// Refuses commits from now on; those placed before are still completed.
  func close() {
    _ = stop(with: .closed)
  }

  private func stop(with reason: EngineError) -> EngineError {
    let (waiters, failure) = state.withLock { state in
      let failure = state.failure ?? reason
      state.failure = failure
      return (state.publishWaiters.takeAll() + state.syncWaiters.takeAll(), failure)
    }
    resume(waiters, telling: failure)
    return failure
  }
}
