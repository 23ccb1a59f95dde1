// Values for tests, and an order of them that shares nothing with the product's: all numbers are
// whole multiples of 10^-1074, with every digit written out, so that comparing them needs no
// floating point.

import OndolEngine

@testable import Ondol

/// Reproducible numbers from a seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
    bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
    return bits ^ (bits >> 31)
  }

  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
  mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }
}

/// Makes values, most of them near the usual places of mistakes.
struct ValueSamples {
  var random: SeededNumbers

  init(seed: UInt64) {
    random = SeededNumbers(seed: seed)
  }

  mutating func number() -> Value {
    switch random.below(11) {
    case 8, 9, 10: return .decimal(decimal())
    case 0: return .integer(Int64(random.below(2_100)) - 1_050)
    case 1: return .integer(near([0, 1 << 53, -(1 << 53), .max, .min, 1 << 62, 1 << 54]))
    case 2: return .double(Double(near([0, 1 << 53, -(1 << 53), .max, .min, 1 << 62, 1 << 54])))
    case 3: return .integer(Int64(bitPattern: random.next() >> UInt64(random.below(64))))
    case 4: return .double(Double(bitPattern: random.next()))
    case 5:
      return .double(
        [
          .nan, .infinity, -.infinity, 0, -0.0, 0x1p63, -0x1p63, .leastNonzeroMagnitude,
          -.leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude,
          -.greatestFiniteMagnitude, 0.5, -0.5, 0x1.fffffffffffffp62, 0x1p63.nextUp,
        ][random.below(16)])
    case 6:
      let double = Double(near([0, 1 << 53, 1 << 52, -(1 << 51)]))
      return .double(random.oneIn(2) ? double.nextUp : double + 0.5)
    default:
      return .double(Double(random.below(1_000)) / Double(1 << random.below(12)))
    }
  }

  /// Most of them are next to integers, doubles and each other.
  mutating func decimal() -> DecimalValue {
    let found: DecimalValue?
    switch random.below(8) {
    case 0: found = DecimalValue(Int64(random.below(2_100)) - 1_050)
    case 1:
      let whole = near([0, 1 << 53, -(1 << 53), .max, .min, 1 << 62, 1 << 54])
      found = DecimalValue("\(whole).\(random.below(1_000))")
    case 2: found = DecimalValue("\(Int64(random.below(2_000)) - 1_000)e-\(random.below(4))")
    case 3:
      // The digits in which a double is written are seldom exactly the double.
      found = number().double.flatMap { DecimalValue("\($0)") }
    case 4:
      let double = Double(random.below(1_000)) / Double(1 << random.below(12))
      found = DecimalValue(exactly: random.oneIn(2) ? double.nextUp : -double)
    case 5: found = DecimalValue(random.next() >> UInt64(random.below(3)))
    case 6:
      found = DecimalValue(
        [
          "99999999999999999999999999999999999999e90", "1e127", "-1e-128", "1e-128", "0",
          "9007199254740992.5", "9223372036854775807.5", "9223372036854775808", "0.1",
          "18446744073709551615", "-9223372036854775808.25", "123456789012345678901234567890",
        ][random.below(12)])
    default:
      let digits =
        (UInt128(random.next()) << 64 | UInt128(random.next())) >> UInt128(random.below(127))
      found = DecimalValue(
        digits, exponent: random.below(60) - 40, isNegative: random.oneIn(2))
    }
    return found ?? decimal()
  }

  private mutating func near(_ places: [Int64]) -> Int64 {
    places[random.below(places.count)] &+ Int64(random.below(4_001)) &- 2_000
  }

  mutating func text(maximumLength: Int = 12) -> String {
    let scalars: [Unicode.Scalar] = [
      "\0", "\u{1}", "\u{5}", "a", "b", "ab", "é", "e", "\u{301}", "\u{ffff}", "\u{10ffff}", "😀",
      "\u{7f}", "\u{80}", "한", "_", ".", "ÿ",
    ].compactMap { $0.unicodeScalars.first }
    var text = String.UnicodeScalarView()
    for _ in 0..<random.below(maximumLength + 1) {
      text.append(scalars[random.below(scalars.count)])
    }
    return String(text)
  }

  mutating func bytes(maximumLength: Int = 12) -> [UInt8] {
    (0..<random.below(maximumLength + 1)).map { _ in
      [0, 1, 5, 0xff, 0xfe, 0x7f, UInt8(random.below(256))][random.below(7)]
    }
  }

  mutating func timestamp() -> Timestamp {
    let range = Timestamp.minimum.microsecondsSince1970...Timestamp.maximum.microsecondsSince1970
    switch random.below(4) {
    case 0: return random.oneIn(2) ? .minimum : .maximum
    case 1: return Timestamp(unchecked: Int64(random.below(5)) - 2)
    default: return Timestamp(unchecked: Int64.random(in: range, using: &random))
    }
  }

