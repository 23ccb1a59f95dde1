// Sums of doubles compared with whole numbers of any length, which have no rounding: in any order,
// in one sum or several, with numbers removed again.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Sums of doubles` {
  /// A sum as a whole number of 2^-1074, one bit after another.
  private struct Reference {
    /// From the lowest bit on, without a sign.
    private var bits: [Bool] = []
    private var isNegative = false

    private static func magnitude(of number: Double) -> [Bool] {
      let exponent = max(Int(number.exponentBitPattern), 1) - 1
      let hidden: UInt64 = number.exponentBitPattern > 0 ? 1 << 52 : 0
      let significand = number.significandBitPattern | hidden
      return Array(repeating: false, count: exponent)
        + (0..<53).map { significand >> UInt64($0) & 1 == 1 }
    }

    private static func isLess(_ left: [Bool], _ right: [Bool]) -> Bool {
      for place in (0..<max(left.count, right.count)).reversed() {
        let (a, b) = (place < left.count && left[place], place < right.count && right[place])
        if a != b { return b }
      }
      return false
    }

    /// `left` and `right`, or `left` without `right`, which is not greater.
    private static func combined(_ left: [Bool], _ right: [Bool], adding: Bool) -> [Bool] {
      var (result, carry): ([Bool], Int) = ([], 0)
      for place in 0..<(max(left.count, right.count) + 1) {
        let a = place < left.count && left[place] ? 1 : 0
        let b = place < right.count && right[place] ? 1 : 0
        let digit = a + (adding ? b : -b) + carry
        result.append(digit & 1 == 1)
        carry = digit >> 1
      }
      return result
    }

    mutating func add(_ number: Double) {
      let other = Self.magnitude(of: number)
      if (number < 0) == isNegative {
        bits = Self.combined(bits, other, adding: true)
      } else if Self.isLess(bits, other) {
        bits = Self.combined(other, bits, adding: false)
        isNegative.toggle()
      } else {
        bits = Self.combined(bits, other, adding: false)
      }
    }

    /// Rounded to the nearest, ties to even.
    var value: Double {
      guard let top = bits.lastIndex(of: true) else { return 0 }
      let low = max(0, top - 52)
      var significand: UInt64 = 0
      for place in (low...top).reversed() { significand = significand << 1 | (bits[place] ? 1 : 0) }
      if low > 0, bits[low - 1] {
        let isTie = !bits[..<(low - 1)].contains(true)
        if !isTie || significand & 1 == 1 { significand += 1 }
      }
      let magnitude = Double(
        sign: .plus, exponent: low - 1_074, significand: Double(significand))
      return isNegative ? -magnitude : magnitude
    }
  }

  private static func number(_ random: inout SeededRandom) -> Double {
    switch random.below(6) {
    case 0: random.pick([0.1, -0.1, 1, -1, 1e16, -1e16, 0x1p-1074, -0x1p-1022, 0x1p1023])
    case 1: Double(random.below(1_000)) / 8
    default:
      Double(
        sign: random.below(2) == 0 ? .plus : .minus,
        exponentBitPattern: UInt(random.below(random.pick([3, 1_100, 2_000]))),
        significandBitPattern: random.next() & (1 << 52 - 1))
    }
  }

  @Test(arguments: Seeds.first(20))
  func `They are exact in every order and in parts, and rounded once`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let numbers = (0..<random.pick([1, 2, 3, 60])).map { _ in Self.number(&random) }
    var reference = Reference()
    for number in numbers { reference.add(number) }
    for _ in 0..<4 {
      var parts = [ExactSum(), ExactSum(), ExactSum()]
      for number in numbers.shuffled(using: &random) { parts[random.below(3)].add(number) }
      let guest = Self.number(&random)
      parts[0].add(guest)
      parts[1].remove(guest)
      var sum = ExactSum()
      for part in parts { sum.add(part) }
      #expect(sum.value == reference.value, "seed \(seed), \(numbers)")
    }
  }

  @Test func `Many numbers carry`() {
    var (sum, copies) = (ExactSum(), ExactSum())
    for _ in 0..<10_000 {
      sum.add(Double.greatestFiniteMagnitude)
      copies.add(1 - 0x1p-53)
    }
    #expect(sum.value == .infinity)
    #expect(copies.value == 10_000 * (1 - 0x1p-53))
    for _ in 0..<10_000 { sum.remove(Double.greatestFiniteMagnitude) }
    #expect(sum.value == 0)
    for _ in 0..<5_000 { sum.add(-0.5) }
    #expect(sum.value == -2_500)
  }

  @Test func `A value that is not a number decides, until it is removed`() {
    var sum = ExactSum()
    #expect(sum.value == 0)
    sum.add(2)
    sum.add(Double.infinity)
    #expect(sum.value == .infinity)
    sum.add(-Double.infinity)
    #expect(sum.value.isNaN)
    sum.remove(Double.infinity)
    #expect(sum.value == -.infinity)
    sum.remove(-Double.infinity)
    sum.add(Double.nan)
    #expect(sum.value.isNaN)
    sum.remove(Double.nan)
    #expect(sum.value == 2)
  }
}
