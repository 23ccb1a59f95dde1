// Keys. Any bytes are parsed or refused, and the parsed key is written and parsed again. Two values
// from the bytes have the same order by their keys as by ValueOrder.

import OndolEngine

@testable import Ondol

enum KeyTarget: FuzzTarget {
  static let name = "key"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    if input.flag() {
      compare(&input)
    } else {
      takeApart(&input)
    }
  }

  // MARK: - Hostile keys

  private static func takeApart(_ input: inout FuzzInput) {
    let directions = input.byte()
    let key = input.rest()
    var reader = KeyReader(key.bytes)
    var skipper = KeyReader(key.bytes)
    for index in 0..<64 {
      let descending = directions >> UInt8(index % 8) & 1 == 1
      guard let component = try? reader.component(descending: descending) else { break }
      guard let isWhole = try? skipper.skip(descending: descending) else {
        return demand(false, "component \(index) can be read and not be passed over")
      }
      demand(reader.offset == skipper.offset, "reading and passing over end at two places")
      demand(isWhole == (component != .cut), "one of two calls a component cut")
      if case .value(let value) = component { repeatValue(value, descending) }
    }
    var ids = KeyReader(key.bytes)
    while let id = try? ids.id(descending: directions & 1 == 1) {
      var writer = KeyWriter()
      writer.append(id: id, descending: directions & 1 == 1)
      var again = KeyReader(writer.bytes.bytes)
      demand(
        (try? again.id(descending: directions & 1 == 1))?.utf8.elementsEqual(id.utf8) == true,
        "an id does not come back: \(id)")
      if ids.isAtEnd { break }
    }
  }

  private static func repeatValue(_ value: Value, _ descending: Bool) {
    var writer = KeyWriter()
    if writer.append(value, descending: descending) { return }
    var reader = KeyReader(writer.bytes.bytes)
    guard case .value(let again) = try? reader.component(descending: descending) else {
      return demand(false, "a value that was read cannot be written: \(value)")
    }
    demand(ValueOrder.compare(value, again) == 0, "\(value) comes back as \(again)")
    demand(reader.isAtEnd, "bytes behind a component")
  }

  // MARK: - Order

  private static func compare(_ input: inout FuzzInput) {
    let descending = input.flag()
    let first = input.value(depth: 4)
    let second = input.oneIn(3) ? first : input.value(depth: 4)
    var keys: [[UInt8]] = []
    var isWhole = true
    for value in [first, second] {
      var writer = KeyWriter()
      if writer.append(value, descending: descending) { isWhole = false }
      let key = writer.bytes
      keys.append(key)
      var reader = KeyReader(key.bytes)
      guard let component = try? reader.component(descending: descending) else {
        return demand(false, "\(value) cannot be read back")
      }
      if case .value(let found) = component {
        demand(ValueOrder.compare(found, value) == 0, "\(value) comes back as \(found)")
      }
    }
    let values = ValueOrder.compare(first, second).signum() * (descending ? -1 : 1)
    let (left, right) = (keys[0], keys[1])
    let order = left.bytes.compare(right.bytes).signum()
    demand(
      order == values || (!isWhole && order == 0),
      "\(first) and \(second): \(values) as values, \(order) as keys")
    demand(
      ValueOrder.compare(first, second).signum() == -ValueOrder.compare(second, first).signum(),
      "\(first) and \(second) are ordered in both ways")
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let values: [Value] = [
      .null, true, 0, -1, 9_007_199_254_740_993, .double(-0.5), .double(.nan),
      .double(-.infinity), .timestamp(.minimum), "a\0é", .bytes([0, 255, 1]),
      .decimal(DecimalValue("0.1") ?? .zero),
      .decimal(DecimalValue("-9007199254740993.25") ?? .zero),
      .decimal(DecimalValue("18446744073709551615") ?? .zero),
      .array([1, "b", .array([])]), .vector([1, -2]), ["x": ["y": 1], "z": "w"],
      .string(String(repeating: "x", count: 1_100)),
    ]
    var seeds = values.flatMap { value in
      [UInt8(0), 0xff].map { mask in
        var writer = KeyWriter()
        writer.append(value, descending: mask != 0)
        writer.append(id: "id", descending: mask != 0)
        return [0, mask] + writer.bytes
      }
    }
    var chance = Chance(1)
    for length in [12, 40, 120] { seeds.append([1] + chance.bytes(length)) }
    return seeds
  }
}
