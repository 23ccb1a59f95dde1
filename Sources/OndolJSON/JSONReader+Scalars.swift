// Words, numbers and texts in JSON: the part of the reader in which an import spends its time. For
// a text without an escape, it checks and copies the bytes once.

import Ondol
import OndolEngine

// MARK: - Words and numbers

extension JSONReader {
  @_lifetime(self: copy self)
  mutating func readWord(_ word: StaticString, _ value: Value) throws(JSONError) -> Value {
    for byte in word.description.utf8 {
      guard skip(byte) else { throw error("this is not a value") }
    }
    return value
  }

  /// Skips digits, and returns their number.
  @_lifetime(self: copy self)
  private mutating func skipDigits() -> Int {
    let start = position
    while position < octets.count, octets[position] &- 0x30 <= 9 { position += 1 }
    return position - start
  }

  @_lifetime(self: copy self)
  mutating func readNumber() throws(JSONError) -> Value {
    let start = position
    let isNegative = skip(UInt8(ascii: "-"))
    let whole = position
    let digits = skipDigits()
    guard digits > 0 else { throw error("this is not a value") }
    guard digits == 1 || octets[whole] != UInt8(ascii: "0") else {
      throw error("a number must not begin with 0")
    }
    var isInteger = true
    var digitCount = digits
    if skip(UInt8(ascii: ".")) {
      isInteger = false
      let further = skipDigits()
      guard further > 0 else { throw error("digits are missing after the point") }
      digitCount += further
    }
    if skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E")) {
      isInteger = false
      if !skip(UInt8(ascii: "+")) { _ = skip(UInt8(ascii: "-")) }
      guard skipDigits() > 0 else { throw error("digits are missing in the exponent") }
    }
    if isInteger, let integer = integer(isNegative, whole..<position) { return .integer(integer) }
    let text = octets.extracting(start..<position)
    let double = String(utf8: text.raw).flatMap { Double($0) }
    if let double, double.isFinite {
      // Every double preserves fifteen digits, unless it is next to zero.
      if !isInteger, digitCount <= 15, double.magnitude > 1e-290 { return .double(double) }
      if numbers == .double { return .double(double) }
      if !isInteger, Self.isGivenBack(text, double) { return .double(double) }
    }
    guard numbers == .exact else { throw error("the number is too large", at: start) }
    switch DecimalValue.read(text) {
    case .number(let decimal): return .decimal(decimal)
    case .tooLong(let count):
      throw error(
        "a number may have \(DecimalValue.maximumDigits) digits, and this has \(count); write it as"
          + " a text, or have numbers rounded to doubles", at: start)
    case .outOfRange, .none:
      throw error("the number is too large, or has digits too far behind the point", at: start)
    }
  }

  /// Whether a double is written with the same digits as the number in a text.
  private static func isGivenBack(_ text: Span<UInt8>, _ double: Double) -> Bool {
    double.description.withUTF8Bytes { written in
      JSONDigits(text) == JSONDigits(written.octets)
    }
  }

  /// The integer of these digits; nil if it does not fit.
  private func integer(_ isNegative: Bool, _ digits: Range<Int>) -> Int64? {
    guard digits.count <= 19 else { return nil }
    // Nineteen digits always fit without a sign.
    var magnitude: UInt64 = 0
    for index in digits { magnitude = magnitude &* 10 &+ UInt64(octets[index] &- 0x30) }
    if !isNegative { return Int64(exactly: magnitude) }
    guard magnitude <= 1 << 63 else { return nil }
    return Int64(truncatingIfNeeded: 0 &- magnitude)
  }
}

/// The digits of a number in JSON, from the first to the last that is not 0, and their place.
private struct JSONDigits: Equatable {
  private var digits: [UInt8] = []
  /// The place of the first digit; 0 is the one before the point.
  private var place = 0

  init(_ text: Span<UInt8>) {
    var (index, written, isBehindPoint) = (0, 0, false)
    var whole = 0
    while index < text.count, text[index] | 0x20 != UInt8(ascii: "e") {
      let octet = text[index]
      index += 1
      if octet == UInt8(ascii: ".") { isBehindPoint = true }
      guard octet &- 0x30 <= 9 else { continue }
      if !isBehindPoint { whole += 1 }
      written += 1
      if digits.isEmpty {
        if octet == 0x30 { continue }
        place = -written
      }
      digits.append(octet)
    }
    while digits.last == 0x30 { digits.removeLast() }
    guard !digits.isEmpty else {
      place = 0
      return
    }
    var exponent = 0
    let isNegative = index + 1 < text.count && text[index + 1] == UInt8(ascii: "-")
    while index < text.count {
      if text[index] &- 0x30 <= 9 {
        exponent = min(exponent * 10 + Int(text[index] & 15), 1_000_000_000)
      }
      index += 1
    }
    place += whole + (isNegative ? -exponent : exponent)
  }
}

// MARK: - Texts

extension JSONReader {
  @_lifetime(self: copy self)
  mutating func readString() throws(JSONError) -> String {
    position += 1
    let start = position
    while position < octets.count {
      let byte = octets[position]
      if byte == UInt8(ascii: "\"") {
        guard let text = String(utf8: octets.extracting(start..<position).raw) else {
          throw error("the string before this is not UTF-8")
        }
        position += 1
        return text
      }
      if byte == UInt8(ascii: "\\") { return try readEscapedString(from: start) }
      guard byte >= 0x20 else { throw error("a control character in a string must be escaped") }
      position += 1
    }
    throw error("the closing quote is missing")
  }

  /// Reads a text from its first escape onwards.
  @_lifetime(self: copy self)
  private mutating func readEscapedString(from start: Int) throws(JSONError) -> String {
    var content: [UInt8] = []
    content.append(octets.extracting(start..<position).raw)
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(utf8: content.bytes) else {
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
    throw error("the closing quote is missing")
  }

  @_lifetime(self: copy self)
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
      content.append(contentsOf: String(Character(try readScalar())).utf8)
      return
    default: throw error("an unknown escape")
    }
    position += 1
  }

  /// Reads the digits after `\u`, and the second half of a pair of surrogates.
  @_lifetime(self: copy self)
  private mutating func readScalar() throws(JSONError) -> Unicode.Scalar {
    let first = try readHexadecimal()
    var code = UInt32(first)
    if UTF16.isLeadSurrogate(first) {
      guard skip(UInt8(ascii: "\\")), skip(UInt8(ascii: "u")) else {
        throw error("half of a surrogate pair stands alone")
      }
      let second = try readHexadecimal()
      guard UTF16.isTrailSurrogate(second) else {
        throw error("half of a surrogate pair stands alone")
      }
      code = 0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(code) else {
      throw error("half of a surrogate pair stands alone")
    }
    return scalar
  }

  @_lifetime(self: copy self)
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
