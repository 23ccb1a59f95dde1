// Stage 3 to 5 of the write path: the one place where commits get their order. Placing a commit
// happens under one lock, without I/O and without suspension: refuse what was derived from rows
// that have changed since, give out sequence, time and log offset, insert into the memtables. Then
// the committer writes its own frames, outside the lock; the log's thread syncs for all who wait;
// and commits are published in order.
//
// After a failed write or sync nothing is written any more: `failure` is set, whoever waits is
// told, and only opening the database again, which trusts no cached page, goes on.

internal import Synchronization

/// A commit that has its place and still needs writing.
struct PlacedCommit: Sendable {
  var sequence: SequenceNumber
  var time: Int64
  /// What to write and where; nil when the frames were put off.
  var write: PendingWrite?
  /// Shards whose memtable this commit filled.
  var sealedShards: [Int]
  /// The log has passed half its size and wants a successor.
  var wantsSpareLog: Bool
}

/// Bytes on their way into a log.
struct PendingWrite: Sendable {
  var log: LogFile
  /// The offset of `prefix`, or of `frame` where there is none.
  var offset: UInt64
  /// A new log's header, or frames put off by earlier commits.
  var prefix: [UInt8]
  /// The batch's bytes with room for the frame's header.
  var frame: [UInt8]
  var operations: Int
  var context: FrameContext

  /// Makes the bytes to write: checksums are computed here, outside any lock.
  consuming func build() -> [UInt8] {
    let frames = FrameBuilder.build(
      frame, operations: operations, context, salt: log.salt,
      offset: offset + UInt64(prefix.count))
    return prefix.isEmpty ? frames : prefix + frames
  }
}

/// What placing a batch came to.
enum Placement: Sendable {
  case placed(PlacedCommit)
  /// There is no log to write to: make one and try again.
  case needsLog
  /// A shard's sealed memtables wait for their flush: wait for one, and try again.
  case needsRoom(shard: Int)
}

/// Puts commits in order.
final class Sequencer: Sendable {
  private struct State {
    var commits: CommitState
    var log: LogFile?
    /// Offset of the next frame in `log`.
    var offset: UInt64 = 0
    /// Where the last log ended, for the next one's header.
    var previousLog: FileNumber
    var previousLength: UInt64
    var spare: SpareLog?
    var sparePromised = false
    /// Logs left behind that a sync must still cover, oldest first.
    var unsyncedLogs: [LogFile] = []
    /// Frames of `.memory` commits, not yet written, and where they begin.
    var deferred: [UInt8] = []
    var deferredOffset: UInt64 = 0
    var publishWaiters: [(SequenceNumber, Waiter)] = []
    var syncWaiters: [(LogPosition, Waiter)] = []
    var isSyncing = false
    /// Where each log since the floor begins.
    var starts: [LogStart]
    /// Set by closing: nothing new is placed.
    var isClosing = false
    var failure: EngineError?
  }

  private typealias Waiter = CheckedContinuation<EngineError?, Never>
  /// Continuations to resume once the lock is free, and what to tell them.
  private typealias Wakeups = [(Waiter, EngineError?)]

  private let state: Guarded<State>
  private let views: ViewHolder
  private let environment: Environment
  private let options: EngineOptions
  private let identity: DatabaseIdentity
  private let syncWorker: any Worker

  init(
    recovered: RecoveredLog, views: ViewHolder, environment: Environment, options: EngineOptions,
    identity: DatabaseIdentity, syncWorker: any Worker
  ) {
    state = Guarded(
      State(
        commits: CommitState(
          sequence: recovered.sequence, time: recovered.time, end: recovered.end),
        previousLog: recovered.number, previousLength: recovered.length,
        starts: recovered.starts))
    self.views = views
    self.environment = environment
    self.options = options
    self.identity = identity
    self.syncWorker = syncWorker
  }

  // MARK: - Placing

