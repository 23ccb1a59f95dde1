// Reads one JSON text into a value. Our own, because a number must keep its kind: `1` is an integer
// to the last of its 64 bits and `1.0` a double, a difference that general decoders round away.
// Input is hostile: depth and positions are checked, and every complaint names its column.

package import Ondol

/// Why a text is not JSON.
package struct JSONError: Error, Sendable {
  package let reason: String
  /// Counted from one, in bytes.
  package let column: Int
}

/// Reads RFC 8259's JSON, and nothing beside it.
package struct JSONReader {
  /// Deeper nesting than any document may have.
  package static let maximumDepth = 128

  private let bytes: [UInt8]
  private var position = 0
  private var depth = 0

  /// The value written in `bytes`, which hold one JSON text and white space around it.
  ///
  /// A number without fraction and exponent is an integer when it fits 64 bits; any other is a
  /// double.
  package static func read(_ bytes: [UInt8]) throws(JSONError) -> Value {
    var reader = JSONReader(bytes: bytes)
    let value = try reader.readValue()
    reader.skipSpace()
    guard reader.position == bytes.count else {
      throw reader.error("something follows the value")
    }
    return value
  }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private func error(_ reason: String) -> JSONError {
    JSONError(reason: reason, column: position + 1)
  }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
      position += 1
    }
  }

  private mutating func skip(_ byte: Character) -> Bool {
    guard next == byte.asciiValue else { return false }
    position += 1
    return true
  }

  private mutating func readValue() throws(JSONError) -> Value {
    skipSpace()
    switch next {
    case nil: throw error("a value is missing")
    case UInt8(ascii: "{"): return try nested { reader throws(JSONError) in try reader.readMap() }
    case UInt8(ascii: "["): return try nested { reader throws(JSONError) in try reader.readArray() }
    case UInt8(ascii: "\""): return .string(try readString())
    case UInt8(ascii: "t"): return try readWord("true", .boolean(true))
    case UInt8(ascii: "f"): return try readWord("false", .boolean(false))
    case UInt8(ascii: "n"): return try readWord("null", .null)
    default: return try readNumber()
    }
  }

  private mutating func nested(
    _ read: (inout JSONReader) throws(JSONError) -> Value
  ) throws(JSONError) -> Value {
    guard depth < Self.maximumDepth else {
      throw error("values are nested more than \(Self.maximumDepth) deep")
    }
    depth += 1
    position += 1
    let value = try read(&self)
    depth -= 1
    return value
  }

  private mutating func readMap() throws(JSONError) -> Value {
    var fields: [String: Value] = [:]
    skipSpace()
    if skip("}") { return .map(fields) }
    repeat {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw error("a name in quotes is missing") }
      let name = try readString()
      skipSpace()
      guard skip(":") else { throw error("':' is missing after the name \"\(name)\"") }
      guard fields.updateValue(try readValue(), forKey: name) == nil else {
        throw error("the name \"\(name)\" stands twice")
      }
      skipSpace()
    } while skip(",")
    guard skip("}") else { throw error("',' or '}' is missing") }
    return .map(fields)
  }

  private mutating func readArray() throws(JSONError) -> Value {
    var elements: [Value] = []
    skipSpace()
    if skip("]") { return .array(elements) }
    repeat {
      elements.append(try readValue())
      skipSpace()
    } while skip(",")
    guard skip("]") else { throw error("',' or ']' is missing") }
    return .array(elements)
  }

  private mutating func readWord(_ word: String, _ value: Value) throws(JSONError) -> Value {
    guard bytes[position...].starts(with: word.utf8) else { throw error("this is no value") }
    position += word.utf8.count
    return value
  }
}

// MARK: - Numbers

extension JSONReader {
  private mutating func skipDigits() -> Int {
    let start = position
    while let byte = next, byte >= 0x30, byte <= 0x39 { position += 1 }
    return position - start
  }

  private mutating func readNumber() throws(JSONError) -> Value {
    let start = position
    _ = skip("-")
    let whole = position
    let digits = skipDigits()
    guard digits > 0 else { throw error("this is no value") }
    guard digits == 1 || bytes[whole] != UInt8(ascii: "0") else {
      throw error("a number must not begin with 0")
    }
    var isInteger = true
    if skip(".") {
      isInteger = false
      guard skipDigits() > 0 else { throw error("digits are missing after the point") }
    }
    if skip("e") || skip("E") {
      isInteger = false
      if !skip("+") { _ = skip("-") }
      guard skipDigits() > 0 else { throw error("digits are missing in the exponent") }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if isInteger, let integer = Int64(text) { return .integer(integer) }
    guard let double = Double(text), double.isFinite else {
      throw error("the number \(text) is too large")
    }
    return .double(double)
  }
}

// MARK: - Strings

extension JSONReader {
  private mutating func readString() throws(JSONError) -> String {
    position += 1
    var content: [UInt8] = []
    while true {
      guard let byte = next else { throw error("the closing quote is missing") }
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: content, as: UTF8.self) else {
          throw error("the string before this is not UTF-8")
        }
        position += 1
        return text
      case UInt8(ascii: "\\"):
        position += 1
        try readEscape(into: &content)
      case 0..<0x20:
        throw error("a control character in a string must be escaped")
      default:
        content.append(byte)
        position += 1
      }
    }
  }

  private mutating func readEscape(into content: inout [UInt8]) throws(JSONError) {
    guard let byte = next else { throw error("the string ends in a backslash") }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
    case UInt8(ascii: "b"): content.append(0x08)
    case UInt8(ascii: "f"): content.append(0x0C)
    case UInt8(ascii: "n"): content.append(0x0A)
    case UInt8(ascii: "r"): content.append(0x0D)
    case UInt8(ascii: "t"): content.append(0x09)
    case UInt8(ascii: "u"):
      position += 1
      content.append(contentsOf: String(try readScalar()).utf8)
      return
    default: throw error("an unknown escape")
    }
    position += 1
  }

  /// Reads the digits after `\u`, and the second half of a pair of surrogates.
  private mutating func readScalar() throws(JSONError) -> Character {
    let first = try readHexadecimal()
    var code = UInt32(first)
    if UTF16.isLeadSurrogate(first) {
      guard skip("\\"), skip("u") else { throw error("half of a surrogate pair stands alone") }
      let second = try readHexadecimal()
      guard UTF16.isTrailSurrogate(second) else {
        throw error("half of a surrogate pair stands alone")
      }
      code = 0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(code) else {
      throw error("half of a surrogate pair stands alone")
    }
    return Character(scalar)
  }

  private mutating func readHexadecimal() throws(JSONError) -> UInt16 {
    var value: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80
      else { throw error("four hexadecimal digits are missing after \\u") }
      value = value << 4 | UInt16(digit)
      position += 1
    }
    return value
  }
}
