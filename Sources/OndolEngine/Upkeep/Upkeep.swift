// What starts upkeep: a full memtable makes its shard flush and compact, and after an idle time the
// shards are merged into one run each. Everything here happens alongside commits. Only commits
// under pressure wait.

internal import Synchronization

/// The background work of an open database.
final class Upkeep: Sendable {
  let storage: Storage
  let shards: [Shard]
  private let background: BackgroundTasks
  private let isTimerSet = Atomic(false)
  private let isRetrySet = Atomic(false)
  private let lackOfSpace = Guarded(MajorCompactionPause())

  init(_ storage: Storage) {
    self.storage = storage
    background = BackgroundTasks(executor: storage.environment.executor)
    shards = storage.views.current.shards.indices.map { Shard(index: $0, storage: storage) }
  }

  /// Continues the work that the previous session left unfinished.
  func start() {
    let view = storage.views.current
    maintain(view.shards.indices.filter { !view.shards[$0].sealed.isEmpty })
    let dropped = storage.merging.start.dropped
    for shard in view.shards.indices { storage.notePressure(changed: shard) }
    if view.shards.contains(where: {
      storage.picker.majorCompaction($0.state, dropped: dropped) != nil
    }) {
      setTimer()
    }
  }

  // MARK: - Around a commit

  /// Makes the commit wait if upkeep has fallen behind.
  func holdBack(bytes: Int) async {
    let wait = storage.pressure.wait(
      before: bytes, in: storage.views.current, at: storage.environment.now())
    guard wait > 0 else { return }
    storage.counters.noteDelay(microseconds: wait)
    await storage.environment.rest(wait)
  }

  /// Starts the work that a commit has made necessary.
  func follow(_ placed: borrowing PlacedCommit) {
    if !placed.sealedShards.isEmpty { maintain(placed.sealedShards) }
    if let request = placed.spareRequest {
      background.start { [self] in try? await storage.makeSpareLog(request) }
    }
    if let delay = placed.syncDelay { setSyncTimer(delay) }
    if !isTimerSet.load(ordering: .relaxed) { setTimer() }
  }

  /// The number of attempts to secure a log whose syncs commits wait for.
  private static let securingAttempts = 10

  /// Ensures that the newly handed-out log is found after a power cut. Temporary failures are
  /// retried for most of a minute; then writing ends.
  func secureFirstLog(attempt: Int = 1) {
    storage.secureFirstLog { [self] in
      guard attempt < Self.securingAttempts else { return false }
      let environment = storage.environment
      let pause = min(Self.firstPause << (attempt - 1), Self.longestPause)
      let next = background.start { [self] in
        await environment.sleep(pause)
        secureFirstLog(attempt: attempt + 1)
      }
      return next != nil
    }
  }

  /// Syncs everything placed until then after this many microseconds.
  private func setSyncTimer(_ delay: Int64) {
    let (environment, sequencer) = (storage.environment, storage.sequencer)
    background.start {
      await environment.sleep(delay)
      // A failure has stopped all writing, and the next commit reports it.
      try? await sequencer.synchronizePeriodically()
    }
  }

  /// Waits until a memtable of the shard is flushed when all of them are full.
  func makeRoom(in shard: Int) async throws(EngineError) {
    storage.counters.noteStop()
    try await shards[shard].flush()
  }

  /// Makes shards flush and compact in the background. Temporary failures are retried after a
  /// pause. Any other failure stops writing, and the next commit reports it.
  private func maintain(_ indices: [Int]) {
    storage.notePressure()
    for index in indices {
      background.start { [self] in await tend([index], pause: Self.firstPause) }
    }
  }

  // MARK: - Trying again

  /// Microseconds from a failure to the next attempt. They double each time, up to the longest
  /// pause.
  private static let firstPause: Int64 = 100_000
  private static let longestPause: Int64 = 10_000_000

