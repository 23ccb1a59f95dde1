// Which children of a node, and in what order. A value that grows by chaining; a builder cannot
// throw, so what is wrong is kept and thrown by the call that uses the query. What is asked becomes
// a TreeSelection, two positions between which the children stand.

internal import OndolEngine

/// A place in the tree, or conditions on its children: whatever can be read and listened to there.
///
/// The rules are the Realtime Database's: at most one order, one start, one end and one limit. What
/// children are ordered by comes as: nothing there, false, true, numbers, texts (by UTF-16), nodes
/// with children; equal ones by their keys. Keys that are 32-bit integers come first, by value.
public protocol TreeQuerySource: Sendable {
  /// The query so far.
  var treeQuery: TreeQuery { get }
}

/// Children of a node of the tree, in an order. A value: every method gives a new one.
public struct TreeQuery: Sendable, Hashable, TreeQuerySource {
  /// The node whose children are asked for.
  public let reference: TreeReference
  var shape: Result<TreeQueryShape, DatabaseError> = .success(TreeQueryShape())

  init(_ reference: TreeReference) {
    self.reference = reference
  }

  /// The query itself.
  public var treeQuery: TreeQuery { self }

  /// The database asked.
  public var database: Database { reference.database }

  fileprivate func changed(
    _ change: (inout TreeQueryShape) throws(DatabaseError) -> Void
  ) -> TreeQuery {
    var copy = self
    copy.shape = shape.changed(change) { _ in reference.path }
    return copy
  }

  /// Where it asks, and what. Throws what is wrong with either.
  func resolved() throws(DatabaseError) -> (path: TreePath, selection: TreeSelection) {
    let path = try reference.place.get()
    do throws(DatabaseError) {
      return (path, try shape.get().selection())
    } catch {
      throw error.at(path: reference.path)
    }
  }
}

/// What a query has been told.
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

  /// The bounds as positions. Throws `.invalidArgument` when a bound cannot be one in the order.
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

  /// The position of a bound; without a key, what all children with its value begin with.
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
  /// By what each child has at `path`, a key or several with `/` between. Children that have
  /// nothing there come first.
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

  /// By what the children are: leaves by their values, then nodes.
  public func queryOrderedByValue() -> TreeQuery { treeQuery.ordered { .value } }

  /// By priority, children without one first. It is the order where none is named.
  public func queryOrderedByPriority() -> TreeQuery { treeQuery.ordered { .priority } }

  /// From `value` on, and with `childKey` from that child on among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query: of a child's value, priority or key.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryStarting(
    atValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.starting(value, childKey, isIncluded: true)
  }

  /// Behind `value`, and with `childKey` behind that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryStarting(
    afterValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.starting(value, childKey, isIncluded: false)
  }

  /// Up to `value`, and with `childKey` up to that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryEnding(
    atValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.ending(value, childKey, isIncluded: true)
  }

  /// Before `value`, and with `childKey` before that child among those with the value.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: orders children with the same value; nil for all of them.
  public func queryEnding(
    beforeValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.ending(value, childKey, isIncluded: false)
  }

  /// The children with `value`, and with `childKey` only that one of them. Not beside a start or an
  /// end.
  ///
  /// - Parameters:
  ///   - value: in the order of the query.
  ///   - childKey: the only child that is meant; nil for all with the value.
  public func queryEqual(
    toValue value: (any FieldContent)?, childKey: String? = nil
  ) -> TreeQuery {
    treeQuery.starting(value, childKey, isIncluded: true)
      .ending(value, childKey, isIncluded: true)
  }

  /// The first `limit` children in the order.
  ///
  /// - Parameter limit: how many, at least 1; less makes the calls throw `.invalidArgument` that
  ///   use the query.
  public func queryLimited(toFirst limit: Int) -> TreeQuery {
    treeQuery.limited(limit, isFromEnd: false)
  }

  /// The last `limit` children in the order.
  ///
  /// - Parameter limit: how many, at least 1; less makes the calls throw `.invalidArgument` that
  ///   use the query.
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
