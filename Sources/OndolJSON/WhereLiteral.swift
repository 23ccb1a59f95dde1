// Values in a condition as people write them, and the JSON that they stand for: texts in single
// quotes, which need no escapes within the double quotes of a shell, and decimals as digits with an
// "m" after them, also within arrays and objects. What is wrong with the JSON is pointed at in the
// text that was written.

internal import Ondol

/// A value as it is written in a condition.
struct WhereLiteral {
  /// The same as JSON.
  private(set) var json: [UInt8] = []
  /// Where in the text each byte of the JSON comes from, and where the text ends.
  private var places: [Int] = []
  /// Where digits with an "m" stand that are no decimal; nil where there are none.
  private(set) var wrongDecimal: Int?

  /// - Parameter text: the value, whose indexes are places in the whole text.
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

  /// The place in the text of what stands in a column of the JSON, from 1 on.
  func place(ofColumn column: Int) -> Int {
    places[max(0, min(column - 1, places.count - 1))]
  }

  private mutating func append(_ byte: UInt8, from place: Int) {
    json.append(byte)
    places.append(place)
  }

  /// Appends a text as JSON has it, and answers where it ends. One that is not closed goes on to
  /// the end.
  private mutating func appendString(_ text: ArraySlice<UInt8>) -> Int {
    let (double, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
    let quote = text.first
    append(double, from: text.startIndex)
    var place = text.startIndex + 1
    while place < text.endIndex {
      let byte = text[place]
      if byte == backslash, place + 1 < text.endIndex {
        let escaped = text[place + 1]
        // JSON knows no escape for a single quote, and needs none.
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
  /// The value as it is written in a condition, which reads back as the same.
  static func text(of value: Value) -> String {
    switch value {
    case .decimal(let decimal): "\(decimal)m"
    case .array(let elements): "[" + elements.map(text).joined(separator: ",") + "]"
    default: JSONWriter.line(value)
    }
  }
}
