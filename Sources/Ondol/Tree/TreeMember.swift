// Computes the events between two states of a node. It looks only at children with changed rows,
// and with a limit also at those that enter and leave the window. Events come as in the Realtime
// Database: removed, added, moved, changed, each kind in the query's order, then one value. A child
// moves when the value that orders it changes, and then it has also changed. That other children
// came before it is no move. Events can be applied to a list one by one.

internal import OndolEngine

/// One observed place of a listener, and the state it keeps between events.
struct TreeMember: Sendable {
  let query: TreeQuery
  let path: TreePath
  let selection: TreeSelection
  let kinds: Set<TreeEvent.Kind>
  /// The positions of all children, when the rows do not give them.
  private var list: KeyedTree<TreePosition>?
  /// The children within the limit, as the listener last saw them; nil without a limit.
  private var window: KeyedTree<TreePosition>?
  /// The last delivered value. The next one shares everything with it except the changes. Nil when
  /// values are not requested.
  private var told: TreeNode?

  init(
    _ query: TreeQuery, _ kinds: Set<TreeEvent.Kind>
  ) throws(DatabaseError) {
    self.query = query
    self.kinds = kinds
    (path, selection) = try query.resolved()
  }

  private var hasChildEvents: Bool { kinds != [.value] }

  // MARK: - The beginning

  /// Reads the children for the first time; returns those to report.
  mutating func begin(in rows: Rows) throws(DatabaseError) -> TreePageSource? {
    let isTold = kinds.contains(.childAdded)
    if selection.limit == nil, try rows.keyBounds(of: selection, at: path.rowKey) != nil {
      return isTold ? try TreePageSource(path, selection, in: rows) : nil
    }
    var order = try ChildOrder(selection.order, of: path.rowKey, in: rows)
    list = order.list
    guard isTold || selection.limit != nil else { return nil }
    let positions = try order.positions(selection)
    if selection.limit != nil { window = KeyedTree(sorted: positions) }
    guard isTold else { return nil }
    return TreePageSource(node: path.rowKey, order: selection.order, positions: positions)
  }

  func event(
    _ kind: TreeEvent.Kind, _ child: TreeChild, after previous: String?
  ) -> TreeEvent {
    TreeEvent(
      kind: kind,
      snapshot: TreeSnapshot(reference: query.reference.child(child), node: child.node),
      previousSiblingKey: previous, query: query)
  }

  /// The node as a whole, read from scratch.
  mutating func firstValue(in rows: Rows) throws(DatabaseError) -> TreeEvent {
    valueEvent(try rows.node(at: path, selection))
  }

  private mutating func valueEvent(_ node: TreeNode) -> TreeEvent {
    told = node
    return TreeEvent(
      kind: .value,
      snapshot: TreeSnapshot(reference: query.reference, node: node, order: selection.order),
      previousSiblingKey: nil, query: query)
  }

  // MARK: - Commits

  /// The events between two states that differ in these rows.
  mutating func events(
    _ difference: TreeDifference, from before: Rows, to after: Rows
  ) throws(DatabaseError) -> [TreeEvent] {
    guard !difference.isEmpty else { return [] }
    var changes = ChildChanges()
    if !difference.components.isEmpty {
      try find(&changes, difference.components, from: before, to: after)
    }
    var events: [TreeEvent] = []
    if hasChildEvents { try tell(&events, changes, from: before, to: after) }
    let isVisible = !changes.isEmpty || selection.isWhole && difference.isOwn
    if kinds.contains(.value), isVisible {
      events.append(valueEvent(try current(difference, changes, in: after)))
    }
    return events
  }

  /// The node as a whole, from the last delivered value: only what changed is read.
  private func current(
    _ difference: TreeDifference, _ changes: ChildChanges, in rows: Rows
  ) throws(DatabaseError) -> TreeNode {
    guard var node = told, let keys = difference.keys else {
      return try rows.node(at: path, selection)
    }
    var cursor = TreeCursor(rows, node: path.rowKey)
    if selection.isWhole { return try cursor.updated(node, behind: [], keys) }
    for position in changes.removed { node.children.remove(position.component) }
    for position in changes.added + changes.changed {
      let component = position.component
      let child =
        if let known = node.child(component) {
          try cursor.updated(
            known, behind: component, keys.beginning(with: path.rowKey + component))
        } else {
          try cursor.child(component)
        }
      node.children.insert(try TreeChild(component, child))
    }
    return node
  }

  /// What happened to children, each kind in order.
  private struct ChildChanges {
    var removed: [TreePosition] = []
    var added: [TreePosition] = []
    var moved: [TreePosition] = []
    var changed: [TreePosition] = []

    var isEmpty: Bool { removed.isEmpty && added.isEmpty && changed.isEmpty }

    /// Records the old and the new position of a child.
    mutating func note(_ before: TreePosition?, _ after: TreePosition?) {
      switch (before, after) {
      case (nil, nil): break
      case (let before?, nil): removed.append(before)
      case (nil, let after?): added.append(after)
      case (let before?, let after?):
        changed.append(after)
        if before.order != after.order { moved.append(after) }
      }
    }

