// Numbers in JSON keep every digit: each becomes the first of integer, double, decimal that
// preserves them, and a number that none preserves is refused with its place.

import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Numbers in JSON` {
  private static func read(
    _ text: String, _ numbers: JSONNumbers = .exact
  ) throws(JSONError) -> Value {
    try JSONReader.read(Array(text.utf8), numbers: numbers)
  }

  @Test(arguments: [
    "1.0", "-0.0", "0.1", "0.10", "1e5", "1E-7", "1e22", "0.30000000000000004", "1.5e300",
    "100000000000000000000.0", "123456789012345.0", "0.000000000000000000001", "5e-324",
    "1.7976931348623157e308", "2.2250738585072014e-308", "9007199254740993.0e0", "0e400",
    "0.0e-999",
  ])
  func `A number that a double preserves is a double`(text: String) throws {
    if text == "9007199254740993.0e0" {
      #expect(try Self.read(text).decimal != nil, "the double beside it has other digits")
    } else {
      #expect(try Self.read(text).double?.bitPattern == Double(text)?.bitPattern)
    }
  }

  @Test(arguments: [
    "9223372036854775808", "-9223372036854775809", "18446744073709551615", "100000000000000000000",
    "0.1234567890123456789", "12345678901234567890.12345678901234567", "0.10000000000000001",
    "99999999999999999999999999999999999999", "-0.1000000000000000055511151231257827",
    "1234567890123456.78",
  ])
  func `A number that no double preserves is a decimal, written with the same digits`(
    text: String
  ) throws {
    let value = try Self.read(text)
    #expect(value.decimal?.description == text)
    for form in [JSONForm.relaxed, .canonical] {
      #expect(try Self.read(JSONWriter.line(value, form)).isIdentical(to: value))
    }
    #expect(JSONWriter.line(value, .plain) == text)
    #expect(try Self.read(text, .double).double == Double(text))
  }

  @Test func `Integers are as before`() throws {
    for number in [Int64.min, -1, 0, 7, .max] {
      #expect(try Self.read("\(number)").isIdentical(to: .integer(number)))
    }
  }

  @Test(arguments: [
    ("[1, 123456789012345678901234567890123456789]", 5, "39"),
    (#"{"a": 0.123456789012345678901234567890123456789}"#, 7, "39"),
    ("[1e309]", 2, "too large"), ("[2,-1e400]", 4, "too large"), ("1e-330", 1, "too far behind"),
    ("1.0000000000000000001e200", 1, "too large"),
  ])
  func `A number with more digits than a decimal is refused with its column`(
    text: String, column: Int, reason: String
  ) throws {
    let error = #expect(throws: JSONError.self) { try Self.read(text) }
    #expect(error?.column == column)
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    if !text.contains("e309"), !text.contains("e400") {
      #expect(throws: Never.self) { try Self.read(text, .double) }
    }
  }

  @Test(arguments: Seeds.first(3))
  func `Any double that is written comes back, and any decimal`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<3_000 {
      let number = samples.number()
      for form in [JSONForm.relaxed, .canonical] {
        let text = JSONWriter.line(number, form)
        #expect(try Self.read(text).isIdentical(to: number), "\(text)")
      }
    }
  }

  @Test func `Conditions have decimals with a letter after them`() throws {
    func operand(_ text: String) throws -> Value? {
      guard case .field(_, .equal, let operand) = try WhereExpression(text) else { return nil }
      return operand
    }
    #expect(try operand("price = 0.10m")?.decimal?.description == "0.1")
    #expect(try operand("price = -3M")?.decimal?.description == "-3")
    #expect(try operand("price = 0.10")?.double == 0.1)
    #expect(try operand("price = 0.1234567890123456789")?.decimal != nil)
    for wrong in ["price = m", "price = 1.m", "price = 0.1mm", "price = 1 m"] {
      #expect(throws: (any Error).self, "\(wrong)") { try operand(wrong) }
    }
    // Unusual values are preserved as well.
    for typed in [
      #"{"$numberDecimal":"1,5"}"#, #"{"$numberDecimal":1}"#, #"{"$numberDecimal":"NaN"}"#,
    ] {
      #expect(throws: JSONError.self, "\(typed)") { try Self.read(typed) }
    }
  }
}
