// What `query`, `count`, `agg` and `watch` share: the selection of documents.

import ArgumentParser
import Ondol
import OndolJSON

/// A collection and conditions on it.
struct QueryOptions: ParsableArguments {
  @Argument(help: "The collection, a path such as upload or users/alice/posts.")
  var collection: String

  @Argument(help: "Conditions, such as 'price >= 10 and kind in [\"a\",\"b\"]'.")
  var condition: String?

  @Flag(help: "All collections with this id, wherever they are.")
  var group = false

  /// The documents that satisfy the conditions.
  func source(in database: Database) throws(CommandFailure) -> Query {
    let all = all(in: database)
    return try expression().map { all.whereFilter($0.filter) } ?? all
  }

  /// Throws status 3 if the collection, or a field of the conditions or of `others`, does not
  /// exist.
  func refuseUnknownNames(
    in database: Database, and others: [FieldPath] = []
  ) async throws {
    let fields = try expression()?.fields ?? []
    try await UnknownNames(documents: all(in: database), collection: collection)
      .refuse(fields: fields + others)
  }

  private func all(in database: Database) -> Query {
    group ? database.collectionGroup(collection).query : database.collection(collection).query
  }

  private func expression() throws(CommandFailure) -> WhereExpression? {
    guard let condition else { return nil }
    return try Self.read { () throws(WhereError) in try WhereExpression(condition) }
  }

  /// The filter in a text.
  static func filter(_ condition: String) throws(CommandFailure) -> Filter {
    try read { () throws(WhereError) in try WhereExpression(condition) }.filter
  }

  /// An invalid text is a usage error that names the position.
  static func read<Result>(
    _ body: () throws(WhereError) -> Result
  ) throws(CommandFailure) -> Result {
    do throws(WhereError) {
      return try body()
    } catch {
      throw CommandFailure(
        .usage, lines: "\(error)".split(separator: "\n").map(String.init))
    }
  }
}

/// A collection of a database.
struct CollectionArgument: ParsableArguments {
  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path such as upload or users/alice/posts.")
  var collection: String?
}

/// The number of documents, and the first one.
struct PartOptions: ParsableArguments {
  @Option(help: "The largest number of documents.", transform: wholeNumber)
  var limit: Int?

  @Option(help: "Skip this many documents first.", transform: wholeNumber)
  var offset: Int?
}

/// A non-negative whole number.
func wholeNumber(_ text: String) throws -> Int {
  guard let number = Int(text), number >= 0 else {
    throw ValidationError("'\(text)' is not a whole number from 0 on")
  }
  return number
}

/// The part and the order of a result.
struct ResultOptions: ParsableArguments {
  @Option(
    help: """
      Fields to sort by, such as 'price desc, name folded'; folded, caseInsensitive and natural \
      say how texts are compared.
      """)
  var order: String?

  @OptionGroup var part: PartOptions

  @Option(help: "Only these fields, such as 'name, size.width'.")
  var select: String?

  func apply(to query: Query) throws(CommandFailure) -> Query {
    var query = query
    for order in try orders() { query = order.added(to: query) }
    if let fields = try selected() { query = query.select(fields) }
    if let limit = part.limit { query = query.limit(to: limit) }
    if let offset = part.offset { query = query.offset(offset) }
    return query
  }

  /// The fields to sort by.
  func orders() throws(CommandFailure) -> [WhereOrder] {
    guard let order else { return [] }
    return try QueryOptions.read { () throws(WhereError) in try WhereParser.orders(order) }
  }

  /// The fields to print; nil for all.
  func selected() throws(CommandFailure) -> [FieldPath]? {
    guard let select else { return nil }
    return try QueryOptions.read { () throws(WhereError) in try WhereParser.fields(select) }
  }
}
