// Queries whose results are values of a type. They are untyped queries with a type: each condition
// is translated when it is added, and an error is kept, as in an untyped query, for the call that
// asks for a result.

internal import OndolEngine

/// A typed collection, or conditions on one: anything that values of a type can be read from.
public protocol TypedQuerySource<Model>: Sendable {
  /// The type of the documents.
  associatedtype Model: Codable & Sendable

  /// The query so far.
  var typedQuery: TypedQuery<Model> { get }
}

/// The documents of a typed collection that meet conditions, in an order, as values of its type.
///
/// ```swift
/// let cheap = items.where(\.price < 50).order(by: \.name).limit(to: 20)
/// let lamps: [Item] = try await cheap.getDocuments()
/// for try await snapshot in cheap.snapshots { show(snapshot.documents) }
/// ```
///
/// It behaves like its `query` in every respect.
public struct TypedQuery<Model: Codable & Sendable>: TypedQuerySource {
  /// The same query without the type, for everything that a typed query has no call for.
  public private(set) var query: Query
  let fields: ModelFields<Model>

  init(_ query: Query, _ fields: ModelFields<Model>) {
    self.query = query
    self.fields = fields
  }

  /// The query itself.
  public var typedQuery: TypedQuery { self }

  /// The same query with a change.
  func changed(_ change: (Query) throws(DatabaseError) -> Query) -> TypedQuery {
    var copy = self
    do throws(DatabaseError) {
      copy.query = try change(query)
    } catch {
      copy.query = query.changed { (_) throws(DatabaseError) in throw error }
    }
    return copy
  }
}

extension TypedQuery {
  /// The field of a property, or why there is none.
  func path<Content: Encodable>(
    of property: any KeyPath<Model, Content> & Sendable
  ) -> Result<FieldPath, DatabaseError> {
    Result { () throws(DatabaseError) in try fields.path(of: ModelProperty(property)) }
  }
}

extension TypedQuery: CustomStringConvertible {
  /// The query in readable form.
  public var description: String { "\(query)" }
}

// MARK: - Conditions, orders, limits

extension TypedQuerySource {
  /// Documents that meet the condition in addition to the existing ones.
  ///
  /// - Parameter filter: as in `items.where(\.price < 50)`.
  public func `where`(_ filter: TypedFilter<Model>) -> TypedQuery<Model> {
    let typed = typedQuery
    return typed.changed { (query) throws(DatabaseError) in
      query.whereFilter(try filter.filter(typed.fields))
    }
  }

  /// Documents that meet the condition in addition to the existing ones.
  ///
  /// - Parameter filter: makes the condition, as in `items.where { $0.price < 50 &&
  ///   $0.tags.contains("oak") }`.
  public func `where`(
    _ filter: (ModelProperties<Model>) -> TypedFilter<Model>
  ) -> TypedQuery<Model> {
    self.where(filter(ModelProperties()))
  }

  /// Sorts by a property, after the orders already added. See
  /// `QuerySource.order(by:descending:missing:)`.
  ///
  /// - Parameters:
  ///   - property: the property to sort by.
  ///   - descending: whether the greatest value comes first.
  ///   - missing: where documents without it come, such as those where an optional is nil.
  public func order<Content: Encodable>(
    by property: any KeyPath<Model, Content> & Sendable, descending: Bool = false,
    missing: MissingPlacement = .excluded
  ) -> TypedQuery<Model> {
    let fields = typedQuery.fields
    return typedQuery.changed { (query) throws(DatabaseError) in
      query.order(
        by: try fields.path(of: ModelProperty(property)), descending: descending, missing: missing)
    }
  }

  /// At most `count` documents, the first in the order. See `QuerySource.limit(to:)`.
  public func limit(to count: Int) -> TypedQuery<Model> {
    typedQuery.changed { $0.limit(to: count) }
  }

  /// At most `count` documents, the last in the order, in the requested order. See
  /// `QuerySource.limit(toLast:)`.
  public func limit(toLast count: Int) -> TypedQuery<Model> {
    typedQuery.changed { $0.limit(toLast: count) }
  }

  /// Leaves out the first `count` documents. See `QuerySource.offset(_:)`.
  public func offset(_ count: Int) -> TypedQuery<Model> {
    typedQuery.changed { $0.offset(count) }
  }

  /// Begins with documents at this value of the first order. See `QuerySource.start(at:)`.
  public func start<Content: Encodable>(at value: Content) -> TypedQuery<Model> {
    let encoder = typedQuery.fields.encoder
    return typedQuery.changed { $0.start(at: [EncodedContent(value, encoder)]) }
  }

