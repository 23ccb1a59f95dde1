// The difference between two states of a node: its own row, and the children with a changed row.
// Usually the rows are known, because commits recorded which they changed. Otherwise, all rows of
// both states are walked side by side.

internal import OndolEngine

/// Which children of a node, and whether its own row, differ between two states.
struct TreeDifference: Sendable {
  private(set) var isOwn = false
  /// In order, each once.
  private(set) var components: [[UInt8]] = []
  /// The keys of the changed rows, sorted; nil after a walk over two states, because there may be
  /// any number of them.
  private(set) var keys: ArraySlice<[UInt8]>?

  var isEmpty: Bool { !isOwn && components.isEmpty }

  /// The difference that consists of the rows with these keys, which are sorted.
  init(of node: [UInt8], keys: [[UInt8]]) {
    let own = keys[...].beginning(with: node)
    for key in own { note(key, of: node) }
    self.keys = own
  }

  /// The difference between two states, row by row.
  ///
  /// - Complexity: O(rows of the node in both).
  init(of node: [UInt8], from before: Rows, to after: Rows) throws(DatabaseError) {
    let range = KeyRange(prefix: node)
    var old = RangeWalk(before, [range])
    var new = RangeWalk(after, [range])
    var hasOld = try old.next()
    var hasNew = try new.next()
    while hasOld || hasNew {
      let order = !hasOld ? 1 : !hasNew ? -1 : old.cursor.key.compare(new.cursor.key)
      if order < 0 {
        note(old.cursor.key.array, of: node)
      } else if order > 0 {
        note(new.cursor.key.array, of: node)
      } else {
        let (left, right) = (try old.value.array, try new.value.array)
        if left != right { note(new.cursor.key.array, of: node) }
      }
      if order <= 0 { hasOld = try old.next() }
      if order >= 0 { hasNew = try new.next() }
    }
  }

  private mutating func note(_ key: [UInt8], of node: [UInt8]) {
    guard key.count > node.count else {
      isOwn = true
      return
    }
    // A row that orders children follows from the nodes' rows, and an earlier state may contain the
    // current one.
    guard TreeKey.isNode(key.bytes), let end = TreeKey.end(of: key.bytes, from: node.count) else {
      return
    }
    let component = key[node.count..<end]
    if components.last?.elementsEqual(component) != true { components.append(Array(component)) }
  }
}

extension ArraySlice<[UInt8]> {
  /// The keys that begin with `prefix`, of sorted keys.
  func beginning(with prefix: [UInt8]) -> Self {
    self[partition { TreeKey.compare($0, prefix) < 0 }...].prefix { $0.starts(with: prefix) }
  }
}

extension Rows {
  /// The keys of those rows that differ from their earlier state, sorted.
  func changedKeys(_ before: [[UInt8]: [UInt8]?]) throws(DatabaseError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    for (key, old) in before where try row(key) != old { keys.append(key) }
    keys.sort { TreeKey.compare($0, $1) < 0 }
    return keys
  }
}

extension Snapshot {
  /// The same rows with these replaced.
  func replacing(_ rows: [[UInt8]: [UInt8]?]) -> Snapshot {
    var batch = Batch()
    for (key, row) in rows {
      if let row { batch.put(key.bytes, row.bytes) } else { batch.delete(key.bytes) }
    }
    return batch.isEmpty ? self : overlaid(by: batch, time: 0)
  }
}
