// Conditions as people write them on a command line, `price >= 10 and kind in ["a", "b"]`, and
// their meaning: a filter of the library. WhereParser turns the text into an expression. An
// expression is a value, so that tools can print what they understood.

package import Ondol

/// A condition on documents.
package indirect enum WhereExpression: Sendable, Equatable {
  /// A comparison of a field, named by its word.
  package enum Comparison: String, Sendable, CaseIterable {
    case equal = "=", notEqual = "!=", isIn = "in", notIn = "not in"
    case less = "<", lessOrEqual = "<=", greater = ">", greaterOrEqual = ">="
    case arrayContains = "array-contains", arrayContainsAny = "array-contains-any"
    case startsWith = "starts-with", contains = "contains"
    case equalIgnoringCase = "equals-nocase", startsWithIgnoringCase = "starts-with-nocase"
    case containsIgnoringCase = "contains-nocase"

    /// Whether it compares only with a text.
    var takesText: Bool {
      switch self {
      case .startsWith, .contains, .equalIgnoringCase, .startsWithIgnoringCase,
        .containsIgnoringCase:
        true
      default: false
      }
    }
  }

  /// One field and its operand: an array of values if the comparison takes one, a text for the
  /// comparisons that take texts.
  case field(FieldPath, Comparison, Value)
  /// A comparison of a field with a text or several, by another order than that of bytes.
  case compared(FieldPath, TextComparison, Comparison, Value)
  /// Both conditions.
  case and(WhereExpression, WhereExpression)
  /// At least one of the conditions.
  case or(WhereExpression, WhereExpression)

  /// Reads an expression.
  package init(_ text: String) throws(WhereError) {
    self = try WhereParser.expression(text)
  }
}

/// Why a text is not a condition, and where.
package struct WhereError: Error, Sendable, Equatable {
  package let reason: String
  /// The place in the text, in bytes.
  package let offset: Int
  package let text: String
}

extension WhereError: CustomStringConvertible {
  /// The reason, the line, and a mark below it at the place: three lines, whatever the text
  /// contains.
  package var description: String {
    let bytes = Array(text.utf8)
    let lineStart = bytes[..<offset].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    let lineEnd = bytes[offset...].firstIndex(of: 0x0A) ?? bytes.count
    let line = VisibleText.line(String(decoding: bytes[lineStart..<lineEnd], as: UTF8.self))
    let before = VisibleText.line(String(decoding: bytes[lineStart..<offset], as: UTF8.self))
    // Hangul and the characters after it take two cells.
    let cells = before.reduce(0) { cells, character in
      cells + ((character.unicodeScalars.first?.value ?? 0) >= 0x1100 ? 2 : 1)
    }
    return "\(VisibleText.line(reason))\n  \(line)\n  \(String(repeating: " ", count: cells))^"
  }
}

// MARK: - Meaning

extension WhereExpression {
  /// The condition as a filter of the library. A filter that is not valid, such as a range from
  /// null, throws when a query uses it.
  package var filter: Filter {
    switch self {
    case .and(let left, let right): .andFilter([left.filter, right.filter])
    case .or(let left, let right): .orFilter([left.filter, right.filter])
    case .field(let field, let comparison, let operand): comparison.filter(of: field, operand)
    case .compared(let field, let texts, let comparison, let operand):
      comparison.filter(of: field, operand, comparing: texts)
    }
  }

  /// The fields in the condition, including repetitions.
  package var fields: [FieldPath] {
    switch self {
    case .and(let left, let right), .or(let left, let right): left.fields + right.fields
    case .field(let field, _, _), .compared(let field, _, _, _): [field]
    }
  }

  /// Matches the documents that have the fields and do not meet the condition; nil if no such
  /// condition exists.
  var negated: WhereExpression? {
    switch self {
    case .and(let left, let right):
      guard let left = left.negated, let right = right.negated else { return nil }
      return .or(left, right)
    case .or(let left, let right):
      guard let left = left.negated, let right = right.negated else { return nil }
      return .and(left, right)
    case .field(let field, let comparison, let operand):
      return comparison.negated.map { .field(field, $0, operand) }
    case .compared(let field, let texts, let comparison, let operand):
      return comparison.negated.map { .compared(field, texts, $0, operand) }
    }
  }
}

