// Sums of doubles that do not depend on the order of addition. So parts of a scan can be summed in
// parallel, the plan never changes a sum, and a listener can subtract a value again. Every double
// is a multiple of 2^-1074, so a sum is kept as one long integer, in places of 32 bits that have
// room for carries. It is the small superaccumulator of R. M. Neal, "Fast exact summation using
// small and large superaccumulators" (2015).

internal import OndolEngine

/// The exact sum of doubles.
struct ExactSum: LongSum {
  /// Place `i` counts 2^(32 i - 1074), from -2^63 on.
  var places: [Int64] = []
  var unsettled = 0
  /// Counts of the values that are not finite.
  private var infinities = 0
  private var negativeInfinities = 0
  private var notNumbers = 0

  /// 2,098 bits for doubles, and 64 for their count.
  private static let placeCount = 68
  /// Each number adds less than 2^52 to a place, which is below 2^33 once it is settled.
  private static let mostUnsettled = 1 << 10

  /// A sum without numbers.
  init() {}

  /// Reads a sum that `write(to:)` has written.
  init(_ record: inout RecordReader) throws(MalformedBytes) {
    infinities = try record.count()
    negativeInfinities = try record.count()
    notNumbers = try record.count()
    try read(places: Self.placeCount, from: &record)
  }

  /// Appends the sum of numbers none of which was removed.
  mutating func write(to record: inout RecordWriter) {
    record.append(count: infinities)
    record.append(count: negativeInfinities)
    record.append(count: notNumbers)
    write(placesTo: &record)
  }

  mutating func add(_ number: Double) { add(number, times: 1) }

  /// Subtracts a number that was added before.
  mutating func remove(_ number: Double) { add(number, times: -1) }

  /// Adds everything that was added to the other sum.
  mutating func add(_ other: ExactSum) {
    infinities += other.infinities
    negativeInfinities += other.negativeInfinities
    notNumbers += other.notNumbers
    add(placesOf: other)
  }

  @inline(__always)
  private mutating func add(_ number: Double, times sign: Int) {
    guard number.isFinite else { return count(number, sign) }
    guard number != 0 else { return }
    if places.isEmpty { places = Array(repeating: 0, count: Self.placeCount) }
    let exponent = Int(number.exponentBitPattern)
    var significand = number.significandBitPattern
    if exponent > 0 { significand |= 1 << 52 }
    // In units of 2^-1074. A subnormal number has the exponent of the least normal one.
    let shift = max(exponent, 1) - 1
    let wide = UInt128(significand) << UInt128(shift & 31)
    let (low, high) = (Int64(wide & 0xffff_ffff), Int64(wide >> 32))
    let place = shift >> 5
    if (number < 0) == (sign < 0) {
      places[place] += low
      places[place + 1] += high
    } else {
      places[place] -= low
      places[place + 1] -= high
    }
    unsettled += 1
    if unsettled == Self.mostUnsettled { settle() }
  }

  private mutating func count(_ number: Double, _ sign: Int) {
    if number.isNaN {
      notNumbers += sign
    } else if number > 0 {
      infinities += sign
    } else {
      negativeInfinities += sign
    }
  }

  /// Carries, so that all places except the last are at least 0 and below 2^32.
  mutating func settle() {
    var carry: Int64 = 0
    for index in places.indices.dropLast() {
      let place = places[index] + carry
      carry = place >> 32
      places[index] = place & 0xffff_ffff
    }
    if let last = places.indices.last { places[last] += carry }
    unsettled = 0
  }

  /// The sum, rounded once to the nearest double, in a tie to the even one. As in IEEE 754, a NaN
  /// makes it NaN, and so do infinities of both signs.
  var value: Double {
    if notNumbers > 0 || infinities > 0 && negativeInfinities > 0 { return .nan }
    if infinities > 0 { return .infinity }
    if negativeInfinities > 0 { return -.infinity }
    let (places, isNegative) = magnitude
    guard let top = places.lastIndex(where: { $0 != 0 }) else { return 0 }
    let lowest = max(top - 2, 0)
    // At least 64 bits when anything lies below. The last bit then represents everything below.
    var bits: UInt128 = 0
    for place in places[lowest...top].reversed() { bits = bits << 32 | UInt128(UInt64(place)) }
    if places[..<lowest].contains(where: { $0 != 0 }) { bits |= 1 }
    let magnitude = Double(sign: .plus, exponent: 32 * lowest - 1074, significand: Double(bits))
    return isNegative ? -magnitude : magnitude
  }
}
