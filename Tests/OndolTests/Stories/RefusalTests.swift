// A caller's possible mistakes, one row each: the call, the code, and words of the message that
// name the place and say what would help. None of them may trap, and none may change anything.

import Foundation
import Testing

@testable import Ondol

/// A call that must be refused.
private struct Mistake: CustomTestStringConvertible, Sendable {
  let name: String
  let code: DatabaseError.Code
  /// Words in the error's description.
  let words: [String]
  let call: @Sendable (Database) async throws -> Void

  init(
    _ name: String, _ code: DatabaseError.Code = .invalidArgument, says words: [String],
    call: @escaping @Sendable (Database) async throws -> Void
  ) {
    self.name = name
    self.code = code
    self.words = words
    self.call = call
  }

  var testDescription: String { name }
}

/// A query of the collection `c` that must be refused.
private func query(
  _ name: String, says words: [String],
  query: @escaping @Sendable (CollectionReference) -> Query
) -> Mistake {
  Mistake(name, says: words) { database in
    _ = try database.snapshot().getDocuments(query(database.collection("c")))
  }
}

private let paths: [Mistake] = [
  Mistake("an empty document path", says: ["must not be empty"]) {
    _ = try await $0.document("").getDocument()
  },
  Mistake("only slashes", says: ["must not"]) { _ = try await $0.document("///").getDocument() },
  Mistake("a collection's path for a document", says: ["even number", "c/d/e"]) {
    _ = try await $0.document("c/d/e").getDocument()
  },
  Mistake("a document's path for a collection", says: ["odd number", "c/d"]) {
    _ = try await $0.collection("c/d").getDocuments()
  },
  Mistake("an empty collection", says: ["must not be empty"]) {
    _ = try await $0.collection("").getDocuments()
  },
  Mistake("dots for a name", says: ["\"..\"", "not valid names"]) {
    try await $0.document("c/..").setData(["a": 1])
  },
  Mistake("a reserved name", says: ["__x__", "reserved"]) {
    try await $0.document("c/__x__").setData(["a": 1])
  },
  Mistake("an id with a slash", says: ["a/b"]) {
    try await $0.collection("c").document("a/b").setData(["a": 1])
  },
  Mistake("a long id", says: ["1501 bytes", "may have 1500"]) {
    let long = String(repeating: "n", count: 1_501)
    try await $0.collection("c").document(long).setData(["a": 1])
  },
  Mistake("documents too deep in each other", says: ["nested 100 deep"]) {
    let path = Array(repeating: "a/b", count: 101).joined(separator: "/")
    try await $0.document(path).setData(["a": 1])
  },
  Mistake("an empty group", says: ["empty"]) {
    _ = try await $0.collectionGroup("").getDocuments()
  },
  Mistake("a path for a group", says: ["a/b"]) {
    _ = try await $0.collectionGroup("a/b").getDocuments()
  },
]

private let values: [Mistake] = [
  Mistake("an empty field name", says: ["cannot name a field", "empty"]) {
    try await $0.document("c/d").setData(["": 1])
  },
  Mistake("a reserved field name", says: ["__f__", "reserved"]) {
    try await $0.document("c/d").setData(["__f__": 1])
  },
  Mistake("arrays in each other a thousand deep", says: ["c/d"]) {
    let deep = (0..<1_000).reduce(Value.null) { inner, _ in .array([inner]) }
    try await $0.document("c/d").setData(["a": deep])
  },
  Mistake("maps in each other a thousand deep", says: ["nested 100 deep", "subcollection"]) {
    let deep = (0..<1_000).reduce(Value.null) { inner, _ in .map(["m": inner]) }
    try await $0.document("c/d").setData(["a": deep])
  },
  Mistake("a document over 16 MiB", .resourceExhausted, says: ["may have 16777216", "c/d"]) {
    try await $0.document("c/d").setData(["a": [UInt8](repeating: 1, count: 16 << 20)])
  },
  Mistake("a decimal of 39 digits", says: ["c/d", "field a", "up to 38 digits"]) {
    try await $0.document("c/d").setData(["a": Decimal.greatestFiniteMagnitude])
  },
  Mistake("an update of a wrong path", says: ["a..b", "\"..\""]) {
    try await $0.document("c/there").updateData(["a..b": 1])
  },
  Mistake("an update of an open backtick", says: ["backtick"]) {
    try await $0.document("c/there").updateData(["`a": 1])
  },
]