  /// Gives `batch` its place. On `.placed` the batch's bytes are gone from it.
  func place(_ batch: inout Batch, _ durability: Durability) throws(EngineError) -> Placement {
    let time = environment.now()
    return try state.withLock { state throws(EngineError) -> Placement in
      if let failure = state.failure { throw failure }
      if state.isClosing { throw .closed }
      try refuseStale(batch, state)
      if let placement = makeReady(&state, batch) { return placement }
      return .placed(append(&state, &batch, durability, now: time))
    }
  }

  /// Throws `.stale` when a guarded row was changed after the batch's basis.
  private func refuseStale(_ batch: Batch, _ state: State) throws(EngineError) {
    guard let basis = batch.basis, basis < state.commits.lastPlaced else { return }
    let view = views.current
    for key in batch.guardedKeys {
      let shard = view.shards[view.shardIndex(of: key.bytes)]
      // What is flushed is no longer told apart by sequence: derive again rather than guess.
      if shard.flushedThrough > basis { throw .stale }
      for memtable in [shard.active] + shard.sealed {
        if let newest = memtable.newestSequence(of: key.bytes), newest > basis { throw .stale }
      }
    }
  }

  /// Makes sure of a log and of memtables with room; answers with what to wait for.
  private func makeReady(_ state: inout State, _ batch: Batch) -> Placement? {
    guard state.log != nil || state.spare != nil else { return .needsLog }
    let view = views.current
    for group in batch.groups {
      let index = Int(group) % view.shards.count
      let shard = view.shards[index]
      if !shard.active.hasRoom(forRows: batch.operationCount, bytes: batch.payloadLength),
        shard.sealed.count >= options.sealedMemtables
      {
        return .needsRoom(shard: index)
      }
    }
    return nil
  }

  private func append(
    _ state: inout State, _ batch: inout Batch, _ durability: Durability, now: Int64
  ) -> PlacedCommit {
    let sealed = switchLogWhenFull(&state) + sealFullMemtables(batch)
    guard let log = state.log else { preconditionFailure("a log was made sure of") }
    let header = state.offset == 0 ? logHeader(log, state).encode() : []
    if !header.isEmpty { state.offset = UInt64(header.count) }

    let offset = state.offset
    let end = offset + UInt64(FrameBuilder.length(ofPayload: batch.payloadLength))
    let time = state.commits.nextTime(now: now)
    let operations = batch.operationCount
    let syncedThrough = state.commits.syncedThrough
    let sequence = state.commits.place(
      time: time, end: log.position(of: end), durability: durability)
    state.offset = end
    let frame = batch.takeFrame(stampedWith: sequence, time: time)
    insert(frame, sequence, log.number, groups: batch.groups)

    let write = PendingWrite(
      log: log, offset: offset - UInt64(header.count), prefix: header, frame: frame,
      operations: operations,
      context: FrameContext(sequence: sequence, time: time, syncedThrough: syncedThrough))
    return PlacedCommit(
      sequence: sequence, time: time, write: startWrite(&state, write, durability, end: end),
      sealedShards: sealed, wantsSpareLog: promiseSpare(&state))
  }

  /// Joins `write` with the frames put off before it, or puts it off too when its durability allows
  /// that and not much waits already.
  private func startWrite(
    _ state: inout State, _ write: PendingWrite, _ durability: Durability, end: UInt64
  ) -> PendingWrite? {
    var write = write
    if state.deferred.isEmpty {
      state.deferredOffset = write.offset
      state.commits.beginWrite(at: write.log.position(of: write.offset))
    }
    if durability == .memory, end - state.deferredOffset < options.deferredBytes {
      state.deferred += write.build()
      return nil
    }
    write.offset = state.deferredOffset
    write.prefix = state.deferred + write.prefix
    state.deferred = []
    return write
  }

