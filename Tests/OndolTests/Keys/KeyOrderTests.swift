// Keys must compare as values do. All pairs of generated values are compared with an order that is
// computed in another way (ReferencePlace), more than half a million pairs in both directions.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct KeyOrderTests {
  private static func key(_ value: Value, descending: Bool = false) -> [UInt8] {
    var writer = KeyWriter()
    writer.append(value, descending: descending)
    return writer.bytes
  }

  /// Compares every value with every other, in both directions.
  private func checkAllPairs(_ values: [Value], seed: UInt64) {
    let places = values.map { ReferencePlace($0) }
    let ascending = values.map { Self.key($0) }
    let descending = values.map { Self.key($0, descending: true) }
    for left in values.indices {
      for right in values.indices.dropFirst(left) {
        let expected = places[left].compare(places[right]).signum()
        let found = order(ascending[left], ascending[right])
        let reverse = order(descending[left], descending[right])
        if found != expected || reverse != -expected {
          Issue.record("seed \(seed): \(values[left]) and \(values[right])")
          return
        }
      }
    }
  }

  @Test(arguments: Seeds.first(1))
  func `Keys of numbers compare as the numbers do`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    checkAllPairs((0..<900).map { _ in samples.number() }, seed: seed)
  }

  @Test(arguments: Seeds.first(2))
  func `Keys compare as the values do`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    var values: [Value] = []
    while values.count < 700 {
      let value = samples.value()
      values += [value, samples.variant(of: value)]
    }
    checkAllPairs(values, seed: seed)
  }

  @Test(arguments: Seeds.first(2))
  func `No key begins another`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    var keys: [[UInt8]] = []
    for _ in 0..<3_000 {
      let value = samples.random.oneIn(3) ? samples.number() : samples.value()
      keys += [Self.key(value), Self.key(samples.variant(of: value))]
    }
    // If one key were a prefix of another, it would be a prefix of its neighbour in the order as
    // well.
    keys.sort { order($0, $1) < 0 }
    for (key, next) in zip(keys, keys.dropFirst()) where key != next {
      #expect(!next.starts(with: key), "seed \(seed)")
    }
    #expect(keys.allSatisfy { (0x10...0xf7).contains($0[0]) })
  }

  @Test(arguments: Seeds.first(2))
  func `Consecutive components compare one by one, each in its direction`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<10_000 {
      let left = (0..<3).map { _ in samples.value(depth: 1) }
      var right = left
      right[samples.random.below(3)] = samples.value(depth: 1)
      let descending = (0..<3).map { _ in samples.random.oneIn(2) }
      var leftKey = KeyWriter([7])
      var rightKey = KeyWriter([7])
      var expected = 0
      for index in 0..<3 {
        leftKey.append(left[index], descending: descending[index])
        rightKey.append(right[index], descending: descending[index])
        let order = ReferencePlace(left[index]).compare(ReferencePlace(right[index])).signum()
        if expected == 0 { expected = descending[index] ? -order : order }
      }
      let found = order(leftKey.bytes, rightKey.bytes)
      #expect(found == expected, "seed \(seed): \(left) and \(right), \(descending)")
    }
  }

  @Test func `All values that are not a number have one key`() {
    #expect(Self.key(.double(.nan)) == Self.key(.double(-Double.nan)))
    #expect(Self.key(.double(.nan)) == Self.key(.double(Double(nan: 5, signaling: false))))
  }

  @Test func `A bound after a component is after everything that begins with it`() throws {
    var low = KeyWriter()
    low.append("a")
    var row = low
    row.append(.map(["z": 1]), descending: true)
    row.append(id: "id")
    var next = KeyWriter()
    next.append("a\0")
    let bound = try #require(KeyCoding.successor(ofPrefix: low.bytes))
    #expect(order(row.bytes, bound) < 0)
    #expect(order(bound, next.bytes) <= 0)
    #expect(order(low.bytes + [KeyCoding.afterAll], row.bytes) > 0)
    #expect(KeyCoding.successor(ofPrefix: [1, 0xff]) == [2])
    #expect(KeyCoding.successor(ofPrefix: [0xff, 0xff]) == nil)
  }

  @Test func `A text's prefix begins the key of every text that begins with it`() {
    for descending in [false, true] {
      var prefix = KeyWriter()
      prefix.append(textPrefix: "La\0", descending: descending)
      #expect(Self.key("La\0mp", descending: descending).starts(with: prefix.bytes))
      #expect(Self.key("La\0", descending: descending).starts(with: prefix.bytes))
      #expect(!Self.key("La", descending: descending).starts(with: prefix.bytes))
    }
  }

  @Test func `Every value of a type is within its tags`() {
    var samples = ValueSamples(seed: 4)
    for _ in 0..<2_000 {
      let value = samples.value()
      #expect(KeyCoding.tags(ofTypeOf: value).contains(Self.key(value)[0]), "\(value)")
    }
  }
}
