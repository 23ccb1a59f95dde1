// How Codable types and documents differ, where an app wants them to: other names for fields, other
// forms of dates. The same strategies on both sides undo each other.

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// How the names of properties become the names of fields.
public enum KeyStrategy: Sendable, Hashable {
  /// As they are.
  case unchanged
  /// `imageURL` and `firstName` become `image_url` and `first_name`. The keys of dictionaries stay
  /// as they are.
  case snakeCase
}

/// How a `Date` is stored.
public enum DateStrategy: Sendable, Hashable {
  /// As a timestamp.
  case timestamp
  /// As a double.
  case secondsSince1970
  /// As a double.
  case millisecondsSince1970
  /// As a text like `2026-01-31T12:00:00Z`, in whole seconds, which sorts as the dates do.
  case iso8601
}

extension KeyStrategy {
  /// The field's name for a key.
  func name(for key: some CodingKey) -> String {
    self == .unchanged ? key.stringValue : Self.snakeCase(key.stringValue)
  }

  /// A capital letter begins a word, unless it stands between others.
  static func snakeCase(_ text: String) -> String {
    let characters = Array(text)
    var result = ""
    for (index, character) in characters.enumerated() {
      if character.isUppercase, index > 0, characters[index - 1] != "_" {
        let isAfterSmall = !characters[index - 1].isUppercase
        let isBeforeSmall = index + 1 < characters.count && characters[index + 1].isLowercase
        if isAfterSmall || isBeforeSmall { result.append("_") }
      }
      result += character.lowercased()
    }
    return result
  }
}

extension DateStrategy {
  /// What is stored for a date.
  func encode(_ date: Date) throws(DatabaseError) -> FieldInput {
    switch self {
    case .timestamp: try date.encodeField()
    case .secondsSince1970: FieldInput(.double(date.timeIntervalSince1970))
    case .millisecondsSince1970: FieldInput(.double(date.timeIntervalSince1970 * 1_000))
    case .iso8601: FieldInput(.string(date.formatted(Date.ISO8601FormatStyle())))
    }
  }

  /// The date a value stands for; nil when it stands for none.
  func decode(_ value: Value) -> Date? {
    switch self {
    case .timestamp: Date(fieldValue: value)
    case .secondsSince1970: Double(fieldValue: value).map { Date(timeIntervalSince1970: $0) }
    case .millisecondsSince1970:
      Double(fieldValue: value).map { Date(timeIntervalSince1970: $0 / 1_000) }
    case .iso8601: value.string.flatMap { try? Date.ISO8601FormatStyle().parse($0) }
    }
  }
}

/// A dictionary whose keys are data, not names of properties.
protocol StringKeyedDictionary: SpeciallyEncoded {}

extension Dictionary: StringKeyedDictionary, SpeciallyEncoded where Key == String {}
