// A query in the one form that planning and matching know: the order is total, bounds are keys of
// that order, and a limit keeps the first documents. A limit to the last documents becomes a limit
// to the first of the reversed order, whose result is reversed at the end.

/// A query in normal form.
struct NormalQuery: Sendable {
  /// Where a result begins or ends: keys for the first of the orders.
  struct Bound: Sendable {
    var keys: [Value?]
    var isIncluded: Bool
  }

  let source: QueryShape.Source
  /// Conditions that must all be met.
  let conjuncts: [FilterTree]
  /// Total: the document's name comes last, unless a bound has values for more orders.
  let orders: [SortOrder]
  var start: Bound?
  let end: Bound?
  var limit: Int
  let offset: Int
  /// The fields that a document must have because the result is ordered by them, even after an id,
  /// unless the query says where documents without them come.
  let required: [QueryField]
  /// Whether the result must be reversed at the end.
  let isReversed: Bool

  /// Throws `.invalidArgument` when a bound does not fit the order.
  init(_ shape: QueryShape) throws(DatabaseError) {
    source = shape.source
    conjuncts = shape.filters.flatMap(\.conjuncts)
    offset = shape.offset
    limit = shape.limit ?? .max
    isReversed = shape.isLimitToLast
    let every = shape.everyOrder
    required = every.requiredFields
    let complete = shape.hasPlaceBehindName ? every : every.upToName
    let first = try shape.start.map { (place) throws(DatabaseError) in
      try Bound(place, of: shape, complete)
    }
    let last = try shape.end.map { (place) throws(DatabaseError) in
      try Bound(place, of: shape, complete)
    }
    orders = isReversed ? complete.map(\.reversed) : complete
    start = isReversed ? last : first
    end = isReversed ? first : last
  }

  /// Whether every document that meets the conditions counts, regardless of order.
  var isWhole: Bool { limit == .max && offset == 0 }

  /// Whether a decoded document meets the conditions and has every field of the orders. This
  /// ignores the start and the end of the result and the limit.
  func matches(_ fields: [String: Value], name: Value) -> Bool {
    conjuncts.allSatisfy { $0.matches(fields, name: name) }
      && required.allSatisfy { $0.value(in: fields, name: name) != nil }
  }
}

extension NormalQuery.Bound {
  init(
    _ place: CursorPlace, of shape: QueryShape, _ orders: [SortOrder]
  ) throws(DatabaseError) {
    isIncluded = place.isIncluded
    switch place.position {
    case .values(let values):
      // Only the requested orders count, not the added ones: a caller who gives a value names its
      // order.
      guard values.count <= shape.orders.count else {
        throw DatabaseError(
          .invalidArgument,
          "the result is ordered by \(shape.orders.count) fields and cannot begin or end at"
            + " \(values.count) values; call order(by:) for each of them")
      }
      // A repeated order counts once, and so does its value.
      var complete: [SortOrder] = []
      keys = []
      for (value, order) in zip(values, shape.orders) {
        let name = order.field == .documentID ? try shape.name(from: value) : value
        let count = complete.count
        complete.complete(with: order)
        for order in complete[count...] { keys.append(order.field.compared(name)) }
      }
    case .document(let path, let fields):
      let name = shape.name(of: path)
      keys = orders.keys(of: fields.map ?? [:], name: name)
      if let field = orders.lacking(in: keys) {
        throw DatabaseError(
          .invalidArgument,
          "\(path) has no field \(field), which the result is ordered by; begin or end at a"
            + " document that has it", path: "\(path)", field: "\(field)")
      }
    case .saved(let cursor):
      guard cursor.isOf(shape.completeOrders) else {
        let order = shape.completeOrders.map(\.description).joined(separator: ", ")
        throw DatabaseError(
          .invalidArgument,
          "the cursor is of a result in another order than \(order); use it with a query of the"
            + " order that it was taken from")
      }
      keys = cursor.keys
    }
  }
}

extension QueryShape {
  /// Whether a bound has a value for an order after the document's name.
  fileprivate var hasPlaceBehindName: Bool {
    let count = orders.firstIndex { $0.field == .documentID }.map { $0 + 1 } ?? .max
    return [start, end].contains { place in
      if case .values(let values) = place?.position { values.count > count } else { false }
    }
  }

  /// The name by which this query identifies the document that a condition or a bound names: in a
  /// collection given by its id or a reference, in a group by its path or a reference.
  func name(from value: Value) throws(DatabaseError) -> Value {
    switch (value, source) {
    case (.string(let id), .collection):
      if let problem = ResourceName.problem(withID: id) {
        throw wrongName("\"\(id)\" is no document's id: \(problem)")
      }
      return value
    case (.reference(let path), .collection(let collection)):
      guard contains(path) else { throw wrongName("\(path) is not a document of \(collection)") }
      return .string(path.documentID)
    case (.string(let text), .group):
      return .reference(try DocumentPath(text))
    case (.reference, .group):
      return value
    default:
      throw wrongName("a document's id is compared with a String or a DocumentReference")
    }
  }

  private func wrongName(_ message: String) -> DatabaseError {
    DatabaseError(.invalidArgument, message, field: "\(FieldPath.documentID())")
  }

  /// Adds a condition, unless it makes no sense for a field.
  mutating func add(_ tree: FilterTree) throws(DatabaseError) {
    let shape = self
    filters.append(
      try tree.mapFields { (filter) throws(DatabaseError) in
        filter.field == .documentID ? try shape.named(filter) : filter
      })
  }

  /// A condition on the document's id, with the names that this query uses.
  private func named(_ filter: FieldFilter) throws(DatabaseError) -> FieldFilter {
    func all(_ values: [Value]) throws(DatabaseError) -> [Value] {
      var names: [Value] = []
      for value in values { names.append(try name(from: value)) }
      return names.sortedWithoutDuplicates
    }
    var filter = filter
    switch filter.condition {
    case .equal(let value): filter.condition = .equal(try name(from: value))
    case .notEqual(let value): filter.condition = .notEqual(try name(from: value))
    case .less(let value): filter.condition = .less(try name(from: value))
    case .lessOrEqual(let value): filter.condition = .lessOrEqual(try name(from: value))
    case .greater(let value): filter.condition = .greater(try name(from: value))
    case .greaterOrEqual(let value): filter.condition = .greaterOrEqual(try name(from: value))
    case .isIn(let values): filter.condition = .isIn(try all(values))
    case .notIn(let values): filter.condition = .notIn(try all(values))
    case .hasPrefix, .matchesText:
      guard case .collection = source else {
        throw wrongName("in a collection group documents have paths, which are no texts")
      }
    case .arrayContains, .arrayContainsAny:
      throw wrongName("a document's id is no array; use == or in")
    }
    return filter
  }
}
