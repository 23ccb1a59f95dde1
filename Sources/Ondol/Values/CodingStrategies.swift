// How Codable types and documents differ at the app's request: other names for fields, other forms
// of dates. The same strategies in encoder and decoder undo each other.

internal import OndolFoundation

/// How the names of properties become the names of fields.
public enum KeyStrategy: Sendable, Hashable {
  /// Unchanged.
  case unchanged
  /// `imageURL` and `firstName` become `image_url` and `first_name`. The keys of dictionaries stay
  /// unchanged.
  case snakeCase
}

/// How a `Date` is stored.
///
/// A `Date` is a double that counts from 2001, finer than any of these. Reading returns the nearest
/// time that the strategy can store. `Timestamp(date:)` and back shows that value beforehand.
public enum DateStrategy: Sendable, Hashable {
  /// As a timestamp: the nearest microsecond of the years 1 to 9999. A date outside of them is
  /// refused, including `Date.distantPast`, which is two days before; store nil for "never".
  case timestamp
  /// As a double, exact to a quarter of a microsecond for some decades around today; any date.
  case secondsSince1970
  /// As a double, exact to a quarter of a microsecond for some decades around today; any date.
  case millisecondsSince1970
  /// As a text like `2026-01-31T12:00:00Z`, in whole seconds, which sorts as the dates do.
  case iso8601
}

extension KeyStrategy {
  /// The field's name for a key.
  func name(for key: some CodingKey) -> String {
    self == .unchanged ? key.stringValue : Self.snakeCase(key.stringValue)
  }

  /// A capital letter begins a word, unless it is between other capitals.
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

extension KeyStrategy {
  /// The possible names of a property whose field has this name, the likeliest first. The name does
  /// not show which letters of a word were capitals.
  func origins(of name: String) -> [String] {
    guard self == .snakeCase else { return [name] }
    let marks = String(name.prefix { $0 == "_" })
    let words = name.dropFirst(marks.count).split(separator: "_")
    guard let first = words.first, words.count <= Self.maximumWords else { return [name] }
    var origins = [marks + first, marks + Self.capitalized(first), marks + first.uppercased()]
    for word in words.dropFirst() {
      origins = origins.flatMap { [$0 + Self.capitalized(word), $0 + word.uppercased()] }
    }
    return (origins + [name]).filter { isSame(Self.snakeCase($0), name) }
  }

  /// The most words that may each be in capitals or not.
  private static let maximumWords = 8

  private static func capitalized(_ word: Substring) -> String {
    word.prefix(1).uppercased() + word.dropFirst()
  }
}

extension DateStrategy {
  /// The stored form of a date.
  func encode(_ date: Date) throws(DatabaseError) -> FieldInput {
    switch self {
    case .timestamp: try date.encodeField()
    case .secondsSince1970: FieldInput(.double(date.timeIntervalSince1970))
    case .millisecondsSince1970: FieldInput(.double(date.timeIntervalSince1970 * 1_000))
    case .iso8601: FieldInput(.string(date.formatted(Date.ISO8601FormatStyle())))
    }
  }

  /// The date of a stored value; nil when it is not a date.
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
