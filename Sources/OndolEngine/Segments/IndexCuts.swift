// Keys that split rows into parts of similar size, without reading the rows: index blocks represent
// about equally many bytes. Merges, scans and code that derives many rows use them to work on
// several threads.

/// Where rows can be split.
struct IndexCuts {
  private var keys: [[UInt8]] = []

  /// Adds the index blocks of a segment whose keys `isInside` accepts. Opens the file if necessary.
  mutating func add(
    _ segment: Segment, where isInside: (RawSpan) -> Bool = { _ in true }
  ) throws(EngineError) {
    let top = try segment.open().table.top
    for row in 0..<top.rowCount {
      let key = top.prefix().array + top.suffix(row).array
      if isInside(key.bytes) { keys.append(key) }
    }
  }

  /// Keys that split the added rows into `count` parts, ascending; none when there are too few
  /// blocks for that.
  consuming func chosen(into count: Int) -> [[UInt8]] {
    guard count > 1, keys.count >= count else { return [] }
    keys.sort { $0.bytes.compare($1.bytes) < 0 }
    let cuts = (1..<count).map { keys[keys.count * $0 / count] }
    return zip(cuts, cuts.dropFirst()).allSatisfy { $0 != $1 } ? cuts : []
  }
}
