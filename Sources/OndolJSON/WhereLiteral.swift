// Values in a condition as people write them, and their JSON. Texts may have single quotes, which
// need no escapes within the double quotes of a shell, and decimals are digits with an "m" after
// them, also within arrays and objects. Errors of the JSON point to the place in the original text.

internal import Ondol

/// A value in the form of a condition.
struct WhereLiteral {
  /// The value as JSON.
  private(set) var json: [UInt8] = []
  /// The place in the text of each byte of the JSON, and the end of the text.
  private var places: [Int] = []
  /// The place of digits with an "m" that are no valid decimal; nil if there are none.
  private(set) var wrongDecimal: Int?

  /// - Parameter text: the value, with the indexes of the whole text.
  init(_ text: ArraySlice<UInt8>) {
    json.reserveCapacity(text.count)
    var place = text.startIndex
    while place < text.endIndex {
      let byte = text[place]
      if WhereParser.isQuote(byte) {
        place = appendString(text[place...])
      } else if Self.isPartOfNumber(byte) {
        let word = text[place...].prefix(while: Self.isPartOfNumber)
        append(word)
        place = word.endIndex
      } else {
        append(byte, from: place)
        place += 1
      }
    }
    places.append(text.endIndex)
  }

  /// Returns the place in the text of a column of the JSON, counted from 1.
  func place(ofColumn column: Int) -> Int {
    places[max(0, min(column - 1, places.count - 1))]
  }

  private mutating func append(_ byte: UInt8, from place: Int) {
    json.append(byte)
    places.append(place)
  }

  /// Appends a text in JSON's form, and returns its end. A text without a closing quote continues
  /// to the end.
  private mutating func appendString(_ text: ArraySlice<UInt8>) -> Int {
    let (double, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
    let quote = text.first
    append(double, from: text.startIndex)
    var place = text.startIndex + 1
    while place < text.endIndex {
      let byte = text[place]
      if byte == backslash, place + 1 < text.endIndex {
        let escaped = text[place + 1]
        // JSON has no escape for a single quote, and needs none.
        if escaped != UInt8(ascii: "'") { append(byte, from: place) }
        append(escaped, from: place + 1)
        place += 2
        continue
      }
      if byte == double || byte == quote {
        if byte != quote { append(backslash, from: place) }
        append(double, from: place)
        place += 1
        if byte == quote { return place }
        continue
      }
      append(byte, from: place)
      place += 1
    }
    return place
  }

  /// Appends a number, or a word.
  private mutating func append(_ word: ArraySlice<UInt8>) {
    let digits = word.dropLast()
    guard word.last.map({ $0 | 0x20 }) == UInt8(ascii: "m"), let first = digits.first,
      first == UInt8(ascii: "-") || Self.isDigit(first), digits.contains(where: Self.isDigit)
    else {
      for place in word.indices { append(word[place], from: place) }
      return
    }
    guard let decimal = DecimalValue(String(decoding: digits, as: UTF8.self)) else {
      wrongDecimal = wrongDecimal ?? word.startIndex
      return
    }
    for byte in JSONWriter.line(.decimal(decimal), .canonical).utf8 {
      append(byte, from: word.startIndex)
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
  }

  private static func isPartOfNumber(_ byte: UInt8) -> Bool {
    WhereParser.isName(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
      || byte == UInt8(ascii: ".")
  }
}

extension WhereLiteral {
  /// Returns the value in the form of a condition, which reads back as the same value.
  static func text(of value: Value) -> String {
    switch value {
    case .decimal(let decimal): "\(decimal)m"
    case .array(let elements): "[" + elements.map(text).joined(separator: ",") + "]"
    default: JSONWriter.line(value)
    }
  }
}
