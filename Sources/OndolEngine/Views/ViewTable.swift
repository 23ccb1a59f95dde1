// What a get needs of a view, accessible without reference counting: for each shard its memtables
// and the tables of its runs, side by side. A get that goes through the objects instead retains and
// releases a dozen of them, which took a third of its time when everything is in the processor's
// caches.

/// The parts of a view that gets use. A plain reference: its owner, which keeps the objects, calls
/// `free` at the end.
@safe struct ViewTable: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: not written after init; any thread can read what it refers to.

  @safe private struct ShardTable: BitwiseCopyable {
    /// The active memtable, then the sealed ones, newest first.
    let memtables: UnsafeMutableBufferPointer<Unmanaged<Memtable>>
    /// Newest first.
    let runs: UnsafeMutableBufferPointer<RunEntry>
    /// The store's rows, if it has them instead.
    let remote: Unmanaged<RemoteRows>?
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
        memtables: .allocate(capacity: memtables.count),
        runs: .allocate(capacity: view.runs.count),
        remote: view.remote.map(Unmanaged.passUnretained))
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

  /// Looks for the newest row of `key` no newer than `sequence` in shard `index` and passes it to
  /// `body`; it may be a tombstone.
  ///
  /// - Returns: whether there is one; nil when the answer is in a block that is not in memory and
  ///   it may not block.
  /// - Complexity: O(log rows) for each memtable and run. Nothing is allocated or counted, and no
  ///   lock taken, when the blocks are in memory.
  @inline(__always)
  func find(
    _ key: RawSpan, inShard index: Int, upTo sequence: SequenceNumber, mayBlock: Bool,
    _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    // Safe: the view's owner keeps it, and the view all objects; `index` is that of a shard.
    let shard = unsafe shards[index]
    for place in unsafe shard.memtables.indices {
      let memtable = unsafe shard.memtables[place]
      let isFound = unsafe memtable._withUnsafeGuaranteedRef { memtable in
        !memtable.isEmpty && memtable.find(key, upTo: sequence, body)
      }
      if isFound { return true }
    }
    let runs = unsafe shard.runs
    if runs.count == 1 {
      // The only run is searched without its filter, so its hash is not needed.
      let entry = unsafe runs[0]
      switch entry.table.find(key, hash: nil) {
      case .found(let pin, let row): return try entry.give(pin, row, mayBlock, body)
      case .absent: return false
      case .notInMemory: break
      }
    }
    return try find(key, in: shard, mayBlock, body)
  }

  /// The same in several runs, of which one is not all in memory, or in a store.
  @inline(never)
  private func find(
    _ key: RawSpan, in shard: ShardTable, _ mayBlock: Bool, _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    if let remote = unsafe shard.remote {
      // Safe: the view's owner keeps it.
      return try unsafe remote.takeUnretainedValue().find(key, mayBlock: mayBlock, body)
    }
    let runs = unsafe shard.runs
    let hash = KeyHash.hash(key)
    for index in runs.indices {
      let isLast = index == runs.count - 1
      let entry = unsafe runs[index]
      switch entry.table.find(key, hash: isLast ? nil : hash) {
      case .found(let pin, let row): return try entry.give(pin, row, mayBlock, body)
      case .absent: continue
      case .notInMemory: break
      }
      // Safe: as above.
      let run = unsafe entry.run.takeUnretainedValue()
      let options = ReadOptions(mayBlock: mayBlock, asksFilterFirst: !isLast)
      switch try run.load(key, hash: hash, options) {
      case .found(let pin, let row): return try entry.give(pin, row, mayBlock, body)
      case .absent: continue
      case .notInMemory: return nil
      }
    }
    return false
  }
}

extension ViewTable.RunEntry {
  /// Passes a row that was found to `body`; nil when its value must be read and may not be.
  @inline(__always)
  fileprivate func give(
    _ pin: borrowing PinnedBlock, _ row: Int, _ mayBlock: Bool, _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    let kind = pin.block.kind(row)
    if kind == .valuePointer { return try follow(pin.block.value(row), mayBlock, body) }
    body(kind, pin.block.value(row))
    return true
  }

  /// Passes the value that a row's pointer leads to.
  @inline(never)
  private func follow(
    _ pointer: RawSpan, _ mayBlock: Bool, _ body: (RowKind, RawSpan) -> Void
  ) throws(EngineError) -> Bool? {
    // Safe: the view that has this entry keeps the run.
    let run = unsafe run.takeUnretainedValue()
    guard let value = try run.value(at: ValuePointer(row: pointer), mayBlock: mayBlock) else {
      return nil
    }
    body(.put, value.block.value(0))
    return true
  }
}
