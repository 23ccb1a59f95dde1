// Reads the tree: a node as a whole, the children that a query selects, or all children one after
// the other in bounded memory. It uses one snapshot and one cursor over the node's range.

internal import OndolEngine

extension TreeQuerySource {
  /// The current data: the node with everything below it, or the children that the query selects.
  ///
  /// - Throws: `.invalidArgument` when the path or the query is wrong, `.dataLoss` when stored data
  ///   is damaged, `.failedPrecondition` when the database is closed.
  /// - Complexity: O(rows). A limit in the order of keys, or by an index, reads only its children;
  ///   any other order looks at all children once.
  @concurrent
  public func getData() async throws(DatabaseError) -> TreeSnapshot {
    let query = treeQuery
    let (path, selection) = try query.resolved()
    let database = query.database
    try database.refuseReadInTransaction(query.reference.path)
    let node = try await database.read(try database.engineSnapshot(), canBeCancelled: true) {
      (rows) throws(DatabaseError) in
      try rows.node(at: path, selection)
    }
    return TreeSnapshot(reference: query.reference, node: node, order: selection.order)
  }

  /// The children that the query selects, one after the other in its order, in bounded memory, all
  /// as of the moment when the first is requested.
  ///
  ///     for try await car in database.tree.child("cars").children { … }
  ///
  /// Memory holds a few hundred children at a time. In an order other than that of keys without an
  /// index, it also holds the values that order all of them.
  public var children: TreeChildren { TreeChildren(query: treeQuery) }
}

extension Rows {
  /// The node at a path, reduced to the children that a selection includes.
  func node(at path: TreePath, _ selection: TreeSelection) throws(DatabaseError) -> TreeNode {
    if selection.isWhole {
      var cursor = TreeCursor(self, node: path.rowKey)
      return try cursor.whole()
    }
    var order = try ChildOrder(selection.order, of: path.rowKey, in: self)
    var children = try order.children(try order.positions(selection))
    if selection.order != .key {
      children.sort { TreeKey.compare($0.component, $1.component) < 0 }
    }
    return TreeNode(children: KeyedTree(sorted: children))
  }
}

/// The children of a node of the tree, one after the other.
public struct TreeChildren: AsyncSequence, Sendable {
  /// The elements of the sequence.
  public typealias Element = TreeSnapshot
  /// The errors of reading.
  public typealias Failure = DatabaseError

  let query: TreeQuery

  /// Begins reading.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(TreePages(query))
  }

  /// Reads one child after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private var reading: PagedReading<TreePages>

    init(_ pages: TreePages) {
      reading = PagedReading(pages)
    }

    /// The next child; nil at the end.
    ///
    /// - Throws: as `getData()`, and `.cancelled` when the task was cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> TreeSnapshot? {
      guard let child = try await reading.next() else { return nil }
      let place = reading.pages.query.reference.child(child)
      return TreeSnapshot(reference: place, node: child.node)
    }
  }
}

/// Children in pages, each read after the previous one, all from one snapshot.
struct TreePages: PageSource {
  let query: TreeQuery
  private var snapshot: Snapshot?
  private(set) var source: TreePageSource?

  /// Children in a page.
  static let pageCount = 256

  init(_ query: TreeQuery) {
    self.query = query
  }

  /// The source after the next children, and these children, none at the end.
  @concurrent
  func next() async throws(DatabaseError) -> (TreePages, [TreeChild]) {
    let (path, selection) = try query.resolved()
    let snapshot: Snapshot
    if let known = self.snapshot {
      snapshot = known
    } else {
      snapshot = try query.database.engineSnapshot()
    }
    return try await query.database.read(snapshot, canBeCancelled: true) {
      [self] (rows) throws(DatabaseError) in
      var rest = self
      rest.snapshot = snapshot
      var source: TreePageSource
      if let known = rest.source {
        source = known
      } else {
        source = try TreePageSource(path, selection, in: rows)
      }
      let page = try source.next(atMost: Self.pageCount, in: rows)
      rest.source = source
      return (rest, page)
    }
  }
}

/// The source of the next children of a selection.
struct TreePageSource: Sendable {
  private enum Rest: Sendable {
    /// Children in the order of keys, from one component and before another, at most that many.
    case range(from: [UInt8], to: [UInt8]?, left: Int)
    /// Children at these positions.
    case positions(ArraySlice<TreePosition>)
  }

  private let node: [UInt8]
  private let order: TreeOrder
  private var rest: Rest

  /// - Complexity: O(1) in the order of keys, unless the limit is of the last; O(children)
  ///   otherwise.
  init(
    _ path: TreePath, _ selection: TreeSelection, in rows: Rows
  ) throws(DatabaseError) {
    node = path.rowKey
    order = selection.order
    if let bounds = try rows.keyBounds(of: selection, at: node) {
      rest = .range(
        from: bounds.lower ?? [], to: bounds.upper, left: selection.limit?.count ?? .max)
    } else {
      var order = try ChildOrder(selection.order, of: node, in: rows)
      rest = .positions(try order.positions(selection)[...])
    }
  }

  /// Children at known positions.
  init(node: [UInt8], order: TreeOrder, positions: [TreePosition]) {
    self.node = node
    self.order = order
    rest = .positions(positions[...])
  }

  mutating func next(
    atMost count: Int, in rows: Rows
  ) throws(DatabaseError) -> [TreeChild] {
    switch rest {
    case .range(let lower, let upper, let left):
      guard left > 0 else { return [] }
      var cursor = TreeCursor(rows, node: node)
      let found = try cursor.children(from: lower, to: upper, atMost: min(count, left))
      rest = .range(
        from: found.last.map { $0.component + [KeyCoding.afterAll] } ?? [KeyCoding.afterAll],
        to: upper, left: found.isEmpty ? 0 : left - found.count)
      return found
    case .positions(let positions):
      let page = positions.prefix(count)
      rest = .positions(positions.dropFirst(page.count))
      guard !page.isEmpty else { return [] }
      var cursor = try ChildOrder(.key, of: node, in: rows)
      return try cursor.children(page)
    }
  }
}

extension Rows {
  /// The bounds of a selection as components, when it is a contiguous range of children in the
  /// order of their keys. That is also true for the order of priorities while no child has one.
  func keyBounds(
    of selection: TreeSelection, at node: [UInt8]
  ) throws(DatabaseError) -> (lower: [UInt8]?, upper: [UInt8]?)? {
    guard selection.limit?.isFromEnd != true else { return nil }
    if selection.order == .key { return (selection.lower, selection.upper) }
    guard selection.order == .priority, selection.lower == nil, selection.upper == nil else {
      return nil
    }
    var cursor = TreeCursor(self, node: node)
    let isOrdered = try cursor.hasPriorities()
    return isOrdered ? nil : (nil, nil)
  }
}
