// The keys of groups: equal for equal values and for no others, and the same from a document's
// bytes as from decoded values. And the table that finds them, beside a dictionary.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Keys of groups` {
  /// Values that often are equal in different forms.
  private static func value(_ random: inout SeededRandom, depth: Int = 2) throws -> Value {
    switch random.below(depth > 0 ? 14 : 11) {
    case 0: return random.pick([.null, true, false])
    case 1: return .integer(Int64(random.below(4)))
    case 2: return .integer(random.pick([.max, .min, 1_024, -1_025, 70_000, 1 << 53, 1 << 40]))
    case 3: return .double(random.pick([0, -0.0, 1, 2, 3, 0.5, -1.25, .nan, .infinity, 1e300]))
    case 4: return .double(random.pick([0x1p53, 0x1p63, -0x1p63, 1e20, 0x1p-1074]))
    case 5: return random.decimal()
    case 6: return random.grid()
    case 7:
      return .string(
        random.pick(["", "a", "b", "가", "\u{1100}\u{1161}", "long enough for a heap"]))
    case 8: return .bytes(random.pick([[], [0], [1, 2], Array(repeating: 7, count: 200)]))
    case 9: return .reference(try DocumentPath(random.pick(["a/b", "a/c", "a/b/c/d"])))
    case 10:
      return random.pick([
        .timestamp(Timestamp(unchecked: 0)), .timestamp(Timestamp(unchecked: 5_000_000)),
        .geoPoint(try GeoPoint(latitude: 0, longitude: -0.0)),
        .geoPoint(try GeoPoint(latitude: 0, longitude: 0)), .vector(VectorValue([0, .nan])),
        .vector(VectorValue([-0.0, .nan])), .vector(VectorValue([1])),
      ])
    case 11: return .array(try (0..<random.below(3)).map { _ in try value(&random, depth: 0) })
    default:
      var fields: [String: Value] = [:]
      for _ in 0..<random.below(3) {
        fields[random.pick(["x", "y", "longer name"])] = try value(&random, depth: depth - 1)
      }
      return .map(fields)
    }
  }

  private func key(_ value: Value) -> (bytes: [UInt8], isShown: Bool) {
    var bytes: [UInt8] = []
    let isShown = bytes.append(groupKey: value)
    return (bytes, isShown)
  }

  @Test(arguments: Seeds.first(8))
  func `Two values have one key exactly when they are equal`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var equal = 0
    for _ in 0..<4_000 {
      let (left, right) = (try Self.value(&random), try Self.value(&random))
      if left == right { equal += 1 }
      #expect(
        (key(left).bytes == key(right).bytes) == (left == right),
        "seed \(seed): \(left) and \(right)")
    }
    #expect(equal > 30, "seed \(seed)")
  }

  @Test(arguments: Seeds.first(8))
  func `A key that shows its values reads back as they are`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<2_000 {
      let values = try (0..<random.below(4)).map { _ in try Self.value(&random) }
      var (bytes, isShown): ([UInt8], Bool) = ([], true)
      for value in values { if !bytes.append(groupKey: value) { isShown = false } }
      guard isShown else { continue }
      try GroupKey.check(bytes.bytes)
      let read = try GroupKey.values(in: bytes.bytes)
      #expect(Value.array(read).isIdentical(to: .array(values)), "seed \(seed): \(values)")
    }
  }

  @Test(arguments: Seeds.first(8))
  func `A document's bytes have the keys of its values`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<600 {
      let value = try Self.value(&random)
      let symbols = SymbolTable(limit: 0)
      var encoder = ValueEncoder(symbols)
      try encoder.append(.array([value]), depth: 0)
      let stored = encoder.bytes
      var fromBytes: [UInt8] = []
      let view = ValueView(stored.bytes.octets, .offset(0))
      let layout = try #require(try view.arrayLayout())
      let isShown = try view.element(0, of: layout).append(groupKeyTo: &fromBytes, symbols)
      #expect(fromBytes == key(value).bytes, "seed \(seed): \(value)")
      #expect(isShown == key(value).isShown, "seed \(seed): \(value)")
    }
  }

  @Test func `A key of damaged bytes is refused`() {
    for bytes: [UInt8] in [
      [0x28, 2, 0xff, 0xff], [0x28, 9, 0x41], [0x12, 1], [0x38, 2, 0x61, 0x2f],
    ] {
      #expect(throws: MalformedBytes.self) { try GroupKey.check(bytes.bytes) }
    }
  }

  @Test(arguments: Seeds.first(4))
  func `A table finds what a dictionary finds`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (table, model, keys) = (KeyTable(), [[UInt8]: Int](), [[UInt8]]())
    for _ in 0..<20_000 {
      let key = (0..<random.below(4)).map { _ in UInt8(random.below(24)) }
      #expect(table.place(of: key.bytes) == model[key], "seed \(seed): \(key)")
      guard model[key] == nil else { continue }
      model[key] = model.count
      keys.append(key)
      let place = table.add(key)
      #expect(place == keys.count - 1)
    }
    #expect(table.count == model.count)
    for (place, key) in keys.enumerated() { #expect(table[place].array == key) }
  }
}
