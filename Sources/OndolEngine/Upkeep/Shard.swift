// A shard's upkeep. The actor decides what to do next with its memtables and runs. It ensures that
// only one flush, one merge of any size and one merge of the newest flushed runs are active at a
// time. Flushes run on the maintenance thread and merges on their own threads. So no flush waits
// for a merge, and the flushed runs do not accumulate during a long one. Each of the two merges is
// a barrier to the other. Reads never call this actor, because they have the view. Commits call it
// only to wait when all of the shard's memtables are full.

/// One shard's flushes and merges.
actor Shard {
  private enum Work {
    case flushing
    /// Any merge.
    case merging
    /// A merge of flushed runs with each other. They are newer than the inputs of the other merge.
    case mergingFlushed
  }

  /// Admits callers one after the other.
  private struct Turn {
    var isTaken = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let index: Int
  private let storage: Storage
  private var turns: [Work: Turn] = [.flushing: Turn(), .merging: Turn(), .mergingFlushed: Turn()]
  /// The segments that running merges take.
  private var taken: [Work: Set<FileNumber>] = [:]

  init(index: Int, storage: Storage) {
    self.index = index
    self.storage = storage
  }

  private var view: ShardView { storage.views.current.shards[index] }

  // MARK: - Flushing

  /// Flushes every sealed memtable, oldest first. A failure stops all writing to the database.
  func flush() async throws(EngineError) {
    await take(.flushing)
    defer { end(.flushing) }
    while let memtable = view.sealed.last, let through = memtable.sequences?.upperBound {
      if let failure = await storage.sequencer.waitUntilPublished(through) { throw failure }
      // A flushed commit survives a power cut, so every commit before it must.
      try await storage.sequencer.synchronize()
      // No merge is running and none begins, because the flush of a small shard replaces its runs.
      let mayMerge = takeForFlush()
      defer { if mayMerge { endForFlush() } }
      try await storage.perform { [index] (storage) throws(EngineError) in
        try storage.flush(memtable, shard: index, mayMerge: mayMerge)
      }
    }
  }

  // MARK: - Bulk loads

  /// Prevents merges from beginning, and flushes from omitting tombstones, for a bulk load. The
  /// caller must call `endPour()` afterwards. Returns false if a merge is running, because it may
  /// take long.
  func beginPour() async -> Bool {
    await take(.flushing)
    defer { end(.flushing) }
    guard takeForFlush() else { return false }
    storage.pours.withLock { _ = $0.insert(index) }
    return true
  }

  func endPour() {
    storage.pours.withLock { _ = $0.remove(index) }
    endForFlush()
  }

  // MARK: - Turns around a flush

  private func takeForFlush() -> Bool {
    guard takeIfFree(.merging) else { return false }
    if takeIfFree(.mergingFlushed) { return true }
    end(.merging)
    return false
  }

  private func endForFlush() {
    end(.mergingFlushed)
    end(.merging)
  }

  // MARK: - Merging

  /// Compacts until the picker finds nothing to do. If a compaction is already running, it compacts
  /// the newest flushed runs concurrently. It returns at once if that is also in progress.
  func compact() async throws(EngineError) {
    let work = takeIfFree(.merging) ? Work.merging : .mergingFlushed
    guard work == .merging || takeIfFree(work) else { return }
    defer { end(work) }
    while let job = nextJob(work) {
      guard try await run(job, as: work) != .abandoned else { return }
    }
  }

  /// Merges the shard into one run piece by piece, for as long as `goesOn` returns true.
  func compactFully(while goesOn: @Sendable () -> Bool) async throws(EngineError) {
    await take(.merging)
    defer { end(.merging) }
    while goesOn(), let job = majorJob(isAskedFor: false) {
      guard try await run(job, as: .merging) != .abandoned else { return }
    }
  }

  /// Merges flushed runs of similar size.
  func tidy() async throws(EngineError) {
    guard takeIfFree(.merging) else { return }
    defer { end(.merging) }
    let start = storage.merging.start
    let plan = storage.picker.tidying(view.state, around: barriers(beside: .merging))
    guard let plan else { return }
    let job = CompactionJob(plan, shard: index, start, storage, isAskedFor: false)
    _ = try await run(job, as: .merging)
  }

  /// Keeps other merges out while the caller merges the whole shard with jobs from
  /// `takeMajorJob()`. The caller must call `endMajorCompaction()` afterwards.
  func beginMajorCompaction() async { await take(.merging) }

  /// The next step towards one run, on behalf of a waiting caller; nil if no step is left.
  func takeMajorJob() async -> CompactionJob? {
    taken[.merging] = nil
    while true {
      if let job = majorJob(isAskedFor: true) {
        taken[.merging] = Set(job.plan.segments.map(\.number))
        return job
      }
      // The inputs of the other merge are not yet in their place.
      guard taken[.mergingFlushed] != nil else { return nil }
      await take(.mergingFlushed)
      end(.mergingFlushed)
    }
  }

  /// The next segment that must be rewritten because of its number, used instead of a major job. It
  /// is nil if no segment can be rewritten.
  func takeRewriting(before border: FileNumber) async -> CompactionJob? {
    taken[.merging] = nil
    while true {
      let start = storage.merging.start
      let plan = storage.picker.rewriting(
        view.state, before: border, around: barriers(beside: .merging))
      if let plan {
        taken[.merging] = Set(plan.segments.map(\.number))
        return CompactionJob(plan, shard: index, start, storage, isAskedFor: true)
      }
      // The inputs of the other merge are rewritten by it, or left for the next check.
      guard taken[.mergingFlushed] != nil else { return nil }
      await take(.mergingFlushed)
      end(.mergingFlushed)
    }
  }

  func endMajorCompaction() {
    taken[.merging] = nil
    end(.merging)
  }

  /// The estimated cost of a major compaction; nil if there is nothing to do.
  func majorCompactionEstimate() -> MajorCompactionEstimate? {
    let dropped = storage.merging.start.dropped
    let state = view.state
    guard
      storage.picker.majorCompaction(state, dropped: dropped, around: storage.damaged.barriers)
        != nil
    else { return nil }
    return MajorCompactionEstimate(state)
  }

  private func run(
    _ job: CompactionJob, as work: Work
  ) async throws(EngineError) -> CompactionJob.Outcome {
    taken[work] = Set(job.plan.segments.map(\.number))
    defer { taken[work] = nil }
    return try await job.run()
  }

  /// The damaged segments, and the inputs of the merge that runs alongside `work`.
  private func barriers(beside work: Work) -> Barriers {
    let other = taken[work == .merging ? .mergingFlushed : .merging] ?? []
    return Barriers(storage.damaged.barriers.numbers.union(other))
  }

  private func nextJob(_ work: Work) -> CompactionJob? {
    let start = storage.merging.start
    let barriers = barriers(beside: work)
    let plan =
      work == .merging
      ? storage.picker.next(view.state, dropped: start.dropped, around: barriers)
      : storage.picker.mergingFlushed(view.state, around: barriers)
    return plan.map { CompactionJob($0, shard: index, start, storage, isAskedFor: false) }
  }

  /// The next step towards one run.
  private func majorJob(isAskedFor: Bool) -> CompactionJob? {
    let start = storage.merging.start
    let barriers = barriers(beside: .merging)
    return storage.picker.majorCompaction(view.state, dropped: start.dropped, around: barriers).map
    {
      CompactionJob($0, shard: index, start, storage, isAskedFor: isAskedFor)
    }
  }

  // MARK: - Turns

  private func takeIfFree(_ work: Work) -> Bool {
    guard turns[work]?.isTaken == false else { return false }
    turns[work]?.isTaken = true
    return true
  }

  private func take(_ work: Work) async {
    while !takeIfFree(work) {
      await withCheckedContinuation { continuation in turns[work]?.waiting.append(continuation) }
    }
  }

  private func end(_ work: Work) {
    turns[work]?.isTaken = false
    if turns[work]?.waiting.isEmpty == false { turns[work]?.waiting.removeFirst().resume() }
  }
}
