// Typed collections beside untyped ones: they send the same queries, store the same documents and
// receive the same events.

import Foundation
import OndolTestKit
import Testing

@testable import Ondol

private struct Article: Codable, Sendable, Equatable, Identifiable {
  struct Size: Codable, Sendable, Equatable { var height: Int?; var width: Int }
  var id: String
  var name: String
  var price: Int
  var weight: Double?
  var tags: [String]
  var size: Size

  static func random(_ number: Int, _ random: inout SeededRandom) -> Article {
    Article(
      id: "d\(number)", name: random.pick(["a", "ab", "b", ""]), price: random.below(6),
      weight: random.below(3) == 0 ? nil : Double(random.below(4)),
      tags: (0..<random.below(3)).map { _ in random.pick(["x", "y", "z"]) },
      size: Size(height: random.below(2) == 0 ? nil : random.below(3), width: random.below(3)))
  }
}

@Suite struct `Typed queries` {
  /// One condition, in both forms.
  private static func condition(
    _ random: inout SeededRandom
  ) -> (typed: TypedFilter<Article>, untyped: Filter) {
    let price = random.below(6)
    let weight = Double(random.below(4))
    let height = random.below(3)
    let properties = ModelProperties<Article>()
    switch random.below(16) {
    case 0: return (\.price == price, .whereField("price", isEqualTo: price))
    case 1: return (\.price != price, .whereField("price", isNotEqualTo: price))
    case 2: return (\.price < price, .whereField("price", isLessThan: price))
    case 3: return (\.price <= price, .whereField("price", isLessThanOrEqualTo: price))
    case 4: return (\.price > price, .whereField("price", isGreaterThan: price))
    case 5: return (\.price >= price, .whereField("price", isGreaterThanOrEqualTo: price))
    case 6: return (properties.weight < weight, .whereField("weight", isLessThan: weight))
    case 7: return (\.weight == weight, .whereField("weight", isEqualTo: weight))
    case 8:
      return (
        properties.size.height >= height,
        .whereField("size.height", isGreaterThanOrEqualTo: height)
      )
    case 9: return (\.size.width == height, .whereField("size.width", isEqualTo: height))
    case 10:
      return (properties.tags.contains("x"), .whereField("tags", arrayContains: "x"))
    case 11:
      return (
        properties.tags.contains(anyOf: ["x", "z"]),
        .whereField("tags", arrayContainsAny: ["x", "z"])
      )
    case 12: return (properties.name.hasPrefix("a"), .whereField("name", hasPrefix: "a"))
    case 13: return (properties.price.isIn([1, 4]), .whereField("price", in: [1, 4]))
    case 14: return (properties.price.isNotIn([1, 4]), .whereField("price", notIn: [1, 4]))
    default:
      let (left, right) = (condition(&random), condition(&random))
      return random.below(2) == 0
        ? (left.typed && right.typed, .andFilter([left.untyped, right.untyped]))
        : (left.typed || right.typed, .orFilter([left.untyped, right.untyped]))
    }
  }

  private static func query(
    _ items: TypedCollection<Article>, _ random: inout SeededRandom
  ) -> (typed: TypedQuery<Article>, untyped: Query) {
    let condition = condition(&random)
    var typed = items.where(condition.typed)
    var untyped = items.collection.whereFilter(condition.untyped)
    let descending = random.below(2) == 0
    switch random.below(4) {
    case 0:
      typed = typed.order(by: \.name, descending: descending)
      untyped = untyped.order(by: "name", descending: descending)
    case 1:
      typed = typed.order(by: \.weight, descending: descending, missing: .last)
      untyped = untyped.order(by: "weight", descending: descending, missing: .last)
    case 2:
      typed = typed.order(by: \.price).start(after: 2)
      untyped = untyped.order(by: "price").start(after: [2])
    default: break
    }
    if random.below(3) == 0 {
      let count = random.below(20)
      (typed, untyped) = (typed.limit(to: count), untyped.limit(to: count))
    }
    return (typed, untyped)
  }

