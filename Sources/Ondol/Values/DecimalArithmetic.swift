// Comparisons of decimals with doubles, and sums of decimals, both without intermediate rounding. A
// double's value is an integer times a power of two, which may have a thousand decimal digits. So a
// decimal is compared with the doubles around it instead, in integers of any length.

internal import OndolEngine

// MARK: - Doubles

extension DecimalValue {
  /// The greatest double that is not above the number without its sign, and whether it equals the
  /// number.
  var magnitudeBelow: (double: Double, isExact: Bool) {
    if let (nearest, order) = quickNearest {
      return order > 0 ? (nearest.nextDown, false) : (nearest, order == 0)
    }
    let bits = leadingBits
    let lost = bits.top & 0x7ff
    return (
      Double(sign: .plus, exponent: bits.exponent, significand: Double(bits.top ^ lost)),
      lost == 0 && bits.isExact
    )
  }

  /// The nearest double, in a tie the even one.
  public var double: Double {
    guard !isZero else { return 0 }
    let magnitude: Double
    if let (nearest, _) = quickNearest {
      magnitude = nearest
    } else {
      let bits = leadingBits
      // The last bit represents everything that is lost; 64 bits are rounded once.
      magnitude = Double(
        sign: .plus, exponent: bits.exponent, significand: Double(bits.top | (bits.isExact ? 0 : 1))
      )
    }
    return isNegative ? -magnitude : magnitude
  }

  /// The nearest double, if the coefficient and the power of ten are doubles themselves, and its
  /// order relative to the number.
  private var quickNearest: (double: Double, order: Double)? {
    let coefficient = coefficient
    guard exponent <= 0, exponent >= -22, coefficient < 1 << 53 else { return nil }
    let (whole, power) = (Double(UInt64(coefficient)), Double(Self.power(-exponent)))
    let nearest = whole / power
    return (nearest, (-whole).addingProduct(nearest, power))
  }

  /// The number's first 64 bits, the power of two of the last of them, and whether there are no
  /// others.
  private var leadingBits: (top: UInt64, exponent: Int, isExact: Bool) {
    var number = LongNumber(coefficient)
    var (shift, isExact) = (0, true)
    if exponent >= 0 {
      for _ in 0..<(exponent / 18) { number.multiply(by: 1_000_000_000_000_000_000) }
      number.multiply(by: UInt64(Self.power(exponent % 18)))
    } else {
      // Ten has less than 3.33 bits, so at least 64 bits are left of the quotient.
      shift = 66 - exponent * 333 / 100
      number.shift(by: shift)
      for _ in 0..<(-exponent / 18) {
        if number.divide(by: 1_000_000_000_000_000_000) != 0 { isExact = false }
      }
      if number.divide(by: UInt64(Self.power(-exponent % 18))) != 0 { isExact = false }
    }
    let (top, place, hasMore) = number.leadingBits
    return (top, place - shift, isExact && !hasMore)
  }

  /// The number of a double; nil when it has more digits than a decimal.
  init?(exactly double: Double) {
    guard double.isFinite else { return nil }
    guard double != 0 else {
      self = .zero
      return
    }
    // Each binary place after the point is one decimal place.
    var significand = double.significandBitPattern
    if double.exponentBitPattern > 0 { significand |= 1 << 52 }
    let zeros = significand.trailingZeroBitCount
    let power = Int(max(double.exponentBitPattern, 1)) - 1_075 + zeros
    var coefficient = UInt128(significand >> UInt64(zeros))
    let exponent = min(power, 0)
    for _ in 0..<Swift.abs(power) {
      let (product, isOver) = coefficient.multipliedReportingOverflow(by: power > 0 ? 2 : 5)
      guard !isOver else { return nil }
      coefficient = product
    }
    self.init(coefficient, exponent: exponent, isNegative: double < 0)
  }
}

/// An integer of any length.
private struct LongNumber {
  /// The lowest first.
  private var limbs: [UInt64]

  init(_ number: UInt128) {
    limbs = [UInt64(truncatingIfNeeded: number), UInt64(truncatingIfNeeded: number >> 64)]
  }

  mutating func multiply(by factor: UInt64) {
    var carry: UInt64 = 0
    for index in limbs.indices {
      let product = UInt128(limbs[index]) * UInt128(factor) + UInt128(carry)
      limbs[index] = UInt64(truncatingIfNeeded: product)
      carry = UInt64(truncatingIfNeeded: product >> 64)
    }
    if carry > 0 { limbs.append(carry) }
  }

  /// Divides, and returns the remainder.
  mutating func divide(by divisor: UInt64) -> UInt64 {
    var rest: UInt64 = 0
    for index in limbs.indices.reversed() {
      (limbs[index], rest) = divisor.dividingFullWidth((rest, limbs[index]))
    }
    return rest
  }

  mutating func shift(by count: Int) {
    let (words, bits) = (count / 64, UInt64(count % 64))
    var carry: UInt64 = 0
    if bits > 0 {
      for index in limbs.indices {
        let limb = limbs[index]
        limbs[index] = limb << bits | carry
        carry = limb >> (64 - bits)
      }
    }
    limbs = Array(repeating: 0, count: words) + limbs + [carry]
  }

