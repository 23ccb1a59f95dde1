// Numbers about groups of typed documents: aggregates with a property's values as the keys.

internal import OndolEngine

/// The documents of a typed query in groups that agree in a property.
///
/// ```swift
/// let counts = try await items.group(by: \.kind).count()  // [Item.Kind: Int]
/// let values = try await items.where(\.price > 0).group(by: \.kind).sum(\.price)
/// ```
public struct TypedGroups<Model: Codable & Sendable, Key: Codable & Hashable & Sendable>: Sendable {
  private let typed: TypedQuery<Model>
  private let field: Result<FieldPath, DatabaseError>
  /// How the texts of group keys are compared; nil when by their bytes.
  private let comparison: TextComparison?
  /// A group's key as a value of the property; nil when the property is nil.
  private let key: @Sendable (Value?) throws(DatabaseError) -> Key?

  fileprivate init(
    _ typed: TypedQuery<Model>, _ field: Result<FieldPath, DatabaseError>,
    comparing comparison: TextComparison? = nil,
    _ key: @escaping @Sendable (Value?) throws(DatabaseError) -> Key?
  ) {
    self.typed = typed
    self.field = field
    self.comparison = comparison
    self.key = key
  }

  /// The number of documents in each group.
  ///
  /// - Throws: as `GroupedAggregateQuery.getAggregation()`, and `.failedPrecondition` when a
  ///   group's key does not fit the property's type.
  /// - Complexity: as `GroupedAggregateQuery.getAggregation()`.
  public func count() async throws(DatabaseError) -> [Key: Int] {
    try await numbers(.count()) { (value) throws(DatabaseError) in
      Int(value?.integer ?? 0)
    }
  }

  /// The sum of a property in each group. See `AggregateField.sum(_:)`.
  ///
  /// - Throws: as `count()`, and `.outOfRange` when a sum does not fit the property's type.
  public func sum<Number: Encodable & FieldReadable & Numeric>(
    _ property: any KeyPath<Model, Number> & Sendable
  ) async throws(DatabaseError) -> [Key: Number] {
    try await sums(typed.path(of: property).get())
  }

  /// The sum of a property in each group, over the documents that have it.
  ///
  /// - Throws: as the form for properties that are never nil.
  public func sum<Number: Encodable & FieldReadable & Numeric>(
    _ property: any KeyPath<Model, Number?> & Sendable
  ) async throws(DatabaseError) -> [Key: Number] {
    try await sums(typed.path(of: property).get())
  }

  /// The average of a property in each group that has a number.
  ///
  /// - Throws: as `count()`.
  public func average<Number: Encodable>(
    _ property: any KeyPath<Model, Number> & Sendable
  ) async throws(DatabaseError) -> [Key: Double] {
    try await numbers(.average(typed.path(of: property).get())) { (value) throws(DatabaseError) in
      value?.double
    }
  }

  /// The least value of a property in each group that has one.
  ///
  /// - Throws: as `count()`.
  public func minimum<Content: Codable>(
    _ property: any KeyPath<Model, Content> & Sendable
  ) async throws(DatabaseError) -> [Key: Content] {
    try await extremes(.minimum(typed.path(of: property).get()))
  }

  /// The greatest value of a property in each group that has one.
  ///
  /// - Throws: as `count()`.
  public func maximum<Content: Codable>(
    _ property: any KeyPath<Model, Content> & Sendable
  ) async throws(DatabaseError) -> [Key: Content] {
    try await extremes(.maximum(typed.path(of: property).get()))
  }

  private func sums<Number: FieldReadable>(
    _ path: FieldPath
  ) async throws(DatabaseError) -> [Key: Number] {
    try await numbers(.sum(path)) { (value) throws(DatabaseError) in
      try TypedQuery<Model>.fitting(value)
    }
  }

  private func extremes<Content: Decodable>(
    _ field: AggregateField
  ) async throws(DatabaseError) -> [Key: Content] {
    try await numbers(field) { (value) throws(DatabaseError) in try typed.decoded(value) }
  }

  /// One number for each group, without groups that have none.
  private func numbers<Number>(
    _ field: AggregateField, _ number: (Value?) throws(DatabaseError) -> Number?
  ) async throws(DatabaseError) -> [Key: Number] {
    let groups = try await GroupedAggregateQuery(
      aggregate: typed.query.aggregate([field]), groupFields: [self.field.get()],
      comparison: comparison
    ).getAggregation()
    var numbers: [Key: Number] = [:]
    for group in groups {
      guard let key = try self.key(group.key.first),
        let found = try number(group.aggregation.get(field))
      else { continue }
      guard numbers.updateValue(found, forKey: key) == nil else {
        throw DatabaseError(
          .failedPrecondition, "several groups have \(key) for a key when they are \(Key.self)")
      }
    }
    return numbers
  }
}

extension TypedQuerySource {
  /// The documents in groups that agree in a property. Documents that lack it are in no group.
  public func group<Key: Codable & Hashable & Sendable>(
    by property: any KeyPath<Model, Key> & Sendable
  ) -> TypedGroups<Model, Key> {
    let typed = typedQuery
    return TypedGroups(typed, typed.path(of: property)) { (value) throws(DatabaseError) in
      try typed.decoded(value)
    }
  }

  /// The documents in groups that agree in a property. Documents where it is nil are in no group.
  public func group<Key: Codable & Hashable & Sendable>(
    by property: any KeyPath<Model, Key?> & Sendable
  ) -> TypedGroups<Model, Key> {
    let typed = typedQuery
    return TypedGroups(typed, typed.path(of: property)) { (value) throws(DatabaseError) in
      let key: Key?? = try typed.decoded(value)
      return key ?? nil
    }
  }
  /// The documents in groups whose texts are equal in this comparison. The group's key is the one
  /// of these texts that is first by its bytes. See `AggregateQuery.group(by:comparing:)`.
  public func group(
    by property: any KeyPath<Model, String> & Sendable, comparing comparison: TextComparison
  ) -> TypedGroups<Model, String> {
    let typed = typedQuery
    return TypedGroups(typed, typed.path(of: property), comparing: comparison) {
      (value) throws(DatabaseError) in try typed.decoded(value)
    }
  }

  /// The documents in groups whose texts are equal in this comparison. Documents where the property
  /// is nil are in no group. See `AggregateQuery.group(by:comparing:)`.
  public func group(
    by property: any KeyPath<Model, String?> & Sendable, comparing comparison: TextComparison
  ) -> TypedGroups<Model, String> {
    let typed = typedQuery
    return TypedGroups(typed, typed.path(of: property), comparing: comparison) {
      (value) throws(DatabaseError) in
      let key: String?? = try typed.decoded(value)
      return key ?? nil
    }
  }
}
