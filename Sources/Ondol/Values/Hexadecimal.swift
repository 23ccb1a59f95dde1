// Bytes as hexadecimal digits: the form of digests and keys for people and JSON.

extension Sequence<UInt8> {
  /// The bytes as hexadecimal digits in lower case, two for each byte.
  package var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * underestimatedCount)
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}

extension [UInt8] {
  /// Parses hexadecimal digits, two for each byte, in either case.
  ///
  /// - Returns: nil when `text` is anything else.
  package init?(hexadecimal text: String) {
    let digits = text.utf8
    guard digits.count.isMultiple(of: 2) else { return nil }
    self = []
    reserveCapacity(digits.count / 2)
    var high: UInt8?
    for character in digits {
      guard let digit = Self.digit(character) else { return nil }
      if let half = high {
        append(half << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
