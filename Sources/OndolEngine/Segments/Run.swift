// Segments one behind another whose keys do not overlap: to a reader one long sorted list. A search finds the
// segment among the last keys of all, laid out as a block and searched as one.

/// Segments in ascending order of their keys, disjoint.
package final class Run: Sendable {
  package let segments: [Segment]
  /// The segments' last keys; nil when there are none.
  private let lastKeys: Block?

  package init(_ segments: [Segment]) {
    self.segments = segments
    var keys = BlockBuilder()
    let nothing = [UInt8]()
    for segment in segments {
      let key = segment.metadata.maxKey
      keys.append(.put, key: key.bytes, value: nothing.bytes)
    }
    lastKeys = segments.isEmpty ? nil : Block.make(keys)
  }

  deinit {
    lastKeys?.free()
  }

  /// Searches for `key`, whose KeyHash is `hash`; see `Segment.get`.
  @inline(__always)
  @_lifetime(borrow self)
  package func get(
    _ key: RawSpan, hash: UInt64, _ options: ReadOptions = ReadOptions()
  ) throws(EngineError) -> Lookup {
    let index = segmentIndex(atOrAfter: key)
    guard index < segments.count else { return .absent }
    let segment = segments[index]
    return try segment.get(key, hash: hash, options).held(by: self)
  }

  /// The first segment whose last key is `key` or above; the count of segments when there is none.
  @inline(__always)
  func segmentIndex(atOrAfter key: RawSpan) -> Int {
    guard let lastKeys else { return 0 }
    return lastKeys.lowerBound(key)
  }

  /// A cursor that is nowhere yet.
  ///
  /// - Parameter keepsBlocks: whether blocks it reads from files enter the cache. A compaction, which reads
  ///   everything once, says no.
  package func cursor(keepsBlocks: Bool = true) -> RunCursor {
    RunCursor(self, keepsBlocks: keepsBlocks)
  }
}
