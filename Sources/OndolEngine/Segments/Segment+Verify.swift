// Reads a whole segment and checks what no single read looks at: the header, that every block lies
// between its neighbours' keys, that the filter knows every key, that the sums are right. Goes past
// the cache, for it is the file that is in question.

extension Segment {
  /// Checks every byte of the file that carries meaning.
  ///
  /// - Throws: `.corrupt` with the first thing that is wrong.
  /// - Complexity: O(file); reads all of it.
  package func verify() throws(EngineError) {
    let segment = try open()
    try segment.verifyHeader(expectedHeader)
    var sums = SegmentSums()
    for index in 0..<segment.table.top.rowCount {
      let indexPin = try segment.loadIndexBlock(index, keep: false)
      for row in 0..<indexPin.block.rowCount {
        let pin = try segment.loadDataBlock(index, indexPin.block, row, keep: false)
        if let problem = sums.add(pin.block, upTo: indexPin.block, row, segment.table.filter) {
          throw corrupt("block \(row) of index block \(index): \(problem)")
        }
      }
      if let problem = sums.checkBound(of: segment.table.top, index) {
        throw corrupt("index block \(index): \(problem)")
      }
    }
    guard sums.entries == metadata.entries, sums.tombstones == metadata.tombstones,
      sums.rawBytes == metadata.rawBytes, sums.firstKey == metadata.minKey,
      sums.values.references == metadata.valueReferences,
      sums.lastKey == metadata.maxKey
    else { throw corrupt("the rows are not those that the manifest counts") }
  }

  private func corrupt(_ reason: String) -> EngineError {
    .corrupt(file: metadata.number.segmentName, offset: 0, reason: reason)
  }
}

/// What a walk over all rows adds up.
private struct SegmentSums {
  var entries: UInt64 = 0
  var tombstones: UInt64 = 0
  var rawBytes: UInt64 = 0
  var values = ValueReferenceSums()
  var firstKey: [UInt8] = []
  var lastKey: [UInt8] = []
  /// The upper bound of the block before.
  private var lastBound: [UInt8] = []

  /// Adds the rows of `block`, which row `row` of `index` leads to; gives back what is wrong.
  mutating func add(
    _ block: Block, upTo index: Block, _ row: Int, _ filter: FilterBits
  ) -> String? {
    let buffer = KeyBuffer()
    for place in 0..<block.rowCount {
      let length = buffer.fill(block, place)
      let key = buffer.key(length, heldBy: buffer)
      if place == 0 {
        if entries == 0 {
          firstKey = key.array
        } else if lastBound.bytes.compare(key) >= 0 {
          return "begins below the bound of the one before"
        }
      }
      if !filter.mayContain(KeyHash.hash(key)) { return "row \(place) is not in the filter" }
      entries += 1
      switch block.kind(place) {
      case .put: break
      case .delete: tombstones += 1
      case .valuePointer:
        guard let pointer = try? ValuePointer(row: block.value(place)) else {
          return "row \(place) has no pointer"
        }
        values.add(pointer)
      }
      rawBytes += UInt64(length + block.valueRange(place).count)
      if place + 1 == block.rowCount { lastKey = key.array }
    }
    lastBound = index.prefix().array + index.suffix(row).array
    return checkBound(of: index, row)
  }

  /// Checks that the last key so far is not above that of `row` in `index`, an upper bound.
  func checkBound(of index: Block, _ row: Int) -> String? {
    let bound = index.prefix().array + index.suffix(row).array
    return lastKey.bytes.compare(bound.bytes) > 0 ? "ends above its bound" : nil
  }
}
