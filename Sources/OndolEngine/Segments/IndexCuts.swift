// Keys that cut rows into parts of about the same size, without a look at the rows: index blocks
// stand for about as many bytes each. Merges, scans and whoever derives many rows work on several
// threads this way.

/// Where rows can be cut.
struct IndexCuts {
  private var keys: [[UInt8]] = []

  /// Adds the index blocks of a segment whose keys `isInside` lets through. Opens the file when it
  /// was not yet.
  mutating func add(
    _ segment: Segment, where isInside: (RawSpan) -> Bool = { _ in true }
  ) throws(EngineError) {
    let top = try segment.open().table.top
    for row in 0..<top.rowCount {
      let key = top.prefix().array + top.suffix(row).array
      if isInside(key.bytes) { keys.append(key) }
    }
  }

  /// Keys that cut what was added into `count` parts, ascending; none where there are too few
  /// blocks for that.
  consuming func chosen(into count: Int) -> [[UInt8]] {
    guard count > 1, keys.count >= count else { return [] }
    keys.sort { $0.bytes.compare($1.bytes) < 0 }
    let cuts = (1..<count).map { keys[keys.count * $0 / count] }
    return zip(cuts, cuts.dropFirst()).allSatisfy { $0 != $1 } ? cuts : []
  }
}
