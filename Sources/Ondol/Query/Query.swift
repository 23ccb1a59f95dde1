// The public query: a value that grows by chaining and reads nothing until the app asks for
// documents. A builder cannot throw, so the query keeps the error of a wrong path, operand or
// limit, and the call that uses the query throws it. Conditions are in Query+Conditions, starts,
// ends and limits in Query+Results.

/// A collection, or conditions on one: anything that documents can be read from.
///
/// Conditions are combined with "and". A document that lacks a field named in a condition or an
/// order is not in the result.
public protocol QuerySource: Sendable {
  /// The query so far.
  var query: Query { get }
}

/// The documents of a collection, or of a collection group, that meet conditions, in an order.
///
/// ```swift
/// let cheap = items.whereField("price", isLessThan: 50).order(by: "price").limit(to: 20)
/// for document in try await cheap.getDocuments().documents { print(document.documentID) }
/// ```
///
/// A query is a value: every method returns a new one, and nothing is read before a call that asks
/// for the result. A builder does not throw. When a path, an operand or a limit is wrong, the call
/// that uses the query throws `.invalidArgument`. Queries are equal when they ask the same of the
/// same database with the same calls: conditions in another order are another query. The database
/// maintains one result for all listeners of equal queries.
///
/// The operators are Firestore's, without its limits on lists and combinations. No query needs an
/// index: a scan answers a query without one, and `explain(analyze:)` names the index that would
/// serve it.
public struct Query: Sendable, Hashable, QuerySource {
  /// The queried database.
  public let database: Database
  var shape: Result<QueryShape, DatabaseError>

  init(database: Database, source: Result<QueryShape.Source, DatabaseError>) {
    self.database = database
    shape = source.map { QueryShape(source: $0) }
  }

  /// The query itself, so that a function may take any source.
  public var query: Query { self }

  /// The same query with a change. A query with an error keeps that error.
  func changed(
    _ change: (inout QueryShape) throws(DatabaseError) -> Void
  ) -> Query {
    var copy = self
    copy.shape = shape.changed(change) { "\($0.source)" }
    return copy
  }
}

extension Query: CustomStringConvertible {
  /// The query in readable form, or its error: for logs and for people.
  public var description: String {
    switch shape {
    case .success(let shape): "\(shape)"
    case .failure(let error): "a query that cannot be asked: \(error)"
    }
  }
}
