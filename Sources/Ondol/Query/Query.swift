// The public query: a value that grows by chaining and touches nothing until it is asked for
// documents. A builder cannot throw, so what is wrong with a path, an operand or a limit is kept
// and thrown by the call that uses the query. Conditions are in Query+Conditions, places and parts
// of a result in Query+Results.

/// A collection, or conditions on one: whatever documents can be asked from.
///
/// Conditions are combined with "and". A document that lacks a field a condition or an order names
/// is not in the result.
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
/// A value: every method gives a new one, and nothing is read before a call that asks for the
/// result. A builder does not throw; what is wrong with a path, an operand or a limit is thrown by
/// the call that uses the query, as `.invalidArgument`. Queries are equal when they ask the same of
/// the same database in the same words: conditions in another order are another query. Equal ones
/// are kept up to date once for all who listen to them.
///
/// The operators are Firestore's, without its limits on lists and combinations. No query needs an
/// index: one without is answered by a scan, and `explain(analyze:)` names the index that would
/// serve it.
public struct Query: Sendable, Hashable, QuerySource {
  /// The database asked.
  public let database: Database
  var shape: Result<QueryShape, DatabaseError>

  init(database: Database, source: Result<QueryShape.Source, DatabaseError>) {
    self.database = database
    shape = source.map { QueryShape(source: $0) }
  }

  /// The query itself, so that a function may take any source.
  public var query: Query { self }

  /// The same query with a change; an earlier problem stays the problem.
  func changed(
    _ change: (inout QueryShape) throws(DatabaseError) -> Void
  ) -> Query {
    var copy = self
    copy.shape = shape.changed(change) { "\($0.source)" }
    return copy
  }
}

extension Query: CustomStringConvertible {
  /// The query as one would say it, or what is wrong with it: for logs and for people.
  public var description: String {
    switch shape {
    case .success(let shape): "\(shape)"
    case .failure(let error): "a query that cannot be asked: \(error)"
    }
  }
}
