// Decimals by themselves: their digits, their one form, and their relation to doubles and sums. The
// suites of values and of keys cover their order among all numbers.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Decimals` {
  @Test(arguments: [
    ("0", "0"), ("-0.000", "0"), ("0e9", "0"), ("1.50", "1.5"), ("-12.5", "-12.5"),
    ("100", "100"), ("1e2", "100"), ("0.001", "0.001"), ("1E-3", "0.001"), ("1e+3", "1000"),
    ("18446744073709551615", "18446744073709551615"),
    ("0.00000000000000000000000000000000000000000001", "1e-44"), ("12e60", "1.2e61"),
    ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    ("9999999999999999999999999999999999999900000", "9.9999999999999999999999999999999999999e42"),
    ("1e-128", "1e-128"), ("1e127", "1e127"), ("0.1e-127", "1e-128"),
    ("12345678901234567890.000000000000000001", "12345678901234567890.000000000000000001"),
    ("0000000000000000000000000000000000000000000000.5", "0.5"),
  ])
  func `Texts are numbers in one form`(text: String, written: String) throws {
    let value = try #require(DecimalValue(text))
    #expect(value.description == written)
    #expect(DecimalValue(written) == value)
    let bytes = Self.bytes(value)
    #expect(Self.read(bytes) == value)
  }

  @Test(arguments: [
    "", "-", ".", "1.", ".5", "+1", "1e", "1e+", "e5", "0x1", "NaN", "Infinity", "1,5", " 1", "1 ",
    "1..2", "1.2.3", "1e128", "1e-129", "1e999999999999999999999", "--1", "1m",
    "123456789012345678901234567890123456789", "0.123456789012345678901234567890123456789",
    "100000000000000000000000000000000000000.1",
  ])
  func `Other texts are none`(text: String) {
    #expect(DecimalValue(text) == nil)
  }

  @Test(arguments: Seeds.first(3))
  func `Bytes are one form, and every other is refused`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<2_000 {
      let value = samples.decimal()
      var bytes = Self.bytes(value)
      #expect(Self.read(bytes) == value)
      #expect(DecimalValue(value.description) == value)
      bytes[samples.random.below(bytes.count)] ^= 1 << UInt8(samples.random.below(8))
      bytes.removeLast(samples.random.below(3))
      if let other = Self.read(bytes) { #expect(Self.bytes(other) == bytes) }
    }
  }

  @Test(arguments: Seeds.first(3))
  func `The nearest double and the one below are found exactly`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<2_000 {
      let value = samples.decimal()
      #expect(value.double == Double(value.description), "\(value)")
      guard !value.isZero else { continue }
      let magnitude = ReferencePlace(.decimal(Self.magnitude(value)))
      let below = value.magnitudeBelow
      let order = ReferencePlace(.double(below.double)).compare(magnitude)
      #expect(order <= 0 && (order == 0) == below.isExact, "\(value)")
      #expect(ReferencePlace(.double(below.double.nextUp)).compare(magnitude) > 0, "\(value)")
      let number = samples.number()
      if let double = number.double, let exact = DecimalValue(exactly: double) {
        #expect(ValueOrder.compare(exact, double) == 0, "\(double)")
        #expect(Value.decimal(exact) == number && Set([.decimal(exact), number]).count == 1)
      }
    }
    #expect(DecimalValue(exactly: 0.1) == nil && DecimalValue(exactly: 0.5) == DecimalValue("0.5"))
    #expect(Value.double(0.1) != .decimal(try #require(DecimalValue("0.1"))))
    #expect(ValueOrder.compare(try #require(DecimalValue("0.1")), 0.1) < 0)
  }

  @Test(arguments: Seeds.first(3))
  func `Foundation's decimals are the same numbers`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<1_000 {
      let value = samples.decimal()
      #expect(try DecimalValue(value.decimal) == value, "\(value)")
    }
    #expect(throws: DatabaseError.self) { try DecimalValue(Decimal.nan) }
    #expect(throws: DatabaseError.self) { try DecimalValue(Decimal.greatestFiniteMagnitude) }
    #expect(try DecimalValue(Decimal(string: "-12.500") ?? 0).description == "-12.5")
    #expect(Decimal(fieldValue: 3) == 3 && Decimal(fieldValue: .double(0.5)) == Decimal(0.5))
    #expect(Decimal(fieldValue: .double(0.1)) == nil && Decimal(fieldValue: "1") == nil)
  }

  @Test(arguments: Seeds.first(3))
  func `Sums are exact in any order, in parts, and with some taken out`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<300 {
      // A sum of these in whole ten-thousandths is exact.
      let numbers = (0..<(1 + samples.random.below(20))).map { _ in
        Int64(truncatingIfNeeded: samples.random.next()) >> Int64(samples.random.below(60))
      }
      let decimals = numbers.compactMap {
        DecimalValue(UInt128($0.magnitude), exponent: -4, isNegative: $0 < 0)
      }
      let whole = numbers.reduce(Int128(0)) { $0 + Int128($1) }
      let expected = DecimalValue(whole.magnitude, exponent: -4, isNegative: whole < 0)
      var sum = DecimalSum()
      var (front, back) = (DecimalSum(), DecimalSum())
      let middle = samples.random.below(decimals.count)
      for (place, decimal) in decimals.enumerated() {
        sum.add(decimal)
        if place < middle { front.add(decimal) } else { back.add(decimal) }
      }
      front.add(back)
      let other = samples.decimal()
      back.add(other)
      for decimal in decimals[middle...] { back.remove(decimal) }
      #expect(sum.value == expected && front.value == expected && back.value == other)
      #expect(expected.map { $0.double == sum.double } ?? true)
    }
    var sum = DecimalSum()
    sum.add(Int128(Int64.max) * 1_000_000_007)
    sum.add(Int128(-5))
    #expect(sum.value?.description == "9223372101418380064983430644")
    sum.remove(DecimalValue("9223372101418380064983430644.5") ?? .zero)
    #expect(sum.value?.description == "-0.5")
    #expect(DecimalSum().value == .zero)
  }

  @Test func `A sum of too many digits is none, and a double has most of it`() {
    let (large, small) = (DecimalValue("1e30") ?? .zero, DecimalValue("1e-30") ?? .zero)
    #expect(DecimalValue.sum(large, small) == nil)
    var sum = DecimalSum()
    sum.add(large)
    sum.add(small)
    #expect(sum.double == 1e30)
    sum.remove(large)
    #expect(sum.value == small)
    let most = DecimalValue("9e127") ?? .zero
    #expect(DecimalValue.sum(most, most) == nil)
  }

  private static func magnitude(_ value: DecimalValue) -> DecimalValue {
    DecimalValue(value.coefficient, exponent: value.exponent, isNegative: false) ?? .zero
  }

  /// The bytes of the value in a document, after its tag.
  private static func bytes(_ value: DecimalValue) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(value)
    return Array(bytes.dropFirst())
  }

  private static func read(_ bytes: [UInt8]) -> DecimalValue? {
    guard let found = bytes.bytes.octets.decimal(at: 0), found.length == bytes.count else {
      return nil
    }
    return found.value
  }
}