  mutating func path() -> DocumentPath {
    let count = 2 * (1 + random.below(2))
    return DocumentPath(
      unchecked: (0..<count).map { _ in "x" + text(maximumLength: 3) })
  }

  mutating func geoPoint() -> GeoPoint {
    let latitude = [0, -90, 90, 0.5, -0.5, 1e-300][random.below(6)]
    let longitude = [0, -180, 180, 0.25, -0.25, -1e-300][random.below(6)]
    return (try? GeoPoint(latitude: latitude, longitude: longitude)) ?? geoPoint()
  }

  private mutating func octets() -> [UInt8] {
    (0..<32).map { _ in [0, 1, 0xff][random.below(3)] }
  }

  mutating func blob() -> BlobReference {
    let blob = BlobDigest(bytes: octets()).flatMap { digest in
      try? BlobReference(
        digest: digest, length: [0, 1, 1 << 40, .max][random.below(4)],
        contentType: random.oneIn(2) ? nil : "x" + text(maximumLength: 4),
        path: random.oneIn(2) ? nil : "x" + text(maximumLength: 4),
        key: random.oneIn(2) ? nil : BlobKey(bytes: octets()))
    }
    // A content type cannot contain a control character.
    return blob ?? self.blob()
  }

  mutating func vector() -> VectorValue {
    VectorValue((0..<random.below(4)).map { _ in number().double ?? 1 })
  }

  /// Returns any value. Containers hold others down to `depth`.
  mutating func value(depth: Int = 3) -> Value {
    switch random.below(depth > 0 ? 14 : 11) {
    case 0: return .null
    case 1: return .boolean(random.oneIn(2))
    case 2, 3: return number()
    case 4: return .timestamp(timestamp())
    case 5, 6: return .string(text())
    case 7: return .bytes(bytes())
    case 8: return random.oneIn(2) ? .reference(path()) : .geoPoint(geoPoint())
    case 9: return .vector(vector())
    case 10: return .blob(blob())
    case 11, 12: return .array((0..<random.below(4)).map { _ in value(depth: depth - 1) })
    default: return .map(fields(depth: depth - 1))
    }
  }

  mutating func fields(depth: Int = 3, maximumCount: Int = 4) -> [String: Value] {
    var fields: [String: Value] = [:]
    for _ in 0..<random.below(maximumCount + 1) {
      fields["n" + text(maximumLength: 2)] = value(depth: depth)
    }
    return fields
  }

  /// Returns a value that differs from `value` in one place, or in none.
  mutating func variant(of value: Value) -> Value {
    switch value {
    case .array(var elements):
      if elements.isEmpty || random.oneIn(4) { return .array(elements + [self.value(depth: 0)]) }
      let index = random.below(elements.count)
      elements[index] = variant(of: elements[index])
      return .array(elements)
    case .map(var fields):
      let names = fields.keys.sorted()
      if names.isEmpty || random.oneIn(4) {
        fields["n" + text(maximumLength: 2)] = self.value(depth: 0)
      } else {
        let name = names[random.below(names.count)]
        fields[name] = variant(of: fields[name] ?? .null)
      }
      return .map(fields)
    case .string(let text): return .string(text + self.text(maximumLength: 1))
    case .bytes(let bytes): return .bytes(bytes + self.bytes(maximumLength: 1))
    case .integer(let integer):
      return random.oneIn(2) ? .double(Double(integer)) : .decimal(DecimalValue(integer))
    case .double(let double): return DecimalValue(exactly: double).map { .decimal($0) } ?? value
    case .decimal(let decimal): return .double(decimal.double)
    case .blob(let blob):
      let other = try? BlobReference(
        digest: blob.digest, length: blob.length, contentType: blob.contentType, path: blob.path,
        key: random.oneIn(2) ? nil : BlobKey(bytes: octets()))
      return .blob(other ?? blob)
    default: return value
    }
  }
}

/// The place of a value in the order, spelt out.
struct ReferencePlace {
  private var rank: Int
  private var octets: [UInt8] = []
  private var parts: [ReferencePlace] = []
  private var isCountFirst = false

