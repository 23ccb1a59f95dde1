// The children of a node in one of their orders, as positions. There are three ways to walk them:
// by key and by priority from row to row; by an index from row to row of the index; and otherwise
// by a list of all positions, which is sorted once.

internal import OndolEngine

/// The children of a node in an order.
struct ChildOrder: ~Copyable {
  private enum Way {
    case keys
    case priorities
    /// Rows whose keys begin with these bytes after the node's key.
    case index([UInt8])
    case list(KeyedTree<TreePosition>)
  }

  private var cursor: TreeCursor
  private let way: Way

  init(
    _ order: TreeOrder, of node: [UInt8], in rows: Rows, list: KeyedTree<TreePosition>? = nil
  ) throws(DatabaseError) {
    cursor = TreeCursor(rows, node: node)
    switch order {
    case .key:
      way = .keys
      return
    case .priority:
      way = .priorities
      return
    case .value:
      break
    case .child(let path):
      let index = TreeIndexDefinition(node: node, way: path)
      if try rows.row(index.declarationKey) != nil {
        way = .index([TreeKey.Tag.index] + path + [KeyCoding.Tag.end])
        return
      }
    }
    if let list { way = .list(list) } else { way = .list(try Self.list(order, &cursor)) }
  }

  /// The list of all positions, if this walks one.
  var list: KeyedTree<TreePosition>? { if case .list(let list) = way { list } else { nil } }

  /// All positions, sorted.
  ///
  /// - Complexity: O(n log n) in the children.
  static func list(
    _ order: TreeOrder, _ cursor: inout TreeCursor
  ) throws(DatabaseError) -> KeyedTree<TreePosition> {
    var positions: [TreePosition] = []
    var bound: [UInt8] = []
    while let component = try cursor.component(atOrAfter: bound) {
      if let position = try cursor.position(of: component, in: order) { positions.append(position) }
      bound = component + [KeyCoding.afterAll]
    }
    positions.sort { TreeKey.compare($0.bytes, $1.bytes) < 0 }
    return KeyedTree(sorted: positions)
  }

  // MARK: - Steps

  /// The first position at or after `bound`.
  mutating func first(atOrAfter bound: [UInt8]) throws(DatabaseError) -> TreePosition? {
    switch way {
    case .keys:
      return try cursor.component(atOrAfter: bound).map { TreePosition(order: [], component: $0) }
    case .index(let prefix):
      return try cursor.ordering(prefix, atOrAfter: bound)
    case .list(let list):
      return list.first(atOrAfter: bound)
    case .priorities:
      let null = TreeOrder.bytes(nil)
      if TreeKey.compare(bound, null + [KeyCoding.afterAll]) < 0 {
        var rest = bound.starts(with: null) ? Array(bound.dropFirst(null.count)) : []
        while let component = try cursor.component(atOrAfter: rest) {
          if try !cursor.hasPriority(component) {
            return TreePosition(order: null, component: component)
          }
          rest = component + [KeyCoding.afterAll]
        }
      }
      return try cursor.ordering([TreeKey.Tag.priorities], atOrAfter: bound)
    }
  }

  /// The last position before `bound`.
  mutating func last(before bound: [UInt8]) throws(DatabaseError) -> TreePosition? {
    switch way {
    case .keys:
      return try cursor.component(before: bound).map { TreePosition(order: [], component: $0) }
    case .index(let prefix):
      return try cursor.ordering(prefix, before: bound)
    case .list(let list):
      return list.last(before: bound)
    case .priorities:
      if let position = try cursor.ordering([TreeKey.Tag.priorities], before: bound) {
        return position
      }
      let null = TreeOrder.bytes(nil)
      guard TreeKey.compare(bound, null) > 0 else { return nil }
      var rest = bound.starts(with: null) ? Array(bound.dropFirst()) : [KeyCoding.afterAll]
      while let component = try cursor.component(before: rest) {
        if try !cursor.hasPriority(component) {
          return TreePosition(order: null, component: component)
        }
        rest = component
      }
      return nil
    }
  }

  // MARK: - Selections

  /// The positions that a selection includes, in order.
  ///
  /// - Complexity: O(positions), each a step.
  mutating func positions(_ selection: TreeSelection) throws(DatabaseError) -> [TreePosition] {
    var found: [TreePosition] = []
    let limit = selection.limit?.count ?? .max
    if selection.limit?.isFromEnd == true {
      var bound = selection.upper ?? [KeyCoding.afterAll]
      while found.count < limit, let position = try last(before: bound),
        selection.contains(position)
      {
        found.append(position)
        bound = position.bytes
      }
      found.reverse()
      return found
    }
    var bound = selection.lower ?? []
    while found.count < limit, let position = try first(atOrAfter: bound),
      selection.contains(position)
    {
      found.append(position)
      bound = position.bytes + [KeyCoding.afterAll]
    }
    return found
  }

  /// The key of the child before a position, within a selection without a limit.
  mutating func sibling(
    before position: TreePosition, in selection: TreeSelection
  ) throws(DatabaseError) -> [UInt8]? {
    guard let sibling = try last(before: position.bytes), selection.contains(sibling) else {
      return nil
    }
    return sibling.component
  }

  /// The child's position; nil when there is no such child.
  mutating func position(
    of component: [UInt8], in order: TreeOrder
  ) throws(DatabaseError) -> TreePosition? {
    try cursor.position(of: component, in: order)
  }

  /// The children at these positions, with everything below them.
  mutating func children(_ positions: some Sequence<TreePosition>) throws(DatabaseError)
    -> [TreeChild]
  {
    var children: [TreeChild] = []
    for position in positions { children.append(try child(position.component)) }
    return children
  }

  /// The child with a key, with everything below it.
  mutating func child(_ component: [UInt8]) throws(DatabaseError) -> TreeChild {
    try TreeChild(component, try cursor.child(component))
  }
}

extension TreeCursor {
  /// A child's position in an order; nil when there is no such child.
  mutating func position(
    of component: [UInt8], in order: TreeOrder
  ) throws(DatabaseError) -> TreePosition? {
    guard try hasNode(component) else { return nil }
    let bytes: [UInt8]
    switch order {
    case .key: bytes = []
    case .priority: bytes = TreeOrder.bytes(try row(component)?.priority)
    case .value: bytes = try orderBytes(component)
    case .child(let path): bytes = try orderBytes(component + path)
    }
    return TreePosition(order: bytes, component: component)
  }

  fileprivate mutating func hasPriority(_ component: [UInt8]) throws(DatabaseError) -> Bool {
    try row(component)?.priority != nil
  }
}
