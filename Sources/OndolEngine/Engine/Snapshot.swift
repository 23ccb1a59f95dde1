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
    if let answer = try find(key.bytes, blocking: false, { $0.array }) { return answer.value }
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
  package func withValue<R>(
    of key: RawSpan, _ body: (RawSpan) -> R
  ) throws(EngineError) -> R? {
    try find(key, blocking: true, body)?.value
  }

  /// What a search came to.
  private struct Answer<R> {
    var value: R?
  }

  /// Looks the key up, newest rows first; nil when a block is missing and may not be waited for.
  private func find<R>(
    _ key: RawSpan, blocking: Bool, _ body: (RawSpan) -> R
  ) throws(EngineError) -> Answer<R>? {
    let shard = view.shards[view.shardIndex(of: key)]
    if let answer = find(key, in: shard.active, body) { return answer }
    for memtable in shard.sealed {
      if let answer = find(key, in: memtable, body) { return answer }
    }
    guard !shard.runs.isEmpty else { return Answer(value: nil) }
    let hash = KeyHash.hash(key)
    for index in shard.runs.indices {
      let options = ReadOptions(
        mayBlock: blocking, asksFilterFirst: index < shard.runs.count - 1)
      let run = shard.runs[index]
      switch try run.get(key, hash: hash, options) {
      case .found(let row): return Answer(value: row.kind == .put ? body(row.value) : nil)
      case .absent: continue
      case .wouldBlock: return nil
      }
    }
    return Answer(value: nil)
  }

  private func find<R>(
    _ key: RawSpan, in memtable: Memtable, _ body: (RawSpan) -> R
  ) -> Answer<R>? {
    guard !memtable.isEmpty else { return nil }
    return memtable.find(key, upTo: sequence) { kind, value in
      Answer(value: kind == .put ? body(value) : nil)
    }
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