  private func insert(
    _ frame: [UInt8], _ sequence: SequenceNumber, _ log: FileNumber, groups: [UInt32]
  ) {
    let memtables = views.current.shards.map(\.active)
    for group in groups { memtables[Int(group) % memtables.count].begin(sequence, log: log) }
    let payload = frame.bytes.extracting(droppingFirst: FrameHeader.length)
    var reader = OperationReader(payload)
    do throws(MalformedBytes) {
      while let operation = try reader.next() {
        memtables[View.shardIndex(of: operation.key, count: memtables.count)].insert(
          operation.key, sequence, operation.kind, operation.value)
      }
    } catch {
      preconditionFailure("a batch of our own making cannot be malformed: \(error)")
    }
  }

  /// Swaps in an empty memtable wherever the batch would not fit; returns those shards.
  private func sealFullMemtables(_ batch: Batch) -> [Int] {
    let view = views.current
    var sealed: [Int] = []
    for group in batch.groups {
      let index = Int(group) % view.shards.count
      let memtable = view.shards[index].active
      guard !sealed.contains(index),
        !memtable.hasRoom(forRows: batch.operationCount, bytes: batch.payloadLength)
      else { continue }
      let needed = batch.payloadLength + batch.operationCount * Memtable.nodeOverhead
      if seal(shard: index, capacity: max(options.memtableSize, needed)) { sealed.append(index) }
    }
    return sealed
  }

  /// Puts an empty memtable in the place of the shard's active one; false when that was empty
  /// itself and could simply be replaced.
  private func seal(shard index: Int, capacity: Int) -> Bool {
    let active = Memtable(capacity: capacity)
    return views.update { view in
      let shard = view.shards[index]
      return (
        view.replacing(shard: index, with: shard.sealing(into: active)), !shard.active.isEmpty
      )
    }
  }

  // MARK: - Logs

  /// Goes on in the spare log when this one is full or there is none. Memtables whose oldest rows
  /// are two logs back are sealed, so that logs do not pile up behind a shard that is seldom
  /// written.
  private func switchLogWhenFull(_ state: inout State) -> [Int] {
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
    return view.shards.indices.filter { index in
      guard let first = view.shards[index].active.firstLog, first < state.previousLog else {
        return false
      }
      return seal(shard: index, capacity: options.memtableSize)
    }
  }

  private func logHeader(_ log: LogFile, _ state: State) -> LogHeader {
    LogHeader(
      number: log.number, identity: identity, salt: log.salt, kind: .normal, base: log.base,
      previous: state.previousLog, previousLength: state.previousLength,
      firstSequence: state.commits.lastPlaced.next)
  }

