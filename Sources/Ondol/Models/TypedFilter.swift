// Conditions on properties instead of names, so that a misspelled name or a value of another type
// does not compile. They become conditions of the untyped query when the collection is known.

/// A condition on values of a type, alone or combined with others.
///
/// ```swift
/// items.where(\.price < 50)
/// items.where { $0.price < 50 && $0.tags.contains("oak") || $0.count == 0 }
/// ```
///
/// `==` and `!=` with nil mean the same as `whereField(_:isEqualTo:)` and
/// `whereField(_:isNotEqualTo:)` with null. A property that is nil is left out of the document, so
/// it meets neither, unless it is an ``ExplicitNull``.
public struct TypedFilter<Model: Codable & Sendable>: Sendable {
  /// The condition on fields.
  let filter: @Sendable (ModelFields<Model>) throws(DatabaseError) -> Filter

  init(_ filter: @escaping @Sendable (ModelFields<Model>) throws(DatabaseError) -> Filter) {
    self.filter = filter
  }

  /// A condition that compares a property with a value.
  fileprivate init<Content: Encodable & Sendable, Operand: Encodable & Sendable>(
    _ property: ModelProperty<Model, Content>, _ operand: Operand,
    _ make: @escaping @Sendable (FieldPath, any FieldContent) -> Filter
  ) {
    self.init { (fields) throws(DatabaseError) in
      make(try fields.path(of: property), EncodedContent(operand, fields.encoder))
    }
  }

  /// A condition that compares a property with several values.
  fileprivate init<Content: Encodable & Sendable, Operand: Encodable & Sendable>(
    _ property: ModelProperty<Model, Content>, anyOf operands: [Operand],
    _ make: @escaping @Sendable (FieldPath, [(any FieldContent)?]) -> Filter
  ) {
    self.init { (fields) throws(DatabaseError) in
      make(
        try fields.path(of: property), operands.map { EncodedContent($0, fields.encoder) })
    }
  }

  /// Documents that meet both.
  public static func && (left: TypedFilter, right: TypedFilter) -> TypedFilter {
    TypedFilter { (fields) throws(DatabaseError) in
      .andFilter([try left.filter(fields), try right.filter(fields)])
    }
  }

  /// Documents that meet at least one; see `Filter.orFilter(_:)`.
  public static func || (left: TypedFilter, right: TypedFilter) -> TypedFilter {
    TypedFilter { (fields) throws(DatabaseError) in
      .orFilter([try left.filter(fields), try right.filter(fields)])
    }
  }
}

/// A value as the collection's encoder stores it.
struct EncodedContent<Content: Encodable>: FieldContent {
  private let content: Content
  private let encoder: DocumentEncoder

  init(_ content: Content, _ encoder: DocumentEncoder) {
    self.content = content
    self.encoder = encoder
  }

  func encodeField() throws(DatabaseError) -> FieldInput { try encoder.anyInput(of: content) }
}

// MARK: - Properties

extension ModelProperty where Content: Encodable & Equatable & Sendable {
  /// Where the property equals the value.
  public static func == (left: ModelProperty, right: Content) -> TypedFilter<Model> {
    TypedFilter(left, right) { .whereField($0, isEqualTo: $1) }
  }

  /// Where the property exists and is neither null nor equal to the value.
  public static func != (left: ModelProperty, right: Content) -> TypedFilter<Model> {
    TypedFilter(left, right) { .whereField($0, isNotEqualTo: $1) }
  }

  /// Where the property equals one of the values, of which there may be any number.
  public func isIn(_ values: [Content]) -> TypedFilter<Model> {
    TypedFilter(self, anyOf: values) { .whereField($0, in: $1) }
  }

  /// Where the property exists and is neither null nor equal to one of the values.
  public func isNotIn(_ values: [Content]) -> TypedFilter<Model> {
    TypedFilter(self, anyOf: values) { .whereField($0, notIn: $1) }
  }
}

extension ModelProperty where Content: Encodable & Comparable & Sendable {
  /// Where the property is less than the value.
  public static func < (left: ModelProperty, right: Content) -> TypedFilter<Model> {
    TypedFilter(left, right) { .whereField($0, isLessThan: $1) }
  }

  /// Where the property is not greater than the value.
  public static func <= (left: ModelProperty, right: Content) -> TypedFilter<Model> {
    TypedFilter(left, right) { .whereField($0, isLessThanOrEqualTo: $1) }
  }

  /// Where the property is greater than the value.
  public static func > (left: ModelProperty, right: Content) -> TypedFilter<Model> {
    TypedFilter(left, right) { .whereField($0, isGreaterThan: $1) }
  }

  /// Where the property is not less than the value.
  public static func >= (left: ModelProperty, right: Content) -> TypedFilter<Model> {
    TypedFilter(left, right) { .whereField($0, isGreaterThanOrEqualTo: $1) }
  }
}

extension ModelProperty {
  /// Where the property exists and is less than the value.
  public static func < <Wrapped: Encodable & Comparable & Sendable>(
    left: ModelProperty, right: Wrapped
  ) -> TypedFilter<Model> where Content == Wrapped? {
    TypedFilter(left, right) { .whereField($0, isLessThan: $1) }
  }

