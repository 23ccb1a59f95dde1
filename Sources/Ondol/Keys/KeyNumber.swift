// Integers and doubles as one ordered run of bytes, exactly, and short for the numbers people use.
//
// With m = |value|, f = the largest double that is not above m, and r = m − f (zero for doubles, at
// most 1,023 for integers below 2^63): the 63 bits of f without its sign, followed by the 10 bits
// of r, compare as m does. They are written seven bits a byte, high bits first; the low bit of each
// byte says whether anything but zeros follows, and where nothing does the number ends. A number
// that stops earlier has a 0 there, where a longer, larger one has a 1. Negative numbers have every
// byte complemented. Zero, NaN and the infinities are tags without a body.

/// The body of a number other than zero and the special ones.
enum KeyNumber {
  /// 9 bytes for f, 2 for r.
  static let maximumLength = 11

  /// The double not above the magnitude, without sign, and what is missing to the magnitude.
  struct Parts: Equatable {
    var bits: UInt64
    var rest: UInt64
  }

  /// Takes an integer other than zero apart.
  static func parts(_ value: Int64) -> Parts {
    let magnitude = value.magnitude
    let shift = Swift.max(0, 11 - magnitude.leadingZeroBitCount)
    let rest = magnitude & (1 << UInt64(shift) - 1)
    // Exact: at most 53 bits remain.
    return Parts(bits: Double(magnitude - rest).bitPattern, rest: rest)
  }

  /// Takes a double apart that is neither zero nor infinite nor NaN.
  static func parts(_ value: Double) -> Parts {
    Parts(bits: value.magnitude.bitPattern, rest: 0)
  }

  /// Appends the bytes of `parts`, each combined with `mask` by exclusive or.
  static func append(_ parts: Parts, mask: UInt8, to bytes: inout [UInt8]) {
    let count =
      parts.rest == 0
      ? 9 - parts.bits.trailingZeroBitCount / 7 : (parts.rest & 7 == 0 ? 10 : 11)
    for index in 0..<count {
      let more: UInt8 = index + 1 < count ? 1 : 0
      bytes.append((chunk(index, of: parts) << 1 | more) ^ mask)
    }
  }

  private static func chunk(_ index: Int, of parts: Parts) -> UInt8 {
    switch index {
    case 9: UInt8(truncatingIfNeeded: parts.rest >> 3) & 0x7f
    case 10: UInt8(truncatingIfNeeded: parts.rest << 4) & 0x7f
    default: UInt8(truncatingIfNeeded: parts.bits >> UInt64(56 - 7 * index)) & 0x7f
    }
  }

  /// Puts `value`, the seven bits of byte `index`, into `parts`.
  static func add(_ value: UInt8, at index: Int, to parts: inout Parts) {
    switch index {
    case 9: parts.rest |= UInt64(value) << 3
    case 10: parts.rest |= UInt64(value) >> 4
    default: parts.bits |= UInt64(value) << UInt64(56 - 7 * index)
    }
  }

  /// The number `parts` stand for: an integer whenever it is whole and fits an `Int64`. Nil when no
  /// number is written so.
  static func value(_ parts: Parts, isNegative: Bool) -> Value? {
    let magnitude = Double(bitPattern: parts.bits)
    guard magnitude.isFinite, magnitude > 0 else { return nil }
    let signed = isNegative ? -magnitude : magnitude
    guard parts.rest != 0 else {
      return Int64(exactly: signed).map { .integer($0) } ?? .double(signed)
    }
    guard magnitude < 0x1p63, Double(parts.rest) < magnitude.ulp else { return nil }
    // Below 2^63, as the rest does not reach the next double.
    let whole = Int64(magnitude) + Int64(parts.rest)
    return .integer(isNegative ? -whole : whole)
  }
}
