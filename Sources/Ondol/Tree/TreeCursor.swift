// Reads the rows of one node and everything below it in place. It finds a child by its key or by
// its neighbours, and assembles the child's content only on request. A step from child to child is
// one seek, however much is below them, so listing a node of a million children takes the memory of
// one child.

internal import OndolEngine

/// A position among the rows of a node.
struct TreeCursor: ~Copyable {
  private var cursor: Cursor
  private let rows: Rows
  /// Moves left until the next step of the read.
  private var movesLeft = Rows.rowsOfStep
  /// The key of the node's row.
  let node: [UInt8]

  init(_ rows: Rows, node: [UInt8]) {
    self.node = node
    self.rows = rows
    cursor = rows.snapshot.cursor(
      from: node, to: node + [KeyCoding.afterAll], mayBlock: rows.mayBlock)
  }

  // MARK: - The node

  /// The node with everything below it.
  ///
  /// - Complexity: O(rows).
  mutating func whole() throws(DatabaseError) -> TreeNode {
    try seek([])
    return try readNode(behind: node)
  }

  /// The row of the node itself, or of the one below it at `suffix`.
  mutating func row(_ suffix: [UInt8]) throws(DatabaseError) -> TreeRow? {
    try seek(suffix)
    return try isAt(suffix) ? currentRow() : nil
  }

  /// Whether there is a node at `suffix`: a row of a node, there or below. Rows that order children
  /// do not count, because an earlier state may contain current ones.
  mutating func hasNode(_ suffix: [UInt8]) throws(DatabaseError) -> Bool {
    try seek(suffix)
    while startsWith(suffix) {
      guard let ordered = TreeKey.orderedNode(of: cursor.key) else { return true }
      try seek(key: ordered + TreeKey.firstChild)
    }
    return false
  }

  /// Whether any child of the node has a priority.
  mutating func hasPriorities() throws(DatabaseError) -> Bool {
    try seek([TreeKey.Tag.priorities])
    return startsWith([TreeKey.Tag.priorities])
  }

  /// The bytes by which the node at `suffix` is ordered in an order by child or by value.
  mutating func orderBytes(_ suffix: [UInt8]) throws(DatabaseError) -> [UInt8] {
    if let leaf = try row(suffix)?.leaf { return TreeOrder.bytes(leaf.value()) }
    return TreeOrder.bytes(nil, isObject: try hasNode(suffix))
  }

  /// The node at `suffix`. `old` is its state before the rows with these keys were written. The
  /// keys are sorted, and all in the node's range.
  ///
  /// - Complexity: O(rows written), each with a seek and the logarithm of its siblings.
  mutating func updated(
    _ old: TreeNode, behind suffix: [UInt8], _ keys: ArraySlice<[UInt8]>
  ) throws(DatabaseError) -> TreeNode {
    var updated = old
    var rest = keys
    let length = node.count + suffix.count
    if let first = rest.first, first.count == length {
      updated.take(try row(suffix))
      rest = rest.dropFirst()
    }
    while let first = rest.first {
      guard let end = TreeKey.end(of: first.bytes, from: length) else {
        // A row that orders the children.
        rest = rest.dropFirst()
        continue
      }
      let component = Array(first[length..<end])
      let below = rest.prefix { $0.starts(with: first[..<end]) }
      rest = rest.dropFirst(below.count)
      let way = suffix + component
      let child =
        if let known = old.child(component) {
          try self.updated(known, behind: way, below)
        } else {
          try child(way)
        }
      if child.exists {
        updated.children.insert(try TreeChild(component, child))
      } else {
        updated.children.remove(component)
      }
    }
    return updated.exists ? updated : .nothing
  }

  // MARK: - Children

  /// The child with a key; one that does not exist when there is none.
  mutating func child(_ component: [UInt8]) throws(DatabaseError) -> TreeNode {
    try seek(component)
    return try readNode(behind: node + component)
  }

  /// Children in the order of keys: from the first at or after `lower`, before `upper`.
  ///
  /// - Complexity: O(rows of these children).
  mutating func children(
    from lower: [UInt8], to upper: [UInt8]?, atMost count: Int
  ) throws(DatabaseError) -> [TreeChild] {
    var found: [TreeChild] = []
    try seek(lower.isEmpty ? TreeKey.firstChild : lower)
    while found.count < count, let component = try component() {
      if let upper, TreeKey.compare(component, upper) >= 0 { break }
      let content = try readNode(behind: node + component)
      guard content.exists else { continue }
      found.append(try TreeChild(component, content))
    }
    return found
  }

  /// The number of children of the node at `suffix`, up to a limit.
  ///
  /// - Complexity: a seek for each counted child, however much is below it.
  mutating func childCount(_ suffix: [UInt8], atMost limit: Int) throws(DatabaseError) -> Int {
    let length = node.count + suffix.count
    var count = 0
    try seek(suffix + TreeKey.firstChild)
    while count < limit, startsWith(suffix), let end = TreeKey.end(of: cursor.key, from: length) {
      let child = cursor.key.extracting(node.count..<end).array
      if try hasNode(child) { count += 1 }
      try seek(child + [KeyCoding.afterAll])
    }
    return count
  }

