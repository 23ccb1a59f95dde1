// Segments one behind another whose keys do not overlap: to a reader one long sorted list. A search
// finds the segment among the last keys of all, laid out as a block and searched as one.

/// Segments in ascending order of their keys, disjoint.
final class Run: Sendable {
  let segments: [Segment]
  /// Those that rows of any segment point into.
  let valueFiles: ValueFileTable
  /// What gets go by.
  let table: RunTable

  init(_ segments: [Segment]) {
    self.segments = segments
    valueFiles = ValueFileTable(segments.flatMap(\.valueFiles))
    var lastKeys = BlockBuilder()
    let nothing = [UInt8]()
    for segment in segments {
      let key = segment.metadata.maxKey
      lastKeys.append(.put, key: key.bytes, value: nothing.bytes)
    }
    table = RunTable(lastKeys: lastKeys, readers: segments.map { $0.table })
  }

  deinit {
    table.free()
  }

  /// Searches for `key`, whose KeyHash is `hash`, where blocks in memory did not have the answer;
  /// see `Segment.load`.
  func load(_ key: RawSpan, hash: UInt64, _ options: ReadOptions) throws(EngineError) -> Lookup {
    let index = table.segmentIndex(atOrAfter: key)
    return index < table.count ? try segments[index].load(key, hash, options) : .absent
  }

  /// The first segment whose last key is `key` or above; the count of segments when there is none.
  func segmentIndex(atOrAfter key: RawSpan) -> Int {
    table.segmentIndex(atOrAfter: key)
  }

  /// The table of segment `index`, whose file is opened when it was not yet.
  func table(_ index: Int) throws(EngineError) -> SegmentTable {
    if let opened = table.table(index) { return opened }
    return try segments[index].open().table
  }

  /// A cursor that is nowhere yet.
  ///
  /// - Parameter keepsBlocks: whether blocks it reads from files enter the cache. A compaction,
  ///   which reads everything once, says no.
  func cursor(keepsBlocks: Bool = true) -> RunCursor {
    RunCursor(self, keepsBlocks: keepsBlocks)
  }
}