  /// True once for every log, when it has passed half its size.
  private func promiseSpare(_ state: inout State) -> Bool {
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

  var hasSpareLog: Bool {
    state.withLock { $0.spare != nil }
  }

  /// The oldest log that recovery would need if `memtable` were flushed. Logs before it are
  /// forgotten.
  func floor(without memtable: Memtable) -> LogStart {
    state.withLock { state in
      let held = views.current.shards.flatMap { [$0.active] + $0.sealed }
        .filter { $0 !== memtable }.compactMap(\.firstLog).min()
      let floor = held ?? state.log?.number ?? state.previousLog
      state.starts.removeAll { $0.number < floor }
      guard let start = state.starts.first else { preconditionFailure("the floor is a log") }
      return start
    }
  }

  // MARK: - Writing and publishing

  /// Writes a placed commit's frames on the caller's thread and waits until it is published.
  func finish(_ placed: consuming PlacedCommit) async throws(EngineError) {
    let sequence = placed.sequence
    if let write = placed.write.take() {
      let start = write.log.position(of: write.offset)
      let log = write.log
      let offset = write.offset
      let bytes = write.build()
      do throws(EngineError) {
        try log.file.write(bytes.bytes, at: offset)
      } catch {
        throw fail(error)
      }
      endWrite(start)
    } else {
      publish()
    }
    if views.published >= sequence { return }
    if let failure = await waitUntilPublished(sequence) { throw failure }
  }

  /// Notes a finished write, publishes what can be, and begins a sync where one is waited for.
  private func endWrite(_ start: LogPosition) {
    let (wakeups, startsSync) = state.withLock { state in
      state.commits.endWrite(at: start)
      return (self.publish(&state), self.claimSync(&state))
    }
    resume(wakeups)
    if startsSync { enqueueSync() }
  }

  private func publish() {
    resume(state.withLock { self.publish(&$0) })
  }

  /// Moves the visible sequence on and takes out the waiters it satisfies.
  private func publish(_ state: inout State) -> Wakeups {
    guard state.failure == nil, let published = state.commits.publish() else { return [] }
    views.publish(published)
    guard !state.publishWaiters.isEmpty else { return [] }
    var wakeups: Wakeups = []
    state.publishWaiters.removeAll { waiter in
      guard waiter.0 <= published else { return false }
      wakeups.append((waiter.1, nil))
      return true
    }
    return wakeups
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
    try writeDeferred()
    let target = state.withLock { $0.commits.placedEnd }
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

  private func writeDeferred() throws(EngineError) {
    let write: (LogFile, UInt64, [UInt8])? = state.withLock { state in
      guard !state.deferred.isEmpty, let log = state.log else { return nil }
      defer { state.deferred = [] }
      return (log, state.deferredOffset, state.deferred)
    }
    guard let (log, offset, bytes) = write else { return }
    do throws(EngineError) {
      try log.file.write(bytes.bytes, at: offset)
    } catch {
      throw fail(error)
    }
    endWrite(log.position(of: offset))
  }

  /// Whether a sync begun now would satisfy anybody; then it is the caller's to begin.
  private func claimSync(_ state: inout State) -> Bool {
    let reachable = state.commits.writtenThrough
    guard !state.isSyncing, state.failure == nil,
      state.commits.wantsSync || state.syncWaiters.contains(where: { $0.0 <= reachable })
    else { return false }
    state.isSyncing = true
    return true
  }

  private func enqueueSync() {
    syncWorker.enqueue { self.syncOnce() }
  }

  /// One sync for all who wait: natural group commit.
  private func syncOnce() {
    let (target, logs) = state.withLock { state in
      (state.commits.writtenThrough, state.unsyncedLogs + [state.log].compactMap { $0 })
    }
    do throws(EngineError) {
      for log in logs where log.base < target { try log.file.sync() }
    } catch {
      _ = fail(error)
      return
    }
    let (wakeups, again) = state.withLock { state in
      state.isSyncing = false
      state.commits.markSynced(through: target)
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
      return (wakeups, self.claimSync(&state))
    }
    resume(wakeups)
    if again { enqueueSync() }
  }

  // MARK: - Failing and closing

  /// Stops all writing for good, and tells whoever waits. Returns what later callers get.
  func fail(_ error: EngineError) -> EngineError {
    let poisoned = EngineError.poisoned(reason: error.description)
    return stop(with: poisoned)
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

  // MARK: - Upkeep

  /// Seals every memtable that holds rows.
  func sealAll() {
    state.withLock { _ in
      for (index, shard) in views.current.shards.enumerated() where !shard.active.isEmpty {
        _ = seal(shard: index, capacity: options.memtableSize)
      }
    }
  }

  /// Places nothing more; what is placed still finishes.
  func refuseCommits() {
    state.withLock { $0.isClosing = true }
  }

  /// Whether a log was written to since the database was opened.
  var hasWritten: Bool { state.withLock { $0.log != nil } }

  /// Where the line of commits ends.
  var end: RecoveredLog {
    state.withLock { state in
      RecoveredLog(
        sequence: state.commits.lastPlaced, time: state.commits.lastTime,
        end: state.commits.placedEnd, number: state.log?.number ?? state.previousLog,
        length: state.log == nil ? state.previousLength : state.offset, starts: state.starts)
    }
  }
}
