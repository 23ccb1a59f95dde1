// Counts the rows of a run in a range, without looking at them: the rank of a row is the number of
// rows before it, and the number of rows in a range is the difference of the ranks of its ends. An
// index block has the number of rows of each of its data blocks, and a segment keeps the sums.

/// The rows of a run that are in a range.
struct RunExtent {
  /// Rows, including tombstones.
  var rowCount = 0
  /// Whether some of them may be tombstones.
  var mayHaveTombstones = false
}

extension Run {
  /// The rows with keys from `lower` on and before `upper`; no upper bound when `upper` is empty.
  ///
  /// - Parameter mayBlock: whether it may wait for a file; otherwise it throws `.wouldBlock`.
  /// - Complexity: O(log n), and the first time the index blocks of the segments that the range
  ///   cuts.
  func extent(
    from lower: [UInt8], to upper: [UInt8], mayBlock: Bool
  ) throws(EngineError) -> RunExtent {
    let first = segmentIndex(atOrAfter: lower.bytes)
    let inside = segments[first...].prefix { segment in
      let key = segment.metadata.minKey
      return upper.isEmpty || key.bytes.compare(upper.bytes) < 0
    }
    guard !inside.isEmpty else { return RunExtent() }
    let cursor = cursor()
    cursor.mayBlock = mayBlock
    try cursor.seek(atOrAfter: lower.bytes)
    let begin = try cursor.rank()
    if upper.isEmpty { cursor.leave() } else { try cursor.seek(atOrAfter: upper.bytes) }
    let end = try cursor.rank()
    return RunExtent(
      rowCount: max(0, end - begin),
      mayHaveTombstones: inside.contains { $0.metadata.tombstones > 0 })
  }
}

extension RunCursor {
  /// The number of the run's rows before the current one; all, when there is no current one.
  fileprivate func rank() throws(EngineError) -> Int {
    guard let place = dataPlace else { return run.segments.reduce(0) { $0 + $1.rowCount } }
    let before = run.segments[..<place.segment].reduce(0) { $0 + $1.rowCount }
    let segment = run.segments[place.segment]
    return try before + segment.rowCount(beforeIndex: place.index, mayBlock: mayBlock)
      + segment.rowCount(of: place.indexBlock, before: place.block) + place.row
  }
}

extension Segment {
  /// Rows, including tombstones.
  fileprivate var rowCount: Int { Int(clamping: metadata.entries) }

  /// Rows before those that index block `number` leads to.
  fileprivate func rowCount(
    beforeIndex number: Int, mayBlock: Bool
  ) throws(EngineError) -> Int {
    var sums = rowSums.withLock { $0 }
    guard number >= sums.count else { return sums[number] }
    let table = try open().table
    while sums.count <= number {
      let index = sums.count - 1
      guard mayBlock || table.slots.pinOrResident(index) != nil else { throw .wouldBlock }
      let pin = try indexBlock(index, keep: true)
      let sum = try sums[index] + rowCount(of: pin.block, before: pin.block.rowCount)
      sums.append(sum)
    }
    let known = sums
    rowSums.withLock { if $0.count < known.count { $0 = known } }
    return sums[number]
  }

  /// Rows of the first `count` data blocks of an index block.
  fileprivate func rowCount(of index: Block, before count: Int) throws(EngineError) -> Int {
    let errors = SegmentErrors(file: metadata.number.segmentName)
    var sum = 0
    for row in 0..<count {
      sum += Int(try BlockHandle.parse(index.value(row), errors, 0).rowCount)
    }
    return sum
  }
}
