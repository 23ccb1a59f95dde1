// Which children of a node to read, and in what order. A query is a value that grows by chaining. A
// builder cannot throw, so the query keeps errors, and the call that uses the query throws them.
// The query becomes a TreeSelection: two positions between which the children are.

internal import OndolEngine

/// A place in the tree, or conditions on its children: anything that can be read and listened to
/// there.
///
/// The rules are the Realtime Database's: at most one order, one start, one end and one limit. The
/// values that order children sort as: no value, false, true, numbers, texts (by UTF-16), nodes
/// with children. Children with equal values sort by their keys. Keys that are 32-bit integers come
/// first, by value.
public protocol TreeQuerySource: Sendable {
  /// The query so far.
  var treeQuery: TreeQuery { get }
}

/// Children of a node of the tree, in an order. A query is a value: every method returns a new one.
public struct TreeQuery: Sendable, Hashable, TreeQuerySource {
  /// The node whose children are requested.
  public let reference: TreeReference
  var shape: Result<TreeQueryShape, DatabaseError> = .success(TreeQueryShape())

  init(_ reference: TreeReference) {
    self.reference = reference
  }

  /// The query itself.
  public var treeQuery: TreeQuery { self }

  /// The queried database.
  public var database: Database { reference.database }

  fileprivate func changed(
    _ change: (inout TreeQueryShape) throws(DatabaseError) -> Void
  ) -> TreeQuery {
    var copy = self
    copy.shape = shape.changed(change) { _ in reference.path }
    return copy
  }

  /// The path and the selection. Throws the error of either.
  func resolved() throws(DatabaseError) -> (path: TreePath, selection: TreeSelection) {
    let path = try reference.place.get()
    do throws(DatabaseError) {
      return (path, try shape.get().selection())
    } catch {
      throw error.at(path: reference.path)
    }
  }
}

/// The calls that built a query.
struct TreeQueryShape: Sendable, Hashable {
  struct Bound: Sendable, Hashable {
    /// Nil for null.
    var value: Value?
    var key: String?
    var isIncluded: Bool
  }

  var order: TreeOrder?
  var start: Bound?
  var end: Bound?
  var limit: TreeSelection.Limit?

  /// The bounds as positions. Throws `.invalidArgument` when a bound is invalid in the order.
  func selection() throws(DatabaseError) -> TreeSelection {
    var selection = TreeSelection(order: order ?? .priority, limit: limit)
    if let start {
      let bytes = try position(start)
      selection.lower = start.isIncluded ? bytes : bytes + [KeyCoding.afterAll]
    }
    if let end {
      let bytes = try position(end)
      selection.upper = end.isIncluded ? bytes + [KeyCoding.afterAll] : bytes
    }
    return selection
  }

  /// The position of a bound; without a key, the prefix of all children with its value.
  private func position(
    _ bound: Bound
  ) throws(DatabaseError) -> [UInt8] {
    if order == .key {
      guard let key = bound.value?.string, bound.key == nil else {
        throw DatabaseError(
          .invalidArgument, "children in the order of keys are bounded by a key, which is a text")
      }
      return TreeKey.component(key)
    }
    if (order ?? .priority) == .priority, bound.value?.boolean != nil {
      throw DatabaseError(
        .invalidArgument,
        "children in the order of priorities are bounded by numbers and texts; name an order with"
          + " queryOrdered first")
    }
    let bytes = TreeOrder.bytes(bound.value)
    return bytes + (bound.key.map { TreeKey.component($0) } ?? [])
  }
}

// MARK: - Building

extension TreeQuerySource {
  /// By the value at `path` below each child, a key or several with `/` between. Children without a
  /// value there come first.
  ///
  /// - Parameter path: one key or several with `/` between.
  /// - Complexity: reading all children's values there, unless there is an index: see
  ///   `TreeReference.createIndex(byChild:)`.
  public func queryOrdered(byChild path: String) -> TreeQuery {
    treeQuery.ordered { () throws(DatabaseError) in
      let way = try TreePath.root.appending(path: path)
      guard way.depth > 0 else {
        throw DatabaseError(.invalidArgument, "the path to order by is empty")
      }
      return .child(Array(way.rowKey.dropFirst(TreeKey.root.count)))
    }
  }

