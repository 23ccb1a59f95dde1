// Stage 3 to 5 of the write path: the one place where commits get their order. Placing a commit
// happens under one lock, without I/O and without suspension: refuse what was derived from rows
// that have changed since, give out sequence, time and log offset, insert into the memtables. Then
// the committer writes its own frames, outside the lock, or leaves them to the sync that follows
// the one under way; the log's thread syncs for all who wait; and commits are published in order.
//
// After a failed write or sync nothing is written any more: `failure` is set, whoever waits is
// told, and only opening the database again, which trusts no cached page, goes on.

/// Puts commits in order.
final class Sequencer: Sendable {
  struct State {
    var commits: CommitState
    /// What they take for the time.
    var clock: CommitClock
    var log: LogFile?
    /// Offset of the next frame in `log`.
    var offset: UInt64 = 0
    /// Bytes of `log` for which the disk has given room.
    var reserved: UInt64 = 0
    /// What the disk had no space for: until there is some again only batches that free space are
    /// placed.
    var lackOfSpace: EngineError?
    /// Where the last log ended, for the next one's header.
    var previousLog: FileNumber
    var previousLength: UInt64
    var spare: SpareLog?
    var sparePromised = false
    /// Why the last attempt to make a log failed.
    var spareFailure: EngineError?
    /// Bytes of zeros of the next log that is written ahead.
    var nextPrewritten: UInt64
    /// Logs up to this one are found after a power cut.
    var securedLog: FileNumber
    /// Logs left behind that a sync must still cover, oldest first.
    var unsyncedLogs: [LogFile] = []
    /// Frames put off, not yet written, and where they begin: those of `.memory` commits, and of
    /// `.power` commits that came while a sync was under way.
    var deferred: [UInt8] = []
    var deferredOffset: UInt64 = 0
    /// `.power` commits among them; the end of the sync sees to those.
    var gathered = 0
    /// As many as there will be once all whom the last sync satisfied commit again.
    var awaited = 0
    /// Microseconds that the last sync took.
    var syncDuration: Int64 = 0
    var publishWaiters: [(SequenceNumber, Waiter)] = []
    var syncWaiters: [(LogPosition, Waiter)] = []
    var isSyncing = false
    /// Whether commits have lately waited for each other's syncs. One that is alone syncs on its
    /// own thread; among several that would only keep a thread of the pool from the others.
    var hasCompany = false
    /// What the log in use was used for, by which the next one is made.
    var use = LogUse()
    /// When the sync is due that `.periodic` commits wait for.
    var periodicDeadline: Int64?
    /// The keys of what was flushed lately, and the last commit when a guarded one came.
    var recentKeys: RecentKeys
    var lastGuarded: SequenceNumber?
    /// Where each log since the floor begins.
    var starts: [LogStart]
    /// What is kept of the logs before those.
    var history: History?
    var announcements = Announcements()
    /// Set by closing: nothing new is placed.
    var isClosing = false
    var failure: EngineError?
  }

  typealias Waiter = CheckedContinuation<EngineError?, Never>
  /// Continuations to resume once the lock is free, and what to tell them.
  typealias Wakeups = [(Waiter, EngineError?)]

  let state: Guarded<State>
  let views: ViewHolder
  let environment: Environment
  let options: EngineOptions
  let identity: DatabaseIdentity
  let syncWorker: any Worker
  let spareMemory: SpareMemory

  /// - Parameter refusal: what every commit gets, where none is taken.
  init(
    recovered: RecoveredLog, views: ViewHolder, environment: Environment, options: EngineOptions,
    identity: DatabaseIdentity, syncWorker: any Worker, cache: BlockCache,
    refusal: EngineError? = nil
  ) {
    state = Guarded(
      State(
        commits: CommitState(
          sequence: recovered.sequence, time: recovered.time, end: recovered.end),
        clock: CommitClock(now: environment.now(), uptime: environment.uptime()),
        previousLog: recovered.number, previousLength: recovered.length,
        nextPrewritten: UInt64(min(options.firstPrewrittenSize, options.logSize)),
        securedLog: recovered.number,
        recentKeys: RecentKeys(
          shardCount: views.current.shards.count, limitBytes: options.recentKeysSize),
        starts: recovered.starts, history: recovered.history, failure: refusal))
    self.views = views
    self.environment = environment
    self.options = options
    self.identity = identity
    self.syncWorker = syncWorker
    spareMemory = SpareMemory(
      sizes: Memtable.size(
        forCapacity: options.memtableSize)...Memtable.size(
          forCapacity: options.largestMemtableSize), budget: cache)
  }

