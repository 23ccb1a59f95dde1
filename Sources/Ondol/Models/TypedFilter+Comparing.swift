// Conditions on and orders of a type's texts that are compared other than by their bytes.

/// A property's texts in a given comparison.
///
/// In `people.where { $0.name.comparing(.folded) == "elan" }` it is `$0.name.comparing(.folded)`.
public struct ComparedProperty<Model: Codable & Sendable, Content: OptionalText>: Sendable {
  fileprivate let property: ModelProperty<Model, Content>
  fileprivate let comparison: TextComparison

  private func filter(
    _ make: @escaping @Sendable (FieldPath, TextComparison) -> Filter
  ) -> TypedFilter<Model> {
    TypedFilter { [property, comparison] (fields) throws(DatabaseError) in
      make(try fields.path(of: property), comparison)
    }
  }

  /// Where the text equals `right` in the comparison.
  public static func == (left: ComparedProperty, right: String) -> TypedFilter<Model> {
    left.filter { .whereField($0, isEqualTo: right, comparing: $1) }
  }

  /// Where the property exists and does not equal `right`.
  public static func != (left: ComparedProperty, right: String) -> TypedFilter<Model> {
    left.filter { .whereField($0, isNotEqualTo: right, comparing: $1) }
  }

  /// Where the text is before `right`.
  public static func < (left: ComparedProperty, right: String) -> TypedFilter<Model> {
    left.filter { .whereField($0, isLessThan: right, comparing: $1) }
  }

  /// Where the text is before or equal to `right`.
  public static func <= (left: ComparedProperty, right: String) -> TypedFilter<Model> {
    left.filter { .whereField($0, isLessThanOrEqualTo: right, comparing: $1) }
  }

  /// Where the text is after `right`.
  public static func > (left: ComparedProperty, right: String) -> TypedFilter<Model> {
    left.filter { .whereField($0, isGreaterThan: right, comparing: $1) }
  }

  /// Where the text is after or equal to `right`.
  public static func >= (left: ComparedProperty, right: String) -> TypedFilter<Model> {
    left.filter { .whereField($0, isGreaterThanOrEqualTo: right, comparing: $1) }
  }

  /// Where the text equals one of the texts, of which there may be any number.
  public func isIn(_ texts: [String]) -> TypedFilter<Model> {
    filter { .whereField($0, in: texts, comparing: $1) }
  }

  /// Where the property exists and equals none of the texts.
  public func isNotIn(_ texts: [String]) -> TypedFilter<Model> {
    filter { .whereField($0, notIn: texts, comparing: $1) }
  }

  /// Where the text begins with `prefix`; see `QuerySource.whereField(_:hasPrefix:comparing:)`.
  public func hasPrefix(_ prefix: String) -> TypedFilter<Model> {
    filter { .whereField($0, hasPrefix: prefix, comparing: $1) }
  }
}

extension ModelProperty where Content: OptionalText {
  /// The property's texts in this comparison instead of by their bytes.
  public func comparing(_ comparison: TextComparison) -> ComparedProperty<Model, Content> {
    ComparedProperty(property: self, comparison: comparison)
  }
}

extension TypedQuerySource {
  /// Sorts by a property whose texts are compared in this way, after the orders already added. See
  /// `QuerySource.order(by:comparing:descending:missing:)`.
  ///
  /// - Parameters:
  ///   - property: the property to sort by.
  ///   - comparison: how its texts are compared.
  ///   - descending: whether the greatest value comes first.
  ///   - missing: where documents without it come, such as those where an optional is nil.
  public func order<Content: OptionalText>(
    by property: any KeyPath<Model, Content> & Sendable, comparing comparison: TextComparison,
    descending: Bool = false, missing: MissingPlacement = .excluded
  ) -> TypedQuery<Model> {
    let fields = typedQuery.fields
    return typedQuery.changed { (query) throws(DatabaseError) in
      query.order(
        by: try fields.path(of: ModelProperty(property)), comparing: comparison,
        descending: descending, missing: missing)
    }
  }
}
