// The number of rows in a range, exact and usually without looking at them. A run knows it from its
// index. Rows of memtables and smaller runs are walked, and each key is looked up in the run. When
// there are few of them, as between flushes, a count takes microseconds.

extension Snapshot {
  /// The number of rows with keys from `lower` on and before `upper` (no bound when empty), which
  /// must be in one shard. Nil when only a walk over them determines it: when there are deletions
  /// that no merge has removed yet, or no run has most of the rows.
  ///
  /// - Parameters:
  ///   - most: the most rows to look at.
  ///   - mayBlock: whether it may block the thread while it reads blocks from disk; otherwise it
  ///     throws `.wouldBlock`.
  /// - Complexity: O(log n) in rows that are in one run; rows elsewhere are each looked up.
  package func rowCount(
    from lower: [UInt8], to upper: [UInt8], lookingAtMost most: Int, mayBlock: Bool
  ) throws(EngineError) -> Int? {
    try view.refuseLocked(lower.bytes)
    let shard = view.shards[view.shardIndex(of: lower.bytes)]
    var extents: [RunExtent] = []
    for run in shard.runs {
      extents.append(try run.extent(from: lower, to: upper, mayBlock: mayBlock))
    }
    guard
      let base = extents.indices.max(by: { extents[$0].rowCount < extents[$1].rowCount }),
      // A deletion below it concerns a row that exists nevertheless.
      extents[base...].allSatisfy({ $0.rowCount == 0 || !$0.mayHaveTombstones })
    else { return nil }
    var sources: [RowSource] = []
    var elsewhere = 0
    for memtable in [shard.active] + shard.sealed where !memtable.isEmpty {
      sources.append(.memtable(MemtableCursor(memtable, upTo: sequence)))
      elsewhere += memtable.approximateCount(from: lower.bytes, to: upper.bytes)
    }
    for place in extents.indices where place != base && extents[place].rowCount > 0 {
      sources.append(.run(shard.runs[place].cursor()))
      elsewhere += extents[place].rowCount
    }
    let limit = min(most, extents[base].rowCount / Self.rowsWorthALookup)
    guard elsewhere <= limit else { return nil }
    let others = try Self.difference(
      that: MergeCursor(sources), makesTo: shard.runs[base], from: lower, to: upper,
      lookingAtMost: limit, mayBlock: mayBlock)
    return others.map { extents[base].rowCount + $0 }
  }

  /// Skipping this many rows takes as long as one lookup.
  private static let rowsWorthALookup = 128

  /// The change of the number of rows in `base`, which has no tombstones, by the rows of `others`;
  /// nil when these are more than `most`.
  private static func difference(
    that others: consuming MergeCursor, makesTo base: Run, from lower: [UInt8],
    to upper: [UInt8], lookingAtMost most: Int, mayBlock: Bool
  ) throws(EngineError) -> Int? {
    var others = others
    if !mayBlock { others.forbidBlocking() }
    let known = base.cursor()
    known.mayBlock = mayBlock
    var difference = 0
    var looked = 0
    try others.seek(atOrAfter: lower.bytes)
    while others.isValid, upper.isEmpty || others.compare(upper.bytes) < 0 {
      looked += 1
      guard looked <= most else { return nil }
      try known.seek(atOrAfter: others.key)
      let isKnown = known.isValid && others.compare(known.key) == 0
      difference += (others.kind == .delete ? 0 : 1) - (isKnown ? 1 : 0)
      try others.next()
    }
    return difference
  }
}