  /// The component of the first child at or after `bound`.
  mutating func component(atOrAfter bound: [UInt8]) throws(DatabaseError) -> [UInt8]? {
    try seek(bound.isEmpty ? TreeKey.firstChild : bound)
    return try component()
  }

  /// The component of the last child before `bound`.
  mutating func component(before bound: [UInt8]) throws(DatabaseError) -> [UInt8]? {
    try seek(before: bound)
    return try component()
  }

  /// The component of the child at the cursor; nil when it is not in a child.
  private func component() throws(DatabaseError) -> [UInt8]? {
    guard cursor.isValid else { return nil }
    let key = cursor.key
    guard key.byteCount > node.count, key.byte(at: node.count) >= TreeKey.Tag.integer else {
      return nil
    }
    guard let end = TreeKey.end(of: key, from: node.count) else {
      throw DatabaseError(
        tree: MalformedBytes(at: node.count, "a key of the tree has an unknown form"))
    }
    return key.extracting(node.count..<end).array
  }

  // MARK: - Rows that order children

  /// The bytes after `prefix` in the first row at or after `bound` that begins with it.
  mutating func ordering(
    _ prefix: [UInt8], atOrAfter bound: [UInt8]
  ) throws(DatabaseError) -> TreePosition? {
    try seek(prefix + bound)
    return try position(behind: prefix)
  }

  /// The bytes after `prefix` in the last row before `bound` that begins with it.
  mutating func ordering(
    _ prefix: [UInt8], before bound: [UInt8]
  ) throws(DatabaseError) -> TreePosition? {
    try seek(before: prefix + bound)
    return try position(behind: prefix)
  }

  private func position(behind prefix: [UInt8]) throws(DatabaseError) -> TreePosition? {
    guard startsWith(prefix) else { return nil }
    let length = node.count + prefix.count
    guard let position = TreePosition(cursor.key.extracting(length...).array) else {
      throw DatabaseError(
        tree: MalformedBytes(at: length, "a row that orders children has an unknown form"))
    }
    return position
  }

  // MARK: - Rows

  /// Reads the rows that begin with `top`, starting at the current one, which must be the first of
  /// them.
  private mutating func readNode(behind top: [UInt8]) throws(DatabaseError) -> TreeNode {
    var builder = TreeNodeBuilder()
    while cursor.isValid, cursor.key.starts(with: top) {
      let skipped = try add(to: &builder, behind: top.count)
      if let skipped {
        let ordered = cursor.key.extracting(..<(top.count + skipped)).array
        try seek(key: ordered + TreeKey.firstChild)
      } else {
        try next()
      }
    }
    return builder.finish()
  }

  /// The value of the current row.
  private var value: RawSpan {
    @_lifetime(borrow self)
    get throws(DatabaseError) { try cursor.readValue }
  }

  private func add(
    to builder: inout TreeNodeBuilder, behind length: Int
  ) throws(DatabaseError) -> Int? {
    let value = try value
    do throws(MalformedBytes) {
      return try builder.add(cursor.key.extracting(length...), value)
    } catch {
      throw DatabaseError(tree: error)
    }
  }

  private func currentRow() throws(DatabaseError) -> TreeRow {
    let value = try value
    do throws(MalformedBytes) {
      return try TreeRow(value)
    } catch {
      throw DatabaseError(tree: error)
    }
  }

  private func isAt(_ suffix: [UInt8]) -> Bool {
    startsWith(suffix) && cursor.key.byteCount == node.count + suffix.count
  }

  private func startsWith(_ suffix: [UInt8]) -> Bool {
    guard cursor.isValid else { return false }
    return cursor.key.extracting(node.count...).starts(with: suffix)
  }

  private mutating func next() throws(DatabaseError) {
    try count()
    try rethrowing { () throws(EngineError) in try cursor.next() }
  }

  /// Counts a move.
  private mutating func count() throws(DatabaseError) {
    movesLeft -= 1
    guard movesLeft == 0 else { return }
    movesLeft = Rows.rowsOfStep
    try rows.step()
  }

  private mutating func seek(_ suffix: [UInt8]) throws(DatabaseError) {
    try seek(key: node + suffix)
  }

  private mutating func seek(key: [UInt8]) throws(DatabaseError) {
    try count()
    try rethrowing { () throws(EngineError) in try cursor.seek(atOrAfter: key.bytes) }
  }

  private mutating func seek(before suffix: [UInt8]) throws(DatabaseError) {
    let key = node + suffix
    try count()
    try rethrowing { () throws(EngineError) in
      try cursor.seek(atOrBefore: key.bytes)
      let isThere = cursor.isValid && cursor.key.compare(key.bytes) == 0
      if isThere { try cursor.previous() }
    }
  }
}

extension RawSpan {
  /// Whether it begins with these bytes.
  func starts(with prefix: [UInt8]) -> Bool {
    byteCount >= prefix.count && extracting(..<prefix.count).compare(prefix.bytes) == 0
  }
}
