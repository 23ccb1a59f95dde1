// Bytes with their offsets, for people.

import Ondol

/// A text form of bytes.
enum HexText {
  /// Lines of sixteen bytes: the offset, the bytes, and their ASCII characters.
  static func lines(_ bytes: [UInt8], from offset: UInt64) -> [String] {
    stride(from: 0, to: bytes.count, by: 16).map { start in
      let row = bytes[start..<min(start + 16, bytes.count)]
      let place = String(offset &+ UInt64(start), radix: 16)
      let pairs = row.map { CollectionOfOne($0).hexadecimal }
      let left = pairs.prefix(8).joined(separator: " ")
      let right = pairs.dropFirst(8).joined(separator: " ")
      let text = row.map { 0x20..<0x7F ~= $0 ? Character(UnicodeScalar($0)) : "." }
      let padded = (left + "  " + right).padding(48)
      return String(repeating: "0", count: max(0, 8 - place.count)) + place + "  " + padded
        + "  |" + String(text) + "|"
    }
  }
}

extension String {
  fileprivate func padding(_ length: Int) -> String {
    self + String(repeating: " ", count: Swift.max(0, length - count))
  }
}
