// Reads conditions, orders and lists of fields by recursive descent. The input is hostile: it comes
// from command lines and fuzzers, so nesting is limited and every error has its place.
//
//   expression := conjunction { "or" conjunction }
//   conjunction := negation { "and" negation }
//   negation := "not" negation | "(" expression ")" | comparison
//   comparison := field [ "folded" | "natural" | "caseInsensitive" ] operator value
//   operator := "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in"
//             | "array-contains" | "array-contains-any" | "contains" | "starts-with"
//             | "contains-nocase" | "starts-with-nocase" | "equals-nocase"
//
// A field is a path in the library's form. A name with other characters is in backquotes. A value
// is JSON, with Extended JSON's objects for values that JSON has no notation for, and with the
// forms that WhereLiteral converts: texts in single quotes, and decimals as digits with an "m"
// after them.

package import Ondol

/// One order from a text.
package struct WhereOrder: Sendable, Equatable {
  package let field: FieldPath
  /// How texts are compared; nil for the order of bytes.
  package let comparison: TextComparison?
  package let isDescending: Bool

  /// Returns the query with this order after its own.
  package func added(to query: Query) -> Query {
    guard let comparison else { return query.order(by: field, descending: isDescending) }
    return query.order(by: field, comparing: comparison, descending: isDescending)
  }
}

