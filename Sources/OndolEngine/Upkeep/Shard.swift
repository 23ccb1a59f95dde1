// A shard's upkeep. The actor decides what is to be done next to its memtables and runs, and makes
// sure that one flush, one merge of any size and one of the newest flushed runs are done at a time:
// flushes on the maintenance thread, merges on threads of their own, so that no flush waits behind
// a merge, and the flushed runs do not pile up behind a long one. Each of the two merges is a
// barrier to the other. Reads never come here: they have the view. Commits neither, except to wait
// when the shard's memtables are all full.

/// One shard's flushes and merges.
actor Shard {
  private enum Work {
    case flushing
    /// Any merge.
    case merging
    /// A merge of flushed runs among themselves, newer than those that the other merge takes.
    case mergingFlushed
  }

  /// Lets one in after the other.
  private struct Turn {
    var isTaken = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let index: Int
  private let storage: Storage
  private var turns: [Work: Turn] = [.flushing: Turn(), .merging: Turn(), .mergingFlushed: Turn()]
  /// The segments that merges under way take.
  private var taken: [Work: Set<FileNumber>] = [:]

  init(index: Int, storage: Storage) {
    self.index = index
    self.storage = storage
  }

  private var view: ShardView { storage.views.current.shards[index] }

  // MARK: - Flushing

  /// Flushes every sealed memtable, oldest first. A failure stops the database's writing.
  func flush() async throws(EngineError) {
    await take(.flushing)
    defer { end(.flushing) }
    while let memtable = view.sealed.last, let through = memtable.sequences?.upperBound {
      if let failure = await storage.sequencer.waitUntilPublished(through) { throw failure }
      // A flushed commit survives a power cut, so every commit before it must.
      try await storage.sequencer.synchronize()
      // While no merge is under way, none begins: a small shard's flush replaces its runs.
      let mayMerge = takeForFlush()
      defer { if mayMerge { endForFlush() } }
      try await storage.perform { [index] (storage) throws(EngineError) in
        try storage.flush(memtable, shard: index, mayMerge: mayMerge)
      }
    }
  }

  // MARK: - Pouring

  /// Keeps merges from beginning, and flushes from leaving tombstones out, for a pour; to be
  /// followed by `endPour()`. False when a merge is under way, which may take long.
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

  /// Compacts until the picker finds nothing to do. When somebody does so already, sees to the
  /// newest flushed runs beside; returns at once when that is being done, too.
  func compact() async throws(EngineError) {
    let work = takeIfFree(.merging) ? Work.merging : .mergingFlushed
    guard work == .merging || takeIfFree(work) else { return }
    defer { end(work) }
    while let job = nextJob(work) {
      guard try await run(job, as: work) != .abandoned else { return }
    }
  }

  /// Merges the shard into one run, one piece after the other, for as long as `goesOn` says so.
  func compactFully(while goesOn: @Sendable () -> Bool) async throws(EngineError) {
    await take(.merging)
    defer { end(.merging) }
    while goesOn(), let job = majorJob(isAskedFor: false) {
      guard try await run(job, as: .merging) != .abandoned else { return }
    }
  }

  /// Puts flushed runs together that are of about one size.
  func tidy() async throws(EngineError) {
    guard takeIfFree(.merging) else { return }
    defer { end(.merging) }
    let start = storage.merging.start
    let plan = storage.picker.tidying(view.state, around: barriers(beside: .merging))
    guard let plan else { return }
    let job = CompactionJob(plan, shard: index, start, storage, isAskedFor: false)
    _ = try await run(job, as: .merging)
  }

  /// Keeps merges out for whoever merges all of the shard by itself, with jobs from
  /// `takeMajorJob()`; to be followed by `endMajorCompaction()`.
  func beginMajorCompaction() async { await take(.merging) }

  /// The next step towards one run, which somebody waits for; nil when there is no more.
  func takeMajorJob() async -> CompactionJob? {
    taken[.merging] = nil
    while true {
      if let job = majorJob(isAskedFor: true) {
        taken[.merging] = Set(job.plan.segments.map(\.number))
        return job
      }
      // What the other merge takes is not yet where it belongs.
      guard taken[.mergingFlushed] != nil else { return nil }
      await take(.mergingFlushed)
      end(.mergingFlushed)
    }
  }

  /// The next segment to be written anew because of its number, in the place of a major job; nil
  /// when there is none that can be.
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
      // What the other merge takes is rewritten by it, or left for the next look.
      guard taken[.mergingFlushed] != nil else { return nil }
      await take(.mergingFlushed)
      end(.mergingFlushed)
    }
  }

  func endMajorCompaction() {
    taken[.merging] = nil
    end(.merging)
  }

  /// What a major compaction would take; nil when there is nothing to do.
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

  /// What is damaged, and what the merge beside `work` takes.
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
