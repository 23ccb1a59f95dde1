// Estimates how many rows a memtable has in a range, for showing sizes to people.

extension Memtable {
  /// The approximate number of rows with keys from `lower` on and before `upper`. It counts nodes
  /// on a level that has few of them, and each represents four of the level below. A few rows are
  /// counted exactly.
  func approximateCount(from lower: RawSpan, to upper: RawSpan) -> Int {
    let head = KeyHead(upper)
    var level = topLevel
    while true {
      var count = 0
      var node = load(lastNode(before: lower, atLevel: level), level)
      while node != 0, isNode(node, beforeHead: head, upper, tag: .max) {
        count += 1
        node = load(node, level)
      }
      if count >= Self.meaningfulCount || level == 0 { return count << (2 * level) }
      level -= 1
    }
  }

  /// With this many nodes on a level, their number is meaningful for the levels below.
  private static let meaningfulCount = 100
}
