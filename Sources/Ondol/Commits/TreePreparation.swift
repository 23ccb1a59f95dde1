// Stage 2 of the write path for the tree: derives the rows of a batch from writes and a snapshot.
// It reads only what a write depends on, and guards everything it reads: the rows above the place,
// which may be leaves, and the rows of the place itself and below. So changing a leaf looks at the
// rows above it and at its own, however many children its parent has.
//
// The rules: a write replaces everything at its place. A leaf above becomes a node with children
// and keeps its priority. A node without children does not exist: its own row is removed with its
// last child.

internal import OndolEngine

/// A change of one place.
struct TreeChange: Sendable {
  enum Content: Sendable {
    /// Replaces the node and everything below.
    case replace(TreeContent)
    /// Changes only the priority, if the node exists.
    case prioritize(Value?)
  }

  var path: TreePath
  var content: Content
}

/// Derives rows of the tree from a snapshot.
struct TreePreparation {
  private let rows: Rows
  private var pending = PendingRows()
  private var guardedKeys: Set<[UInt8]> = []
  private var guardedRanges: [KeyRange] = []
  private var indexes: TreeIndexLookup

  init(_ rows: Rows) {
    self.rows = rows
    indexes = TreeIndexLookup(rows)
  }

  /// Whether nothing was written.
  private(set) var isEmpty = true

  // MARK: - Applying

  /// Applies simultaneous changes after the previous ones. None of their places may be inside
  /// another.
  mutating func apply(_ changes: [TreeChange]) throws(DatabaseError) {
    // Guards that there are no other indexes.
    if isEmpty { guardedRanges.append(TreeIndexDefinition.range) }
    isEmpty = false
    try indexes.expect(places: changes.count)
    var moves: [[UInt8]: IndexedChild] = [:]
    for change in changes {
      for index in try indexes.above(change.path) { try note(change.path, in: index, &moves) }
    }
    for change in changes {
      switch change.content {
      case .replace(let content): try replace(change.path, by: content)
      case .prioritize(let priority):
        try prioritize(change.path, priority)
      }
    }
    // Last, because another change may have given an ancestor a child again.
    for change in changes {
      if case .replace(let content) = change.content, content.isEmpty {
        try removeEmptyAncestors(of: change.path)
      }
    }
    for move in moves.values { try settle(move) }
  }

  private mutating func replace(
    _ path: TreePath, by content: TreeContent
  ) throws(DatabaseError) {
    guardedRanges.append(path.range)
    guard try openAncestors(of: path, forRemoval: content.isEmpty) else { return }
    let within = try indexes.within(path)
    let above = try indexes.above(path)
    let isIndexed = !within.isEmpty || !above.isEmpty
    let content = isIndexed ? content.resolved(now: rows.catalog.clock()) : content
    let existing = try existingRows(in: path.range)
    let oldPriority = try existing.first.flatMap { (entry) throws(DatabaseError) in
      entry.key == path.rowKey ? try Self.row(entry.row).priority : nil
    }
    let new = try newRows(at: path, content, over: existing, within)
    var position = existing.startIndex
    for (key, row) in new {
      while position < existing.endIndex, TreeKey.compare(existing[position].key, key) < 0 {
        remove(existing[position])
        position += 1
      }
      var before: [UInt8]?
      if position < existing.endIndex, existing[position].key == key {
        before = existing[position].row
        position += 1
      }
      put(key, row, before: before)
    }
    for entry in existing[position...] { remove(entry) }
    let isRooted = content.rows.first?.suffix.isEmpty == true
    let newPriority = isRooted ? content.rows.first?.row.priority : nil
    try order(path, from: oldPriority, to: newPriority)
  }

  private mutating func prioritize(
    _ path: TreePath, _ priority: Value?
  ) throws(DatabaseError) {
    guardedRanges.append(path.range)
    let stored = try current(path.rowKey)
    if stored == nil {
      guard try hasChild(of: path.rowKey) else { return }
    }
    var row = try stored.map(Self.row) ?? TreeRow()
    let old = row.priority
    row.priority = priority
    if row.isEmpty {
      if let stored { remove((path.rowKey, stored)) }
    } else {
      put(path.rowKey, row.bytes, before: stored)
    }
    try order(path, from: old, to: priority)
  }

  // MARK: - Around the place

  /// Makes the nodes above the place able to have children; false when there is a leaf and nothing
  /// will be below it.
  private mutating func openAncestors(
    of path: TreePath, forRemoval: Bool
  ) throws(DatabaseError) -> Bool {
    for key in path.ancestorKeys {
      guardedKeys.insert(key)
      guard let stored = try current(key) else { continue }
      var row = try Self.row(stored)
      guard row.leaf != nil else { continue }
      if forRemoval { return false }
      row.leaf = nil
      if row.isEmpty { remove((key, stored)) } else { put(key, row.bytes, before: stored) }
    }
    return true
  }

