// Conditions on and orders of texts that are compared other than by their bytes: see
// TextComparison.

extension QuerySource {
  /// Sorts by a field whose texts are compared other than by their bytes, after the orders already
  /// added. Texts that are equal in this comparison are in the order of their bytes, and equal
  /// texts in the order of their documents' ids. So the order is total, and pages have no gaps.
  /// Values that are not texts have their usual places.
  ///
  /// A value at which a result begins or ends is a position in this order: `start(after:
  /// ["apple"])` continues after `"apple"`, which comes after `"Apple"`.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - comparison: how its texts are compared.
  ///   - descending: whether the greatest value comes first.
  ///   - missing: where documents without the field come.
  /// - Complexity: none when an index serves the order, such as one on `.ascending("name",
  ///   comparing: .folded)`; otherwise as `order(by:descending:missing:)`, and O(n) in the bytes of
  ///   each text.
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

  /// Documents whose field is a text that equals `text` in this comparison: with `.folded`,
  /// `"elan"` finds `"Élan"`.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the text.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, isEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isEqualTo: text, comparing: comparison))
  }

  /// Documents that have the field with a value that is neither null nor a text that equals `text`
  /// in this comparison. Results are ordered by the field in this comparison unless the query says
  /// otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the text.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, isNotEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isNotEqualTo: text, comparing: comparison))
  }

  /// Documents whose field is a text before `text` in this comparison. Results are ordered by the
  /// field in this comparison unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound. It does not match, and neither do texts equal to it.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, isLessThan text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isLessThan: text, comparing: comparison))
  }

  /// Documents whose field is a text before or equal to `text` in this comparison. Results are
  /// ordered by the field in this comparison unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound. It matches, and so do texts equal to it.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, isLessThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isLessThanOrEqualTo: text, comparing: comparison))
  }

  /// Documents whose field is a text after `text` in this comparison. Results are ordered by the
  /// field in this comparison unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound. It does not match, and neither do texts equal to it.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, isGreaterThan text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isGreaterThan: text, comparing: comparison))
  }

  /// Documents whose field is a text after or equal to `text` in this comparison. Results are
  /// ordered by the field in this comparison unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - text: the bound. It matches, and so do texts equal to it.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, isGreaterThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, isGreaterThanOrEqualTo: text, comparing: comparison))
  }

  /// Documents whose field is a text that equals one of the texts in this comparison.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - texts: any number of texts.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, one lookup for each text for
  ///   `in`.
  public func whereField(
    _ field: FieldPath, in texts: [String], comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, in: texts, comparing: comparison))
  }

  /// Documents that have the field with a value that is neither null nor a text that equals one of
  /// the texts in this comparison. Results are ordered by the field in this comparison unless the
  /// query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - texts: any number of texts.
  ///   - comparison: how texts are compared.
  /// - Complexity: with an index on the field in the same comparison, one lookup for each text for
  ///   `in`.
  public func whereField(
    _ field: FieldPath, notIn texts: [String], comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, notIn: texts, comparing: comparison))
  }

  /// Documents whose field is a text that begins with `prefix` in this comparison. Results are
  /// ordered by the field in this comparison unless the query says otherwise.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - prefix: how the text begins; every text begins with an empty one.
  ///   - comparison: how texts are compared. With `.natural`, the call that uses the query throws
  ///     `.invalidArgument`, because `"1"` is a prefix of `"10"` as text but not as a number.
  /// - Complexity: with an index on the field in the same comparison, O(log n) and the rows that
  ///   match.
  public func whereField(
    _ field: FieldPath, hasPrefix prefix: String, comparing comparison: TextComparison
  ) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix, comparing: comparison))
  }
}