  private func tend(_ indices: [Int], pause: Int64) async {
    var isPassing = false
    for index in indices {
      do throws(EngineError) {
        try await shards[index].flush()
        try await shards[index].compact()
      } catch {
        isPassing = isPassing || error.isPassing
      }
    }
    if isPassing { tryAgain(after: pause) }
  }

  /// Takes care of all shards after a pause. Only one such attempt waits at a time.
  private func tryAgain(after pause: Int64) {
    guard !isRetrySet.exchange(true, ordering: .relaxed) else { return }
    let environment = storage.environment
    background.start { [weak self] in
      await environment.sleep(pause)
      guard !Task.isCancelled, let self else { return }
      isRetrySet.store(false, ordering: .relaxed)
      await tend(Array(shards.indices), pause: min(2 * pause, Self.longestPause))
    }
  }

  /// Makes all shards look for something to compact.
  func compactAll() {
    for shard in shards {
      background.start { [self] in
        try? await shard.compact()
        _ = self
      }
    }
  }

  /// Writes a shard's rows from memory and merges as `compactAll()` does.
  func flushAndCompact(shard index: Int) {
    background.start { [self] in
      try? await flush(shard: index)
      try? await shards[index].compact()
    }
  }

  // MARK: - Major compactions

  /// Starts the one timer, unless it is running.
  private func setTimer() {
    guard !isTimerSet.exchange(true, ordering: .relaxed) else { return }
    let environment = storage.environment
    // The sleeping timer keeps no object alive.
    background.start { [weak self] in
      var watch = QuietWatch(self?.storage.views.published)
      while let pause = watch.pause {
        await environment.sleep(pause)
        guard !Task.isCancelled, let self else { return }
        await look(&watch, after: pause)
      }
    }
  }

  /// The state of the timer.
  private struct QuietWatch {
    /// The last commit at the previous check.
    var published: SequenceNumber?
    /// Microseconds without a commit.
    var quiet: Int64 = 0
    /// Microseconds until the next check; nil if there is nothing to check.
    var pause: Int64? = MajorCompactionRule.quiet

    init(_ published: SequenceNumber?) {
      self.published = published
    }
  }

  private func look(_ watch: inout QuietWatch, after pause: Int64) async {
    let published = storage.views.published
    if published != watch.published {
      watch.published = published
      watch.quiet = 0
      watch.pause = MajorCompactionRule.quiet
      return
    }
    watch.quiet += pause
    watch.pause = await compactFully(after: watch.quiet)
    guard watch.pause == nil else { return }
    storage.sequencer.memtableMemory.clear()
    FrameMemory.clear()
    isTimerSet.store(false, ordering: .sequentiallyConsistent)
    // A commit that came earlier saw a running timer.
    guard storage.views.published != published,
      !isTimerSet.exchange(true, ordering: .sequentiallyConsistent)
    else { return }
    watch.quiet = 0
    watch.pause = MajorCompactionRule.quiet
  }

  /// Merges the shards for which the database was idle long enough. Returns when to check the
  /// others again.
  private func compactFully(after quiet: Int64) async -> Int64? {
    var next: Int64?
    for shard in shards {
      guard let estimate = await shard.majorCompactionEstimate() else { continue }
      guard let patience = MajorCompactionRule.patience(for: estimate) else {
        try? await shard.tidy()
        continue
      }
      let wait = max(patience - quiet, pauseForSpace)
      if wait <= 0 {
        await compactFully(shard)
      } else {
        next = min(next ?? .max, wait)
      }
    }
    return next
  }

  /// Microseconds for which major compactions are still postponed.
  private var pauseForSpace: Int64 {
    guard let retry = lackOfSpace.withLock({ $0.retry }) else { return 0 }
    return retry - storage.environment.now()
  }

  /// Merges a shard into one run until commits arrive. If there is too little space, the next
  /// attempt waits, longer each time.
  private func compactFully(_ shard: Shard) async {
    let views = storage.views
    let published = views.published
    do throws(EngineError) {
      try await shard.compactFully { views.published == published }
      lackOfSpace.withLock { $0 = MajorCompactionPause() }
    } catch {
      guard error.isLackOfSpace else { return }
      let now = storage.environment.now()
      lackOfSpace.withLock { $0.lengthen(from: now) }
    }
  }

