// A shard's upkeep. The actor decides what is to be done next to its memtables and runs, and makes
// sure that one flush and one merge are done at a time: flushes on the maintenance thread, merges
// on threads of their own, so that no flush waits behind a merge. Reads never come here: they have
// the view. Commits neither, except to wait when the shard's memtables are all full.

/// One shard's flushes and merges.
actor Shard {
  private enum Work {
    case flushing
    case merging
  }

  /// Lets one in after the other.
  private struct Turn {
    var isTaken = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let index: Int
  private let storage: Storage
  private var turns: [Work: Turn] = [.flushing: Turn(), .merging: Turn()]

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
      let mayMerge = takeIfFree(.merging)
      defer { if mayMerge { end(.merging) } }
      try await storage.perform { [index] (storage) throws(EngineError) in
        try storage.flush(memtable, shard: index, mayMerge: mayMerge)
      }
    }
  }

  // MARK: - Merging

  /// Compacts until the picker finds nothing to do. Returns at once when somebody does so already.
  func compact() async throws(EngineError) {
    guard takeIfFree(.merging) else { return }
    defer { end(.merging) }
    while let job = nextJob() {
      guard try await job.run() == .installed else { return }
    }
  }

  /// Merges the shard into one run, unless it is stopped.
  func settle() async throws(EngineError) {
    await take(.merging)
    defer { end(.merging) }
    while let job = settlingJob() {
      guard try await job.run() == .installed else { return }
    }
  }

  /// Keeps merges out for whoever merges by itself; to be followed by `endMerging()`.
  func beginMerging() async { await take(.merging) }

  func endMerging() { end(.merging) }

  private func nextJob() -> CompactionJob? {
    let start = storage.merging.start
    return storage.picker.next(view.state, dropped: start.dropped).map {
      CompactionJob($0, shard: index, start, storage)
    }
  }

  /// The next step towards one run.
  func settlingJob() -> CompactionJob? {
    let start = storage.merging.start
    return storage.picker.settling(view.state, dropped: start.dropped).map {
      CompactionJob($0, shard: index, start, storage)
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
