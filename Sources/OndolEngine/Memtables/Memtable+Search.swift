// Finds rows in a memtable. Readers follow links with load-acquire, concurrently with the writer.

extension Memtable {
  /// Passes the newest row of `key` no newer than `sequence` to `body`; false when there is none.
  func find(
    _ key: RawSpan, upTo sequence: SequenceNumber, _ body: (RowKind, RawSpan) -> Void
  ) -> Bool {
    let node = firstNode(atOrAfter: key, upTo: sequence)
    guard node != 0, self.key(of: node).compare(key) == 0 else { return false }
    body(kind(of: node), value(of: node))
    return true
  }

  /// The sequence of the newest row of `key`.
  func newestSequence(of key: RawSpan) -> SequenceNumber? {
    let node = firstNode(atOrAfter: key, upTo: SequenceNumber(rawValue: .max >> 8))
    guard node != 0, self.key(of: node).compare(key) == 0 else { return nil }
    return self.sequence(of: node)
  }

  /// The first node with (key, sequence) at or after the given pair, or 0.
  func firstNode(atOrAfter key: RawSpan, upTo sequence: SequenceNumber) -> Int {
    let head = KeyHead(key)
    let tag = sequence.rawValue << 8 | 0xff
    var predecessor = 0
    var level = topLevel
    while true {
      let next = load(predecessor, level)
      if next != 0, isNode(next, beforeHead: head, key, tag: tag) {
        predecessor = next
      } else if level == 0 {
        return next
      } else {
        level -= 1
      }
    }
  }

  /// Whether two nodes have the same key.
  func haveEqualKeys(_ left: Int, _ right: Int) -> Bool {
    key(of: left).compare(key(of: right)) == 0
  }

  /// The newest version, no newer than `sequence`, of the key at `node`, or 0.
  func version(of node: Int, upTo sequence: SequenceNumber) -> Int {
    let version = firstNode(atOrAfter: key(of: node), upTo: sequence)
    return version != 0 && haveEqualKeys(version, node) ? version : 0
  }

  /// The last node whose key is before that of `node`, or 0.
  func lastNode(beforeKeyOf node: Int) -> Int {
    lastNode(before: key(of: node))
  }

  /// The last node whose key is before `key`, or 0; considers only nodes linked at level `bottom`.
  func lastNode(before key: RawSpan, atLevel bottom: Int = 0) -> Int {
    let head = KeyHead(key)
    var predecessor = 0
    var level = topLevel
    while true {
      let next = load(predecessor, level)
      // No tag is above this one, so every version of `key` itself comes after.
      if next != 0, isNode(next, beforeHead: head, key, tag: .max) {
        predecessor = next
      } else if level <= bottom {
        return predecessor
      } else {
        level -= 1
      }
    }
  }

  /// The last node of all, or 0.
  func lastNode() -> Int {
    var predecessor = 0
    var level = topLevel
    while true {
      let next = load(predecessor, level)
      if next != 0 {
        predecessor = next
      } else if level == 0 {
        return predecessor
      } else {
        level -= 1
      }
    }
  }

  /// The node after `node`, or the first one after 0; 0 at the end.
  func node(after node: Int) -> Int { load(node, 0) }
}
