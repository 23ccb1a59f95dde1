// Splits a range into parts, for code that reads or derives much on several threads.

extension Snapshot {
  /// Keys that split a range into `count` parts of similar size, ascending; none when the range is
  /// small, or is only in memory.
  ///
  /// - Parameters:
  ///   - lower: the first key, and `upper` the one after the last; of one shard.
  ///   - mayBlock: whether it may block the thread while it opens files; otherwise it throws
  ///     `.wouldBlock`.
  /// - Complexity: O(n log n) in the index blocks in the range.
  package func cuts(
    from lower: [UInt8], to upper: [UInt8], into count: Int, mayBlock: Bool
  ) throws(EngineError) -> [[UInt8]] {
    let shard = view.shards[view.shardIndex(of: lower.bytes)]
    var cuts = IndexCuts()
    for run in shard.runs {
      for segment in run.segments[run.segmentIndex(atOrAfter: lower.bytes)...] {
        let first = segment.metadata.minKey
        guard first.bytes.compare(upper.bytes) < 0 else { break }
        guard mayBlock || segment.table.value != nil else { throw .wouldBlock }
        try cuts.add(segment) { $0.compare(lower.bytes) > 0 && $0.compare(upper.bytes) < 0 }
      }
    }
    return cuts.chosen(into: count)
  }
}
