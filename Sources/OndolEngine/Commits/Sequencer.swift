// Stage 3 of the write path: the one place where commits get their order. Placing a commit happens
// under one lock, without I/O and without suspension: it refuses a batch derived from rows that
// have changed since, assigns sequence, time and log offset, and inserts into the memtables. Then
// the committer writes its own frames, outside the lock, or leaves them to the sync after the one
// under way: see `finish`, in Sequencer+Finishing.
//
// The state of commits, logs and syncs is in values of their own, under the one lock: this class
// calls them, and acts on their results.

/// Puts commits in order.
final class Sequencer: Sendable {
  struct State {
    var commits: CommitState
    /// The clock for commit times.
    var clock: CommitClock
    var logs: LogSpace
    var sync: GroupSync
    var recentKeys: RecentKeys
    /// Waiters for visible commits, and waiters for synced bytes of the log.
    var publishWaiters = WaitLine<SequenceNumber, Waiter>()
    var syncWaiters = WaitLine<LogPosition, Waiter>()
    var announcements = Announcements()
    /// What the disk had no space for: until there is space again, only batches that free space are
    /// placed.
    var lackOfSpace: EngineError?
    /// Set by closing: nothing new is placed.
    var isClosing = false
    /// After a failed write or sync nothing is written any more: all waiters get the error, and
    /// only the next open, which trusts no cached page, can continue.
    var failure: EngineError?
  }

  typealias Waiter = CheckedContinuation<EngineError?, Never>

  let state: Guarded<State>
  let views: ViewHolder
  let environment: Environment
  let options: EngineOptions
  let syncWorker: any Worker
  let memtableMemory: MemtableMemory
  /// - Parameter refusal: the error for every commit, when none is accepted.
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
        logs: LogSpace(recovered, identity: identity, options), sync: GroupSync(options),
        recentKeys: RecentKeys(
          shardCount: views.current.shards.count, limitBytes: options.recentKeysSize),
        failure: refusal))
    self.views = views
    self.environment = environment
    self.options = options
    self.syncWorker = syncWorker
    memtableMemory = MemtableMemory(
      sizes: Memtable.size(
        forCapacity: options.memtableSize)...Memtable.size(
          forCapacity: options.largestMemtableSize),
      limit: cache.budgetBytes / 8, budget: cache)
  }

  // MARK: - Placing

  /// Gives `batch` its place. After `.placed`, the batch's bytes have been moved out.
  func place(_ batch: inout Batch, _ durability: Durability) throws(EngineError) -> Placement {
    var check = GuardCheck()
    while true {
      let now = environment.now()
      let placement = try state.withLock { state throws(EngineError) -> Placement? in
        if let failure = state.failure { throw failure }
        if state.isClosing { throw .closed }
        if state.lackOfSpace != nil, !batch.freesSpace { return .needsReserve }
        let view = views.current
        if batch.isGuarded {
          let lastPlaced = state.commits.lastPlaced
          state.recentKeys.noteGuard(behind: lastPlaced)
          guard try check.isKnown(batch, lastPlaced, view, state.recentKeys) else { return nil }
        }
        if let shard = fullShard(for: batch, view) { return .needsRoom(shard: shard) }
        let answer = state.logs.place(
          FrameLength(of: batch), after: state.commits,
          isPuttingOff: state.sync.isPuttingOff)
        switch answer {
        case .needsLog: return .needsLog
        case .needsSpace(let space): return .needsSpace(space)
        case .place(let place):
          return .placed(append(&state, &batch, durability, place, view, now: now))
        }
      }
      if let placement { return placement }
      try check.look(batch)
    }
  }

  /// A shard whose memtables are all full, and of which the batch would need another one.
  private func fullShard(for batch: borrowing Batch, _ view: View) -> Int? {
    var full: Int?
    let (rows, bytes) = (batch.operationCount, batch.rowsLength)
    batch.groups.forEachShard(of: view.shards.count) { index in
      let shard = view.shards[index]
      if shard.sealed.count >= options.sealedMemtables,
        !shard.active.hasRoom(forRows: rows, bytes: bytes)
      {
        full = index
      }
    }
    return full
  }

  /// Makes a commit of the batch, whose frames have their place in the log.
  private func append(
    _ state: inout State, _ batch: inout Batch, _ durability: Durability, _ place: LogSpace.Place,
    _ view: View, now: Int64
  ) -> PlacedCommit {
    var sealed = place.overdue.map(sealMemtables) ?? []
    var view = sealed.isEmpty ? view : views.current
    if sealFullMemtables(batch, view, &sealed) { view = views.current }

    let time = state.commits.nextTime(
      now: state.clock.time(now, uptime: environment.uptime))
    let (operations, isKeyed) = (batch.operationCount, !batch.keyed.isEmpty)
    let syncedThrough = state.commits.syncedThrough
    let sequence = state.commits.place(
      time: time, end: place.log.position(of: place.end), durability: durability,
      writtenFrom: state.sync.isPuttingOff ? nil : place.log.position(of: place.offset))
    if let note = batch.note {
      state.announcements.add(Announcement(sequence: sequence, time: time, note: note))
    }
    let frame = batch.takeFrame(stampedWith: sequence, time: time)
    insert(frame, sequence, place.log.number, groups: batch.groups, view)

    let write = PendingWrite(
      log: place.log, offset: place.offset, prefix: place.header, frame: frame,
      operations: operations, isKeyed: isKeyed,
      context: FrameContext(sequence: sequence, time: time, syncedThrough: syncedThrough),
      waitsForSync: durability == .power)
    return PlacedCommit(
      sequence: sequence, time: time,
      write: state.sync.take(
        write, durability, through: place.end, isSecured: state.logs.isSecured),
      sealedShards: sealed, spareRequest: place.spareRequest,
      syncDelay: state.sync.arm(durability, now: now))
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

  // MARK: - Sealing

  /// Seals the memtables with rows that came with `log` or before; returns their shards.
  private func sealMemtables(overdueFrom log: FileNumber) -> [Int] {
    let view = views.current
    let overdue = view.shards.indices.filter { index in
      view.shards[index].active.firstLog.map { $0 <= log } ?? false
    }
    for index in overdue { seal(shard: index, capacity: 0) }
    return overdue
  }

  /// Swaps in an empty memtable wherever the batch would not fit, and adds the shards whose
  /// memtables now wait for their flush to `sealed`; returns whether the view has changed.
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

  /// Replaces the shard's active memtable with an empty one; the old one waits for its flush if it
  /// holds rows.
  private func seal(shard index: Int, capacity: Int) {
    let active = Memtable(capacity: capacity, from: memtableMemory)
    views.update(shard: index) { $0.sealing(into: active) }
  }

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
}
