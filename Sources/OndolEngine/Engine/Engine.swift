// The lower floor's entry point: open a directory, commit batches, take snapshots, close. Start
// reading here.
//
// A write: `commit` places the batch (Sequencer: order, memtables), writes its frames to the log on
// the caller's thread, waits for a sync when its durability requires one, and returns once it is
// published. A read: `snapshot` takes a view and the visible sequence; everything after that needs
// no coordination. Upkeep: shards flush full memtables into segments and merge segments, see
// Upkeep.

internal import Synchronization

/// An open database: ordered rows that survive a crash.
package final class Engine: Sendable {
  let storage: Storage
  let upkeep: Upkeep
  /// Background tasks of the upper floor.
  private let workAbove: BackgroundTasks
  private let reads: ReadingThreads
  private let logWorker: any Worker
  /// Refreshes the shown files, in an engine that only reads.
  let follower: Follower?
  /// Sends and follows commits, in an engine whose rows a store has.
  let remote: RemoteSession?
  /// Bytes stored beside the rows.
  package let contents: Contents
  let isClosed = Atomic(false)

  init(
    storage: Storage, logWorker: any Worker, reads: ReadingThreads, follower: Follower? = nil,
    remote: RemoteSession? = nil
  ) {
    self.storage = storage
    self.logWorker = logWorker
    self.reads = reads
    self.follower = follower
    self.remote = remote
    workAbove = BackgroundTasks(executor: storage.environment.executor)
    upkeep = Upkeep(storage)
    contents = Contents(
      storage,
      refusal: follower != nil ? .readOnly : nil,
      parts: remote.map { RemoteParts($0, environment: storage.environment) })
    if follower == nil, remote == nil { upkeep.start() }
    reads.patience.withLock { $0 = remote?.patience }
    remote?.start()
  }

  deinit {
    // If the database was not closed, merges end soon.
    if !isClosed.load(ordering: .relaxed) {
      remote?.abandon()
      upkeep.abandon()
      workAbove.cancel()
    }
  }

  // MARK: - Opening

  /// Opens the database in the directory at `path`, and makes one when there is none. Recovers what
  /// a crash left. Reads the superblock, the manifest and the logs; no segment is touched.
  ///
  /// For reading only, nothing is made, written or locked, and as many files as possible are opened
  /// at once, because a writer may be working beside it. The data shown stays unchanged until
  /// `refresh()`.
  @concurrent
  package static func open(
    at path: String, options: EngineOptions = EngineOptions(), environment: Environment = .live(),
    access: FileAccess = .readWrite
  ) async throws(EngineError) -> Engine {
    let environment = environment.forDatabase()
    let maintenance = environment.threads.makeWorker(named: "ondol-upkeep", for: .upkeep)
    let logWorker = environment.threads.makeWorker(named: "ondol-log", for: .syncs)
    do throws(EngineError) {
      if access == .readOnly {
        return try await maintenance.perform { () throws(EngineError) in
          try Follower.openEngine(
            at: path, options: options, environment: environment, maintenance: maintenance,
            logWorker: logWorker)
        }
      }
      let claim = try DirectoryClaim(
        path: path, fileLimit: options.fileLimit, environment: environment)
      let opening =
        if let log = claim.readSmallLog() {
          try Opening(claim, log: log, options: options, environment: environment)
        } else {
          try await maintenance.perform { () throws(EngineError) in
            try Opening(claim, options: options, environment: environment)
          }
        }
      return opening.makeEngine(maintenance: maintenance, logWorker: logWorker)
    } catch {
      await maintenance.stop()
      throw error
    }
  }

  // MARK: - Writing

  /// How often a commit checks for space on a full disk.
  private static let mostAttempts = 4

  /// Commits `batch`: all of it, or nothing. Returns once it is visible to every later snapshot and
  /// has the requested durability.
  ///
  /// Throws `.stale` when a guarded row has changed since the batch's basis, and then nothing has
  /// happened; `.poisoned` when a write failed, and then only the next open shows whether the batch
  /// survives; `.noSpace` when the disk is full, and then nothing has happened and everything else
  /// continues.
  package func commit(
    _ batch: consuming Batch, durability: Durability
  ) async throws(EngineError) -> CommitReceipt {
    do throws(EngineError) {
      return try await commitInOrder(batch, durability)
    } catch {
      throw error.forCommitters
    }
  }

  private func commitInOrder(
    _ batch: consuming Batch, _ durability: Durability
  ) async throws(EngineError) -> CommitReceipt {
    guard batch.rowsLength <= storage.options.commitLimit else {
      throw .tooLarge(bytes: batch.rowsLength, limit: storage.options.commitLimit)
    }
    if let remote { return try await remote.commit(batch, durability) }
    if !batch.keyed.isEmpty { try refuseMissingKeys(batch) }
    var batch = batch
    if storage.pressure.isFelt { await upkeep.holdBack(bytes: batch.payloadLength) }
    var attempts = 0
    while true {
      switch try await place(&batch, durability) {
      case .placed(let placed):
        upkeep.follow(placed)
        let receipt = CommitReceipt(sequence: placed.sequence, time: placed.time)
        try await storage.sequencer.finish(placed)
        return receipt
      case .needsLog:
        try await storage.makeLog()
        upkeep.secureFirstLog()
      case .needsSpace(let space):
        try await storage.reserve(space)
      case .needsReserve:
        // A few times: other commits may take the freed space.
        if attempts == Self.mostAttempts, let lack = storage.sequencer.lackOfSpace { throw lack }
        attempts += 1
        try await storage.regainReserve()
      case .needsRoom(let shard):
        try await upkeep.makeRoom(in: shard)
      }
    }
  }

  /// Places the batch. Before it reports a stale batch, it waits until the conflicting commit is
  /// visible: deriving the batch any sooner would give the same batch again and again.
  private func place(
    _ batch: inout Batch, _ durability: Durability
  ) async throws(EngineError) -> Placement {
    do throws(EngineError) {
      return try storage.sequencer.place(&batch, durability)
    } catch {
      if error == .stale { await storage.sequencer.waitUntilAllPublished() }
      throw error
    }
  }

  /// Calls `follower` with every later commit that carries a note, one after the other, in order,
  /// once it is visible. It runs on the committers' threads, so it must be quick. Set once, before
  /// the first commit.
  package func follow(_ follower: @escaping @Sendable (Announcement) -> Void) {
    if let remote { return remote.audience.withLock { $0.follower = follower } }
    storage.sequencer.setFollower(follower)
  }

  /// Returns once the follower has received all commits up to `sequence`, which must be visible.
  /// There is a short time in between, in which their committers are woken.
  package func finishAnnouncing(through sequence: SequenceNumber) async {
    if let remote {
      while !remote.hasAnnounced(through: sequence) { await Task.yield() }
      return
    }
    while !storage.sequencer.hasAnnounced(through: sequence) {
      storage.sequencer.deliverAnnouncements()
      await Task.yield()
    }
  }

  /// If other processes write, calls `observer` with every step that shows more of their commits,
  /// one after the other, before a refresh returns. It runs on a thread of its own, so it may
  /// block. Set once, before the first refresh.
  package func observeRefreshes(_ observer: @escaping @Sendable (FollowerStep) -> Void) {
    follower?.setObserver(observer)
    remote?.audience.withLock { $0.observer = observer }
  }

  /// On a store, calls `preparer` with every such step before it becomes visible, and again when it
  /// returns false.
  package func prepareForRefreshes(_ preparer: @escaping @Sendable (FollowerStep) -> Bool) {
    remote?.audience.withLock { $0.preparer = preparer }
  }

  /// If other processes write, calls `caretaker` every half minute to look for what a dead one has
  /// left; every ten minutes it must look thoroughly. Set once.
  package func lookAfterOthers(_ caretaker: @escaping @Sendable (_ isThorough: Bool) -> Void) {
    remote?.audience.withLock { $0.caretaker = caretaker }
  }

  /// On a store, calls `mourner` once with the failure that ends all reading and writing. Set once.
  package func observeFailure(_ mourner: @escaping @Sendable (EngineError) -> Void) {
    remote?.audience.withLock { $0.mourner = mourner }
  }

  /// Makes every commit so far survive a power cut.
  package func synchronize() async throws(EngineError) {
    if let remote { return try await remote.synchronize() }
    try await storage.waitForRecovery()
    try await storage.sequencer.synchronize()
  }

  // MARK: - Reading

  /// The current rows. A snapshot is cheap and blocks no other work, however long it lives; it
  /// keeps the files it reads.
  ///
  /// - Parameter owner: a name for `metrics`, for a snapshot that is kept for long.
  package func snapshot(owner: String? = nil) throws(EngineError) -> Snapshot {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    if let failure = remote?.line.failure { throw failure }
    let (view, sequence) = storage.views.snapshot
    return Snapshot(view, sequence, label: owner.flatMap { view.ticket?.label($0) })
  }

  /// Whether nothing can be written.
  package var isReadOnly: Bool { follower != nil }

  /// Whether other processes write the database, beside this one or alone.
  package var hasOtherWriters: Bool { follower != nil || remote != nil }

  /// The directory, for code that reads the files themselves.
  package var directory: any Directory { storage.directory }

  /// In an engine that only reads, shows the current state of the files; snapshots taken before
  /// stay unchanged. Returns whether anything was new. An engine that writes always shows the
  /// newest.
  ///
  /// When it throws, the previous state is still shown.
  ///
  /// - Complexity: a few small reads, and O(bytes of the new commits); the manifest is read and
  ///   files are opened when there are new ones. When the writer has flushed these commits, or has
  ///   recovered, all logs are read.
  package func refresh() async throws(EngineError) -> Bool {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    if let remote { return try await remote.catchUp() }
    guard let follower else { return false }
    return try await storage.maintenance.perform { [views = storage.views] () throws(EngineError) in
      try follower.refresh(views)
    }
  }

  func refuseWhenReadOnly() throws(EngineError) {
    if isReadOnly { throw .readOnly }
  }

  // MARK: - Upkeep

  /// Starts background work; returns nil when the database is closed. Closing cancels the work's
  /// task and waits for it.
  @discardableResult
  package func startInBackground(
    _ work: @escaping @Sendable () async -> Void
  ) -> BackgroundTask? {
    workAbove.start(work)
  }

  /// Flushes all rows in memory into segments.
  package func flush() async throws(EngineError) {
    try refuseWhenReadOnly()
    if remote != nil { return }
    try await upkeep.flush()
  }

  /// Flushes the rows of the shard that contains `key`.
  package func flush(shardOf key: [UInt8]) async throws(EngineError) {
    if let remote { return try await remote.advance() }
    let shard = storage.views.current.shardIndex(of: key.bytes)
    try await upkeep.flush(shard: shard)
  }

  /// The newest commit of which no reader can see an older state of the shard with `key`: it is in
  /// files that the manifest names, and every view in use was made afterwards.
  package func retainedThrough(shardOf key: [UInt8]) -> SequenceNumber {
    if let remote { return remote.retainedThrough }
    let shard = storage.views.current.shardIndex(of: key.bytes)
    return storage.views.live.flushedThrough(shard: shard)
  }

  /// A major compaction: flushes all rows and merges every shard into one run, which is best for
  /// reads. Deleted and overwritten rows then take no space, except those that snapshots hold.
  /// `progress` receives the bytes merged so far and all bytes to merge. When the task is
  /// cancelled, finished shards stay merged, and `.cancelled` is thrown. With `bytesPerSecond`, it
  /// is at most that fast.
  package func compact(
    bytesPerSecond: UInt64? = nil,
    progress: (_ done: UInt64, _ total: UInt64) -> Void = { _, _ in }
  ) async throws(EngineError) {
    try await flush()
    if remote != nil { return }
    try await upkeep.compact(bytesPerSecond: bytesPerSecond, progress)
  }

  /// Like `compact()`: the original name, for programs that use the engine alone.
  package func settle() async throws(EngineError) {
    try await compact()
  }

  /// Drops keyspaces, whose numbers are never used again. Their rows take no space from now on,
  /// except those that snapshots hold and those mixed with other rows, which are left out when
  /// these are next written. Survives a power cut once this returns, together with all earlier
  /// commits. Dropping again does nothing.
  ///
  /// - Complexity: O(segments), and one edit of the manifest.
  package func drop(keyspaces: [UInt32]) async throws(EngineError) {
    try refuseWhenReadOnly()
    // The commit that removed them from the catalog must not be lost when their rows are.
    try await synchronize()
    if let remote {
      return try await remote.within { [store = remote.store] () async throws(EngineError) in
        try await store.drop(keyspaces)
      }
    }
    try await storage.perform { (storage) throws(EngineError) in try storage.drop(keyspaces) }
    upkeep.compactAll()
  }

  /// Why nothing can be written until the database is opened again; nil while it works.
  package var failure: EngineError? {
    let failure = remote?.line.failure ?? storage.sequencer.failure
    switch failure {
    case .poisoned?, .outOfStep?: return failure
    default: return nil
    }
  }

  /// What the files hold, for people who look.
  package var metrics: EngineMetrics { EngineMetrics(storage) }

  /// Flushes everything, marks the database as closed cleanly and releases the directory and all
  /// files. Commits that began before are completed; later commits and snapshots throw `.closed`,
  /// and so does a read of an earlier snapshot that needs a file.
  package func close() async throws(EngineError) {
    guard !isClosed.exchange(true, ordering: .relaxed) else { return }
    var failure: EngineError?
    await workAbove.finish()
    await contents.parts?.close()
    await remote?.close()
    upkeep.stopMerging()
    do throws(EngineError) {
      try await writeEverything()
    } catch {
      failure = error
      // Rows that could not be flushed are in the logs.
      if error.isPassing { try? await storage.sequencer.synchronize() }
    }
    storage.sequencer.close()
    await contents.close()
    await upkeep.finish()
    await reads.stop()
    for worker in [storage.maintenance, logWorker] + storage.mergers { await worker.stop() }
    storage.lock.release()
    storage.directory.close()
    FrameMemory.clear()
    if let failure { throw failure }
  }

  private func writeEverything() async throws(EngineError) {
    if hasOtherWriters { return }
    storage.sequencer.refuseCommits()
    try await flush()
    guard storage.sequencer.hasWritten || storage.hasCommitsInLogs else { return }
    try await storage.perform { (storage) throws(EngineError) in
      try storage.sealLog()
      // A closed database reserves no space; the first commit makes the reserve again.
      _ = storage.reserve.giveUp()
    }
  }
}