  init(_ value: Value) {
    switch value {
    case .null: rank = 0
    case .boolean(let value): (rank, octets) = (1, [value ? 1 : 0])
    case .integer(let value): (rank, octets) = (2, Self.digits(value))
    case .double(let value): (rank, octets) = (2, Self.digits(value))
    case .decimal(let value): (rank, octets) = (2, Self.digits(value))
    case .timestamp(let value):
      let sinceYearOne =
        value.microsecondsSince1970 - Timestamp.minimum.microsecondsSince1970
      let text = String(sinceYearOne)
      (rank, octets) = (3, Array((String(repeating: "0", count: 20 - text.count) + text).utf8))
    case .string(let value): (rank, octets) = (4, Array(value.utf8))
    case .bytes(let value): (rank, octets) = (5, value)
    case .reference(let value): (rank, parts) = (6, value.segments.map { Self(.string($0)) })
    case .geoPoint(let value):
      (rank, parts) = (7, [Self(.double(value.latitude)), Self(.double(value.longitude))])
    case .array(let elements): (rank, parts) = (8, elements.map { Self($0) })
    case .vector(let value):
      (rank, parts, isCountFirst) = (9, value.components.map { Self(.double($0)) }, true)
    case .map(let fields):
      rank = 10
      let names = fields.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      parts = names.flatMap { [Self(.string($0)), Self(fields[$0] ?? .null)] }
    case .blob(let blob):
      rank = 11
      parts = [
        Self(.boolean(blob.key != nil)), Self(.bytes(blob.digest.bytes)),
        Self(.integer(Int64(blob.length))), Self(blob.contentType.map { .string($0) } ?? .null),
        Self(blob.path.map { .string($0) } ?? .null),
        Self(blob.key.map { .bytes($0.bytes) } ?? .null),
      ]
    }
  }

  /// Negative, zero or positive.
  func compare(_ other: Self) -> Int {
    if rank != other.rank { return rank < other.rank ? -1 : 1 }
    if octets != other.octets {
      return octets.lexicographicallyPrecedes(other.octets) ? -1 : 1
    }
    if isCountFirst, parts.count != other.parts.count {
      return parts.count < other.parts.count ? -1 : 1
    }
    for index in 0..<min(parts.count, other.parts.count) {
      let order = parts[index].compare(other.parts[index])
      if order != 0 { return order }
    }
    return parts.count - other.parts.count
  }

  private static func digits(_ value: Int64) -> [UInt8] {
    digits(value < 0, UInt128(value.magnitude), fives: lowest, twos: lowest)
  }

  private static func digits(_ value: Double) -> [UInt8] {
    if value.isNaN { return [0] }
    if value.isInfinite { return [value < 0 ? 1 : 5] }
    let exponentBits = value.exponentBitPattern
    let significand = value.significandBitPattern | (exponentBits == 0 ? 0 : 1 << 52)
    let exponent = Int(max(exponentBits, 1)) - 1_075
    return digits(value < 0, UInt128(significand), fives: lowest, twos: exponent + lowest)
  }

  private static func digits(_ value: DecimalValue) -> [UInt8] {
    let exponent = value.exponent + lowest
    return digits(value.isNegative, value.coefficient, fives: exponent, twos: exponent)
  }

  /// Every number is a whole multiple of 10 to the power of minus this.
  private static let lowest = 1_074

  /// The powers of five, in places of 32 bits, the lowest first.
  private static let powersOfFive: [[UInt32]] = {
    var powers: [[UInt32]] = [[1]]
    for _ in 0..<1_300 { powers.append(product(powers.last ?? [], [5])) }
    return powers
  }()

  private static func product(_ left: [UInt32], _ right: [UInt32]) -> [UInt32] {
    var result = [UInt32](repeating: 0, count: left.count + right.count)
    for (offset, factor) in right.enumerated() {
      var carry: UInt64 = 0
      for (index, place) in left.enumerated() {
        let sum = UInt64(place) * UInt64(factor) + UInt64(result[offset + index]) + carry
        result[offset + index] = UInt32(truncatingIfNeeded: sum)
        carry = sum >> 32
      }
      result[offset + left.count] = UInt32(carry)
    }
    while result.last == 0 { result.removeLast() }
    return result
  }

  /// All binary digits of `significand * 5^fives * 2^twos`, from 2^5119 down, after a byte for the
  /// sign. The digits of a negative number are inverted.
  private static func digits(
    _ isNegative: Bool, _ significand: UInt128, fives: Int, twos: Int
  ) -> [UInt8] {
    guard significand != 0 else { return [3] }
    let places = (0..<4).map { UInt32(truncatingIfNeeded: significand >> UInt128(32 * $0)) }
    let number = product(
      product(powersOfFive[fives], places), [1 << UInt32(twos % 32)])
    var octets = [UInt8](repeating: 0, count: 640)
    for (index, place) in number.enumerated() {
      for octet in 0..<4 {
        octets[639 - 4 * (index + twos / 32) - octet] = UInt8(
          truncatingIfNeeded: place >> UInt32(8 * octet))
      }
    }
    // Only the part before the last digit: a shorter number is the smaller one.
    let end = (octets.lastIndex { $0 != 0 } ?? 0) + 1
    return isNegative ? [2] + octets.map { ~$0 } : [4] + octets[..<end]
  }
}

/// The order of two keys: -1, 0 or 1.
func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
  left.bytes.compare(right.bytes).signum()
}
