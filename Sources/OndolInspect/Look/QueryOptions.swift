// What `query`, `count`, `agg` and `watch` have in common: which documents are meant.

import ArgumentParser
import Ondol
import OndolJSON

/// A collection and conditions on it.
struct QueryOptions: ParsableArguments {
  @Argument(help: "The collection, a path as upload or users/alice/posts.")
  var collection: String

  @Argument(help: "Conditions, as 'price >= 10 and kind in [\"a\",\"b\"]'.")
  var condition: String?

  @Flag(help: "All collections with this id, wherever they are.")
  var group = false

  func source(in database: Database) throws(CommandFailure) -> Query {
    let all =
      group ? database.collectionGroup(collection).query : database.collection(collection).query
    guard let condition else { return all }
    return all.whereFilter(
      try Self.read { () throws(WhereError) in
        try WhereExpression(condition)
      }.filter)
  }

  /// A text that makes no sense is wrong usage, and says where.
  static func read<Result>(
    _ body: () throws(WhereError) -> Result
  ) throws(CommandFailure) -> Result {
    do throws(WhereError) {
      return try body()
    } catch {
      throw CommandFailure(.usage, "\(error)")
    }
  }
}

/// Which part of a result, in which order.
struct ResultOptions: ParsableArguments {
  @Option(help: "Fields to sort by, as 'price desc, name'.")
  var order: String?

  @Option(help: "At most so many documents.")
  var limit: Int?

  @Option(help: "Leave out so many documents first.")
  var offset: Int?

  @Option(help: "These fields only, as 'name, size.width'.")
  var select: String?

  func validate() throws {
    guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative") }
    guard offset ?? 0 >= 0 else { throw ValidationError("--offset must not be negative") }
  }

  func apply(to query: Query) throws(CommandFailure) -> Query {
    var query = query
    if let order {
      let orders = try QueryOptions.read { () throws(WhereError) in
        try WhereParser.orders(order)
      }
      for (field, isDescending) in orders {
        query = query.order(by: field, descending: isDescending)
      }
    }
    if let select {
      query = query.select(
        try QueryOptions.read { () throws(WhereError) in try WhereParser.fields(select) })
    }
    if let limit { query = query.limit(to: limit) }
    if let offset { query = query.offset(offset) }
    return query
  }
}
