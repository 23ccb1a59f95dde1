// One consistent picture of everything: a view and the sequence it was taken at. Reading from it
// asks no lock, no actor and no writer. What is in memory is read on the caller's own executor;
// only a block that must come from disk is fetched on the thread for cold reads, when the caller
// can wait without blocking.

/// The rows as of one commit.
package struct Snapshot: Sendable {
  let view: View
  let reads: any Worker
  /// The last commit that is visible in it.
  package let sequence: SequenceNumber

  init(_ view: View, _ sequence: SequenceNumber, reads: any Worker) {
    self.view = view
    self.sequence = sequence
    self.reads = reads
  }

  /// The value at `key`, or nil. Suspends only when a block must be read from disk.
  ///
  /// - Complexity: O(log n); no system call on a cache hit, one `pread` for each level missed.
  package func get(_ key: [UInt8]) async throws(EngineError) -> [UInt8]? {
    var copy: [UInt8]?
    if try find(key.bytes, mayBlock: false, { copy = $0.array }) != .wouldBlock { return copy }
    return try await reads.perform { () throws(EngineError) -> [UInt8]? in
      try getBlocking(key)
    }
  }

  /// What is known of a row without asking the disk.
  package enum CachedRow: Sendable {
    case row([UInt8])
    case absent
    /// A block must be read from disk first.
    case cold
  }

  /// The value at `key` as far as it is in memory. Never blocks.
  package func getCached(_ key: [UInt8]) throws(EngineError) -> CachedRow {
    var copy: [UInt8]?
    if try find(key.bytes, mayBlock: false, { copy = $0.array }) == .wouldBlock { return .cold }
    return copy.map { .row($0) } ?? .absent
  }

  /// Runs `body`, which may block, on the thread for cold reads.
  package func readBlocking<R: Sendable, E: Error>(
    _ body: @escaping @Sendable () throws(E) -> R
  ) async throws(E) -> R {
    try await reads.perform(body)
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

  /// The same, except that nil says that a block must be read from disk first when it may not block.
  package func withValue(
    of key: RawSpan, mayBlock: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    switch try find(key, mayBlock: mayBlock, body) {
    case .found: true
    case .absent: false
    case .wouldBlock: nil
    }
  }

  /// What a search came to.
  private enum Outcome {
    case found
    case absent
    case wouldBlock
  }

  /// Looks the key up, newest rows first.
  private func find(
    _ key: RawSpan, mayBlock: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Outcome {
    let shard = view.shards[view.shardIndex(of: key)]
    if let outcome = find(key, in: shard.active, body) { return outcome }
    if !shard.sealed.isEmpty {
      for memtable in shard.sealed {
        if let outcome = find(key, in: memtable, body) { return outcome }
      }
    }
    let runs = shard.runs
    guard !runs.isEmpty else { return .absent }
    let hash = KeyHash.hash(key)
    for index in runs.indices {
      let options = ReadOptions(mayBlock: mayBlock, asksFilterFirst: index < runs.count - 1)
      let run = runs[index]
      switch try run.get(key, hash: hash, options) {
      case .found(let row):
        switch row.kind {
        case .put:
          row.withValue(body)
          return .found
        case .delete: return .absent
        case .valuePointer: return try find(at: row.value, in: run, mayBlock: mayBlock, body)
        }
      case .absent: continue
      case .wouldBlock: return .wouldBlock
      }
    }
    return .absent
  }

  /// Follows the pointer to a large value.
  @inline(never)
  private func find(
    at pointer: RawSpan, in run: Run, mayBlock: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Outcome {
    switch try run.value(at: pointer, mayBlock: mayBlock) {
    case .found(let value):
      value.withValue(body)
      return .found
    case .absent: return .absent
    case .wouldBlock: return .wouldBlock
    }
  }

  private func find(
    _ key: RawSpan, in memtable: Memtable, _ body: (RawSpan) -> Void
  ) -> Outcome? {
    guard !memtable.isEmpty else { return nil }
    switch memtable.find(key, upTo: sequence, body) {
    case .put, .valuePointer: return .found
    case .delete: return .absent
    case nil: return nil
    }
  }

  /// A cursor over the rows with keys from `lower` on and before `upper` (no bound when empty),
  /// which must lie in one shard. Its steps block the thread while a block is read from disk.
  package func cursor(from lower: [UInt8], to upper: [UInt8]) -> Cursor {
    let shard = view.shards[lower.count < 4 ? 0 : view.shardIndex(of: lower.bytes)]
    let memtables = ([shard.active] + shard.sealed).filter { !$0.isEmpty }
    let sources =
      memtables.map { RowSource.memtable(MemtableCursor($0, upTo: sequence)) }
      + shard.runs.map { RowSource.run($0.cursor()) }
    return Cursor(MergeCursor(sources), from: lower, to: upper, in: view)
  }
}
