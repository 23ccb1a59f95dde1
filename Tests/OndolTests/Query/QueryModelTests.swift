// Random documents and random queries: what the planner and the executor make of a query, with whatever
// indexes there are, is what reading every document and asking it gives.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Draws documents and queries over few fields and values, so that much of it meets.
private struct Draw {
  var random: SeededRandom

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  static let fields: [FieldNames] = [["a"], ["b"], ["c"], ["m", "x"], ["m"]]

  /// A long text that differs from others only behind what an index key holds.
  static let long = String(repeating: "x", count: 1_100)

  mutating func value() -> Value {
    switch random.below(16) {
    case 0: .null
    case 1: .boolean(random.below(2) == 0)
    case 2...6: .integer(Int64(random.below(5)) - 2)
    case 7: .double(Double(random.below(5)) / 2)
    case 8: .double(random.pick([.nan, .infinity, -0.0, 0x1p60]))
    case 9...11: .string(random.pick(["", "a", "b", "é", "e\u{301}", "\0", "😀"]))
    case 12: .string(Self.long + random.pick(["", "a", "b"]))
    case 13: .timestamp(Timestamp(unchecked: Int64(random.below(3))))
    case 14: .array((0..<random.below(3)).map { _ in .integer(Int64(random.below(3))) })
    default: .map(["x": .integer(Int64(random.below(3)))])
    }
  }

  mutating func fields() -> [String: Value] {
    var fields: [String: Value] = [:]
    for name in ["a", "b", "c", "m"] where random.below(5) > 0 {
      fields[name] = name == "m" && random.below(2) == 0 ? .map(["x": value()]) : value()
    }
    return fields
  }

  mutating func id() -> String {
    random.pick(["", "é", "z\0", "長"]) + "d\(random.below(60))"
  }

  mutating func shape(of collection: CollectionPath) throws -> QueryShape {
    var shape = QueryShape(collection: collection)
    for _ in 0..<random.below(4) {
      try shape.add(filter())
    }
    for _ in 0..<random.below(3) {
      let field = random.below(6) == 0 ? .documentID : QueryField.field(random.pick(Self.fields))
      shape.orders.append(SortOrder(field: field, descending: random.below(2) == 0))
    }
    if random.below(3) == 0 { shape.limit = random.below(12) }
    return shape
  }

  private mutating func filter() -> FieldFilter {
    if random.below(6) == 0 {
      let ids = (0...random.below(4)).map { _ in Value.string(id()) }.sortedWithoutDuplicates
      let condition: FieldFilter.Condition = random.pick([
        .isIn(ids), .equal(ids[0]), .greater(ids[0]), .lessOrEqual(ids[0]), .notEqual(ids[0]),
      ])
      return FieldFilter(field: .documentID, condition: condition)
    }
    let operands = (0...random.below(4)).map { _ in value() }.sortedWithoutDuplicates
    let first = operands[0]
    let condition: FieldFilter.Condition = random.pick([
      .equal(first), .equal(first), .isIn(operands), .isIn(operands), .less(first),
      .lessOrEqual(first), .greater(first), .greaterOrEqual(first), .notEqual(first),
      .notIn(operands), .arrayContains(first), .arrayContainsAny(operands),
    ])
    return FieldFilter(field: .field(random.pick(Self.fields)), condition: condition)
  }

  mutating func index() -> [String] {
    var names: [String] = []
    for _ in 0...random.below(3) {
      let name = WriteCompiler.describe(random.pick(Self.fields))
      if !names.contains(where: { $0.hasSuffix(name) }) {
        names.append(random.below(2) == 0 ? name : "-\(name)")
      }
    }
    return names
  }
}

/// The result of a query by reading everything.
private func evaluate(_ shape: QueryShape, _ documents: [String: [String: Value]]) -> [String] {
  let orders = shape.completeOrders
  let found = documents.filter { shape.matches($0.value, id: $0.key) }
    .map { (id: $0.key, keys: orders.keys(of: $0.value, id: $0.key)) }
    .sorted { orders.areInOrder($0.keys, $1.keys) }
    .map(\.id)
  return Array(found.prefix(shape.limit ?? .max))
}

@Suite struct QueryModelTests {
  @Test(arguments: 0..<24)
  func `A query finds what reading every document finds, whatever the indexes`(
    number: Int
  ) async throws {
    let seed = 0x5EED_0000 + UInt64(number)
    var draw = Draw(seed: seed)
    let database = try await Database.inMemory()
    let collections = ["shop", "users/é/posts", "users/u\0/posts"].map { database.collection($0) }
    var model: [CollectionReference: [String: [String: Value]]] = [:]
    for step in 0..<6 {
      for _ in 0..<40 {
        let collection = draw.random.pick(collections)
        let id = draw.id()
        if draw.random.below(6) == 0 {
          try await collection.document(id).delete(durability: .memory)
          model[collection]?[id] = nil
        } else {
          let fields = draw.fields()
          try await collection.document(id).setData(fields, durability: .memory)
          model[collection, default: [:]][id] = fields
        }
      }
      if step > 0 { try await draw.random.pick(collections).createIndex(on: draw.index()) }
      for _ in 0..<40 {
        let collection = draw.random.pick(collections)
        let shape = try draw.shape(of: collection.place.get())
        try await check(shape, on: collection, model[collection] ?? [:], seed: seed)
      }
    }
    for collection in collections { try await auditIndexes(of: collection, seed: seed) }
    try await database.close()
  }

  private func check(
    _ shape: QueryShape, on collection: CollectionReference,
    _ documents: [String: [String: Value]], seed: UInt64
  ) async throws {
    let query = collection.query.changed { $0 = shape }
    let found = try await query.getDocuments().documents
    let expected = evaluate(shape, documents)
    let plan = try await query.explain()
    #expect(
      found.map(\.documentID).map(ExactText.init) == expected.map(ExactText.init),
      "seed \(seed): \(plan)")
    for document in found {
      let stored = try #require(documents[document.documentID])
      #expect(document.data().isIdentical(to: stored), "seed \(seed): \(document)")
    }
  }
}
