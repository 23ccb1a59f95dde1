// A number in decimal digits, exact: for money and measured values. Foundation's `Decimal` has
// several forms for each number. Here every number has one form, so that equal numbers have equal
// bytes: no zeros at the end of its digits, and zero without a sign or an exponent.

internal import OndolEngine

/// A number of up to 38 decimal digits, exact.
///
/// A `Decimal` may be used instead in all writes and reads. It compares by value with integers and
/// doubles: 1, 1.0 and a decimal of 1 are equal. 0.1 as a double, which is slightly more than a
/// tenth, is greater than 0.1 as a decimal.
///
/// The last digit counts at least 10^-128, and the number is less than 10^128.
public struct DecimalValue: Sendable, Hashable {
  /// The most digits between the first and the last that is not 0.
  public static let maximumDigits = 38

  static let leastExponent = -128
  /// The most that the exponent and the count of digits add up to.
  static let greatestMagnitude = 128

  /// Whether the number is less than zero.
  public let isNegative: Bool
  /// The number of zeros after the digits; negative when the last digits are after the point.
  public let exponent: Int
  private let high: UInt64
  private let low: UInt64

  /// Zero.
  public static let zero = DecimalValue(unchecked: 0, exponent: 0, isNegative: false)

  /// The digits as an integer, below 10^38.
  var coefficient: UInt128 { UInt128(high) << 64 | UInt128(low) }

  var isZero: Bool { high == 0 && low == 0 }

  private init(unchecked coefficient: UInt128, exponent: Int, isNegative: Bool) {
    high = UInt64(truncatingIfNeeded: coefficient >> 64)
    low = UInt64(truncatingIfNeeded: coefficient)
    self.exponent = exponent
    self.isNegative = isNegative
  }

  /// The number `coefficient * 10^exponent`, in its one form; nil when it has too many digits or is
  /// too large or too fine.
  init?(_ coefficient: UInt128, exponent: Int, isNegative: Bool) {
    guard coefficient != 0 else {
      self = .zero
      return
    }
    var (coefficient, exponent) = (coefficient, exponent)
    while true {
      let (rest, digit) = coefficient.quotientAndRemainder(dividingBy: 10)
      guard digit == 0 else { break }
      coefficient = rest
      exponent += 1
    }
    self.init(canonical: coefficient, exponent: exponent, isNegative: isNegative)
  }

  /// The number with these parts; nil when they are not a number's one form.
  init?(canonical coefficient: UInt128, exponent: Int, isNegative: Bool) {
    self.init(unchecked: coefficient, exponent: exponent, isNegative: isNegative)
    if coefficient == 0 {
      guard exponent == 0, !isNegative else { return nil }
      return
    }
    guard coefficient < Self.power(Self.maximumDigits), coefficient % 10 != 0,
      exponent >= Self.leastExponent, exponent + digitCount <= Self.greatestMagnitude
    else { return nil }
  }

  /// An integer.
  public init(_ integer: Int64) {
    // Nineteen digits always fit.
    self =
      DecimalValue(UInt128(integer.magnitude), exponent: 0, isNegative: integer < 0) ?? .zero
  }

  /// An integer.
  public init(_ integer: UInt64) {
    self = DecimalValue(UInt128(integer), exponent: 0, isNegative: false) ?? .zero
  }

