// Random documents and random queries: the result of the planner and the executor, with any
// existing indexes, equals that of reading and matching every document.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Draws documents and queries over few fields and values, so that many match.
private struct Draw {
  var random: SeededRandom

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  static let fields: [FieldNames] = [["a"], ["b"], ["c"], ["m", "x"], ["m"]]

  /// A long text that differs from others only after the part in an index key.
  static let long = String(repeating: "x", count: 1_100)

  mutating func value() -> Value {
    switch random.below(18) {
    case 16: .decimal(DecimalValue("\(random.below(3)).\(random.below(3) * 25)") ?? .zero)
    case 17: .array([.array([.integer(Int64(random.below(2)))]), .integer(1)])
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

  /// Writes to a document in one of the possible ways, and returns its expected contents.
  mutating func write(
    _ document: DocumentReference, _ before: [String: Value]?
  ) async throws -> [String: Value]? {
    var after = before ?? [:]
    let fields = fields()
    switch random.below(6) {
    case 0:
      try await document.delete(durability: .memory)
      return nil
    case 1, 2:
      try await document.setData(fields, durability: .memory)
      return fields
    case 3:
      try await document.setData(fields, merge: true, durability: .memory)
      for (names, value) in leaves(fields) { put(value, at: names[...], in: &after) }
      return after
    case 4 where before != nil:
      let names = random.pick(Self.fields)
      // Spelt out, because `nil` alone could also be null.
      let value: Value? = random.below(3) == 0 ? Optional.none : .some(value())
      let content: any FieldContent = value ?? FieldValue.delete()
      try await document.updateData([FieldPath(names): content], durability: .memory)
      put(value, at: names[...], in: &after)
      return after
    default:
      let sum = (after["a"]?.integer ?? 0) + 1
      guard before != nil, after["a"]?.double == nil, after["a"]?.decimal == nil else {
        return before
      }
      try await document.updateData(["a": FieldValue.increment(1)], durability: .memory)
      after["a"] = .integer(sum)
      return after
    }
  }

  mutating func shape(of collection: CollectionPath) throws -> QueryShape {
    var shape = QueryShape(collection: collection)
    for _ in 0..<random.below(4) {
      try shape.add(.field(filter()))
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

/// Everything in `fields` except maps with something in them.
private func leaves(_ fields: [String: Value]) -> [(FieldNames, Value)] {
  fields.flatMap { name, value -> [(FieldNames, Value)] in
    guard case .map(let inner) = value, !inner.isEmpty else { return [([name], value)] }
    return leaves(inner).map { ([name] + $0.0, $0.1) }
  }
}

/// Puts `value` at the place of `names`, or removes the value there.
private func put(_ value: Value?, at names: ArraySlice<String>, in fields: inout [String: Value]) {
  guard let name = names.first else { return }
  if names.count == 1 {
    fields[name] = value
  } else if var inner = fields[name]?.map ?? (value == nil ? nil : [:]) {
    put(value, at: names.dropFirst(), in: &inner)
    fields[name] = .map(inner)
  }
}

extension QueryShape {
  /// Whether a document meets the conditions as they are given, and has the fields of the orders.
  func matches(_ fields: [String: Value], name: Value) -> Bool {
    filters.allSatisfy { $0.matches(fields, name: name) }
      && everyOrder.requiredFields.allSatisfy { $0.value(in: fields, name: name) != nil }
  }
}

/// The result of a query by reading everything.
private func evaluate(_ shape: QueryShape, _ documents: [String: [String: Value]]) -> [String] {
  let orders = shape.completeOrders
  let found = documents.filter { shape.matches($0.value, name: .string($0.key)) }
    .map { (id: $0.key, keys: orders.keys(of: $0.value, name: .string($0.key))) }
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
    // Every other time with so little memory that rows are in files as well.
    var engineOptions = EngineOptions()
    if number % 2 == 1 { engineOptions.memtableSize = 16 << 10 }
    let database = try await Database.open(
      at: "/d", environment: .memory(), engineOptions: engineOptions)
    let collections = ["shop", "users/é/posts", "users/u\0/posts"].map { database.collection($0) }
    var model: [CollectionReference: [String: [String: Value]]] = [:]
    for step in 0..<6 {
      for _ in 0..<40 {
        let collection = draw.random.pick(collections)
        let id = draw.id()
        let before = model[collection]?[id]
        model[collection, default: [:]][id] = try await draw.write(collection.document(id), before)
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
