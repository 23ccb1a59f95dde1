// Conditions and orders of texts that are not compared by their bytes: see TextComparison.

extension QuerySource {
  /// Sorts by a field whose texts are compared otherwise than by their bytes, after the orders
  /// already asked for. Texts that are the same in this comparison are in the order of their bytes,
  /// and equal ones in that of their documents' ids, so the order is total, and pages have no gaps.
  /// Values that are no texts have their usual places.
  ///
  /// A value that a result begins or ends at is a place in this order: `start(after: ["apple"])`
  /// continues after `"apple"`, which comes after `"Apple"`.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - comparison: how its texts are compared.
  ///   - descending: whether the greatest value comes first.
  ///   - missing: where documents without the field stand.
  /// - Complexity: none where an index serves the order, such as one on
  ///   `.ascending("name", comparing: .folded)`; otherwise as
  ///   `order(by:descending:missing:)`, and O(n) in the bytes of each text.
  public func order(
    by field: FieldPath, comparing comparison: TextComparison, descending: Bool = false,
    missing: MissingPlacement = .excluded
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      try shape.refuseMinus(in: field)
      shape.orders.append(
        SortOrder(
          field: try QueryField(field, comparing: comparison), descending: descending,
          missing: missing))
    }
  }

  /// Documents whose field is a text that is the same as `text` when compared so: with `.folded`,
  /// `"elan"` finds `"Élan"`.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the text.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, isEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isEqualTo: text, comparing: comparison))
  }

  /// Documents that have the field, neither null nor a text that is the same as `text` when
  /// compared so. Results are ordered by the field, compared so, unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the text.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, isNotEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isNotEqualTo: text, comparing: comparison))
  }

  /// Documents whose field is a text before `text` when compared so. Results are ordered by
  /// the field, compared so, unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound, which does not match itself, nor does what is the same.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, isLessThan text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isLessThan: text, comparing: comparison))
  }

  /// Documents whose field is a text before `text`, or the same, when compared so. Results are
  /// ordered by the field, compared so, unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound, which matches itself and what is the same.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, isLessThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isLessThanOrEqualTo: text, comparing: comparison))
  }

  /// Documents whose field is a text after `text` when compared so. Results are ordered by the
  /// field, compared so, unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound, which does not match itself, nor does what is the same.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, isGreaterThan text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isGreaterThan: text, comparing: comparison))
  }

  /// Documents whose field is a text after `text`, or the same, when compared so. Results are
  /// ordered by the field, compared so, unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound, which matches itself and what is the same.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, isGreaterThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isGreaterThanOrEqualTo: text, comparing: comparison))
  }

  /// Documents whose field is a text that is the same as one of the texts when compared so.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - texts: any number of them.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, one lookup a text for `in`.
  public func whereField(
    _ field: FieldPath, in texts: [String], comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, in: texts, comparing: comparison))
  }

  /// Documents that have the field, neither null nor a text that is the same as one of the texts
  /// when compared so. Results are ordered by the field, compared so, unless the query says
  /// otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - texts: any number of them.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field, compared so, one lookup a text for `in`.
  public func whereField(
    _ field: FieldPath, notIn texts: [String], comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, notIn: texts, comparing: comparison))
  }

  /// Documents whose field is a text that begins with `prefix` when compared so. Results are
  /// ordered by the field, compared so, unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - prefix: how the text begins; every text begins with an empty one.
  ///   - comparison: how texts are compared. With `.natural` the call throws `.invalidArgument`
  ///     that uses the query: `"1"` begins `"10"` as a text, and no number.
  /// - Complexity: with an index on the field, compared so, O(log n) and the rows that match.
  public func whereField(
    _ field: FieldPath, hasPrefix prefix: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix, comparing: comparison))
  }
}