extension WhereExpression.Comparison {
  fileprivate func filter(of field: FieldPath, _ operand: Value) -> Filter {
    switch self {
    case .equal: .whereField(field, isEqualTo: operand)
    case .notEqual: .whereField(field, isNotEqualTo: operand)
    case .less: .whereField(field, isLessThan: operand)
    case .lessOrEqual: .whereField(field, isLessThanOrEqualTo: operand)
    case .greater: .whereField(field, isGreaterThan: operand)
    case .greaterOrEqual: .whereField(field, isGreaterThanOrEqualTo: operand)
    case .isIn: .whereField(field, in: operand.array ?? [])
    case .notIn: .whereField(field, notIn: operand.array ?? [])
    case .arrayContains: .whereField(field, arrayContains: operand)
    case .arrayContainsAny: .whereField(field, arrayContainsAny: operand.array ?? [])
    case .startsWith: .whereField(field, hasPrefix: operand.string ?? "")
    case .contains: .whereField(field, containsText: operand.string ?? "")
    case .equalIgnoringCase:
      .whereField(field, isEqualTo: operand.string ?? "", ignoringCase: true)
    case .startsWithIgnoringCase:
      .whereField(field, hasPrefix: operand.string ?? "", ignoringCase: true)
    case .containsIgnoringCase:
      .whereField(field, containsText: operand.string ?? "", ignoringCase: true)
    }
  }

  /// The same for text comparisons. A comparison that cannot compare them matches nothing, and the
  /// parser makes none.
  fileprivate func filter(
    of field: FieldPath, _ operand: Value, comparing texts: TextComparison
  ) -> Filter {
    let text = operand.string ?? ""
    let list = (operand.array ?? []).compactMap(\.string)
    return switch self {
    case .equal: .whereField(field, isEqualTo: text, comparing: texts)
    case .notEqual: .whereField(field, isNotEqualTo: text, comparing: texts)
    case .less: .whereField(field, isLessThan: text, comparing: texts)
    case .lessOrEqual: .whereField(field, isLessThanOrEqualTo: text, comparing: texts)
    case .greater: .whereField(field, isGreaterThan: text, comparing: texts)
    case .greaterOrEqual: .whereField(field, isGreaterThanOrEqualTo: text, comparing: texts)
    case .isIn: .whereField(field, in: list, comparing: texts)
    case .notIn: .whereField(field, notIn: list, comparing: texts)
    case .startsWith: .whereField(field, hasPrefix: text, comparing: texts)
    case .arrayContains, .arrayContainsAny, .contains, .equalIgnoringCase,
      .startsWithIgnoringCase, .containsIgnoringCase:
      .orFilter([])
    }
  }

  /// Whether it can compare texts by another order than that of bytes.
  func allows(_ texts: TextComparison) -> Bool {
    switch self {
    case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .isIn, .notIn: true
    case .startsWith: texts != .natural
    case .arrayContains, .arrayContainsAny, .contains, .equalIgnoringCase,
      .startsWithIgnoringCase, .containsIgnoringCase:
      false
    }
  }

  fileprivate var negated: Self? {
    let opposites: [(Self, Self)] = [
      (.equal, .notEqual), (.less, .greaterOrEqual), (.lessOrEqual, .greater), (.isIn, .notIn),
    ]
    return opposites.first { $0.0 == self }?.1 ?? opposites.first { $0.1 == self }?.0
  }
}

extension WhereExpression: CustomStringConvertible {
  /// The expression as text that reads back as the same expression.
  package var description: String {
    switch self {
    case .field(let field, let comparison, let operand):
      "\(Self.text(field)) \(comparison.rawValue) \(WhereLiteral.text(of: operand))"
    case .compared(let field, let texts, let comparison, let operand):
      "\(Self.text(field)) \(texts) \(comparison.rawValue) \(WhereLiteral.text(of: operand))"
    case .and(let left, let right): "(\(left) and \(right))"
    case .or(let left, let right): "(\(left) or \(right))"
    }
  }

  /// The path, with backquotes also where it could be read as a word of the language.
  private static func text(_ field: FieldPath) -> String {
    let text = "\(field)"
    return WhereParser.isReserved(text) ? "`\(text)`" : text
  }
}