  /// Where the property exists and is not greater than the value.
  public static func <= <Wrapped: Encodable & Comparable & Sendable>(
    left: ModelProperty, right: Wrapped
  ) -> TypedFilter<Model> where Content == Wrapped? {
    TypedFilter(left, right) { .whereField($0, isLessThanOrEqualTo: $1) }
  }

  /// Where the property exists and is greater than the value.
  public static func > <Wrapped: Encodable & Comparable & Sendable>(
    left: ModelProperty, right: Wrapped
  ) -> TypedFilter<Model> where Content == Wrapped? {
    TypedFilter(left, right) { .whereField($0, isGreaterThan: $1) }
  }

  /// Where the property exists and is not less than the value.
  public static func >= <Wrapped: Encodable & Comparable & Sendable>(
    left: ModelProperty, right: Wrapped
  ) -> TypedFilter<Model> where Content == Wrapped? {
    TypedFilter(left, right) { .whereField($0, isGreaterThanOrEqualTo: $1) }
  }
}

/// A text that may be missing.
public protocol OptionalText: Encodable, Sendable {}

extension String: OptionalText {}
extension String?: OptionalText {}

extension ModelProperty where Content: OptionalText {
  /// Where the text begins with `prefix`; see `QuerySource.whereField(_:hasPrefix:ignoringCase:)`.
  public func hasPrefix(_ prefix: String, ignoringCase: Bool = false) -> TypedFilter<Model> {
    TypedFilter(self, prefix) { path, _ in
      .whereField(path, hasPrefix: prefix, ignoringCase: ignoringCase)
    }
  }

  /// Where the text contains `part`; see `QuerySource.whereField(_:containsText:ignoringCase:)`.
  public func contains(text part: String, ignoringCase: Bool = false) -> TypedFilter<Model> {
    TypedFilter(self, part) { path, _ in
      .whereField(path, containsText: part, ignoringCase: ignoringCase)
    }
  }

  /// Where the text is `text`; see `QuerySource.whereField(_:isEqualTo:ignoringCase:)`.
  public func equals(_ text: String, ignoringCase: Bool) -> TypedFilter<Model> {
    TypedFilter(self, text) { path, _ in
      .whereField(path, isEqualTo: text, ignoringCase: ignoringCase)
    }
  }
}

extension ModelProperty
where Content: Encodable & Sendable & Sequence, Content.Element: Encodable & Equatable & Sendable {
  /// Where the array has the element.
  public func contains(_ element: Content.Element) -> TypedFilter<Model> {
    TypedFilter(self, element) { .whereField($0, arrayContains: $1) }
  }

  /// Where the array has at least one of the elements, of which there may be any number.
  public func contains(anyOf elements: [Content.Element]) -> TypedFilter<Model> {
    TypedFilter(self, anyOf: elements) { .whereField($0, arrayContainsAny: $1) }
  }
}

extension ModelProperty {
  /// Where the array exists and has the element.
  public func contains<Elements: Encodable & Sendable & Sequence>(
    _ element: Elements.Element
  ) -> TypedFilter<Model>
  where Content == Elements?, Elements.Element: Encodable & Equatable & Sendable {
    TypedFilter(self, element) { .whereField($0, arrayContains: $1) }
  }

  /// Where the array exists and has at least one of the elements.
  public func contains<Elements: Encodable & Sendable & Sequence>(
    anyOf elements: [Elements.Element]
  ) -> TypedFilter<Model>
  where Content == Elements?, Elements.Element: Encodable & Equatable & Sendable {
    TypedFilter(self, anyOf: elements) { .whereField($0, arrayContainsAny: $1) }
  }
}

// MARK: - Key paths

/// Where the property equals the value: `\.name == "Lamp"`.
public func == <Model: Codable & Sendable, Content: Encodable & Equatable & Sendable>(
  left: any KeyPath<Model, Content> & Sendable, right: Content
) -> TypedFilter<Model> { ModelProperty(left) == right }

/// Where the property exists and is neither null nor equal to the value.
public func != <Model: Codable & Sendable, Content: Encodable & Equatable & Sendable>(
  left: any KeyPath<Model, Content> & Sendable, right: Content
) -> TypedFilter<Model> { ModelProperty(left) != right }

/// Where the property is less than the value: `\.price < 50`.
public func < <Model: Codable & Sendable, Content: Encodable & Comparable & Sendable>(
  left: any KeyPath<Model, Content> & Sendable, right: Content
) -> TypedFilter<Model> { ModelProperty(left) < right }

/// Where the property is not greater than the value.
public func <= <Model: Codable & Sendable, Content: Encodable & Comparable & Sendable>(
  left: any KeyPath<Model, Content> & Sendable, right: Content
) -> TypedFilter<Model> { ModelProperty(left) <= right }

/// Where the property is greater than the value.
public func > <Model: Codable & Sendable, Content: Encodable & Comparable & Sendable>(
  left: any KeyPath<Model, Content> & Sendable, right: Content
) -> TypedFilter<Model> { ModelProperty(left) > right }

/// Where the property is not less than the value.
public func >= <Model: Codable & Sendable, Content: Encodable & Comparable & Sendable>(
  left: any KeyPath<Model, Content> & Sendable, right: Content
) -> TypedFilter<Model> { ModelProperty(left) >= right }