  /// Begins after documents at this value of the first order. See `QuerySource.start(after:)`.
  public func start<Content: Encodable>(after value: Content) -> TypedQuery<Model> {
    let encoder = typedQuery.fields.encoder
    return typedQuery.changed { $0.start(after: [EncodedContent(value, encoder)]) }
  }

  /// Ends with documents at this value of the first order. See `QuerySource.end(at:)`.
  public func end<Content: Encodable>(at value: Content) -> TypedQuery<Model> {
    let encoder = typedQuery.fields.encoder
    return typedQuery.changed { $0.end(at: [EncodedContent(value, encoder)]) }
  }

  /// Ends before documents at this value of the first order. See `QuerySource.end(before:)`.
  public func end<Content: Encodable>(before value: Content) -> TypedQuery<Model> {
    let encoder = typedQuery.fields.encoder
    return typedQuery.changed { $0.end(before: [EncodedContent(value, encoder)]) }
  }

  /// Begins at a saved cursor. See `QuerySource.start(at:)` with a cursor.
  public func start(at cursor: QueryCursor?) -> TypedQuery<Model> {
    typedQuery.changed { $0.start(at: cursor) }
  }

  /// Begins after a saved cursor, to read the next page.
  public func start(after cursor: QueryCursor?) -> TypedQuery<Model> {
    typedQuery.changed { $0.start(after: cursor) }
  }

  /// Ends at a saved cursor.
  public func end(at cursor: QueryCursor?) -> TypedQuery<Model> {
    typedQuery.changed { $0.end(at: cursor) }
  }

  /// Ends before a saved cursor.
  public func end(before cursor: QueryCursor?) -> TypedQuery<Model> {
    typedQuery.changed { $0.end(before: cursor) }
  }
}

// MARK: - Results

extension TypedQuerySource {
  /// The documents as values of the type.
  ///
  /// - Throws: as `QuerySource.getDocuments()`, and `.failedPrecondition` for the first document
  ///   that does not fit the type, with its path and the field. `getSnapshot()` does not throw
  ///   that.
  /// - Complexity: as `QuerySource.getDocuments()`.
  public func getDocuments() async throws(DatabaseError) -> [Model] {
    let typed = typedQuery
    return try await typed.query.getDocuments().data(as: Model.self, decoder: typed.fields.decoder)
  }

  /// The first document; nil when there is none.
  ///
  /// - Throws: as `getDocuments()`.
  public func getFirst() async throws(DatabaseError) -> Model? {
    try await limit(to: 1).getDocuments().first
  }

  /// The documents with the rest of the result: a cursor for the next page, their ids and versions,
  /// and those that do not fit the type.
  ///
  /// - Throws: as `QuerySource.getDocuments()`.
  public func getSnapshot() async throws(DatabaseError) -> TypedQuerySnapshot<Model> {
    let typed = typedQuery
    return TypedQuerySnapshot(try await typed.query.getDocuments(), typed.fields)
  }

  /// The documents one after the other, with bounded memory. See `QuerySource.documents`.
  public var documents: TypedQueryDocuments<Model> { TypedQueryDocuments(typedQuery) }

  /// The result, and every later state of it. See `QuerySource.snapshots`.
  public var snapshots: Updates<TypedQuerySnapshot<Model>> {
    let fields = typedQuery.fields
    return typedQuery.query.snapshots.map { TypedQuerySnapshot($0, fields) }
  }

  /// How the query is answered. See `QuerySource.explain(analyze:)`.
  public func explain(analyze: Bool = false) async throws(DatabaseError) -> QueryExplanation {
    try await typedQuery.query.explain(analyze: analyze)
  }
}

// MARK: - Writes

