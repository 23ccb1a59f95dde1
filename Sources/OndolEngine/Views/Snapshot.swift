// One consistent state of everything: a view and the sequence it was taken at. Reading from it
// needs no lock, no actor and no writer. Data in memory is read on the caller's own executor. Only
// a block that must come from disk is fetched on a thread for cold reads, if the caller can wait
// without blocking.

/// The rows as of one commit.
package struct Snapshot: Sendable {
  let view: View
  /// The last commit that is visible in it.
  package let sequence: SequenceNumber
  /// The name of the view's holder, if it gave one.
  private let label: SnapshotLabel?

  init(_ view: View, _ sequence: SequenceNumber, label: SnapshotLabel? = nil) {
    self.label = label
    self.view = view
    self.sequence = sequence
  }

  /// The rows as of an earlier commit. Nil when some of them may be gone: memtables keep every
  /// version, and files only the newest that was flushed.
  package func earlier(_ sequence: SequenceNumber) -> Snapshot? {
    if sequence == self.sequence { return self }
    guard sequence < self.sequence,
      view.shards.allSatisfy({ $0.remote == nil && $0.state.flushedThrough <= sequence })
    else { return nil }
    return Snapshot(view, sequence)
  }

  /// The value at `key`, or nil. Suspends only when a block must be read from disk.
  ///
  /// - Throws: like all reads, `.locked` for a key of a group when the key of some of its files is
  ///   missing, because a row that was not found may be in these.
  /// - Complexity: O(log n); no system call on a cache hit, one `pread` for each cache miss of a
  ///   level.
  package func get(_ key: [UInt8]) async throws(EngineError) -> [UInt8]? {
    var copy: [UInt8]?
    if try find(key.bytes, mayBlock: false, { copy = $0.array }) != nil { return copy }
    return try await view.reads.perform(failingWith: { $0 }) {
      (_) throws(EngineError) -> [UInt8]? in
      try getBlocking(key)
    }
  }

  /// Runs `body`, which may block, on a thread for cold reads. It should not take long.
  package func readBlocking<R: Sendable, E: Error>(
    _ body: @escaping @Sendable () throws(E) -> R
  ) async throws(E) -> R {
    try await view.reads.perform { (_) throws(E) in try body() }
  }

  /// Like the next one, for a `body` that may wait for a server: throws `failure` when the wait is
  /// too long, or the task is cancelled.
  package func readInTurns<R: Sendable, E: Error>(
    failingWith failure: @escaping @Sendable (EngineError) -> E,
    _ body: @escaping @Sendable (ReadingTurn) throws(E) -> R
  ) async throws(E) -> R {
    try await view.reads.perform(failingWith: failure, body)
  }

  /// The same for a `body` that may take long and reports its progress: it may be stopped and
  /// started again, see `ReadingThreads`.
  package func readInTurns<R: Sendable, E: Error>(
    _ body: @escaping @Sendable (ReadingTurn) throws(E) -> R
  ) async throws(E) -> R {
    try await view.reads.perform(body)
  }

  /// On a store, keeps everything visible here from being removed; nil in files, which need
  /// nothing.
  package func holdBase() -> HeldBase? { view.shards[0].remote?.hold() }

  /// The value at `key`, or nil. Blocks the thread while a block is read from disk.
  package func getBlocking(_ key: [UInt8]) throws(EngineError) -> [UInt8]? {
    var copy: [UInt8]?
    _ = try find(key.bytes, mayBlock: true) { copy = $0.array }
    return copy
  }

  /// Passes the value at `key` to `body` without copying it; false when there is none. Blocks the
  /// thread while it reads a block from disk.
  ///
  /// The closure returns nothing, because a generic result would be looked up at run time at each
  /// call: the caller is in another module.
  package func withValue(
    of key: RawSpan, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool {
    try find(key, mayBlock: true, body) == true
  }

  /// The same, except that nil means that a block must be read from disk first and it may not
  /// block.
  package func withValue(
    of key: RawSpan, mayBlock: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    try find(key, mayBlock: mayBlock, body)
  }

  /// The same for a key that `withValue` has just not found in memory: nil when it does not come at
  /// once, see `RemoteStore.rowsAtOnce`. Never from a file.
  package func withValueAtOnce(
    of key: RawSpan, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    guard let remote = view.shards[0].remote else { return nil }
    return try remote.findAtOnce(key) { _, value in body(value) }
  }

  /// Passes the values at the keys in `places` to `body`, each with its place, in their order and
  /// without copying them; skips keys that have none. Returns false when it stopped because a block
  /// must be read from disk first and it may not block.
  ///
  /// - Complexity: O(keys x log n), at a fraction of as many single gets: keys are looked up in
  ///   step, so that their cache misses overlap.
  package func withValues(
    of keys: [[UInt8]], at places: Range<Int>, mayBlock: Bool, _ body: (Int, RawSpan) -> Void
  ) throws(EngineError) -> Bool {
    // One round trip to the store for all.
    if mayBlock, let remote = view.shards[0].remote { try remote.warm(keys[places]) }
    if view.hasLocked {
      for key in keys[places] { try view.refuseLocked(key.bytes) }
    }
    return try view.table.find(keys, at: places, upTo: sequence, mayBlock: mayBlock) {
      place, kind, value in
      if kind == .put { body(place, value) }
    }
  }

  /// Looks up the key and passes its value to `body`; there is none when it was deleted.
  @inline(__always)
  private func find(
    _ key: RawSpan, mayBlock: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    var isDeleted = false
    let isFound = try view.table.find(
      key, inShard: view.shardIndex(of: key), upTo: sequence, mayBlock: mayBlock
    ) { kind, value in
      if kind == .put { body(value) } else { isDeleted = true }
    }
    if isFound == false { try view.refuseLocked(key) }
    return isDeleted ? false : isFound
  }

  /// A cursor over the rows with keys from `lower` on and before `upper` (no bound when empty),
  /// which must be in one shard.
  ///
  /// - Parameter mayBlock: whether moves may block the thread while they read a block from disk.
  ///   Pass false on the cooperative pool; moves then throw `.wouldBlock`.
  package func cursor(
    from lower: [UInt8], to upper: [UInt8], mayBlock: Bool = true
  ) -> Cursor {
    let shard = view.shards[lower.count < 4 ? 0 : view.shardIndex(of: lower.bytes)]
    var sources: [RowSource] = []
    sources.reserveCapacity(1 + shard.sealed.count + shard.runs.count)
    if !shard.active.isEmpty {
      sources.append(.memtable(MemtableCursor(shard.active, upTo: sequence)))
    }
    for memtable in shard.sealed where !memtable.isEmpty {
      sources.append(.memtable(MemtableCursor(memtable, upTo: sequence)))
    }
    for run in shard.runs { sources.append(.run(run.cursor())) }
    if let remote = shard.remote {
      sources.append(.remote(RemoteCursor(remote, from: lower, to: upper)))
    }
    return Cursor(
      SnapshotWalk(
        MergeCursor(sources), from: lower, to: upper, mayBlock: mayBlock, in: view))
  }
}