  /// Removes the rows of the nodes above the place that no longer have children.
  private mutating func removeEmptyAncestors(of path: TreePath) throws(DatabaseError) {
    var place = path.parent
    while let node = place {
      if let stored = try current(node.rowKey) {
        let row = try Self.row(stored)
        if row.leaf != nil { return }
        if try hasChild(of: node.rowKey) { return }
        remove((node.rowKey, stored))
        try order(node, from: row.priority, to: nil)
      }
      place = node.parent
    }
  }

  /// Whether a node has a child; guards the answer in either case.
  private mutating func hasChild(of key: [UInt8]) throws(DatabaseError) -> Bool {
    let range = KeyRange(
      lower: key + TreeKey.firstChild, upper: key + [KeyCoding.afterAll])
    if let first = try firstKey(in: range) {
      guardedKeys.insert(first)
      return true
    }
    guardedRanges.append(range)
    return false
  }

  /// Gives the node its place among its siblings by a new priority.
  private mutating func order(
    _ path: TreePath, from old: Value?, to new: Value?
  ) throws(DatabaseError) {
    guard let parent = path.parent, old != nil || new != nil else { return }
    let component = path.lastComponent
    let oldKey = old.map { TreeOrder.priorityKey($0, of: component, in: parent.rowKey) }
    let newKey = new.map { TreeOrder.priorityKey($0, of: component, in: parent.rowKey) }
    guard oldKey != newKey else { return }
    if let oldKey, let stored = try current(oldKey) { remove((oldKey, stored)) }
    if let newKey { put(newKey, ([], nil), before: try current(newKey)) }
  }

  // MARK: - Rows

  typealias StoredRow = (key: [UInt8], row: [UInt8])

  private mutating func put(
    _ key: [UInt8], _ row: (row: [UInt8], stamp: Int?), before: [UInt8]?
  ) {
    pending.set(key, row.row, stamp: row.stamp, before: before)
  }

  private mutating func remove(_ entry: StoredRow) {
    pending.set(entry.key, nil, stamp: nil, before: entry.row)
  }

  /// The rows of the content, including those that order its nodes, by key.
  private mutating func newRows(
    at path: TreePath, _ content: TreeContent, over existing: [StoredRow],
    _ indexes: [TreeIndexDefinition]
  ) throws(DatabaseError) -> [(key: [UInt8], row: (row: [UInt8], stamp: Int?))] {
    var new: [(key: [UInt8], row: (row: [UInt8], stamp: Int?))] = []
    var orders: [[UInt8]] = []
    new.reserveCapacity(content.rows.count)
    for var entry in content.rows {
      let key = path.rowKey + entry.suffix
      if case .increment = entry.row.leaf {
        let stored = try existing.first { $0.key == key }.map { (stored) throws(DatabaseError) in
          try Self.row(stored.row)
        }
        entry.row.leaf = entry.row.leaf?.applied(to: stored?.leaf, now: rows.catalog.clock())
      }
      new.append((key, entry.row.bytes))
      if let priority = entry.row.priority, !entry.suffix.isEmpty {
        let parent = path.rowKey + entry.suffix[..<entry.parentLength]
        let component = Array(entry.suffix[entry.parentLength...])
        orders.append(TreeOrder.priorityKey(priority, of: component, in: parent))
      }
    }
    for index in indexes {
      orders += index.keys(of: content, at: path, now: rows.catalog.clock())
    }
    guard !orders.isEmpty else { return new }
    new += orders.map { ($0, ([], nil)) }
    new.sort { TreeKey.compare($0.key, $1.key) < 0 }
    return new
  }

  /// A row as the writes so far leave it.
  private func current(_ key: [UInt8]) throws(DatabaseError) -> [UInt8]? {
    if let pending = pending[key] { return pending.row }
    return try rows.row(key)
  }

  /// The rows in a range as the writes so far leave them.
  private func existingRows(in range: KeyRange) throws(DatabaseError) -> [StoredRow] {
    let written = pending.rows(in: range)
    var found: [StoredRow] = []
    var next = written.startIndex
    try rows.forEachRow(in: range) { (key, value) throws(DatabaseError) in
      let stored = key.array
      while next < written.endIndex, TreeKey.compare(written[next].key, stored) < 0 {
        if let row = written[next].pending.row { found.append((written[next].key, row)) }
        next += 1
      }
      // Left to the written row, which comes with the next key.
      if next < written.endIndex, written[next].key == stored { return true }
      found.append((stored, value.array))
      return true
    }
    for entry in written[next...] {
      if let row = entry.pending.row { found.append((entry.key, row)) }
    }
    return found
  }

