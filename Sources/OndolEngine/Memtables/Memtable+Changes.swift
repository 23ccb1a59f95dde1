// Checks whether commits after a given one changed anything in a range of keys, for the guards of
// optimistic commits. There are two ways through a memtable: the rows of the range in the order of
// their keys, and the newer rows in the order of their commits. Either can be the long one, for a
// collection of many rows or for a slow transaction, and which one is unknown beforehand. So both
// are walked at once, alternating row by row, and the first to end has the answer: at most twice
// the shorter way.

extension Memtable {
  /// A place after which are all nodes of commits after `sequence`, with few of earlier ones. For
  /// the one writer, like `nodesEnd`.
  func place(ofCommitsAfter sequence: SequenceNumber) -> Int {
    marks.last { $0.sequence <= sequence.next }?.place ?? marks.first?.place ?? nodesEnd
  }

  /// The place of the node that was added after the one at `place`.
  private func place(after place: Int) -> Int {
    place + Self.length(height: height(of: place), keyLength: keyLength(of: place))
  }

  /// Whether a row from `lower` on and before `upper`, no bound when empty, was put or deleted by a
  /// commit after `basis`, whose nodes are all at `places` or before; nil when `steps` rows were
  /// looked at without a result. Decrements `steps`. The places are determined under the writer's
  /// lock; the search may run outside it.
  ///
  /// - Complexity: O(rows of the range) or O(rows at the places), whichever is less.
  func hasChange(
    from lower: RawSpan, to upper: RawSpan, after basis: SequenceNumber, among places: Range<Int>,
    steps: inout Int
  ) -> Bool? {
    var place = places.lowerBound
    var node = 0
    while place < places.upperBound {
      if steps <= 0 { return nil }
      steps -= 1
      node =
        node == 0
        ? firstNode(atOrAfter: lower, upTo: SequenceNumber(rawValue: .max >> 8))
        : self.node(after: node)
      guard node != 0, isBefore(upper, node) else { return false }
      if sequence(of: node) > basis { return true }
      if sequence(of: place) > basis, isBefore(upper, place), key(of: place).compare(lower) >= 0 {
        return true
      }
      place = self.place(after: place)
    }
    return false
  }

  private func isBefore(_ upper: RawSpan, _ node: Int) -> Bool {
    upper.byteCount == 0 || key(of: node).compare(upper) < 0
  }
}
