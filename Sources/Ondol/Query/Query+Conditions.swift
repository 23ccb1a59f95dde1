// Firestore's ten conditions, one on the beginning of a text, and any combination of them.
//
// None of these calls throws. The query keeps the error of a wrong field path or of an operand that
// makes no sense, and the call that uses the query throws it as `.invalidArgument`.

extension QuerySource {
  /// Documents whose field equals the value: Firestore's `==`. 1 equals 1.0, and NaN equals NaN.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`, which is compared with an
  ///     id in a collection and with a path in a collection group.
  ///   - value: the value to compare with; nil means null.
  /// - Complexity: with an index on the field O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, isEqualTo value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isEqualTo: value))
  }

  /// Documents that have the field with a value that is neither null nor equal to `value`:
  /// Firestore's `!=`. Results are ordered by the field unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps. A document that lacks it does not match.
  ///   - value: the value to exclude. With nil, every value except null matches.
  public func whereField(_ field: FieldPath, isNotEqualTo value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isNotEqualTo: value))
  }

  /// Documents whose field has the value's type and is less. Results are ordered by the field
  /// unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - value: the bound, which does not match itself. Neither null nor NaN.
  /// - Complexity: with an index on the field O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, isLessThan value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isLessThan: value))
  }

  /// Documents whose field has the value's type and is not greater. In all other respects like
  /// `whereField(_:isLessThan:)`.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - value: the bound, which matches itself. Neither null nor NaN.
  public func whereField(_ field: FieldPath, isLessThanOrEqualTo value: (any FieldContent)?)
    -> Query
  {
    whereFilter(.whereField(field, isLessThanOrEqualTo: value))
  }

  /// Documents whose field has the value's type and is greater. In all other respects like
  /// `whereField(_:isLessThan:)`.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - value: the bound, which does not match itself. Neither null nor NaN.
  public func whereField(_ field: FieldPath, isGreaterThan value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isGreaterThan: value))
  }

  /// Documents whose field has the value's type and is not less. In all other respects like
  /// `whereField(_:isLessThan:)`.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - value: the bound, which matches itself. Neither null nor NaN.
  public func whereField(_ field: FieldPath, isGreaterThanOrEqualTo value: (any FieldContent)?)
    -> Query
  {
    whereFilter(.whereField(field, isGreaterThanOrEqualTo: value))
  }

  /// Documents whose field equals one of the values.
  ///
  /// Firestore takes at most 30 values and ignores null and NaN among them. Here there may be any
  /// number, and null and NaN match. Nothing matches an empty list.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - values: the values to compare with, in any order.
  /// - Complexity: with an index on the field, or for document ids, one lookup for each value;
  ///   otherwise one pass over the collection, O(log m) comparisons a document for m values.
  public func whereField(_ field: FieldPath, in values: [(any FieldContent)?]) -> Query {
    whereFilter(.whereField(field, in: values))
  }

  /// Documents that have the field with a value that is neither null nor equal to one of the
  /// values. When null is among them, nothing matches. This is as in Firestore, which takes at most
  /// 10 values; here there may be any number. Results are ordered by the field unless the query
  /// says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps. A document that lacks it does not match.
  ///   - values: the values to exclude.
  public func whereField(_ field: FieldPath, notIn values: [(any FieldContent)?]) -> Query {
    whereFilter(.whereField(field, notIn: values))
  }

  /// Documents whose field is an array with an element that equals the value. Unlike in Firestore,
  /// there may be several such conditions.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - value: the element; nil means null.
  /// - Complexity: with an index made by `createIndex(onArray:)` O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, arrayContains value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, arrayContains: value))
  }

  /// Documents whose field is an array with an element that equals one of the values. A document
  /// with several of them is in the result once.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - values: the elements, any number of them; Firestore takes at most 30.
  /// - Complexity: with an index made by `createIndex(onArray:)` one lookup for each value and the
  ///   rows that match.
  public func whereField(_ field: FieldPath, arrayContainsAny values: [(any FieldContent)?])
    -> Query
  {
    whereFilter(.whereField(field, arrayContainsAny: values))
  }

  /// Documents whose field is a text that begins with `prefix`, compared by UTF-8 bytes. Firestore
  /// lacks this. Results are ordered by the field unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - prefix: how the text begins; every text begins with an empty one. Case and accents must
  ///     match.
  /// - Complexity: with an index on the field O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, hasPrefix prefix: String) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix))
  }

  /// Documents whose field is a text that begins with `prefix`, optionally ignoring case.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - prefix: how the text begins.
  ///   - ignoringCase: whether `"la"` finds `"Lamp"`. Both are compared in lower case, as
  ///     `String.lowercased()` makes it. No index serves that, and results are not ordered by the
  ///     field.
  /// - Complexity: when ignoring case, one pass over the documents that meet the other conditions.
  public func whereField(
    _ field: FieldPath, hasPrefix prefix: String, ignoringCase: Bool
  ) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix, ignoringCase: ignoringCase))
  }

  /// Documents whose field is a text that contains `part`, compared by UTF-8 bytes. Firestore lacks
  /// this. For an array's elements see `whereField(_:arrayContains:)`.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - part: what the text contains; every text contains an empty one.
  ///   - ignoringCase: whether both are compared in lower case, as `String.lowercased()` makes it.
  /// - Complexity: one pass over the documents that meet the other conditions; no index serves it.
  public func whereField(
    _ field: FieldPath, containsText part: String, ignoringCase: Bool = false
  ) -> Query {
    whereFilter(.whereField(field, containsText: part, ignoringCase: ignoringCase))
  }

  /// Documents whose field is the text, optionally ignoring case.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - text: the text to compare with.
  ///   - ignoringCase: whether both are compared in lower case, as `String.lowercased()` makes it.
  ///     No index serves that.
  /// - Complexity: when ignoring case, one pass over the documents that meet the other conditions.
  public func whereField(
    _ field: FieldPath, isEqualTo text: String, ignoringCase: Bool
  ) -> Query {
    whereFilter(.whereField(field, isEqualTo: text, ignoringCase: ignoringCase))
  }

  /// Documents that meet the filter, which may combine conditions freely.
  ///
  /// - Parameter filter: must be met in addition to the conditions that the query already has.
  public func whereFilter(_ filter: Filter) -> Query {
    query.changed { (shape) throws(DatabaseError) in try shape.add(filter.tree.get()) }
  }
}