  /// By key: integers first, by value, then texts.
  public func queryOrderedByKey() -> TreeQuery { treeQuery.ordered { .key } }

  /// By the children's own values: leaves by their values, then nodes.
  public func queryOrderedByValue() -> TreeQuery { treeQuery.ordered { .value } }

  /// By priority, children without one first. This is the default order.
  public func queryOrderedByPriority() -> TreeQuery { treeQuery.ordered { .priority } }

  /// Begins at `value`, and with `childKey` at that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query: a child's value, priority or key.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryStarting(
    atValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.starting(value, childKey, isIncluded: true)
  }

  /// Begins after `value`, and with `childKey` after that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryStarting(
    afterValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.starting(value, childKey, isIncluded: false)
  }

  /// Ends at `value`, and with `childKey` at that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryEnding(
    atValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.ending(value, childKey, isIncluded: true)
  }

  /// Ends before `value`, and with `childKey` before that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryEnding(
    beforeValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.ending(value, childKey, isIncluded: false)
  }

  /// The children with `value`, and with `childKey` only that one of them. Cannot be combined with
  /// a start or an end.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: the only child to include; nil for all with the value.
  public func queryEqual(
    toValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.starting(value, childKey, isIncluded: true)
      .ending(value, childKey, isIncluded: true)
  }

  /// The first `limit` children in the order.
  ///
  /// - Parameter limit: at least 1; with less, the calls that use the query throw
  ///   `.invalidArgument`.
  public func queryLimited(toFirst limit: Int) -> TreeQuery {
    treeQuery.limited(limit, isFromEnd: false)
  }

  /// The last `limit` children in the order.
  ///
  /// - Parameter limit: at least 1; with less, the calls that use the query throw
  ///   `.invalidArgument`.
  public func queryLimited(toLast limit: Int) -> TreeQuery {
    treeQuery.limited(limit, isFromEnd: true)
  }
}

extension TreeQuery {
  fileprivate func ordered(
    _ order: () throws(DatabaseError) -> TreeOrder
  ) -> TreeQuery {
    changed { (shape) throws(DatabaseError) in
      try Self.refuse(shape.order != nil, "an order")
      shape.order = try order()
    }
  }

  fileprivate func starting(
    _ value: (any FieldContent)?, _ key: String?, isIncluded: Bool
  ) -> TreeQuery {
    changed { (shape) throws(DatabaseError) in
      try Self.refuse(shape.start != nil, "a start")
      shape.start = try Self.bound(value, key, isIncluded)
    }
  }

  fileprivate func ending(
    _ value: (any FieldContent)?, _ key: String?, isIncluded: Bool
  ) -> TreeQuery {
    changed { (shape) throws(DatabaseError) in
      try Self.refuse(shape.end != nil, "an end")
      shape.end = try Self.bound(value, key, isIncluded)
    }
  }

  fileprivate func limited(_ count: Int, isFromEnd: Bool) -> TreeQuery {
    changed { (shape) throws(DatabaseError) in
      try Self.refuse(shape.limit != nil, "a limit")
      guard count > 0 else {
        throw DatabaseError(.invalidArgument, "a limit is at least 1, and this is \(count)")
      }
      shape.limit = TreeSelection.Limit(count: count, isFromEnd: isFromEnd)
    }
  }

  private static func refuse(_ isThere: Bool, _ what: String) throws(DatabaseError) {
    guard isThere else { return }
    throw DatabaseError(
      .invalidArgument, "the query has \(what) already; begin again from the reference")
  }

  private static func bound(
    _ value: (any FieldContent)?, _ key: String?, _ isIncluded: Bool
  ) throws(DatabaseError) -> TreeQueryShape.Bound {
    if let key, let problem = TreePath.problem(withKey: key) {
      throw DatabaseError(.invalidArgument, "\"\(key)\" cannot be a key of the tree: \(problem)")
    }
    let plain = try value?.encodeField().plainValue()
    var scalar: Value?
    if let plain, !plain.isNull { scalar = try TreeContent.scalar(plain) }
    return TreeQueryShape.Bound(value: scalar, key: key, isIncluded: isIncluded)
  }
}