  @Test(arguments: Seeds.first(5))
  func `Random typed queries find what untyped ones find`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let items = try database.collection("items", of: Article.self)
    let batch = database.batch()
    for number in 0..<60 {
      let item = Article.random(number, &random)
      try batch.setData(item, forDocument: items.document(of: item))
    }
    try await batch.commit()
    if seed % 2 == 0 {
      try await items.createIndex(on: .ascending(\.price), .descending(\.name))
      try await items.createIndex(onArray: \.tags)
    }
    let view = database.snapshot()
    for round in 0..<400 {
      let (typed, untyped) = Self.query(items, &random)
      #expect(typed.query == untyped, "seed \(seed), round \(round)")
      let found = try view.getDocuments(typed)
      let wanted = try view.getDocuments(untyped).documents.map { try $0.data(as: Article.self) }
      #expect(found == wanted, "seed \(seed), round \(round): \(untyped)")
    }
    try await database.close()
  }

  private func shop() async throws -> (Database, TypedCollection<Article>) {
    let database = try await Database.underTest()
    let items = try database.collection("items", of: Article.self)
    for (number, name) in ["lamp", "chair", "desk"].enumerated() {
      try await items.setData(
        Article(
          id: name, name: name, price: 10 * (number + 1), weight: number == 1 ? nil : 2.5,
          tags: ["oak"], size: .init(height: nil, width: number)))
    }
    return (database, items)
  }

  @Test func `Documents are read, written and changed as values`() async throws {
    let (database, items) = try await shop()
    let lamp = items.document("lamp")
    #expect(try await lamp.getDocument()?.price == 10)
    #expect(try await items.document("none").getDocument() == nil)
    let result = try await lamp.update(
      .set(\.price, to: 12), .increment(\.size.width, by: 3), .arrayUnion(\.tags, ["new"]),
      .increment(\.weight, by: 0.5), .set(\.size.height, to: 4), returning: .after)
    #expect(result.after?["price"] as Int? == 12)
    let changed = try #require(try await lamp.getDocument())
    #expect(changed.size == .init(height: 4, width: 3))
    #expect(changed.tags == ["oak", "new"] && changed.weight == 3)
    try await lamp.update(.set(\.weight, to: nil), .delete(\.size.height))
    #expect(try await lamp.reference.getDocument()["weight"] == nil)
    await #expect(throws: DatabaseError.self) {
      try await lamp.update(.set(\.price, to: 1), .increment(\.price, by: 1))
    }
    #expect(try await items.getDocuments(ids: ["desk", "none"]).map { $0?.price } == [30, nil])
    let added = try await items.addDocument(changed)
    #expect(try await added.getDocument() == changed)
    try await added.delete()
    #expect(try await items.count() == 3)
    try await database.close()
  }

  @Test func `Numbers have the property's type`() async throws {
    let (database, items) = try await shop()
    #expect(try await items.where(\.price > 10).count() == 2)
    #expect(try await items.sum(\.price) == 60)
    #expect(try await items.sum(\.weight) == 5)
    #expect(try await items.average(\.price) == 20)
    #expect(try await items.average(\.weight) == 2.5)
    #expect(try await items.minimum(\.name) == "chair")
    #expect(try await items.maximum(\.price) == 30)
    #expect(try await items.where(\.price > 99).maximum(\.price) == nil)
    #expect(try await items.order(by: \.price, descending: true).getFirst()?.name == "desk")
    try await database.close()
  }

  @Test func `Groups have the property's values for keys`() async throws {
    let (database, items) = try await shop()
    #expect(try await items.group(by: \.weight).count() == [2.5: 2])
    #expect(try await items.group(by: \.size.width).sum(\.price) == [0: 10, 1: 20, 2: 30])
    #expect(try await items.group(by: \.tags).average(\.price) == [["oak"]: 20])
    #expect(
      try await items.group(by: \.name).sum(\.weight) == ["lamp": 2.5, "chair": 0, "desk": 2.5])
    #expect(try await items.group(by: \.tags).minimum(\.name) == [["oak"]: "chair"])
    #expect(
      try await items.where(\.price < 25).group(by: \.tags).maximum(\.price) == [["oak"]: 20])
    // A key with nil is not a group of an optional property.
    try await items.collection.document("lamp").updateData(["weight": Value.null])
    #expect(try await items.group(by: \.weight).count() == [2.5: 1])
    try await items.collection.document("odd").setData(["name": 5, "price": 1])
    let error = await #expect(throws: DatabaseError.self) {
      try await items.group(by: \.name).count()
    }
    #expect(error?.code == .failedPrecondition)
    try await database.close()
  }

  @Test func `Lookups bring values of the other type`() async throws {
    struct Order: Codable, Sendable, Equatable {
      var number: Int
      var item: String?
      var others: [String]
    }
    let (database, items) = try await shop()
    let orders = try database.collection("orders", of: Order.self)
    try await orders.document("a").setData(
      Order(number: 1, item: "lamp", others: ["none", "desk", "chair"]))
    try await orders.document("b").setData(Order(number: 2, item: "none", others: []))
    try await orders.document("c").setData(Order(number: 3, item: nil, others: ["lamp"]))
    let query = orders.order(by: \.number)
    let found = try await query.lookup(\.item, in: items).getDocuments()
    #expect(found.map(\.document) == (try await query.getDocuments()))
    #expect(found.map { $0.found?.id } == ["lamp", nil, nil])
    let lists = try await query.lookup(\.others, in: items).getDocuments()
    #expect(lists.map { $0.found.map(\.id) } == [["desk", "chair"], [], ["lamp"]])
    var updates = query.lookup(\.item, in: items).snapshots.makeAsyncIterator()
    #expect(try await updates.next()?.map { try $0.get().found?.price } == [10, nil, nil])
    try await items.document("lamp").update(.set(\.price, to: 11))
    #expect(try await updates.next()?.map { try $0.get().found?.price } == [11, nil, nil])
    try await database.close()
  }

  @Test func `Transactions, batches and snapshots take typed documents`() async throws {
    let (database, items) = try await shop()
    let total = try await database.runTransaction { transaction in
      let cheap = try transaction.getDocuments(items.where(\.price <= 20))
      for item in cheap {
        try transaction.update(items.document(of: item), .increment(\.price, by: 100))
      }
      try transaction.deleteDocument(items.document("desk"))
      return try transaction.getDocuments(items).reduce(0) { $0 + $1.price }
    }
    #expect(total == 230)
    let batch = database.batch()
    try batch.update(items.document("lamp"), .set(\.name, to: "Lamp"))
    batch.deleteDocument(items.document("chair"))
    try await batch.commit()
    let view = database.snapshot()
    #expect(try view.getDocument(items.document("lamp"))?.name == "Lamp")
    #expect(try view.getDocuments(items.order(by: \.name)).map(\.id) == ["lamp"])
    try await database.close()
  }

  @Test func `A document that does not fit hides no other from a snapshot`() async throws {
    let (database, items) = try await shop()
    try await items.collection.document("odd").setData(["name": "odd", "price": "much"])
    let snapshot = try await items.getSnapshot()
    #expect(snapshot.documents.count == 3)
    #expect(snapshot.failures.map(\.path) == ["items/odd"])
    let error = await #expect(throws: DatabaseError.self) { try await items.getDocuments() }
    #expect(error?.path == "items/odd")
    var streamed: [String] = []
    for try await item in items.where(\.price > 0).order(by: \.price).documents {
      streamed.append(item.id)
    }
    #expect(streamed == ["lamp", "chair", "desk"])
    try await database.close()
  }

  @Test func `Listeners hear values`() async throws {
    let (database, items) = try await shop()
    var results = items.where(\.price >= 20).order(by: \.price).snapshots.makeAsyncIterator()
    #expect(try await results.next()?.documents.map(\.id) == ["chair", "desk"])
    try await items.document("lamp").update(.set(\.price, to: 25))
    let second = try #require(try await results.next())
    #expect(second.documents.map(\.id) == ["chair", "lamp", "desk"])
    #expect(second.changes.count == 1)
    #expect(try second.changes[0].document.get().price == 25)
    var lamps = items.document("lamp").snapshots.makeAsyncIterator()
    #expect(try await lamps.next()?.document?.price == 25)
    try await items.document("lamp").delete()
    let gone = try #require(try await lamps.next())
    #expect(gone.document == nil && gone.result == nil)
    try await database.close()
  }
}