    mutating func sort() {
      func isBefore(_ left: TreePosition, _ right: TreePosition) -> Bool {
        TreeKey.compare(left.bytes, right.bytes) < 0
      }
      removed.sort(by: isBefore)
      added.sort(by: isBefore)
      moved.sort(by: isBefore)
      changed.sort(by: isBefore)
    }
  }

  private mutating func find(
    _ changes: inout ChildChanges, _ components: [[UInt8]], from before: Rows, to after: Rows
  ) throws(DatabaseError) {
    var old = TreeCursor(before, node: path.rowKey)
    var new = TreeCursor(after, node: path.rowKey)
    var moves: [(before: TreePosition?, after: TreePosition?)] = []
    for component in components {
      moves.append(
        (
          try old.position(of: component, in: selection.order),
          try new.position(of: component, in: selection.order)
        ))
    }
    updateList(moves)
    if let seen = window {
      var order = try ChildOrder(selection.order, of: path.rowKey, in: after, list: list)
      list = order.list
      let current = KeyedTree(sorted: try order.positions(selection))
      window = current
      compare(seen, current, Set(components), &changes)
    } else {
      for (before, after) in moves {
        changes.note(
          before.flatMap { selection.contains($0) ? $0 : nil },
          after.flatMap { selection.contains($0) ? $0 : nil })
      }
    }
    changes.sort()
  }

  /// Moves changed children to their new positions in the list.
  private mutating func updateList(
    _ moves: [(before: TreePosition?, after: TreePosition?)]
  ) {
    guard var list else { return }
    for (before, after) in moves where before != after {
      if let before { list.remove(before.bytes) }
      if let after { list.insert(after) }
    }
    self.list = list
  }

  /// The difference between two windows.
  private func compare(
    _ seen: KeyedTree<TreePosition>, _ current: KeyedTree<TreePosition>, _ touched: Set<[UInt8]>,
    _ changes: inout ChildChanges
  ) {
    var old: [[UInt8]: TreePosition] = [:]
    for position in seen { old[position.component] = position }
    for position in current {
      guard let before = old.removeValue(forKey: position.component) else {
        changes.note(nil, position)
        continue
      }
      if touched.contains(position.component) { changes.note(before, position) }
    }
    for position in old.values { changes.note(position, nil) }
  }

  private mutating func tell(
    _ events: inout [TreeEvent], _ changes: ChildChanges, from before: Rows, to after: Rows
  ) throws(DatabaseError) {
    if kinds.contains(.childRemoved), !changes.removed.isEmpty {
      var old = try ChildOrder(.key, of: path.rowKey, in: before)
      for position in changes.removed {
        events.append(event(.childRemoved, try old.child(position.component), after: nil))
      }
    }
    var sorts: [(TreeEvent.Kind, [TreePosition])] = [
      (.childAdded, changes.added), (.childMoved, changes.moved), (.childChanged, changes.changed),
    ]
    guard sorts.contains(where: { kinds.contains($0.0) && !$0.1.isEmpty }) else { return }
    var order = try ChildOrder(selection.order, of: path.rowKey, in: after, list: list)
    list = order.list
    if kinds.contains(.childAdded), kinds.contains(.childMoved) {
      sorts[1].1 = try movers(changes, in: &order)
    }
    for (kind, positions) in sorts where kinds.contains(kind) {
      for position in positions {
        let sibling = try sibling(before: position, in: &order).map(Self.key)
        events.append(event(kind, try order.child(position.component), after: sibling))
      }
    }
  }

  /// The children to report as moved. An app that applies events to its own list inserts an added
  /// child after its sibling. If that sibling has yet to move, it would leave the added child
  /// behind. So a child that was added after a moving one is also reported as moved.
  private func movers(
    _ changes: ChildChanges, in order: inout ChildOrder
  ) throws(DatabaseError) -> [TreePosition] {
    guard !changes.moved.isEmpty, !changes.added.isEmpty else { return changes.moved }
    var moved = changes
    var components = Set(changes.moved.map(\.component))
    for position in changes.added {
      guard let sibling = try sibling(before: position, in: &order), components.contains(sibling)
      else { continue }
      components.insert(position.component)
      moved.moved.append(position)
    }
    moved.sort()
    return moved.moved
  }

  /// The component of the child directly before a position.
  private func sibling(
    before position: TreePosition, in order: inout ChildOrder
  ) throws(DatabaseError) -> [UInt8]? {
    guard let window else { return try order.sibling(before: position, in: selection) }
    return window.last(before: position.bytes)?.component
  }

  private static func key(_ component: [UInt8]) throws(DatabaseError) -> String {
    do throws(MalformedBytes) {
      return try TreeKey.key(component.bytes)
    } catch {
      throw DatabaseError(tree: error)
    }
  }
}
