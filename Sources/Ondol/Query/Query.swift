// The public query: a value that grows by chaining and touches nothing until it is asked for
// documents. A builder cannot throw, so what is wrong with a path, an operand or a limit is kept
// and thrown by the call that uses the query.

/// A collection, or conditions on one: whatever documents can be asked from.
///
/// Conditions are combined with "and". A document that lacks a field a condition or an order names
/// is not in the result.
public protocol QuerySource: Sendable {
  /// The query so far.
  var query: Query { get }
}

/// The documents of a collection that meet conditions, in an order. A value: every method gives a
/// new one.
public struct Query: Sendable, QuerySource {
  /// The database asked.
  public let database: Database
  var shape: Result<QueryShape, DatabaseError>

  init(database: Database, collection: Result<CollectionPath, DatabaseError>) {
    self.database = database
    shape = collection.map { QueryShape(collection: $0) }
  }

  /// The query itself.
  public var query: Query { self }

  /// The same query with a change; an earlier problem stays the problem.
  func changed(
    _ change: (inout QueryShape) throws(DatabaseError) -> Void
  ) -> Query {
    guard case .success(var shape) = shape else { return self }
    var copy = self
    do throws(DatabaseError) {
      try change(&shape)
      copy.shape = .success(shape)
    } catch {
      copy.shape = .failure(error.at(path: "\(shape.collection)"))
    }
    return copy
  }
}

extension Query: Hashable {
  /// Whether both ask the same of the same database.
  public static func == (left: Query, right: Query) -> Bool {
    left.database === right.database && left.shape == right.shape
  }

  /// Feeds what is asked.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(shape)
  }
}

extension Query: CustomStringConvertible {
  /// The query as one would say it.
  public var description: String {
    switch shape {
    case .success(let shape): "\(shape)"
    case .failure(let error): "a query that cannot be asked: \(error)"
    }
  }
}

// MARK: - Conditions

extension QuerySource {
  /// Documents whose field equals the value; nil stands for null. 1 equals 1.0, and NaN equals NaN.
  public func whereField(_ field: FieldPath, isEqualTo value: (any FieldContent)?) -> Query {
    filtered(field, value) { .equal($0) }
  }

  /// Documents that have the field, neither null nor equal to the value.
  public func whereField(_ field: FieldPath, isNotEqualTo value: (any FieldContent)?) -> Query {
    filtered(field, value) { .notEqual($0) }
  }

  /// Documents whose field is of the value's type and less.
  public func whereField(_ field: FieldPath, isLessThan value: (any FieldContent)?) -> Query {
    filtered(field, value, isRange: true) { .less($0) }
  }

  /// Documents whose field is of the value's type and not greater.
  public func whereField(
    _ field: FieldPath, isLessThanOrEqualTo value: (any FieldContent)?
  ) -> Query {
    filtered(field, value, isRange: true) { .lessOrEqual($0) }
  }

  /// Documents whose field is of the value's type and greater.
  public func whereField(_ field: FieldPath, isGreaterThan value: (any FieldContent)?) -> Query {
    filtered(field, value, isRange: true) { .greater($0) }
  }

  /// Documents whose field is of the value's type and not less.
  public func whereField(
    _ field: FieldPath, isGreaterThanOrEqualTo value: (any FieldContent)?
  ) -> Query {
    filtered(field, value, isRange: true) { .greaterOrEqual($0) }
  }

  /// Documents whose field equals one of the values, of which there may be any number, null and NaN
  /// among them. With an index on the field the cost is one lookup a value; without one, one pass
  /// over the collection.
  public func whereField(_ field: FieldPath, in values: [(any FieldContent)?]) -> Query {
    filtered(field, list: values) { .isIn($0) }
  }

  /// Documents that have the field, neither null nor equal to one of the values. Nothing is, when
  /// null is among them.
  public func whereField(_ field: FieldPath, notIn values: [(any FieldContent)?]) -> Query {
    filtered(field, list: values) { .notIn($0) }
  }

