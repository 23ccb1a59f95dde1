// Conditions on texts that are compared other than by their bytes. The operand becomes its
// comparison key here, and the field that of the keys, so that planning, matching and lookups work
// with ordinary values.

extension Filter {
  /// The field is a text that equals `text` in this comparison. See
  /// `QuerySource.whereField(_:isEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .equal(.string(comparison.key(of: text))) }
  }

  /// The document has the field, with a value that is neither null nor a text that equals `text` in
  /// this comparison. See `QuerySource.whereField(_:isNotEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isNotEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .notEqual(.string(comparison.key(of: text))) }
  }

  /// The field is a text before `text` in this comparison. See
  /// `QuerySource.whereField(_:isLessThan:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isLessThan text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .less(.string(comparison.key(of: text))) }
  }

  /// The field is a text before or equal to `text` in this comparison. See
  /// `QuerySource.whereField(_:isLessThanOrEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isLessThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .lessOrEqual(.string(comparison.key(of: text))) }
  }

  /// The field is a text after `text` in this comparison. See
  /// `QuerySource.whereField(_:isGreaterThan:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isGreaterThan text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .greater(.string(comparison.key(of: text))) }
  }

  /// The field is a text after or equal to `text` in this comparison. See
  /// `QuerySource.whereField(_:isGreaterThanOrEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isGreaterThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .greaterOrEqual(.string(comparison.key(of: text))) }
  }

  /// The field is a text that equals one of the texts in this comparison. See
  /// `QuerySource.whereField(_:in:comparing:)`.
  public static func whereField(
    _ field: FieldPath, in texts: [String], comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .isIn(keys(of: texts, comparison)) }
  }

  /// The document has the field, with a value that is neither null nor a text that equals one of
  /// the texts in this comparison. See `QuerySource.whereField(_:notIn:comparing:)`.
  public static func whereField(
    _ field: FieldPath, notIn texts: [String], comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .notIn(keys(of: texts, comparison)) }
  }

  /// The field is a text that begins with `prefix` in this comparison. See
  /// `QuerySource.whereField(_:hasPrefix:comparing:)`.
  public static func whereField(
    _ field: FieldPath, hasPrefix prefix: String, comparing comparison: TextComparison
  ) -> Filter {
    Filter { () throws(DatabaseError) in
      guard comparison != .natural else {
        throw DatabaseError(
          .invalidArgument,
          "a number has no beginning that is a number, too; compare the beginning with .folded",
          field: "\(field)")
      }
      return .field(
        FieldFilter(
          field: try QueryField(field, comparing: comparison),
          condition: .hasPrefix(ExactText(comparison.key(of: prefix)))))
    }
  }

  private static func compared(
    _ field: FieldPath, _ comparison: TextComparison, _ condition: () -> FieldFilter.Condition
  ) -> Filter {
    Filter { () throws(DatabaseError) in
      .field(
        FieldFilter(
          field: try QueryField(field, comparing: comparison), condition: condition()))
    }
  }

  private static func keys(of texts: [String], _ comparison: TextComparison) -> [Value] {
    texts.map { .string(comparison.key(of: $0)) }.sortedWithoutDuplicates
  }
}
