// One consistent picture of everything: a view and the sequence it was taken at. Reading from it asks no
// lock, no actor and no writer. What is in memory is read on the caller's own executor; only a block that
// must come from disk is fetched on the thread for cold reads, when the caller can wait without blocking.

/// The rows as of one commit.
package struct Snapshot: Sendable {
  private let view: View
  private let reads: any Worker
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
    var value: [UInt8]?
    if try search(key.bytes, blocking: false, { value = $0.array }) { return value }
    return try await reads.perform { () throws(EngineError) -> [UInt8]? in
      try getBlocking(key)
    }
  }

  /// The value at `key`, or nil. Blocks the thread while a block is read from disk.
  package func getBlocking(_ key: [UInt8]) throws(EngineError) -> [UInt8]? {
    try withValue(of: key.bytes) { $0.array }
  }

  /// Hands the value at `key` to `body` without copying it; nil when there is none. Blocks the thread while
  /// a block is read from disk.
  ///
  /// Inlined, so that the search below it need not be generic: a generic one looks types up in the runtime
  /// on every call, which costs a third of a get of a hot key.
  @inlinable
  package func withValue<R>(
    of key: RawSpan, _ body: (RawSpan) -> R
  ) throws(EngineError) -> R? {
    var result: R?
    _ = try search(key, blocking: true) { result = body($0) }
    return result
  }

  /// Looks the key up, newest rows first, and hands its value to `body`, if it has one. False when a block
  /// is missing and may not be waited for.
  @usableFromInline
  func search(
    _ key: RawSpan, blocking: Bool, _ body: (RawSpan) -> Void
  ) throws(EngineError) -> Bool {
    let shard = view.shards[view.shardIndex(of: key)]
    if find(key, in: shard.active, body) { return true }
    for memtable in shard.sealed where find(key, in: memtable, body) { return true }
    guard !shard.runs.isEmpty else { return true }
    let hash = KeyHash.hash(key)
    for index in shard.runs.indices {
      let options = ReadOptions(
        mayBlock: blocking, asksFilterFirst: index < shard.runs.count - 1)
      let run = shard.runs[index]
      switch try run.get(key, hash: hash, options) {
      case .found(let row):
        if row.kind == .put { body(row.value) }
        return true
      case .absent: continue
      case .wouldBlock: return false
      }
    }
    return true
  }

  /// Whether the memtable has a row of the key, whose value then went to `body` unless it is a deletion.
  private func find(
    _ key: RawSpan, in memtable: Memtable, _ body: (RawSpan) -> Void
  ) -> Bool {
    guard !memtable.isEmpty else { return false }
    let found: Void? = memtable.find(key, upTo: sequence) { kind, value in
      if kind == .put { body(value) }
    }
    return found != nil
  }

  /// A cursor over the rows with keys from `lower` on and before `upper` (no bound when empty), which must
  /// lie in one shard. Its steps block the thread while a block is read from disk.
  package func cursor(from lower: [UInt8], to upper: [UInt8]) -> Cursor {
    let shard = view.shards[lower.count < 4 ? 0 : view.shardIndex(of: lower.bytes)]
    let memtables = ([shard.active] + shard.sealed).filter { !$0.isEmpty }
    let sources =
      memtables.map { RowSource.memtable(MemtableCursor($0, upTo: sequence)) }
      + shard.runs.map { RowSource.run($0.cursor()) }
    return Cursor(MergeCursor(sources), from: lower, to: upper, in: view)
  }
}
