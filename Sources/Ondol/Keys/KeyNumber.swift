// Integers, doubles and decimals as one ordered run of bytes, exactly, and short for common
// numbers.
//
// With m = |value|, f = the largest double that is not above m, and r = m − f (zero for doubles, at
// most 1,023 for integers below 2^63): the 63 bits of f without its sign, followed by the 10 bits
// of r, compare as m does. They are written seven bits a byte, high bits first. The low bit of each
// byte says whether anything but zeros follows; if not, the number ends there. A number that stops
// earlier has a 0 there, where a longer, larger one has a 1. Negative numbers have every byte
// complemented. Zero, NaN and the infinities are tags without a body.
//
// A decimal that is an integer or a double has the bytes of that. Any other is between two
// neighbouring doubles: f is the lower one, and the following bytes distinguish it from the others
// there. First comes the whole part of r where integers also have it: from 2^53 to 2^63. Then comes
// the place of the first digit after the point, so that 0.1...0.9 have -1, plus 8,192, in two bytes
// of seven bits; then all digits from the first on, two in a byte. For two numbers with the same f
// and r, that is the order, and both have all bits before it, including zeros, where integers and
// doubles end sooner.

/// The body of a number other than zero and the special ones.
enum KeyNumber {
  /// 9 bytes for f, 2 for r.
  static let maximumLength = 11
  /// The bias of the place of a decimal's first digit.
  static let placeBias = 8_192

  /// The double not above the magnitude, without sign, and the rest up to the magnitude.
  struct Parts: Equatable {
    var bits: UInt64
    var rest: UInt64
  }

  /// Splits an integer other than zero.
  static func parts(_ value: Int64) -> Parts {
    let magnitude = value.magnitude
    let shift = Swift.max(0, 11 - magnitude.leadingZeroBitCount)
    let rest = magnitude & (1 << UInt64(shift) - 1)
    // Exact: at most 53 bits remain.
    return Parts(bits: Double(magnitude - rest).bitPattern, rest: rest)
  }

  /// Splits a double that is neither zero nor infinite nor NaN.
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

  /// Adds `value`, the seven bits of byte `index`, to `parts`.
  static func add(_ value: UInt8, at index: Int, to parts: inout Parts) {
    switch index {
    case 9: parts.rest |= UInt64(value) << 3
    case 10: parts.rest |= UInt64(value) >> 4
    default: parts.bits |= UInt64(value) << UInt64(56 - 7 * index)
    }
  }

  /// The number of `parts`: an integer whenever it is whole and fits an `Int64`. Nil when no number
  /// is written in this way.
  static func value(_ parts: Parts, isNegative: Bool) -> Value? {
    let magnitude = Double(bitPattern: parts.bits)
    guard magnitude.isFinite, magnitude > 0 else { return nil }
    let signed = isNegative ? -magnitude : magnitude
    guard parts.rest != 0 else {
      return Int64(exactly: signed).map { .integer($0) } ?? .double(signed)
    }
    guard magnitude < 0x1p63, Double(parts.rest) < magnitude.ulp else { return nil }
    // Below 2^63, because the rest does not reach the next double.
    let whole = Int64(magnitude) + Int64(parts.rest)
    return .integer(isNegative ? -whole : whole)
  }
}

// MARK: - Decimals

extension KeyNumber {
  /// The form of a decimal.
  enum DecimalForm: Equatable {
    /// The bytes of an integer or a double.
    case plain(Parts)
    /// More than these, and the digits.
    case between(Parts)
  }

  /// How a decimal other than zero is written.
  static func form(_ decimal: DecimalValue) -> DecimalForm {
    if let whole = decimal.whole(Int64.self) { return .plain(parts(whole)) }
    let below = decimal.magnitudeBelow
    var parts = Parts(bits: below.double.bitPattern, rest: 0)
    if below.isExact { return .plain(parts) }
    if hasRest(below.double) {
      // Below 2^63, so both are integers that fit.
      parts.rest = decimal.magnitudeFloor - UInt64(below.double)
    }
    return .between(parts)
  }

  /// Whether there are integers above the double that are not doubles.
  static func hasRest(_ double: Double) -> Bool { double >= 0x1p53 && double < 0x1p63 }

  /// Appends a decimal after `parts`, which are the double below it and the whole rest.
  static func append(
    _ decimal: DecimalValue, behind parts: Parts, mask: UInt8, to bytes: inout [UInt8]
  ) {
    let count = hasRest(Double(bitPattern: parts.bits)) ? maximumLength : 9
    for index in 0..<count { bytes.append((chunk(index, of: parts) << 1 | 1) ^ mask) }
    let digitCount = decimal.digitCount
    let place = decimal.exponent + digitCount + placeBias - 1
    bytes.append((UInt8(truncatingIfNeeded: place >> 7) << 1 | 1) ^ mask)
    bytes.append((UInt8(truncatingIfNeeded: place & 0x7f) << 1 | 1) ^ mask)
    var digits = decimal.coefficient
    if digitCount % 2 == 1 { digits *= 10 }
    var pairs: [UInt8] = []
    while digits != 0 {
      let (rest, pair) = digits.quotientAndRemainder(dividingBy: 100)
      pairs.append(UInt8(truncatingIfNeeded: pair) << 1 | (pairs.isEmpty ? 0 : 1))
      digits = rest
    }
    for pair in pairs.reversed() { bytes.append(pair ^ mask) }
  }

  /// The decimal of these digits, when it is written in this way after `parts`.
  ///
  /// - Parameter pairs: the digits, two in each, at most 19 pairs.
  static func decimal(
    _ parts: Parts, place: Int, pairs: [UInt8], isNegative: Bool
  ) -> DecimalValue? {
    guard let first = pairs.first, first >= 10, pairs.last != 0 else { return nil }
    var coefficient: UInt128 = 0
    for pair in pairs {
      guard pair < 100 else { return nil }
      coefficient = coefficient * 100 + UInt128(pair)
    }
    let exponent = place - placeBias + 1 - 2 * pairs.count
    guard
      let decimal = DecimalValue(coefficient, exponent: exponent, isNegative: isNegative),
      form(decimal) == .between(parts)
    else { return nil }
    return decimal
  }
}