private let queries: [Mistake] = [
  query("a negative limit", says: ["limit", "-1"]) { $0.limit(to: -1) },
  query("the least limit there is", says: ["limit"]) { $0.limit(to: .min) },
  query("a negative limit from the end", says: ["limit", "-2"]) { $0.limit(toLast: -2) },
  query("a negative offset", says: ["offset", "-3"]) { $0.offset(-3) },
  query("a range on null", says: ["compare with ==", "field a"]) {
    $0.whereField("a", isLessThan: nil)
  },
  query("a range on NaN", says: ["compare with ==", "field a"]) {
    $0.whereField("a", isGreaterThanOrEqualTo: Double.nan)
  },
  query("an empty path in a condition", says: ["empty"]) { $0.whereField("", isEqualTo: 1) },
  query("an instruction as an operand", says: ["field a"]) {
    $0.whereField("a", isEqualTo: FieldValue.serverTimestamp())
  },
  query("an instruction in a list", says: ["field a"]) {
    $0.whereField("a", in: [1, FieldValue.delete()])
  },
  query("an id that is NaN", says: ["id"]) {
    $0.whereField(.documentID(), isEqualTo: Double.nan)
  },
  query("an id that is a number", says: ["id"]) { $0.whereField(.documentID(), in: ["a", 1]) },
  query("an id with a slash", says: ["a/b"]) { $0.whereField(.documentID(), isEqualTo: "a/b") },
  query("an empty id", says: ["empty"]) { $0.whereField(.documentID(), isEqualTo: "") },
  query("more values than orders", says: ["order(by:)", "3 values"]) {
    $0.order(by: "a").start(at: [1, "x", "y"])
  },
  query("values without an order", says: ["order"]) { $0.query.end(before: [1]) },
  query("no values", says: ["value"]) { $0.order(by: "a").start(at: []) },
  query("an order by a wrong path", says: ["a."]) { $0.order(by: "a.") },
  query("a wrong path in an or", says: ["backtick"]) {
    $0.whereFilter(
      .orFilter([.whereField("a", isEqualTo: 1), .whereField("`b", isEqualTo: 1)]))
  },
  query("fields that cannot be", says: ["b..c"]) { $0.select(["a", "b..c"]) },
]

@Suite struct RefusalTests {
  @Test(arguments: paths + values + queries)
  fileprivate func `A mistake is refused with its code, its place and what helps`(
    mistake: Mistake
  ) async throws {
    let database = try await Database.underTest()
    try await database.document("c/there").setData(["a": 1])
    let before = database.snapshot().version
    do {
      try await mistake.call(database)
      Issue.record("nothing was thrown")
    } catch let error as DatabaseError {
      #expect(error.code == mistake.code, "\(error)")
      for word in mistake.words { #expect(error.description.contains(word), "\(error)") }
    }
    let after = database.snapshot().version
    #expect(after == before)
    try await database.close()
  }

  /// Not everything that looks like a mistake is one.
  @Test func `Empty lists and limits are answered`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("c")
    for number in 0..<5 { try await items.document("d\(number)").setData(["n": number]) }
    let none: [Query] = [
      items.limit(to: 0), items.limit(toLast: 0), items.offset(.max),
      items.whereField("n", in: [Int]()), items.whereFilter(.orFilter([])),
      items.whereField("n", arrayContainsAny: [Int]()),
    ]
    for query in none { #expect(try await query.getDocuments().isEmpty, "\(query)") }
    let all: [Query] = [
      items.limit(to: .max), items.limit(toLast: .max), items.offset(0),
      items.whereField("n", notIn: [Int]()), items.whereFilter(.andFilter([])),
      items.limit(to: .max).offset(0),
    ]
    for query in all { #expect(try await query.getDocuments().count == 5, "\(query)") }
    #expect(try await items.limit(to: .max).offset(.max).getDocuments().isEmpty)
    #expect(try await items.limit(toLast: .max).offset(3).getDocuments().count == 2)
    try await database.close()
  }
}
