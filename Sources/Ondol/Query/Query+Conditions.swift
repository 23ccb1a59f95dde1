// The ten conditions Firestore has, one on the beginning of a text, and any combination of them.
//
// None of these calls throws: a wrong field path or an operand that makes no sense is kept in the
// query and thrown, as `.invalidArgument`, by the call that uses it.

extension QuerySource {
  /// Documents whose field equals the value: Firestore's `==`. 1 equals 1.0, and NaN equals NaN.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`, which is compared with an
  ///     id in a collection and with a path in a collection group.
  ///   - value: what the field is to equal; nil stands for null.
  /// - Complexity: with an index on the field O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, isEqualTo value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isEqualTo: value))
  }

  /// Documents that have the field, neither null nor equal to the value: Firestore's `!=`. Results
  /// are ordered by the field unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps. A document that lacks it does not match.
  ///   - value: what the field is not to equal. With nil every field matches that is not null.
  public func whereField(_ field: FieldPath, isNotEqualTo value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isNotEqualTo: value))
  }

  /// Documents whose field is of the value's type and less. Results are ordered by the field unless
  /// the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - value: the bound, which does not match itself. Neither null nor NaN.
  /// - Complexity: with an index on the field O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, isLessThan value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isLessThan: value))
  }

  /// Documents whose field is of the value's type and not greater; otherwise as
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

  /// Documents whose field is of the value's type and greater; otherwise as
  /// `whereField(_:isLessThan:)`.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - value: the bound, which does not match itself. Neither null nor NaN.
  public func whereField(_ field: FieldPath, isGreaterThan value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isGreaterThan: value))
  }

  /// Documents whose field is of the value's type and not less; otherwise as
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
  /// Firestore takes 30 values and passes over null and NaN among them; here there may be any
  /// number, and null and NaN match. Nothing matches an empty list.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`.
  ///   - values: what the field may equal, in any order.
  /// - Complexity: with an index on the field, or for documents' ids, one lookup a value; otherwise
  ///   one pass over the collection, O(log m) comparisons a document for m values.
  public func whereField(_ field: FieldPath, in values: [(any FieldContent)?]) -> Query {
    whereFilter(.whereField(field, in: values))
  }

  /// Documents that have the field, neither null nor equal to one of the values. Nothing is, when
  /// null is among them, as in Firestore, which takes 10 values; here there may be any number.
  /// Results are ordered by the field unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps. A document that lacks it does not match.
  ///   - values: what the field is not to equal.
  public func whereField(_ field: FieldPath, notIn values: [(any FieldContent)?]) -> Query {
    whereFilter(.whereField(field, notIn: values))
  }

  /// Documents whose field is an array with an element that equals the value. Unlike in Firestore
  /// there may be several such conditions.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - value: the element; nil stands for null.
  /// - Complexity: with an index made by `createIndex(onArray:)` O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, arrayContains value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, arrayContains: value))
  }

  /// Documents whose field is an array with an element that equals one of the values. A document
  /// with several of them is in the result once.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - values: the elements, any number of them; Firestore takes 30.
  /// - Complexity: with an index made by `createIndex(onArray:)` one lookup a value and the rows
  ///   that match.
  public func whereField(_ field: FieldPath, arrayContainsAny values: [(any FieldContent)?])
    -> Query
  {
    whereFilter(.whereField(field, arrayContainsAny: values))
  }

  /// Documents whose field is a text that begins with `prefix`, compared by UTF-8 bytes, which
  /// Firestore lacks. Results are ordered by the field unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - prefix: how the text begins; every text begins with an empty one. No case or accent is
  ///     passed over.
  /// - Complexity: with an index on the field O(log n) and the rows that match.
  public func whereField(_ field: FieldPath, hasPrefix prefix: String) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix))
  }

  /// Documents whose field is a text that begins with `prefix`, letters' case aside when asked so.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - prefix: how the text begins.
  ///   - ignoringCase: whether `"la"` finds `"Lamp"`: both are compared in lower case, as
  ///     `String.lowercased()` makes it. No index serves that, and results are not ordered by the
  ///     field.
  /// - Complexity: when ignoring case one pass over the documents that meet the other conditions.
  public func whereField(
    _ field: FieldPath, hasPrefix prefix: String, ignoringCase: Bool
  ) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix, ignoringCase: ignoringCase))
  }

  /// Documents whose field is a text with `part` in it, compared by UTF-8 bytes, which Firestore
  /// lacks. For an array's elements see `whereField(_:arrayContains:)`.
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

  /// Documents whose field is the text, letters' case aside when asked so.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or, in a collection, `FieldPath.documentID()`.
  ///   - text: what the field is to be.
  ///   - ignoringCase: whether both are compared in lower case, as `String.lowercased()` makes it.
  ///     No index serves that.
  /// - Complexity: when ignoring case one pass over the documents that meet the other conditions.
  public func whereField(
    _ field: FieldPath, isEqualTo text: String, ignoringCase: Bool
  ) -> Query {
    whereFilter(.whereField(field, isEqualTo: text, ignoringCase: ignoringCase))
  }

  /// Documents that meet the filter, which may combine conditions at will.
  ///
  /// - Parameter filter: what is asked beside the conditions there are already, all of which must
  ///   be met.
  public func whereFilter(_ filter: Filter) -> Query {
    query.changed { (shape) throws(DatabaseError) in try shape.add(filter.tree.get()) }
  }
}