/// Reads one text.
package struct WhereParser {
  /// The deepest nesting: more than any person means.
  static let maximumDepth = 64
  private static let words: Set<String> = ["and", "or", "not"]

  private let text: String
  private let bytes: [UInt8]
  private var position = 0
  private var depth = 0

  private init(_ text: String) {
    self.text = text
    bytes = Array(text.utf8)
  }

  /// Reads a condition.
  package static func expression(_ text: String) throws(WhereError) -> WhereExpression {
    var parser = WhereParser(text)
    let expression = try parser.readExpression()
    parser.skipSpace()
    guard parser.isAtEnd else {
      throw parser.error("\"and\", \"or\" or the end must follow here")
    }
    return expression
  }

  /// Reads orders: `price desc, name folded`.
  package static func orders(_ text: String) throws(WhereError) -> [WhereOrder] {
    var parser = WhereParser(text)
    var orders: [WhereOrder] = []
    repeat {
      let field = try parser.readField()
      let comparison = parser.readComparisonOfTexts()
      let isDescending = parser.skip(word: "desc")
      if !isDescending { _ = parser.skip(word: "asc") }
      orders.append(
        WhereOrder(field: field, comparison: comparison, isDescending: isDescending))
    } while parser.skip(",")
    try parser.expectEnd()
    return orders
  }

  /// Reads the fields of an index, in the form of `createIndex(on:)`: `tags[], name folded, price
  /// desc`.
  package static func indexFields(_ text: String) throws(WhereError) -> [String] {
    var parser = WhereParser(text)
    var fields: [String] = []
    repeat {
      let field = try parser.readField()
      if parser.skip("[]") {
        fields.append(field.description + "[]")
        continue
      }
      let comparison = parser.readComparisonOfTexts()
      let isDescending = parser.skip(word: "desc")
      if !isDescending { _ = parser.skip(word: "asc") }
      let indexed =
        isDescending
        ? IndexedField.descending(field, comparing: comparison)
        : .ascending(field, comparing: comparison)
      fields.append("\(indexed)")
    } while parser.skip(",")
    try parser.expectEnd()
    return fields
  }

  /// Reads a list of fields: ``name, sizes.`5.5` ``.
  package static func fields(_ text: String) throws(WhereError) -> [FieldPath] {
    var parser = WhereParser(text)
    var fields: [FieldPath] = []
    repeat { fields.append(try parser.readField()) } while parser.skip(",")
    try parser.expectEnd()
    return fields
  }

  /// Whether a name could be read as a word of the language.
  static func isReserved(_ name: String) -> Bool { words.contains(name.lowercased()) }

  // MARK: - Combinations

  private mutating func readExpression() throws(WhereError) -> WhereExpression {
    var left = try readConjunction()
    while skip(word: "or") { left = .or(left, try readConjunction()) }
    return left
  }

  private mutating func readConjunction() throws(WhereError) -> WhereExpression {
    var left = try readNegation()
    while skip(word: "and") { left = .and(left, try readNegation()) }
    return left
  }

  private mutating func readNegation() throws(WhereError) -> WhereExpression {
    guard depth < Self.maximumDepth else { throw error("this is nested too deep") }
    depth += 1
    defer { depth -= 1 }
    skipSpace()
    let start = position
    if skip(word: "not") {
      guard let negated = try readNegation().negated else {
        throw error("what only some arrays or texts meet cannot be negated", at: start)
      }
      return negated
    }
    guard skip("(") else { return try readComparison() }
    let inner = try readExpression()
    guard skip(")") else { throw error("a \")\" is missing") }
    return inner
  }

  // MARK: - One field

  /// Reads the text comparison after a field: `folded`, or `~folded` in the form of an index.
  private mutating func readComparisonOfTexts() -> TextComparison? {
    let start = position
    _ = skip("~")
    for comparison in TextComparison.allCases
    where skip(word: comparison.rawValue.lowercased()) {
      return comparison
    }
    position = start
    return nil
  }

  private mutating func readComparison() throws(WhereError) -> WhereExpression {
    let field = try readField()
    let texts = readComparisonOfTexts()
    skipSpace()
    let sign = position
    let comparison = try readOperator()
    if let texts, !comparison.allows(texts) {
      throw error("\"\(comparison.rawValue)\" does not compare texts as \(texts)", at: sign)
    }
    skipSpace()
    let place = position
    let operand = try readValue()
    switch comparison {
    case .isIn, .notIn, .arrayContainsAny:
      guard operand.array != nil else {
        throw error("an array is needed here, such as [1, 2]", at: place)
      }
    default:
      guard !comparison.takesText || operand.string != nil else {
        throw error("\"\(comparison.rawValue)\" needs a text in quotes", at: place)
      }
    }
    guard let texts else { return .field(field, comparison, operand) }
    guard (operand.array ?? [operand]).allSatisfy({ $0.string != nil }) else {
      throw error("\(texts) compares texts, which stand in quotes", at: place)
    }
    return .compared(field, texts, comparison, operand)
  }

  private mutating func readOperator() throws(WhereError) -> WhereExpression.Comparison {
    skipSpace()
    // Longer signs first.
    for sign in ["==", "!=", "<=", ">=", "=", "<", ">"] where skip(sign) {
      return WhereExpression.Comparison(rawValue: sign) ?? .equal
    }
    let start = position
    let name = readOperatorName().lowercased()
    if name == "not" {
      guard skip(word: "in") else { throw error("only \"in\" can follow \"not\" here") }
      return .notIn
    }
    guard let comparison = WhereExpression.Comparison(rawValue: name) else {
      throw error(
        "an operator is missing: = != < <= > >= in, not in, array-contains, array-contains-any"
          + ", contains, starts-with, or with -nocase behind contains, starts-with, equals",
        at: start)
    }
    return comparison
  }

  private mutating func readOperatorName() -> String {
    let start = position
    while let byte = next, Self.isName(byte) || byte == UInt8(ascii: "-") { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func readField() throws(WhereError) -> FieldPath {
    skipSpace()
    let start = position
    if let word = peekedWord(), Self.isReserved(word) {
      throw error("a field is missing; write one with the name \"\(word)\" in backquotes")
    }
    while true {
      if next == UInt8(ascii: "`") {
        try skipQuotedName()
      } else {
        let nameStart = position
        while let byte = next, Self.isName(byte) { position += 1 }
        guard position > nameStart else {
          throw error(start == position ? "a field is missing" : "a name is missing")
        }
      }
      guard next == UInt8(ascii: ".") else { break }
      position += 1
    }
    return FieldPath(String(decoding: bytes[start..<position], as: UTF8.self))
  }

  private mutating func skipQuotedName() throws(WhereError) {
    let start = position
    position += 1
    while let byte = next, byte != UInt8(ascii: "`") {
      position += byte == UInt8(ascii: "\\") ? 2 : 1
    }
    guard next != nil else { throw error("this backquote is not closed", at: start) }
    position += 1
  }

  // MARK: - Values

  /// Finds the end of the value and reads it as JSON.
  private mutating func readValue() throws(WhereError) -> Value {
    skipSpace()
    let start = position
    switch next {
    case nil: throw error("a value is missing")
    case UInt8(ascii: "{"), UInt8(ascii: "["): skipNested()
    case let quote? where Self.isQuote(quote): skipString(quote)
    default:
      while let byte = next, !Self.endsWord(byte) { position += 1 }
    }
    position = min(position, bytes.count)
    let literal = WhereLiteral(bytes[start..<position])
    if let place = literal.wrongDecimal {
      throw self.error(
        "this is not a decimal, which has up to 38 digits and is below 1e128", at: place)
    }
    do throws(JSONError) {
      return try JSONReader.read(literal.json)
    } catch {
      if let byte = bytes[start...].first, Self.isName(byte), byte > UInt8(ascii: "9") {
        throw self.error("this is not a value; texts stand in quotes", at: start)
      }
      throw self.error(
        "this is not a value: \(error.reason)", at: literal.place(ofColumn: error.column))
    }
  }

  private mutating func skipNested() {
    var open = 0
    while let byte = next {
      switch byte {
      case _ where Self.isQuote(byte):
        skipString(byte)
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): open += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): open -= 1
      default: break
      }
      position += 1
      if open == 0 { return }
    }
  }

  private mutating func skipString(_ quote: UInt8) {
    position += 1
    while let byte = next, byte != quote {
      position += byte == UInt8(ascii: "\\") ? 2 : 1
    }
    position += 1
  }

  // MARK: - Bytes

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }
  private var isAtEnd: Bool { position >= bytes.count }

  private func error(_ reason: String, at offset: Int? = nil) -> WhereError {
    WhereError(reason: reason, offset: min(offset ?? position, bytes.count), text: text)
  }

  private mutating func expectEnd() throws(WhereError) {
    skipSpace()
    guard isAtEnd else { throw error("a comma or the end must follow here") }
  }

  private mutating func skipSpace() {
    while let byte = next, Self.isSpace(byte) { position += 1 }
  }

  private mutating func skip(_ sign: String) -> Bool {
    skipSpace()
    guard bytes[min(position, bytes.count)...].starts(with: sign.utf8) else { return false }
    position += sign.utf8.count
    return true
  }

  private func peekedWord() -> String? {
    var end = position
    while end < bytes.count, Self.isName(bytes[end]) || bytes[end] == UInt8(ascii: "-") { end += 1 }
    guard end > position, end == bytes.count || bytes[end] != UInt8(ascii: ".") else { return nil }
    return String(decoding: bytes[position..<end], as: UTF8.self)
  }

  private mutating func skip(word: String) -> Bool {
    skipSpace()
    guard let found = peekedWord(), found.lowercased() == word else { return false }
    position += found.utf8.count
    return true
  }

  static func isQuote(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'")
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  /// Letters, digits, underscores and everything that is not ASCII.
  static func isName(_ byte: UInt8) -> Bool {
    let lowered = byte | 0x20
    return byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
      || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
      || (lowered >= UInt8(ascii: "a") && lowered <= UInt8(ascii: "z"))
  }

  private static func endsWord(_ byte: UInt8) -> Bool {
    isSpace(byte) || byte == UInt8(ascii: ")") || byte == UInt8(ascii: "(")
      || byte == UInt8(ascii: ",")
  }
}