extension TypedQuerySource {
  /// Changes properties of every document that the query finds, and returns their number. See
  /// `QuerySource.updateDocuments(_:durability:progress:)`.
  ///
  /// - Throws: as `QuerySource.updateDocuments(_:durability:progress:)`, and `.invalidArgument`
  ///   when two updates change one field.
  @discardableResult
  public func updateDocuments(
    _ updates: TypedUpdate<Model>..., durability: Durability? = nil,
    progress: (QueryWriteProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Int {
    let typed = typedQuery
    let data = try [FieldPath: (any FieldContent)?](updates, typed.fields)
    return try await typed.query.updateDocuments(
      data.map { ($0.key, $0.value) }, durability: durability, progress)
  }

  /// Deletes every document that the query finds, and returns their number. See
  /// `QuerySource.deleteDocuments(recursive:durability:progress:)`.
  ///
  /// - Throws: as `QuerySource.deleteDocuments(recursive:durability:progress:)`.
  @discardableResult
  public func deleteDocuments(
    recursive: Bool = false, durability: Durability? = nil,
    progress: (QueryWriteProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Int {
    try await typedQuery.query.deleteDocuments(
      recursive: recursive, durability: durability, progress: progress)
  }
}

// MARK: - Numbers

extension TypedQuerySource {
  /// The number of documents.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  /// - Complexity: mostly O(log n) when the collection or an index has exactly these documents.
  public func count() async throws(DatabaseError) -> Int {
    try await typedQuery.query.count.getAggregation().count
  }

  /// The sum of a property. See `AggregateField.sum(_:)`.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`, and `.outOfRange` when the sum does not fit
  ///   the property's type.
  public func sum<Number: Encodable & FieldReadable & Numeric>(
    _ property: any KeyPath<Model, Number> & Sendable
  ) async throws(DatabaseError) -> Number {
    try Self.fitting(try await number(ModelProperty(property)) { .sum($0) })
  }

  /// The sum of a property over the documents that have it.
  ///
  /// - Throws: as the form for properties that are never nil.
  public func sum<Number: Encodable & FieldReadable & Numeric>(
    _ property: any KeyPath<Model, Number?> & Sendable
  ) async throws(DatabaseError) -> Number {
    try Self.fitting(try await number(ModelProperty(property)) { .sum($0) })
  }

  /// The average of a property; nil when there are no numbers.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func average<Number: Encodable & Numeric>(
    _ property: any KeyPath<Model, Number> & Sendable
  ) async throws(DatabaseError) -> Double? {
    try await number(ModelProperty(property)) { .average($0) }?.double
  }

  /// The average of a property over the documents that have it; nil when none has.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func average<Number: Encodable & Numeric>(
    _ property: any KeyPath<Model, Number?> & Sendable
  ) async throws(DatabaseError) -> Double? {
    try await number(ModelProperty(property)) { .average($0) }?.double
  }

  /// The least value of a property; nil when there is none.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func minimum<Content: Codable>(
    _ property: any KeyPath<Model, Content> & Sendable
  ) async throws(DatabaseError) -> Content? {
    try decoded(try await number(ModelProperty(property)) { .minimum($0) })
  }

  /// The greatest value of a property; nil when there is none.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func maximum<Content: Codable>(
    _ property: any KeyPath<Model, Content> & Sendable
  ) async throws(DatabaseError) -> Content? {
    try decoded(try await number(ModelProperty(property)) { .maximum($0) })
  }

  /// The first text of a property in this comparison; nil when there is none. See
  /// `AggregateField.minimum(_:comparing:)`.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func minimum<Content: OptionalText & Codable>(
    _ property: any KeyPath<Model, Content> & Sendable, comparing comparison: TextComparison
  ) async throws(DatabaseError) -> Content? {
    try decoded(
      try await number(ModelProperty(property)) { .minimum($0, comparing: comparison) })
  }

  /// The last text of a property in this comparison; nil when there is none. See
  /// `AggregateField.maximum(_:comparing:)`.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func maximum<Content: OptionalText & Codable>(
    _ property: any KeyPath<Model, Content> & Sendable, comparing comparison: TextComparison
  ) async throws(DatabaseError) -> Content? {
    try decoded(
      try await number(ModelProperty(property)) { .maximum($0, comparing: comparison) })
  }

  private func number<Content: Encodable>(
    _ property: ModelProperty<Model, Content>, _ make: (FieldPath) -> AggregateField
  ) async throws(DatabaseError) -> Value? {
    let typed = typedQuery
    let field = make(try typed.fields.path(of: property))
    return try await typed.query.aggregate([field]).getAggregation().get(field)
  }

  static func fitting<Number: FieldReadable>(
    _ sum: Value?
  ) throws(DatabaseError) -> Number {
    let sum = sum ?? .integer(0)
    guard let number = Number(fieldValue: sum) else {
      throw DatabaseError(.outOfRange, "the sum \(sum) does not fit \(Number.self)")
    }
    return number
  }

  func decoded<Content: Decodable>(
    _ value: Value?
  ) throws(DatabaseError) -> Content? {
    guard let value else { return nil }
    do {
      return try typedQuery.fields.decoder.decode(
        [String: Content].self, from: ["value": value])["value"]
    } catch {
      throw DatabaseError(.failedPrecondition, "\(value) does not fit \(Content.self): \(error)")
    }
  }
}
