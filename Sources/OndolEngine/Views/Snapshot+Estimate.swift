// Estimates the number of rows in a range without a walk: for showing sizes or progress to people.
// It is beside the read path. Whole segments are counted by the manifest's numbers, those that a
// range cuts by their index blocks, memtables by the upper levels of their lists.

extension Snapshot {
  /// The approximate number of rows with keys from `lower` on and before `upper`, which must be in
  /// one shard. Every version of a row and every tombstone counts, so the estimate is too high
  /// after updates and deletions, until compaction has removed them.
  ///
  /// - Parameter mayBlock: whether it may block the thread while it reads index blocks from disk;
  ///   otherwise it throws `.wouldBlock`.
  /// - Complexity: O(segments in the range); at most two index blocks of a segment are read.
  package func approximateRowCount(
    from lower: [UInt8], to upper: [UInt8], mayBlock: Bool
  ) throws(EngineError) -> Int {
    let shard = view.shards[view.shardIndex(of: lower.bytes)]
    var count = 0
    for memtable in [shard.active] + shard.sealed where !memtable.isEmpty {
      count += memtable.approximateCount(from: lower.bytes, to: upper.bytes)
    }
    for run in shard.runs {
      for segment in run.segments[run.segmentIndex(atOrAfter: lower.bytes)...] {
        let first = segment.metadata.minKey
        guard first.bytes.compare(upper.bytes) < 0 else { break }
        count += try segment.approximateRowCount(from: lower, to: upper, mayBlock: mayBlock)
      }
    }
    return count
  }
}

extension Segment {
  /// A data block, as the index block that points to it and the place in that.
  private struct Place {
    var index: Int
    var row: Int
  }

  /// Rows of consecutive data blocks.
  private struct Tally {
    var rows = 0
    var blocks = 0
  }

  fileprivate func approximateRowCount(
    from lower: [UInt8], to upper: [UInt8], mayBlock: Bool
  ) throws(EngineError) -> Int {
    let (first, last) = (metadata.minKey, metadata.maxKey)
    guard last.bytes.compare(lower.bytes) >= 0 else { return 0 }
    let beginsInside = first.bytes.compare(lower.bytes) < 0
    let endsInside = last.bytes.compare(upper.bytes) >= 0
    guard beginsInside || endsInside else { return Int(clamping: metadata.entries) }
    guard mayBlock || table.value != nil else { throw .wouldBlock }
    let table = try open().table
    var begin = Place(index: 0, row: 0)
    var end = Place(index: table.top.rowCount, row: 0)
    if beginsInside { begin = try place(of: lower.bytes, table, mayBlock) }
    if endsInside { end = try place(of: upper.bytes, table, mayBlock) }
    if begin.index == end.index {
      return try tally(begin.index, begin.row..<max(begin.row, end.row), table, mayBlock).rows
    }
    let head = try tally(begin.index, begin.row..<Int.max, table, mayBlock)
    let tail = try tally(end.index, 0..<end.row, table, mayBlock)
    // The middle is assumed to be like the ends: rows of one keyspace are much alike.
    let between = table.dataSlot(end.index, 0) - table.dataSlot(begin.index + 1, 0)
    let blocks = head.blocks + tail.blocks
    let mean = blocks > 0 ? Double(head.rows + tail.rows) / Double(blocks) : table.meanRows
    return head.rows + Int(Double(between) * mean) + tail.rows
  }

  /// The data block that `key` belongs to.
  private func place(
    of key: RawSpan, _ table: SegmentTable, _ mayBlock: Bool
  ) throws(EngineError) -> Place {
    let index = table.top.lowerBound(key)
    guard index < table.top.rowCount else { return Place(index: index, row: 0) }
    guard mayBlock || table.slots.pinOrResident(index) != nil else { throw .wouldBlock }
    return Place(index: index, row: try indexBlock(index, keep: true).block.lowerBound(key))
  }

  /// An index block's numbers about some of its data blocks.
  private func tally(
    _ index: Int, _ rows: Range<Int>, _ table: SegmentTable, _ mayBlock: Bool
  ) throws(EngineError) -> Tally {
    guard !rows.isEmpty, index < table.top.rowCount else { return Tally() }
    guard mayBlock || table.slots.pinOrResident(index) != nil else { throw .wouldBlock }
    let pin = try indexBlock(index, keep: true)
    let errors = SegmentErrors(file: metadata.number.segmentName)
    var tally = Tally()
    for row in rows.clamped(to: 0..<pin.block.rowCount) {
      tally.rows += Int(try BlockHandle.parse(pin.block.value(row), errors, 0).rowCount)
      tally.blocks += 1
    }
    return tally
  }
}
