// The order of values and the two equalities, compared with a list in which every place is known
// and with an order that is computed in another way.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ValueOrderTests {
  @Test(arguments: Seeds.first(2))
  func `Values compare as a reference that shares nothing says`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    var values: [Value] = []
    while values.count < 500 {
      let value = samples.random.oneIn(2) ? samples.number() : samples.value()
      values += [value, samples.variant(of: value)]
    }
    let places = values.map { ReferencePlace($0) }
    for left in values.indices {
      for right in values.indices {
        let expected = places[left].compare(places[right]).signum()
        if ValueOrder.compare(values[left], values[right]).signum() != expected {
          Issue.record("seed \(seed): \(values[left]) and \(values[right])")
          return
        }
      }
    }
  }

  @Test func `Values stand in the order of the list, type by type`() throws {
    let groups: [[Value]] = [
      [nil], [false], [true],
      [.double(.nan), .double(-Double.nan)],
      [.double(-.infinity)],
      [.double(-.greatestFiniteMagnitude)],
      [.integer(.min), .double(-0x1p63)],
      [.integer(-9_007_199_254_740_993)],
      [.integer(-9_007_199_254_740_992), .double(-0x1p53)],
      [-1, -1.0], [-0.5], [.double(-.leastNonzeroMagnitude)],
      [0, 0.0, -0.0],
      [.double(.leastNonzeroMagnitude)], [0.5], [1, 1.0], [1.5], [2],
      [.integer(9_007_199_254_740_992), .double(0x1p53)],
      [.integer(9_007_199_254_740_993)],
      [.double(9_007_199_254_740_994)],
      [.integer(.max)],
      [.double(0x1p63)],
      [.double(.infinity)],
      [.timestamp(.minimum)], [.timestamp(Timestamp(unchecked: -1))],
      [.timestamp(Timestamp(unchecked: 0))], [.timestamp(.maximum)],
      [""], ["\0"], ["a"], ["a\0"], ["a\0b"], ["ab"], ["e\u{301}b"], ["æ"], ["éa"],
      ["\u{ffff}"], ["😀"],
      [.bytes([])], [.bytes([0])], [.bytes([0, 1])], [.bytes([1])], [.bytes([0xff])],
      [.reference(try DocumentPath("c/a"))], [.reference(try DocumentPath("c/a/d/a"))],
      [.reference(try DocumentPath("c/a\0"))], [.reference(try DocumentPath("c/b"))],
      [.geoPoint(try GeoPoint(latitude: -90, longitude: 180))],
      [.geoPoint(try GeoPoint(latitude: 0, longitude: -180))],
      [
        .geoPoint(try GeoPoint(latitude: 0, longitude: 0)),
        .geoPoint(try GeoPoint(latitude: -0.0, longitude: -0.0)),
      ],
      [.geoPoint(try GeoPoint(latitude: 90, longitude: 0))],
      [[]], [[1, 2, 3], [1.0, 2.0, 3.0]], [[1, 2, 3, 1]], [[2]], [["a"]], [[[]]],
      [.vector([])], [.vector([100])], [.vector([1, 2])], [.vector([1, 3])], [.vector([0, 0, 0])],
      [[:]],
      [["a": "aaa", "b": "baz"]], [["a": "foo", "b": "bar"]],
      [["a": "foo", "b": "bar", "c": "qux"]], [["a": "foo", "b": "baz"]], [["b": 0]],
      [["é": 0]],
      [try blob(0, 9)], [try blob(1, 0)], [try blob(1, 0, nil, "a")], [try blob(1, 0, "a/b")],
      [try blob(1, 0, "a/b", "a")], [try blob(1, 0, "é")], [try blob(1, 1)], [try blob(255, 0)],
    ]
    for (left, leftGroup) in groups.enumerated() {
      for (right, rightGroup) in groups.enumerated() {
        for leftValue in leftGroup {
          for rightValue in rightGroup {
            let order = ValueOrder.compare(leftValue, rightValue).signum()
            #expect(order == (left - right).signum(), "\(leftValue) and \(rightValue)")
            #expect((leftValue == rightValue) == (left == right))
            #expect(left != right || leftValue.hashValue == rightValue.hashValue, "\(leftValue)")
          }
        }
      }
    }
  }

  private func blob(
    _ byte: UInt8, _ length: Int, _ contentType: String? = nil, _ path: String? = nil
  ) throws -> Value {
    let digest = try #require(BlobDigest(bytes: [UInt8](repeating: byte, count: 32)))
    return .blob(
      try BlobReference(digest: digest, length: length, contentType: contentType, path: path))
  }

  @Test func `Equal is not identical`() {
    #expect(Value.integer(1) == .double(1) && !Value.integer(1).isIdentical(to: .double(1)))
    #expect(Value.double(0) == .double(-0.0) && !Value.double(0).isIdentical(to: .double(-0.0)))
    #expect(Value.double(.nan).isIdentical(to: .double(.nan)))
    #expect(!Value.array([1]).isIdentical(to: [1.0]) && Value.array([1]).isIdentical(to: [1]))
    #expect(!Value.map(["a": 1]).isIdentical(to: ["a": 1.0]))
    #expect(!Value.map(["a": 1]).isIdentical(to: ["b": 1]))
    #expect(!Value.vector([0]).isIdentical(to: .vector([-0.0])))
    #expect(Value.string("é") != "e\u{301}")
    #expect(Value.map(["é": 1]) != ["e\u{301}": 1])
  }

  @Test(arguments: Seeds.first(2))
  func `Equal values hash alike, and every value is identical to itself`(seed: UInt64) {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<3_000 {
      let value = samples.value()
      let variant = samples.variant(of: value)
      #expect(value.isIdentical(to: value), "seed \(seed)")
      #expect(value != variant || value.hashValue == variant.hashValue, "seed \(seed): \(value)")
    }
  }
}
