// A query as a plain value that other modules can take apart, to ask somebody else the same: a
// server of Firestore's protocol, for instance. It has what that protocol has.

/// A query in the terms of Firestore's protocol.
package struct QueryDescription: Sendable {
  /// A field; nil for the document's name.
  package typealias Field = [String]?

  package enum Comparison: Sendable {
    case equal(Value)
    case notEqual(Value)
    case less(Value)
    case lessOrEqual(Value)
    case greater(Value)
    case greaterOrEqual(Value)
    case isIn([Value])
    case notIn([Value])
    case arrayContains(Value)
    case arrayContainsAny([Value])
  }

  package indirect enum Condition: Sendable {
    case field(Field, Comparison)
    case all([Condition])
    case any([Condition])
  }

  package enum Source: Sendable {
    case collection(CollectionPath)
    /// All collections with this id.
    case group(String)
  }

  package let source: Source
  package let condition: Condition
  package let orders: [(field: Field, isDescending: Bool)]
  package let limit: Int?
}

extension Query {
  /// What the query asks, in the terms of Firestore's protocol.
  ///
  /// - Throws: the error of a wrong query; `.unimplemented` for what that protocol cannot ask, and
  ///   for cursors, offsets, selections and limits to the last documents.
  package func described() throws(DatabaseError) -> QueryDescription {
    let shape = try shape.get()
    func refuse(_ what: String) -> DatabaseError {
      DatabaseError(
        .unimplemented, "a server of Firestore's protocol is not asked for \(what)",
        path: "\(shape.source)")
    }
    guard shape.start == nil, shape.end == nil else { throw refuse("a part between cursors") }
    guard shape.offset == 0 else { throw refuse("what comes after an offset") }
    guard shape.selection == nil else { throw refuse("some of the fields") }
    guard !shape.isLimitToLast else { throw refuse("the last documents") }
    var conditions: [QueryDescription.Condition] = []
    for tree in shape.filters { conditions.append(try tree.described(refuse)) }
    var orders: [(QueryDescription.Field, Bool)] = []
    for order in shape.orders {
      guard order.missing == .excluded else { throw refuse("documents without the field") }
      orders.append((try order.field.described(refuse), order.descending))
    }
    return QueryDescription(
      source: try readSource(), condition: .all(conditions), orders: orders, limit: shape.limit)
  }
}

extension Query {
  /// The collection or group that the query is of.
  ///
  /// - Throws: the error of a wrong query.
  package func readSource() throws(DatabaseError) -> QueryDescription.Source {
    switch try shape.get().source {
    case .collection(let path): .collection(path)
    case .group(let id): .group(id.text)
    }
  }

  /// The query for all documents of the same collection or group.
  package var ofWholeSource: Query { changed { shape in shape = QueryShape(source: shape.source) } }
}

extension QueryField {
  fileprivate func described(
    _ refuse: (String) -> DatabaseError
  ) throws(DatabaseError) -> QueryDescription.Field {
    switch self {
    case .documentID: return nil
    case .field(let names): return names
    case .compared: throw refuse("texts that are compared in another way")
    }
  }
}

extension FilterTree {
  fileprivate func described(
    _ refuse: (String) -> DatabaseError
  ) throws(DatabaseError) -> QueryDescription.Condition {
    func each(_ trees: [FilterTree]) throws(DatabaseError) -> [QueryDescription.Condition] {
      var conditions: [QueryDescription.Condition] = []
      for tree in trees { conditions.append(try tree.described(refuse)) }
      return conditions
    }
    switch self {
    case .all(let trees): return .all(try each(trees))
    case .any(let trees): return .any(try each(trees))
    case .field(let filter):
      let comparison: QueryDescription.Comparison
      switch filter.condition {
      case .equal(let value): comparison = .equal(value)
      case .notEqual(let value): comparison = .notEqual(value)
      case .less(let value): comparison = .less(value)
      case .lessOrEqual(let value): comparison = .lessOrEqual(value)
      case .greater(let value): comparison = .greater(value)
      case .greaterOrEqual(let value): comparison = .greaterOrEqual(value)
      case .isIn(let values): comparison = .isIn(values)
      case .notIn(let values): comparison = .notIn(values)
      case .arrayContains(let value): comparison = .arrayContains(value)
      case .arrayContainsAny(let values): comparison = .arrayContainsAny(values)
      case .hasPrefix, .matchesText: throw refuse("parts of texts")
      }
      return .field(try filter.field.described(refuse), comparison)
    }
  }
}
