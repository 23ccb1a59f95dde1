// About how many rows a memtable has in a range, for whoever shows sizes to people.

extension Memtable {
  /// About how many rows there are with keys from `lower` on and before `upper`: counted where
  /// nodes are linked so high that few are met, and each of those stands for four of the level
  /// below. A few rows are counted exactly.
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

  /// With so many nodes at a level their number says something of the levels below.
  private static let meaningfulCount = 100
}
