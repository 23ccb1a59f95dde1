// A shard's upkeep. The actor decides what is to be done next to its memtables and runs, and makes
// sure that only one thing is done at a time; the work itself is on the maintenance thread. Reads
// never come here: they have the view. Commits neither, except to wait when the shard's memtables
// are all full.

/// One shard's flushes and merges.
actor Shard {
  private let index: Int
  private let storage: Storage
  private var isWorking = false
  /// Who waits for the work under way to end.
  private var turns: [CheckedContinuation<Void, Never>] = []

  init(index: Int, storage: Storage) {
    self.index = index
    self.storage = storage
  }

  private var view: ShardView { storage.views.current.shards[index] }

  /// Flushes every sealed memtable, oldest first, and merges the runs when they have become many.
  func maintain() async throws(EngineError) {
    try await work(runLimit: storage.options.runLimit)
  }

  /// Leaves the shard's rows in one run at most; the active memtable must have been sealed before.
  func settle() async throws(EngineError) {
    try await work(runLimit: 1)
  }

  /// Does what there is to do when no other work is under way. A failure stops the database's
  /// writing.
  private func work(runLimit: Int) async throws(EngineError) {
    await takeTurn()
    defer { endTurn() }
    try await flushSealed()
    if view.runs.count > runLimit { try await merge() }
  }

  private func flushSealed() async throws(EngineError) {
    while let memtable = view.sealed.last, let through = memtable.sequences?.upperBound {
      if let failure = await storage.sequencer.waitUntilPublished(through) { throw failure }
      // A flushed commit survives a power cut, so every commit before it must.
      try await storage.sequencer.synchronize()
      try await storage.perform { [index] (storage) throws(EngineError) in
        try storage.flush(memtable, shard: index)
      }
    }
  }

  private func merge() async throws(EngineError) {
    try await storage.perform { [index] (storage) throws(EngineError) in
      try storage.merge(shard: index)
    }
  }

  private func takeTurn() async {
    while isWorking {
      await withCheckedContinuation { continuation in turns.append(continuation) }
    }
    isWorking = true
  }

  private func endTurn() {
    isWorking = false
    if !turns.isEmpty { turns.removeFirst().resume() }
  }
}