  /// The first key of a node in a range as the writes so far leave it. Skips rows that order
  /// children, because they may not be final yet.
  private func firstKey(in range: KeyRange) throws(DatabaseError) -> [UInt8]? {
    let written = pending.rows(in: range)
    let first = written.first { $0.pending.row != nil && TreeKey.isNode($0.key.bytes) }?.key
    var walk = RangeWalk(rows, [range])
    var isThere = try walk.next()
    while isThere {
      let key = walk.cursor.key.array
      if let first, TreeKey.compare(first, key) <= 0 { break }
      if let ordered = TreeKey.orderedNode(of: key.bytes) {
        isThere = try walk.next(from: ordered + TreeKey.firstChild)
      } else if pending[key] != nil {
        isThere = try walk.next()
      } else {
        return key
      }
    }
    return first
  }

  static func row(_ bytes: [UInt8]) throws(DatabaseError) -> TreeRow {
    do throws(MalformedBytes) {
      return try TreeRow(bytes.bytes)
    } catch {
      throw DatabaseError(tree: error)
    }
  }

  // MARK: - Indexes

  /// A child that is in an index and may move there.
  private struct IndexedChild {
    var index: TreeIndexDefinition
    var component: [UInt8]
    var before: [UInt8]?
  }

  /// Records the child that a change is in or below, when the index contains it.
  private func note(
    _ path: TreePath, in index: TreeIndexDefinition, _ moves: inout [[UInt8]: IndexedChild]
  ) throws(DatabaseError) {
    let node = index.node
    guard path.rowKey.count > node.count, path.rowKey.starts(with: node),
      let end = TreeKey.end(of: path.rowKey.bytes, from: node.count)
    else { return }
    let component = Array(path.rowKey[node.count..<end])
    let name = index.prefix + component
    guard moves[name] == nil else { return }
    let key = try entry(of: component, in: index)
    moves[name] = IndexedChild(index: index, component: component, before: key)
  }

  private mutating func settle(_ move: IndexedChild) throws(DatabaseError) {
    let after = try entry(of: move.component, in: move.index)
    guard after != move.before else { return }
    if let before = move.before, let stored = try current(before) { remove((before, stored)) }
    if let after { put(after, ([], nil), before: try current(after)) }
  }

  /// The key of a child's current row in an index; nil when there is no such child.
  private func entry(
    of component: [UInt8], in index: TreeIndexDefinition
  ) throws(DatabaseError) -> [UInt8]? {
    let child = index.node + component
    guard try firstKey(in: KeyRange(prefix: child)) != nil else { return nil }
    let place = child + index.way
    var leaf: TreeLeaf?
    if let stored = try current(place) { leaf = try Self.row(stored).leaf }
    if let leaf {
      return index.key(of: component, leaf.value(now: rows.catalog.clock()), isObject: false)
    }
    let isObject = try firstKey(in: KeyRange(prefix: place)) != nil
    return index.key(of: component, nil, isObject: isObject)
  }

  // MARK: - The end

  /// Adds the rows to a batch, guards what they were derived from, and returns the changes for
  /// listeners.
  func finish(into batch: inout Batch) -> [TreeRowChange] {
    var changes: [TreeRowChange] = []
    pending.forEach { key, pending in
      guard pending.isChanged else { return }
      if let row = pending.row {
        let stamps: [(offset: Int, form: StampForm)] = pending.stamp.map { [($0, .time)] } ?? []
        batch.put(key.bytes, row.bytes, stamps: stamps)
      } else if pending.before != nil {
        batch.delete(key.bytes)
      }
      if TreeKey.isNode(key.bytes) {
        changes.append(TreeRowChange(key: key, before: pending.before))
      }
    }
    return changes
  }

  /// Adds what was read to a footprint.
  func add(to footprint: inout Footprint) {
    for key in guardedKeys { footprint.add(key: key) }
    for range in guardedRanges { footprint.add(range) }
  }
}

/// A row that a commit has changed, in its old state: nil when there was none.
struct TreeRowChange: Sendable {
  var key: [UInt8]
  var before: [UInt8]?
}

extension DatabaseError {
  /// An unreadable row of the tree.
  init(tree error: MalformedBytes) {
    self.init(
      .dataLoss,
      "the tree is damaged: \(error.reason) at \(error.offset); restore a backup or salvage what is"
        + " left")
  }
}

extension Rows {
  /// Shows the rows in a range, in order, until `visit` returns false.
  func forEachRow(
    in range: KeyRange,
    _ visit: (_ key: RawSpan, _ value: RawSpan) throws(DatabaseError) -> Bool
  ) throws(DatabaseError) {
    var walk = RangeWalk(self, [range])
    var goesOn = true
    while goesOn, try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in goesOn = try visit(key, value) }
    }
  }
}