  /// The time until which major compactions are postponed because one ran out of space.
  private struct MajorCompactionPause: Sendable {
    var retry: Int64?
    var pause: Int64 = 0

    mutating func lengthen(from now: Int64) {
      pause = min(max(MajorCompactionRule.firstPause, 2 * pause), MajorCompactionRule.longestPause)
      retry = now + pause
    }
  }

  // MARK: - On request

  /// Writes every row from memory into sorted files.
  func flush() async throws(EngineError) {
    storage.sequencer.sealAll()
    // If one shard lacks space, another may free some.
    var failure: EngineError?
    for shard in shards {
      do throws(EngineError) {
        try await shard.flush()
      } catch {
        guard error.isPassing else { throw error }
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  /// Writes the rows of one shard from memory into sorted files.
  func flush(shard index: Int) async throws(EngineError) {
    storage.sequencer.sealActive(of: index)
    try await shards[index].flush()
  }

  /// Merges every shard into one run. `progress` receives the bytes merged so far and an estimate
  /// of the total. With `bytesPerSecond`, it pauses after each step to stay below that rate.
  func compact(
    bytesPerSecond: UInt64? = nil, _ progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) {
    storage.damaged.forgetUnreadable()
    var total: UInt64 = 0
    for shard in shards { total += await shard.majorCompactionEstimate()?.rawBytes ?? 0 }
    var done: UInt64 = 0
    for shard in shards {
      await shard.beginMajorCompaction()
      do throws(EngineError) {
        while let job = await shard.takeMajorJob() {
          let outcome = try await job.run { bytes in
            done += bytes
            progress(min(done, total), total)
            if let bytesPerSecond { await rest(after: bytes, bytesPerSecond) }
          }
          if outcome == .abandoned { try refuseWhenStopped() }
        }
      } catch {
        await shard.endMajorCompaction()
        throw error
      }
      await shard.endMajorCompaction()
    }
    progress(total, total)
  }

  /// Rewrites every segment that has a number before `border` or whose rows point to values in such
  /// a file. `progress` receives the bytes that each step has merged.
  func rewrite(
    before border: FileNumber, _ progress: (UInt64) -> Void
  ) async throws(EngineError) {
    storage.damaged.forgetUnreadable()
    for shard in shards {
      await shard.beginMajorCompaction()
      do throws(EngineError) {
        while let job = await shard.takeRewriting(before: border) {
          try refuseWhenStopped()
          _ = try await job.run { progress($0) }
          try refuseWhenStopped()
        }
      } catch {
        await shard.endMajorCompaction()
        throw error
      }
      await shard.endMajorCompaction()
    }
    let states = storage.views.current.shards.map(\.state)
    if let error = storage.damaged.current(in: states, before: border).first { throw error }
  }

  /// Waits for as long as `bytes` take at that many per second, or until it must stop.
  private func rest(after bytes: UInt64, _ bytesPerSecond: UInt64) async {
    var left = Int64(min(3.6e9, Double(bytes) / Double(max(1, bytesPerSecond)) * 1e6))
    while left > 0, !storage.merging.isStopped, !Task.isCancelled {
      await storage.environment.rest(min(left, 100_000))
      left -= 100_000
    }
  }

  private func refuseWhenStopped() throws(EngineError) {
    if storage.merging.isStopped { throw .closed }
    if Task.isCancelled { throw .cancelled }
  }

  // MARK: - The end

  /// Stops merges and prevents new ones from beginning.
  func stopMerging() { storage.merging.stop() }

  /// Waits for all running work.
  func finish() async {
    await background.finish()
  }

  /// For a database that is released without being closed.
  func abandon() {
    storage.merging.stop()
    background.cancel()
  }
}
