// Base64 as tokens have it: RFC 4648's alphabet for URLs, without padding. Of all texts that stand
// for some bytes, only one is taken, so a token has no second spelling.

#if Server
  /// Base64 for URLs.
  enum Base64URL {
    private static let alphabet = Array(
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The text for bytes.
    static func encode(_ bytes: some Sequence<UInt8>) -> String {
      var text: [UInt8] = []
      var (bits, count): (UInt32, UInt32) = (0, 0)
      for byte in bytes {
        bits = bits << 8 | UInt32(byte)
        count += 8
        while count >= 6 {
          count -= 6
          text.append(alphabet[Int(bits >> count & 0x3F)])
        }
        bits &= 1 << count - 1
      }
      if count > 0 { text.append(alphabet[Int(bits << (6 - count) & 0x3F)]) }
      return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text; nil for any other text than `encode` makes.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
      guard text.count % 4 != 1 else { return nil }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(text.count / 4 * 3 + 2)
      var (bits, count): (UInt32, UInt32) = (0, 0)
      for character in text {
        guard let six = value(of: character) else { return nil }
        bits = bits << 6 | six
        count += 6
        guard count >= 8 else { continue }
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        bits &= 1 << count - 1
      }
      return bits == 0 ? bytes : nil
    }

    private static func value(of character: UInt8) -> UInt32? {
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
      case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
      case UInt8(ascii: "-"): 62
      case UInt8(ascii: "_"): 63
      default: nil
      }
    }
  }
#endif