  // MARK: - Placing

  /// Gives `batch` its place. On `.placed` the batch's bytes are gone from it.
  func place(_ batch: inout Batch, _ durability: Durability) throws(EngineError) -> Placement {
    var check = RangeCheck()
    var checks = 0
    while true {
      let now = environment.now()
      var work: RangeWork?
      let placement = try state.withLock { state throws(EngineError) -> Placement? in
        if let failure = state.failure { throw failure }
        if state.isClosing { throw .closed }
        if state.lackOfSpace != nil, !batch.freesSpace { return .needsReserve }
        let view = views.current
        if batch.isGuarded { state.lastGuarded = state.commits.lastPlaced }
        work = try refuseStale(batch, state, view, check, now: checks == Self.mostChecks)
        if work != nil { return nil }
        if let placement = makeReady(state, batch, view) { return placement }
        return .placed(append(&state, &batch, durability, view, now: now))
      }
      if let placement { return placement }
      if let work { try self.check(batch, work, &check) }
      checks += 1
    }
  }

  /// Makes sure of a log and of memtables with room; answers with what to wait for.
  private func makeReady(
    _ state: borrowing State, _ batch: borrowing Batch, _ view: View
  ) -> Placement? {
    if mustMakeLog(state, length: batch.payloadLength) { return .needsLog }
    let length = FrameBuilder.length(ofPayload: batch.payloadLength)
    if let space = missingSpace(state, length: length) { return .needsSpace(space) }
    var waiting: Int?
    batch.groups.forEachShard(of: view.shards.count) { index in
      let shard = view.shards[index]
      if shard.sealed.count >= options.sealedMemtables, !hasRoom(shard.active, batch) {
        waiting = index
      }
    }
    return waiting.map { .needsRoom(shard: $0) }
  }

  private func hasRoom(_ memtable: Memtable, _ batch: Batch) -> Bool {
    memtable.hasRoom(forRows: batch.operationCount, bytes: batch.rowsLength)
  }

  private func append(
    _ state: inout State, _ batch: inout Batch, _ durability: Durability, _ view: View, now: Int64
  ) -> PlacedCommit {
    let length = FrameBuilder.length(ofPayload: batch.payloadLength)
    var sealed = switchLogWhenFull(&state, length: length)
    var view = sealed.isEmpty ? view : views.current
    if sealFullMemtables(batch, view, &sealed) { view = views.current }
    guard let log = state.log else { preconditionFailure("a log was made sure of") }
    let header = state.offset == 0 ? logHeader(log, state).encode() : []
    if !header.isEmpty { state.offset = UInt64(header.count) }

    let offset = state.offset
    let end = offset + UInt64(length)
    let time = state.commits.nextTime(
      now: state.clock.time(now, uptime: environment.uptime))
    let operations = batch.operationCount
    let syncedThrough = state.commits.syncedThrough
    let sequence = state.commits.place(
      time: time, end: log.position(of: end), durability: durability)
    state.offset = end
    if let note = batch.note {
      state.announcements.add(Announcement(sequence: sequence, time: time, note: note))
    }
    let frame = batch.takeFrame(stampedWith: sequence, time: time)
    insert(frame, sequence, log.number, groups: batch.groups, view)

    let write = PendingWrite(
      log: log, offset: offset - UInt64(header.count), prefix: header, frame: frame,
      operations: operations,
      context: FrameContext(sequence: sequence, time: time, syncedThrough: syncedThrough))
    return PlacedCommit(
      sequence: sequence, time: time, write: startWrite(&state, write, durability, end: end),
      sealedShards: sealed, spareRequest: promiseSpare(&state),
      syncDelay: armPeriodicSync(&state, durability, now: now))
  }

