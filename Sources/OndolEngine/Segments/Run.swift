// Consecutive segments whose keys do not overlap: for a reader one long sorted list. A search finds
// the segment by the last keys of all, laid out as a block and searched like one.

/// Segments in ascending order of their keys, disjoint.
final class Run: Sendable {
  let segments: [Segment]
  /// The value files that rows of any segment point into.
  let valueFiles: ValueFileTable
  /// The table that gets use.
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

  /// Searches for `key`, whose KeyHash is `hash`, when blocks in memory did not have the answer;
  /// see `Segment.load`.
  func load(_ key: RawSpan, hash: UInt64, _ options: ReadOptions) throws(EngineError) -> Lookup {
    let index = table.segmentIndex(atOrAfter: key)
    return index < table.count ? try segments[index].load(key, hash, options) : .absent
  }

  /// The first segment whose last key is `key` or above; the number of segments when there is none.
  func segmentIndex(atOrAfter key: RawSpan) -> Int {
    table.segmentIndex(atOrAfter: key)
  }

  /// The table of segment `index`, whose file is opened if necessary.
  func table(_ index: Int) throws(EngineError) -> SegmentTable {
    if let opened = table.table(index) { return opened }
    return try segments[index].open().table
  }

  /// A cursor without a position.
  ///
  /// - Parameter keepsBlocks: whether blocks it reads from files enter the cache. A compaction,
  ///   which reads everything once, passes false.
  func cursor(keepsBlocks: Bool = true) -> RunCursor {
    RunCursor(self, keepsBlocks: keepsBlocks)
  }
}
