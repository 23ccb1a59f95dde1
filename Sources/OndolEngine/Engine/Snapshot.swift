// One consistent picture of everything: a view and the sequence it was taken at. Reading from it
// asks no lock, no actor and no writer. What is in memory is read on the caller's own executor;
// only a block that must come from disk is fetched on the thread for cold reads, when the caller
// can wait without blocking.

/// The rows as of one commit.
package struct Snapshot: Sendable {
  private let view: View
  /// The last commit that is visible in it.
  package let sequence: SequenceNumber

  init(_ view: View, _ sequence: SequenceNumber) {
    self.view = view
    self.sequence = sequence
  }

  /// The value at `key`, or nil. Suspends only when a block must be read from disk.
  ///
  /// - Complexity: O(log n); no system call on a cache hit, one `pread` for each level missed.
  package func get(_ key: [UInt8]) async throws(EngineError) -> [UInt8]? {
    var copy: [UInt8]?
    if try find(key.bytes, mayBlock: false, { copy = $0.array }) != .wouldBlock { return copy }
    return try await view.reads.perform { () throws(EngineError) -> [UInt8]? in
      try getBlocking(key)
    }
  }

  /// The value at `key`, or nil. Blocks the thread while a block is read from disk.
  package func getBlocking(_ key: [UInt8]) throws(EngineError) -> [UInt8]? {
    var copy: [UInt8]?
    _ = try find(key.bytes, mayBlock: true) { copy = $0.array }
    return copy
  }

  /// Hands the value at `key` to `body` without copying it; false when there is none. Blocks the
  /// thread while a block is read from disk.
  ///
  /// The closure gives nothing back, because a generic result would be looked up at run time at
  /// each call: the caller is in another module.
  package func withValue(
    of key: RawSpan, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool {
    try find(key, mayBlock: true, body) == .found
  }

  /// Looks the key up and gives its value to `body`; absent when it was deleted.
  @inline(__always)
  private func find(
    _ key: RawSpan, mayBlock: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> SearchOutcome {
    var isDeleted = false
    let outcome = try view.table.find(
      key, inShard: view.shardIndex(of: key), upTo: sequence, mayBlock: mayBlock
    ) { kind, value in
      if kind == .put { body(value) } else { isDeleted = true }
    }
    return isDeleted ? .absent : outcome
  }

  /// A cursor over the rows with keys from `lower` on and before `upper` (no bound when empty),
  /// which must lie in one shard. Its steps block the thread while a block is read from disk.
  package func cursor(from lower: [UInt8], to upper: [UInt8]) -> Cursor {
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
    return Cursor(SnapshotWalk(MergeCursor(sources), from: lower, to: upper, in: view))
  }
}
