// How many rows a range has, exactly and mostly without looking at them. A run knows it from its
// index. What memtables and smaller runs have above and below it is walked, and each key looked up
// in the run: where that is little, as it is between flushes, a count takes microseconds.

extension Snapshot {
  /// How many rows there are with keys from `lower` on and before `upper` (no bound when empty),
  /// which must lie in one shard; nil when only a walk over them tells: where there are deletions
  /// that no merge has removed yet, or no run has most of the rows.
  ///
  /// - Parameters:
  ///   - most: rows that it may look at.
  ///   - mayBlock: whether it may block the thread while blocks are read from disk; otherwise it
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
      // A deletion below it is of a row that is there nevertheless.
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

  /// As many rows are passed over in the time that one is looked up.
  private static let rowsWorthALookup = 128

  /// By how much the rows of `others` change the number of those of `base`, which has no
  /// tombstones; nil when they are more than `most`.
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