  /// The number of digits from the first to the last that is not 0; 0 for zero.
  var digitCount: Int {
    var (low, high) = (0, Self.maximumDigits)
    let coefficient = coefficient
    while low < high {
      let middle = (low + high) / 2
      if coefficient >= Self.power(middle) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// 10 to the power of `exponent`, which is 0 to 38.
  static func power(_ exponent: Int) -> UInt128 { powers[exponent] }

  private static let powers: [UInt128] = {
    var powers: [UInt128] = [1]
    for _ in 0..<maximumDigits { powers.append((powers.last ?? 0) * 10) }
    return powers
  }()

  /// The integer that it equals; nil when there is none or it does not fit.
  func whole<Integer: FixedWidthInteger>(_: Integer.Type = Integer.self) -> Integer? {
    guard exponent >= 0, exponent <= Self.maximumDigits else { return nil }
    let (magnitude, isOver) = coefficient.multipliedReportingOverflow(by: Self.power(exponent))
    guard !isOver else { return nil }
    guard isNegative else { return Integer(exactly: magnitude) }
    return Int128(exactly: magnitude).flatMap { Integer(exactly: -$0) }
  }
}

extension DecimalValue {
  /// The integer part of the number without its sign, which must be below 2^63.
  var magnitudeFloor: UInt64 {
    if exponent >= 0 {
      return UInt64(truncatingIfNeeded: coefficient * Self.power(min(exponent, 18)))
    }
    guard -exponent <= Self.maximumDigits else { return 0 }
    return UInt64(truncatingIfNeeded: coefficient / Self.power(-exponent))
  }
}

// MARK: - Order

extension DecimalValue: Comparable {
  /// The smaller first.
  public static func < (left: DecimalValue, right: DecimalValue) -> Bool {
    ValueOrder.compare(left, right) < 0
  }
}

extension ValueOrder {
  static func compare(_ left: DecimalValue, _ right: DecimalValue) -> Int {
    if left == right { return 0 }
    if left.isNegative != right.isNegative { return left.isNegative ? -1 : 1 }
    let order = compareMagnitudes(left, right)
    return left.isNegative ? -order : order
  }

  private static func compareMagnitudes(_ left: DecimalValue, _ right: DecimalValue) -> Int {
    if left.isZero || right.isZero { return (left.isZero ? 0 : 1) - (right.isZero ? 0 : 1) }
    let places = sign(left.exponent + left.digitCount, right.exponent + right.digitCount)
    guard places == 0 else { return places }
    // Both begin at the same place, so the one with fewer digits has room for the other's further
    // digits.
    let shift = left.exponent - right.exponent
    return shift >= 0
      ? sign(left.coefficient * DecimalValue.power(shift), right.coefficient)
      : sign(left.coefficient, right.coefficient * DecimalValue.power(-shift))
  }

  static func compare(_ left: DecimalValue, _ right: Int64) -> Int {
    compare(left, DecimalValue(right))
  }

  /// Exact: neither is rounded.
  static func compare(_ left: DecimalValue, _ right: Double) -> Int {
    if right.isNaN { return 1 }
    if left.isZero || right == 0 || left.isNegative != (right < 0) {
      return sign(left.isZero ? 0 : left.isNegative ? -1 : 1, right == 0 ? 0 : right < 0 ? -1 : 1)
    }
    let below = left.magnitudeBelow
    let order =
      right.magnitude == below.double
      ? (below.isExact ? 0 : 1) : sign(below.double, right.magnitude)
    return left.isNegative ? -order : order
  }
}

// MARK: - Text

extension DecimalValue: CustomStringConvertible, LosslessStringConvertible {
  /// The number in digits, with an exponent when there would be many zeros.
  public var description: String {
    let digits = String(coefficient)
    let mark = isNegative ? "-" : ""
    let places = digits.utf8.count + exponent
    if isZero { return "0" }
    if exponent >= 0, places <= Self.maximumDigits {
      return mark + digits + String(repeating: "0", count: exponent)
    }
    if exponent < 0, places > 0 {
      return mark + digits.prefix(places) + "." + digits.dropFirst(places)
    }
    if exponent < 0, places > -Self.maximumDigits {
      return mark + "0." + String(repeating: "0", count: -places) + digits
    }
    let fraction = digits.utf8.count > 1 ? "." + digits.dropFirst() : ""
    return mark + digits.prefix(1) + fraction + "e\(places - 1)"
  }

  /// Parses a number: digits with a point and an exponent, as in JSON. Returns nil for anything
  /// else, for more than 38 digits, and for a number that is too large or too fine.
  public init?(_ text: String) {
    let found = text.withUTF8Bytes { Self.read($0.octets) }
    guard case .number(let number) = found else { return nil }
    self = number
  }

  /// The result of parsing digits.
  package enum Reading {
    case number(DecimalValue)
    /// More digits than a decimal can have.
    case tooLong(Int)
    /// Too large or too fine.
    case outOfRange
    /// Something else.
    case none
  }

  /// Reads `-12.5e3` and the like.
  package static func read(_ octets: Span<UInt8>) -> Reading {
    var place = 0
    func next() -> UInt8 { place < octets.count ? octets[place] : 0 }
    let isNegative = next() == UInt8(ascii: "-")
    if isNegative { place += 1 }
    var coefficient: UInt128 = 0
    var (digits, zeros, exponent, hasPoint, hasDigits) = (0, 0, 0, false, false)
    while place < octets.count {
      let octet = octets[place]
      if octet == UInt8(ascii: "."), !hasPoint, hasDigits {
        hasPoint = true
        hasDigits = false
        place += 1
        continue
      }
      guard octet &- 0x30 <= 9 else { break }
      hasDigits = true
      place += 1
      if hasPoint { exponent -= 1 }
      if octet == 0x30 {
        // Zeros count only when another digit follows them.
        if digits > 0 { zeros += 1 } else { continue }
      } else {
        digits += zeros + 1
        if digits <= maximumDigits {
          coefficient = coefficient * power(zeros) * 10 + UInt128(octet & 15)
          zeros = 0
        } else {
          zeros = 0
        }
      }
    }
    guard hasDigits else { return .none }
    exponent += zeros
    if next() | 0x20 == UInt8(ascii: "e") {
      place += 1
      let isBelow = next() == UInt8(ascii: "-")
      if isBelow || next() == UInt8(ascii: "+") { place += 1 }
      var written = 0
      let start = place
      while place < octets.count, octets[place] &- 0x30 <= 9 {
        written = min(written * 10 + Int(octets[place] & 15), 1_000_000_000)
        place += 1
      }
      guard place > start else { return .none }
      exponent += isBelow ? -written : written
    }
    guard place == octets.count else { return .none }
    guard digits <= maximumDigits else { return .tooLong(digits) }
    guard
      let number = DecimalValue(coefficient, exponent: exponent, isNegative: isNegative)
    else { return .outOfRange }
    return .number(number)
  }
}
