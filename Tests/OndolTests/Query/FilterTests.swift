// The values that each condition accepts, in tables that share nothing with the code under test.

import Testing

@testable import Ondol

/// A condition, values that meet it, and values that do not.
private struct Case: CustomTestStringConvertible, Sendable {
  let name: String
  let condition: FieldFilter.Condition
  let matching: [Value]
  let others: [Value?]

  init(
    _ name: String, _ condition: FieldFilter.Condition, _ matching: [Value], not others: [Value?]
  ) {
    self.name = name
    self.condition = condition
    self.matching = matching
    self.others = others
  }

  var testDescription: String { name }
}

private let nan = Value.double(.nan)

private let cases: [Case] = [
  Case("== 1", .equal(1), [1, 1.0], not: [nil, .null, 2, true, "1", nan]),
  Case("== 1.0", .equal(1.0), [1, 1.0], not: [2]),
  Case("== null", .equal(nil), [nil], not: [.none, 0, false]),
  Case("== NaN", .equal(nan), [nan], not: [.none, 0, .null]),
  Case("== -0.0", .equal(-0.0), [0, 0.0, -0.0], not: [false]),
  Case("!= 1", .notEqual(1), [2, "1", true, nan, [1]], not: [.none, .null, 1, 1.0]),
  Case("!= null", .notEqual(nil), [1, "x", false, nan], not: [.none, .null]),
  Case("!= NaN", .notEqual(nan), [1, "x"], not: [nan, .null, .none]),
  Case(
    "> 5", .greater(5), [6, 5.5, .double(.infinity)], not: ["x", true, nan, 5, .null, .none, [9]]),
  Case(">= 5", .greaterOrEqual(5), [5, 5.0, 6], not: ["x", 4]),
  Case("< 5", .less(5), [4, -1.5, nan], not: [5, 5.0, .null, false, "a"]),
  Case("<= 5", .lessOrEqual(5), [5, 4], not: [6, "a"]),
  Case("< b", .less("b"), ["a", "", "aé"], not: ["b", "c", 1]),
  Case("> \u{ffff} by UTF-8", .greater("\u{ffff}"), ["😀"], not: ["a", "é"]),
  Case(
    "> 2^53 exactly", .greater(.integer(9_007_199_254_740_992)), [.integer(9_007_199_254_740_993)],
    not: [.double(9_007_199_254_740_992)]),
  Case("in 1, null, NaN", .isIn([nil, nan, 1]), [1, 1.0, nil, nan], not: [.none, 2, "1"]),
  Case("not in 1", .notIn([1]), [2, "1", nan], not: [.none, .null, 1, 1.0]),
  Case("not in NaN", .notIn([nan]), [1], not: [nan, .null]),
  Case("not in null", .notIn([nil, 1]), [], not: [2, "x", .null, .none]),
  Case("contains 1", .arrayContains(1), [[1], [2, 1.0]], not: [1, [2], [[1]], [:], .none]),
  Case("contains null", .arrayContains(nil), [[nil]], not: [nil, []]),
  Case("contains any of 1, a", .arrayContainsAny([1, "a"]), [[1], [2, "a"]], not: [[2], 1, []]),
  Case(
    "begins with a", .hasPrefix(ExactText("a")), ["a", "ab", "a\0"], not: ["", "A", "b", 1, ["a"]]),
  Case("begins with e, by bytes", .hasPrefix(ExactText("e")), ["e\u{301}"], not: ["é"]),
  Case("begins with nothing", .hasPrefix(ExactText("")), ["", "x"], not: [1, .none]),
  Case("== map", .equal(["a": 1]), [["a": 1.0]], not: [["a": 1, "b": 2], [:]]),
]

@Suite struct FilterTests {
  @Test(arguments: cases)
  fileprivate func `A condition matches by its rule`(test: Case) {
    let filter = FilterTree.field(FieldFilter(field: .field(["f"]), condition: test.condition))
    for value in test.matching {
      #expect(filter.matches(["f": value], name: .null), "\(value)")
    }
    for value in test.others {
      let fields = value.map { ["f": $0] } ?? [:]
      #expect(!filter.matches(fields, name: .null), "\(value.map { "\($0)" } ?? "missing")")
    }
  }

  @Test func `Orders are completed by inequalities, then the id, in the last direction`() throws {
    var shape = QueryShape(collection: try CollectionPath("c"))
    func complete() -> String {
      shape.completeOrders.map { "\($0.descending ? "-" : "")\($0.field)" }.joined(separator: " ")
    }
    #expect(complete() == "__name__")
    shape.filters = [
      .field(FieldFilter(field: .field(["b"]), condition: .greater(1))),
      .any([
        .field(FieldFilter(field: .field(["a"]), condition: .notEqual(1))),
        .field(FieldFilter(field: .field(["e"]), condition: .equal(1))),
      ]),
    ]
    #expect(complete() == "a b __name__")
    shape.orders = [SortOrder(field: .field(["c"]), descending: true)]
    #expect(complete() == "-c -a -b -__name__")
    shape.orders = [
      SortOrder(field: .field(["b"]), descending: true), SortOrder(field: .field(["c"])),
    ]
    #expect(complete() == "-b c a __name__")
    shape.orders.append(SortOrder(field: .field(["b"])))
    #expect(complete() == "-b c a __name__")
    shape.orders = [
      SortOrder(field: .documentID, descending: true), SortOrder(field: .field(["c"])),
    ]
    #expect(complete() == "-__name__")
  }

  @Test func `A document without a field of the order is left out`() async throws {
    let database = try await Database.underTest()
    let collection = database.collection("c")
    try await collection.document("both").setData(["a": 1, "b": 1])
    try await collection.document("a").setData(["a": 2])
    try await collection.document("null").setData(["a": nil, "b": 0])
    func ids(_ query: Query) async throws -> [String] {
      try await query.getDocuments().documents.map(\.documentID)
    }
    #expect(try await ids(collection.order(by: "a")) == ["null", "both", "a"])
    #expect(try await ids(collection.order(by: "a", descending: true)) == ["a", "both", "null"])
    #expect(try await ids(collection.order(by: "a").order(by: "b")) == ["null", "both"])
    #expect(try await ids(collection.whereField("a", isGreaterThan: 0).order(by: "b")) == ["both"])
    #expect(try await ids(collection.whereField("b", isNotEqualTo: 5)) == ["null", "both"])
  }
}
