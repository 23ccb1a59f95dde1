// What a get needs of a view, reached without counting a reference: for each shard its memtables
// and the tables of its runs, side by side. A get that goes through the objects instead retains and
// releases a dozen of them, which took a third of its time when everything is in the processor's
// caches.

/// How a search for a key ended.
enum SearchOutcome {
  /// A row was found and given out; it may be a tombstone.
  case found
  case absent
  /// The answer is in a block that is not in memory, and the caller did not want to wait.
  case wouldBlock
}

/// The parts of a view that gets touch. A plain reference: its owner, which keeps the objects,
/// calls `free` at the end.
@safe struct ViewTable: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: not written after init; what it leads to can be read by any thread.

  @safe private struct ShardTable: BitwiseCopyable {
    /// The active memtable, then the sealed ones, newest first.
    let memtables: UnsafeMutableBufferPointer<Unmanaged<Memtable>>
    /// Newest first.
    let runs: UnsafeMutableBufferPointer<RunEntry>
  }

  @safe fileprivate struct RunEntry: BitwiseCopyable {
    let table: RunTable
    let run: Unmanaged<Run>
  }

  private let shards: UnsafeMutableBufferPointer<ShardTable>

  init(_ views: [ShardView]) {
    unsafe shards = .allocate(capacity: views.count)
    for (index, view) in views.enumerated() {
      let memtables = [view.active] + view.sealed
      let table = unsafe ShardTable(
        memtables: .allocate(capacity: memtables.count), runs: .allocate(capacity: view.runs.count))
      for (place, memtable) in memtables.enumerated() {
        unsafe table.memtables.initializeElement(at: place, to: .passUnretained(memtable))
      }
      for (place, run) in view.runs.enumerated() {
        unsafe table.runs.initializeElement(
          at: place, to: RunEntry(table: run.table, run: .passUnretained(run)))
      }
      unsafe shards.initializeElement(at: index, to: table)
    }
  }

  var shardCount: Int { unsafe shards.count }

  /// The table of the shard's only run, unless a memtable has rows of `key`.
  func onlyRun(inShard index: Int, besides key: RawSpan) -> RunTable? {
    let shard = unsafe shards[index]
    guard unsafe shard.runs.count == 1 else { return nil }
    for place in unsafe shard.memtables.indices {
      let memtable = unsafe shard.memtables[place]
      let mayContain = unsafe memtable._withUnsafeGuaranteedRef { memtable in
        !memtable.isEmpty && memtable.newestSequence(of: key) != nil
      }
      if mayContain { return nil }
    }
    return unsafe shard.runs[0].table
  }

  func free() {
    for index in unsafe shards.indices {
      let shard = unsafe shards[index]
      unsafe shard.memtables.deallocate()
      unsafe shard.runs.deallocate()
    }
    unsafe shards.deallocate()
  }

  /// Looks for the newest row of `key` no newer than `sequence` in shard `index` and gives it to
  /// `body`.
  ///
  /// - Complexity: O(log rows) for each memtable and run. Nothing is allocated or counted, and no
  ///   lock taken, when the blocks are in memory.
  @inline(__always)
  func find(
    _ key: RawSpan, inShard index: Int, upTo sequence: SequenceNumber, mayBlock: Bool,
    _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> SearchOutcome {
    // Safe: the view's owner keeps it, and the view all objects; `index` is that of a shard.
    let shard = unsafe shards[index]
    for place in unsafe shard.memtables.indices {
      let memtable = unsafe shard.memtables[place]
      let isFound = unsafe memtable._withUnsafeGuaranteedRef { memtable in
        !memtable.isEmpty && memtable.find(key, upTo: sequence, body)
      }
      if isFound { return .found }
    }
    let runs = unsafe shard.runs
    if runs.count == 1 {
      // The only run is asked without its filter; its hash is not needed.
      switch unsafe runs[0].find(key, hash: nil) {
      case .found(let pin, let row):
        let kind = pin.block.kind(row)
        if kind == .valuePointer {
          return try unsafe runs[0].follow(pin.block.value(row), mayBlock: mayBlock, body)
        }
        body(kind, pin.block.value(row))
        return .found
      case .absent: return .absent
      case .notInMemory: break
      }
    }
    return try unsafe find(key, in: runs, mayBlock: mayBlock, body)
  }

  @inline(never)
  private func find(
    _ key: RawSpan, in runs: UnsafeMutableBufferPointer<RunEntry>, mayBlock: Bool,
    _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> SearchOutcome {
    let hash = KeyHash.hash(key)
    for index in runs.indices {
      let isLast = index == runs.count - 1
      let entry = unsafe runs[index]
      switch entry.find(key, hash: isLast ? nil : hash) {
      case .found(let pin, let row):
        let kind = pin.block.kind(row)
        if kind == .valuePointer {
          return try entry.follow(pin.block.value(row), mayBlock: mayBlock, body)
        }
        body(kind, pin.block.value(row))
        return .found
      case .absent: continue
      case .notInMemory: break
      }
      // Safe: as above.
      let run = unsafe entry.run.takeUnretainedValue()
      let options = ReadOptions(mayBlock: mayBlock, asksFilterFirst: !isLast)
      switch try run.get(key, hash: hash, options) {
      case .found(let row):
        if row.kind == .valuePointer {
          return try entry.follow(row.value, mayBlock: mayBlock, body)
        }
        row.withValue { body(row.kind, $0) }
        return .found
      case .absent: continue
      case .wouldBlock: return .wouldBlock
      }
    }
    return .absent
  }
}

extension ViewTable.RunEntry {
  /// Searches the blocks in memory, after the filter when there is a hash to ask it for.
  @inline(__always)
  fileprivate func find(_ key: RawSpan, hash: UInt64?) -> TableLookup {
    let index = table.segmentIndex(atOrAfter: key)
    guard index < table.count else { return .absent }
    guard let segment = table.table(index) else { return .notInMemory }
    if let hash, !segment.filter.mayContain(hash) { return .absent }
    return segment.find(key)
  }

  /// Gives the value that a row's pointer leads to.
  @inline(never)
  fileprivate func follow(
    _ pointer: RawSpan, mayBlock: Bool, _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> SearchOutcome {
    // Safe: the view that has this entry keeps the run.
    let run = unsafe run.takeUnretainedValue()
    switch try run.value(at: pointer, mayBlock: mayBlock) {
    case .found(let value):
      value.withValue { body(.put, $0) }
      return .found
    case .absent: return .absent
    case .wouldBlock: return .wouldBlock
    }
  }
}
