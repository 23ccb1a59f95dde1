// Conditions as people write them on a command line, `price >= 10 and kind in ["a", "b"]`, and what
// they come to: a filter of the library. Text becomes an expression in WhereParser; an expression
// is a value, so that tools can print what they understood.

package import Ondol

/// A condition on documents.
package indirect enum WhereExpression: Sendable, Equatable {
  /// What a field is compared with, and how.
  package enum Condition: Sendable, Equatable {
    case equal(Value)
    case notEqual(Value)
    case less(Value)
    case lessOrEqual(Value)
    case greater(Value)
    case greaterOrEqual(Value)
    case isIn([Value])
    case notIn([Value])
    case arrayContains(Value)
    case arrayContainsAny([Value])
    case startsWith(String)
  }

  /// One field; the names lead to it.
  case field(FieldPath, Condition)
  /// Both.
  case and(WhereExpression, WhereExpression)
  /// At least one.
  case or(WhereExpression, WhereExpression)

  /// Reads an expression.
  package init(_ text: String) throws(WhereError) {
    self = try WhereParser.expression(text)
  }
}

/// Why a text is no condition, and where.
package struct WhereError: Error, Sendable, Equatable {
  package let reason: String
  /// The place in the text, in bytes.
  package let offset: Int
  package let text: String
}

extension WhereError: CustomStringConvertible {
  /// The reason, the line, and below it a mark at the place.
  package var description: String {
    let bytes = Array(text.utf8)
    let lineStart = bytes[..<offset].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    let lineEnd = bytes[offset...].firstIndex(of: 0x0A) ?? bytes.count
    let line = String(decoding: bytes[lineStart..<lineEnd], as: UTF8.self)
    let before = String(decoding: bytes[lineStart..<offset], as: UTF8.self)
    // Hangul and what comes behind it takes two cells.
    let cells = before.reduce(0) { cells, character in
      cells + ((character.unicodeScalars.first?.value ?? 0) >= 0x1100 ? 2 : 1)
    }
    return "\(reason)\n  \(line)\n  \(String(repeating: " ", count: cells))^"
  }
}

// MARK: - Meaning

extension WhereExpression {
  /// The same as the library says it. What cannot be asked, such as a range from null, throws when
  /// the filter is used.
  package var filter: Filter {
    switch self {
    case .and(let left, let right): .andFilter([left.filter, right.filter])
    case .or(let left, let right): .orFilter([left.filter, right.filter])
    case .field(let field, let condition): condition.filter(of: field)
    }
  }

  /// The fields it names, as often as it does.
  package var fields: [FieldPath] {
    switch self {
    case .and(let left, let right), .or(let left, let right): left.fields + right.fields
    case .field(let field, _): [field]
    }
  }

  /// Documents that have the fields and do not meet the condition; nil where there is no such
  /// condition.
  var negated: WhereExpression? {
    switch self {
    case .and(let left, let right):
      guard let left = left.negated, let right = right.negated else { return nil }
      return .or(left, right)
    case .or(let left, let right):
      guard let left = left.negated, let right = right.negated else { return nil }
      return .and(left, right)
    case .field(let field, let condition):
      return condition.negated.map { .field(field, $0) }
    }
  }
}

extension WhereExpression.Condition {
  fileprivate func filter(of field: FieldPath) -> Filter {
    switch self {
    case .equal(let value): .whereField(field, isEqualTo: value)
    case .notEqual(let value): .whereField(field, isNotEqualTo: value)
    case .less(let value): .whereField(field, isLessThan: value)
    case .lessOrEqual(let value): .whereField(field, isLessThanOrEqualTo: value)
    case .greater(let value): .whereField(field, isGreaterThan: value)
    case .greaterOrEqual(let value): .whereField(field, isGreaterThanOrEqualTo: value)
    case .isIn(let values): .whereField(field, in: values)
    case .notIn(let values): .whereField(field, notIn: values)
    case .arrayContains(let value): .whereField(field, arrayContains: value)
    case .arrayContainsAny(let values): .whereField(field, arrayContainsAny: values)
    case .startsWith(let prefix): .whereField(field, hasPrefix: prefix)
    }
  }

  fileprivate var negated: Self? {
    switch self {
    case .equal(let value): .notEqual(value)
    case .notEqual(let value): .equal(value)
    case .less(let value): .greaterOrEqual(value)
    case .lessOrEqual(let value): .greater(value)
    case .greater(let value): .lessOrEqual(value)
    case .greaterOrEqual(let value): .less(value)
    case .isIn(let values): .notIn(values)
    case .notIn(let values): .isIn(values)
    case .arrayContains, .arrayContainsAny, .startsWith: nil
    }
  }

  /// The operator's word and its operand.
  fileprivate var parts: (word: String, operand: Value) {
    switch self {
    case .equal(let value): ("=", value)
    case .notEqual(let value): ("!=", value)
    case .less(let value): ("<", value)
    case .lessOrEqual(let value): ("<=", value)
    case .greater(let value): (">", value)
    case .greaterOrEqual(let value): (">=", value)
    case .isIn(let values): ("in", .array(values))
    case .notIn(let values): ("not in", .array(values))
    case .arrayContains(let value): ("array-contains", value)
    case .arrayContainsAny(let values): ("array-contains-any", .array(values))
    case .startsWith(let prefix): ("starts-with", .string(prefix))
    }
  }
}

extension WhereExpression: CustomStringConvertible {
  /// The expression as text that reads back as the same.
  package var description: String {
    switch self {
    case .field(let field, let condition):
      "\(Self.text(field)) \(condition.parts.word) \(JSONWriter.line(condition.parts.operand))"
    case .and(let left, let right): "(\(left) and \(right))"
    case .or(let left, let right): "(\(left) or \(right))"
    }
  }

  /// The path, in backquotes also where it would be taken for a word of the language.
  private static func text(_ field: FieldPath) -> String {
    let text = "\(field)"
    return WhereParser.isReserved(text) ? "`\(text)`" : text
  }
}
