// Conditions on texts that are not compared by their bytes. The operand becomes its key here, and
// the field the one of the keys, so that what plans, matches and looks up meets ordinary values.

extension Filter {
  /// The field is a text that is the same as `text` when compared so. See
  /// `QuerySource.whereField(_:isEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .equal(.string(comparison.key(of: text))) }
  }

  /// The document has the field, neither null nor a text that is the same when compared so. See
  /// `QuerySource.whereField(_:isNotEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isNotEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .notEqual(.string(comparison.key(of: text))) }
  }

  /// The field is a text before `text` when compared so. See
  /// `QuerySource.whereField(_:isLessThan:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isLessThan text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .less(.string(comparison.key(of: text))) }
  }

  /// The field is a text before `text`, or the same, when compared so. See
  /// `QuerySource.whereField(_:isLessThanOrEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isLessThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .lessOrEqual(.string(comparison.key(of: text))) }
  }

  /// The field is a text after `text` when compared so. See
  /// `QuerySource.whereField(_:isGreaterThan:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isGreaterThan text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .greater(.string(comparison.key(of: text))) }
  }

  /// The field is a text after `text`, or the same, when compared so. See
  /// `QuerySource.whereField(_:isGreaterThanOrEqualTo:comparing:)`.
  public static func whereField(
    _ field: FieldPath, isGreaterThanOrEqualTo text: String, comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .greaterOrEqual(.string(comparison.key(of: text))) }
  }

  /// The field is a text that is the same as one of the texts when compared so. See
  /// `QuerySource.whereField(_:in:comparing:)`.
  public static func whereField(
    _ field: FieldPath, in texts: [String], comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .isIn(keys(of: texts, comparison)) }
  }

  /// The document has the field, neither null nor a text that is the same as one of the texts when
  /// compared so. See `QuerySource.whereField(_:notIn:comparing:)`.
  public static func whereField(
    _ field: FieldPath, notIn texts: [String], comparing comparison: TextComparison
  ) -> Filter {
    compared(field, comparison) { .notIn(keys(of: texts, comparison)) }
  }

  /// The field is a text that begins with `prefix` when compared so. See
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