  /// The first 64 bits from the highest that is set, the place of the last of them, and whether any
  /// bit after them is set. The number is not zero.
  var leadingBits: (top: UInt64, place: Int, hasMore: Bool) {
    guard let last = limbs.lastIndex(where: { $0 != 0 }) else { return (0, 0, false) }
    let shift = UInt64(limbs[last].leadingZeroBitCount)
    var top = limbs[last] << shift
    var hasMore = false
    if last > 0 {
      if shift > 0 { top |= limbs[last - 1] >> (64 - shift) }
      hasMore = limbs[last - 1] << shift != 0 || limbs[..<(last - 1)].contains { $0 != 0 }
    }
    return (top, 64 * last - Int(shift), hasMore)
  }
}

// MARK: - Sums

/// The exact sum of decimals and integers, independent of their order: one long number in places of
/// nine digits that have room for carries.
struct DecimalSum: LongSum {
  /// Place `i` counts 10^(9 i - 135), from -2^63 on.
  var places: [Int64] = []
  var unsettled = 0

  /// 256 digits of decimals, and 72 for their count and for integers beside them.
  private static let placeCount = 37
  private static let lowest = -135
  private static let base: Int64 = 1_000_000_000
  private static let mostUnsettled = 1 << 30

  /// A sum without numbers.
  init() {}

  /// Reads a sum that `write(placesTo:)` has written.
  init(_ record: inout RecordReader) throws(MalformedBytes) {
    try read(places: Self.placeCount, from: &record)
  }

  mutating func add(_ number: DecimalValue) { add(number, isTaken: false) }

  /// Subtracts a number that was added before.
  mutating func remove(_ number: DecimalValue) { add(number, isTaken: true) }

  /// Adds everything that was added to the other sum.
  mutating func add(_ other: DecimalSum) { add(placesOf: other) }

  private mutating func add(_ number: DecimalValue, isTaken: Bool) {
    add(number.coefficient, exponent: number.exponent, isNegative: number.isNegative != isTaken)
  }

  /// Adds an integer.
  mutating func add(_ whole: Int128) {
    var rest = whole.magnitude
    var exponent = 0
    while rest != 0 {
      let (next, part) = rest.quotientAndRemainder(dividingBy: UInt128(Self.base))
      add(part, exponent: exponent, isNegative: whole < 0)
      rest = next
      exponent += 9
    }
  }

  private mutating func add(_ coefficient: UInt128, exponent: Int, isNegative: Bool) {
    guard coefficient != 0 else { return }
    if places.isEmpty { places = Array(repeating: 0, count: Self.placeCount) }
    var (place, shift) = (exponent - Self.lowest).quotientAndRemainder(dividingBy: 9)
    var rest = coefficient
    while rest != 0 {
      let (next, part) = rest.quotientAndRemainder(dividingBy: DecimalValue.power(9 - shift))
      let scaled = Int64(truncatingIfNeeded: part * DecimalValue.power(shift))
      places[place] += isNegative ? -scaled : scaled
      rest = next
      (place, shift) = (place + 1, 0)
    }
    unsettled += 1
    if unsettled == Self.mostUnsettled { settle() }
  }

  /// Carries, so that all places except the last are at least 0 and below the base.
  mutating func settle() {
    var carry: Int64 = 0
    for index in places.indices.dropLast() {
      let place = places[index] + carry
      carry = place >= 0 ? place / Self.base : -((Self.base - 1 - place) / Self.base)
      places[index] = place - carry * Self.base
    }
    if let last = places.indices.last { places[last] += carry }
    unsettled = 0
  }

  /// The sum; nil when it has more digits than a decimal, or is too large.
  var value: DecimalValue? {
    let (places, isNegative) = magnitude
    guard let first = places.firstIndex(where: { $0 != 0 }),
      let last = places.lastIndex(where: { $0 != 0 })
    else { return .zero }
    var low = UInt128(UInt64(places[first]))
    var exponent = Self.lowest + 9 * first
    // Zeros at the end of the lowest place make room at the other end.
    var zeros = 0
    while low % 10 == 0 {
      low /= 10
      zeros += 1
    }
    exponent += zeros
    var coefficient = low
    var digits = 9 - zeros
    for place in places[...last].dropFirst(first + 1) {
      guard place != 0 || digits < DecimalValue.maximumDigits else { return nil }
      if place != 0 {
        guard digits < DecimalValue.maximumDigits else { return nil }
        let (part, isOver) = UInt128(UInt64(place)).multipliedReportingOverflow(
          by: DecimalValue.power(digits))
        guard !isOver, coefficient <= UInt128.max - part else { return nil }
        coefficient += part
      }
      digits += 9
    }
    return DecimalValue(coefficient, exponent: exponent, isNegative: isNegative)
  }

  /// The sum as a double; the nearest one if the sum is a decimal.
  var double: Double {
    if let value { return value.double }
    let (places, isNegative) = magnitude
    // Computed from the highest places, which have more digits than a double. The others change it
    // by at most its last bit.
    guard let last = places.lastIndex(where: { $0 != 0 }) else { return 0 }
    let lowest = max(last - 3, 0)
    var coefficient: UInt128 = 0
    for place in places[lowest...last].reversed() {
      coefficient = coefficient * UInt128(Self.base) + UInt128(UInt64(place))
    }
    let text = "\(isNegative ? "-" : "")\(coefficient)e\(Self.lowest + 9 * lowest)"
    return Double(text) ?? .nan
  }
}

extension DecimalValue {
  /// The sum of two; nil when it has more digits than a decimal.
  static func sum(_ left: DecimalValue, _ right: DecimalValue) -> DecimalValue? {
    var sum = DecimalSum()
    sum.add(left)
    sum.add(right)
    return sum.value
  }
}
