// Segments one behind another whose keys do not overlap: to a reader one long sorted list. A search
// finds the segment among the last keys of all, laid out as a block and searched as one.

/// Segments in ascending order of their keys, disjoint.
package final class Run: Sendable {
  package let segments: [Segment]
  private let runTable: RunTable
  /// Those that rows of any segment point into.
  let valueFiles: ValueFileTable

  package init(_ segments: [Segment]) {
    self.segments = segments
    valueFiles = ValueFileTable(segments.flatMap(\.valueFiles))
    var lastKeys = BlockBuilder()
    let nothing = [UInt8]()
    for segment in segments {
      let key = segment.metadata.maxKey
      lastKeys.append(.put, key: key.bytes, value: nothing.bytes)
    }
    runTable = RunTable(lastKeys: lastKeys, readers: segments.map { $0.table })
  }

  deinit {
    runTable.free()
  }

  /// Searches for `key`, whose KeyHash is `hash`; see `Segment.get`.
  @_lifetime(borrow self)
  package func get(
    _ key: RawSpan, hash: UInt64, _ options: ReadOptions = ReadOptions()
  ) throws(EngineError) -> Lookup {
    let index = runTable.segmentIndex(atOrAfter: key)
    guard index < runTable.count else { return .absent }
    if let segment = runTable.table(index) {
      if options.asksFilterFirst, !segment.filter.mayContain(hash) { return .absent }
      switch segment.find(key) {
      case .found(let pin, let row): return .found(PinnedRow(pin, row: row, owner: self))
      case .absent: return .absent
      case .notInMemory: break
      }
    }
    return try load(index, key, hash, options)
  }

  @inline(never)
  @_lifetime(borrow self)
  private func load(
    _ index: Int, _ key: RawSpan, _ hash: UInt64, _ options: ReadOptions
  ) throws(EngineError) -> Lookup {
    let segment = segments[index]
    return try segment.load(key, hash, options).held(by: self)
  }

  /// The first segment whose last key is `key` or above; the count of segments when there is none.
  func segmentIndex(atOrAfter key: RawSpan) -> Int {
    runTable.segmentIndex(atOrAfter: key)
  }

  /// The table of segment `index`, whose file is opened when it was not yet.
  func table(_ index: Int) throws(EngineError) -> SegmentTable {
    if let table = runTable.table(index) { return table }
    return try segments[index].open().table
  }

  /// A cursor that is nowhere yet.
  ///
  /// - Parameter keepsBlocks: whether blocks it reads from files enter the cache. A compaction,
  ///   which reads everything once, says no.
  package func cursor(keepsBlocks: Bool = true) -> RunCursor {
    RunCursor(self, keepsBlocks: keepsBlocks)
  }
}