  /// Documents whose field is an array with an element that equals the value.
  public func whereField(_ field: FieldPath, arrayContains value: (any FieldContent)?) -> Query {
    filtered(field, value) { .arrayContains($0) }
  }

  /// Documents whose field is an array with an element that equals one of the values.
  public func whereField(
    _ field: FieldPath, arrayContainsAny values: [(any FieldContent)?]
  ) -> Query {
    filtered(field, list: values) { .arrayContainsAny($0) }
  }

  private func filtered(
    _ path: FieldPath, _ value: (any FieldContent)?, isRange: Bool = false,
    _ condition: (Value) -> FieldFilter.Condition
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      let field = try QueryField(path)
      let operand = try operand(value, of: field, in: shape)
      if isRange, operand.isNull || operand.double?.isNaN == true {
        throw DatabaseError(
          .invalidArgument, "nothing is less or greater than \(operand); compare with ==",
          field: "\(field)")
      }
      try shape.add(FieldFilter(field: field, condition: condition(operand)))
    }
  }

  private func filtered(
    _ path: FieldPath, list values: [(any FieldContent)?],
    _ condition: ([Value]) -> FieldFilter.Condition
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      let field = try QueryField(path)
      var operands: [Value] = []
      operands.reserveCapacity(values.count)
      for value in values {
        operands.append(try operand(value, of: field, in: shape))
      }
      try shape.add(
        FieldFilter(field: field, condition: condition(operands.sortedWithoutDuplicates)))
    }
  }

  /// What a condition compares with.
  private func operand(
    _ content: (any FieldContent)?, of field: QueryField, in shape: QueryShape
  ) throws(DatabaseError) -> Value {
    let value: Value
    do throws(DatabaseError) {
      value = try content?.encodeField().plainValue() ?? .null
    } catch {
      throw error.within(field: "\(field)")
    }
    guard case .documentID = field else { return value }
    return .string(try shape.documentID(from: value))
  }
}

extension QueryShape {
  /// The id a condition on the document's id means: a plain id, or a document of this collection.
  func documentID(from value: Value) throws(DatabaseError) -> String {
    switch value {
    case .string(let id):
      if let problem = ResourceName.problem(withID: id) {
        throw DatabaseError(
          .invalidArgument, "\"\(id)\" is no document's id: \(problem)",
          field: "\(FieldPath.documentID())")
      }
      return id
    case .reference(let path):
      guard path.collection == collection else {
        throw DatabaseError(
          .invalidArgument, "\(path) is not a document of \(collection)",
          field: "\(FieldPath.documentID())")
      }
      return path.documentID
    default:
      throw DatabaseError(
        .invalidArgument, "a document's id is compared with a String or a DocumentReference",
        field: "\(FieldPath.documentID())")
    }
  }

  /// Adds a condition, unless it makes no sense for the field.
  mutating func add(_ filter: FieldFilter) throws(DatabaseError) {
    if case .documentID = filter.field {
      switch filter.condition {
      case .arrayContains, .arrayContainsAny:
        throw DatabaseError(
          .invalidArgument, "a document's id is no array; use == or in", field: "\(filter.field)")
      default: break
      }
    }
    filters.append(filter)
  }
}

// MARK: - Order and limit

extension QuerySource {
  /// Sorts by a field, behind the orders already asked for. Documents without the field are left
  /// out. Ties are broken by the document's id, in the direction of the last order.
  public func order(by field: FieldPath, descending: Bool = false) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      shape.orders.append(SortOrder(field: try QueryField(field), descending: descending))
    }
  }

  /// At most `count` documents; the last call counts.
  public func limit(to count: Int) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      guard count >= 0 else {
        throw DatabaseError(.invalidArgument, "a limit must not be negative, and is \(count)")
      }
      shape.limit = count
    }
  }
}