  /// Joins `write` with the frames put off before it, or puts it off too when its durability allows
  /// that and not much waits already.
  private func startWrite(
    _ state: inout State, _ write: consuming PendingWrite, _ durability: Durability, end: UInt64
  ) -> PendingWrite? {
    if state.deferred.isEmpty {
      state.deferredOffset = write.offset
      state.commits.beginWrite(at: write.log.position(of: write.offset))
    }
    if mayPutOff(write, state, durability, length: end - state.deferredOffset) {
      state.deferred += write.build()
      if durability == .power { state.gathered += 1 }
      return nil
    }
    write.offset = state.deferredOffset
    if !state.deferred.isEmpty {
      write.prefix = state.deferred + write.prefix
      state.deferred = []
      state.gathered = 0
    }
    write.isSynced = durability == .power && claimRangeSync(&state, from: write)
    return write
  }

  private func insert(
    _ frame: [UInt8], _ sequence: SequenceNumber, _ log: FileNumber, groups: KeyspaceGroups,
    _ view: View
  ) {
    groups.forEachShard(of: view.shards.count) { index in
      view.shards[index].active.begin(sequence, log: log)
    }
    let memtables = groups.others.isEmpty ? [] : view.shards.map(\.active)
    let only = view.shards[Int(groups.first ?? 0) % view.shards.count].active
    let payload = frame.bytes.extracting(droppingFirst: FrameHeader.length)
    var reader = OperationReader(payload)
    do throws(MalformedBytes) {
      while let operation = try reader.next() {
        let memtable =
          memtables.isEmpty
          ? only : memtables[View.shardIndex(of: operation.key, count: memtables.count)]
        memtable.add(operation.key, sequence, operation.kind, operation.value)
      }
    } catch {
      preconditionFailure("a batch of our own making cannot be malformed: \(error)")
    }
    if memtables.isEmpty { return only.link() }
    for memtable in memtables { memtable.link() }
  }

  /// Swaps in an empty memtable wherever the batch would not fit, and adds the shards whose
  /// memtables now wait for their flush to `sealed`; answers whether the view has changed.
  private func sealFullMemtables(
    _ batch: borrowing Batch, _ view: View, _ sealed: inout [Int]
  ) -> Bool {
    var isChanged = false
    let (rows, bytes) = (batch.operationCount, batch.rowsLength)
    batch.groups.forEachShard(of: view.shards.count) { index in
      if view.shards[index].active.hasRoom(forRows: rows, bytes: bytes) { return }
      if !view.shards[index].active.isEmpty { sealed.append(index) }
      let usual = view.memtableSize(after: index, options)
      seal(shard: index, capacity: max(usual, bytes + rows * Memtable.nodeOverhead))
      isChanged = true
    }
    return isChanged
  }

  /// Puts an empty memtable in the place of the shard's active one, which waits for its flush if it
  /// holds rows.
  func seal(shard index: Int, capacity: Int) {
    let active = Memtable(capacity: capacity, from: spareMemory)
    views.update(shard: index) { $0.sealing(into: active) }
  }

  // MARK: - Upkeep

  /// Seals every memtable that holds rows.
  func sealAll() {
    state.withLock { _ in
      for (index, shard) in views.current.shards.enumerated() where !shard.active.isEmpty {
        seal(shard: index, capacity: 0)
      }
    }
  }

  /// Seals a shard's memtable, when it holds rows.
  func sealActive(of shard: Int) {
    state.withLock { _ in
      if !views.current.shards[shard].active.isEmpty { seal(shard: shard, capacity: 0) }
    }
  }

  /// Places nothing more; what is placed still finishes.
  func refuseCommits() {
    state.withLock { $0.isClosing = true }
  }

  var isClosing: Bool { state.withLock { $0.isClosing } }

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
