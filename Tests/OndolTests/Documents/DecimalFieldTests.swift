// Decimals in documents: every operation on numbers takes them, exactly, and in one order with
// integers and doubles.

import Foundation
import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

private struct PricedItem: Codable, Equatable, Sendable {
  var name: String
  var price: Decimal
  var prices: [Decimal?]
  var count: UInt64
  var byName: [String: Decimal]
}

/// The decimal of a text.
private func decimal(_ text: String) throws -> Value {
  .decimal(try #require(DecimalValue(text)))
}

@Suite struct `Decimals in documents` {
  @Test func `Codable types keep every digit, and large UInt64s`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for (id, count) in [("first", UInt64.max), ("second", 7), ("third", UInt64(Int64.max) + 1)] {
      let item = PricedItem(
        name: id, price: try #require(Decimal(string: "12345678901234567890.123456789012345678")),
        prices: [Decimal(string: "-0.10"), nil, 3], count: count, byName: ["a": 1])
      try await items.document(id).setData(from: item)
      let read = try await items.document(id).getDocument()
      #expect(try read.data(as: PricedItem.self) == item)
      #expect(read["prices"] as Value? == .array([try decimal("-0.1"), nil, try decimal("3")]))
      #expect(read.get("count") as UInt64? == count)
      #expect(read.get("count") as Int64? == Int64(exactly: count))
    }
    #expect(try await items.getDocuments().count == 3)
    let large = items.whereField("count", isGreaterThan: Int64.max)
    #expect(try await large.getDocuments().documents.map(\.documentID) == ["third", "first"])
    let error = await #expect(throws: DatabaseError.self) {
      try await items.document("x").setData(["price": 0.1])
      _ = try await items.document("x").getDocument().data(as: [String: Decimal].self)
    }
    #expect(error?.message.contains("the number 0.1") == true)
    try await database.close()
  }

  @Test func `Conditions, orders, uniqueness and groups take them for numbers`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    let numbers: [(String, Value)] = [
      ("nan", .double(.nan)), ("-inf", .double(-.infinity)), ("-1.5m", try decimal("-1.5")),
      ("0", 0), ("0.1m", try decimal("0.1")), ("0.1", .double(0.1)),
      ("0.3", .double(0.3)), ("0.3m", try decimal("0.3")), ("1", 1),
      ("2^53", .integer(1 << 53)), ("2^53.5m", try decimal("9007199254740992.5")),
      ("2^53+1", .integer(1 << 53 + 1)), ("max", .integer(.max)),
      ("max+.5m", try decimal("9223372036854775807.5")), ("2^63", .double(0x1p63)),
      ("2^63+1m", try decimal("9223372036854775809")), ("inf", .double(.infinity)),
    ]
    for (id, number) in numbers { try await items.document(id).setData(["n": number, "k": 1]) }
    let sorted = numbers.map(\.0)
    for isIndexed in [false, true] {
      if isIndexed { try await items.createIndex(on: ["n"]) }
      func ids(_ query: Query) async throws -> [String] {
        try await query.getDocuments().documents.map(\.documentID)
      }
      #expect(try await ids(items.order(by: "n")) == sorted)
      #expect(try await ids(items.order(by: "n", descending: true)) == sorted.reversed())
      for (place, (id, number)) in numbers.enumerated() where id != "nan" {
        #expect(try await ids(items.whereField("n", isEqualTo: number)) == [id])
        #expect(
          try await ids(items.whereField("n", isLessThan: number).order(by: "n"))
            == Array(sorted[..<place]), "\(id)")
        #expect(
          try await ids(items.whereField("n", isGreaterThanOrEqualTo: number).order(by: "n"))
            == Array(sorted[place...]), "\(id)")
      }
      let one = Decimal(string: "1.00")
      #expect(try await ids(items.whereField("n", isEqualTo: one)) == ["1"])
      #expect(
        try await ids(items.whereField("n", in: [one, Decimal(string: "0.30")])).sorted() == [
          "0.3m", "1",
        ])
      #expect(try await ids(items.whereField("n", notIn: [one, 0])).count == sorted.count - 2)
    }
    // Equal numbers of different types cannot coexist in a unique index.
    let unique = database.collection("unique")
    try await unique.createIndex(on: ["n"], unique: true)
    try await unique.document("a").setData(["n": 5])
    for same in [try decimal("5"), .double(5)] {
      let error = await #expect(throws: DatabaseError.self) {
        try await unique.document("b").setData(["n": same])
      }
      #expect(error?.code == .alreadyExists)
    }
    try await unique.document("b").setData(["n": try decimal("5.1")])
    try await unique.document("c").setData(["n": 5.1])
    #expect(try await database.verify().isEmpty)
    try await database.close()
  }

  @Test func `Instructions and aggregates are exact`() async throws {
    let database = try await Database.underTest()
    let sums = database.collection("sums")
    let document = sums.document("a")
    try await document.setData(["n": try decimal("0.1")])
    for _ in 0..<9 {
      try await document.updateData(["n": FieldValue.increment(Decimal(string: "0.1") ?? 0)])
    }
    #expect(try await document.getDocument()["n"] as Value? == 1)
    #expect(try await document.getDocument()["n"]?.decimal?.description == "1")
    try await document.updateData(["n": FieldValue.increment(2)])
    #expect(try await document.getDocument()["n"]?.decimal?.description == "3")
    try await document.updateData(["n": FieldValue.maximum(Decimal(string: "3.5") ?? 0)])
    try await document.updateData(["n": FieldValue.minimum(Decimal(4))])
    #expect(try await document.getDocument()["n"] as Value? == 3.5)
    try await document.updateData(["n": FieldValue.increment(0.25)])
    #expect(try await document.getDocument()["n"]?.double == 3.75)
    try await document.setData(["n": try decimal("1e100")])
    let error = await #expect(throws: DatabaseError.self) {
      try await document.updateData(["n": FieldValue.increment(1)])
    }
    #expect(error?.code == .outOfRange && error?.field == "n" && error?.path == "sums/a")

    let prices = database.collection("prices")
    for number in 0..<100 {
      let price: Value = number % 2 == 0 ? try decimal("0.1") : .integer(Int64(number))
      try await prices.document("\(number)").setData(["p": price, "k": .integer(Int64(number % 4))])
    }
    let fields: [AggregateField] = [.sum("p"), .average("p"), .minimum("p"), .maximum("p")]
    let result = try await prices.aggregate(fields).getAggregation()
    #expect(result.get(.sum("p"))?.decimal?.description == "2505")
    #expect(result.get(.average("p"))?.double == 25.05)
    #expect(result.get(.minimum("p")) == (try decimal("0.1")) && result.get(.maximum("p")) == 99)
    let groups = try await prices.aggregate([.sum("p")]).group(by: "k").getAggregation()
    #expect(groups.count == 4)
    #expect(groups.first?.aggregation.get(.sum("p")) as Decimal? == Decimal(string: "2.5"))
    let byPrice = try await prices.aggregate([.count()]).group(by: "p").getAggregation()
    #expect(byPrice.count == 51)
    try await prices.document("x").setData(["p": 0.5, "k": 0])
    #expect(
      try await prices.aggregate([.sum("p")]).getAggregation().get(.sum("p"))?.double == 2505.5)
    try await database.close()
  }

  @Test func `Typed queries take them`() async throws {
    let database = try await Database.underTest()
    let items = try database.collection("items", of: PricedItem.self)
    for number in 1...9 {
      try await items.document("\(number)").setData(
        PricedItem(
          name: "n", price: Decimal(number) / 10, prices: [], count: UInt64.max, byName: [:]))
    }
    let limit = try #require(Decimal(string: "0.75"))
    #expect(try await items.where { $0.price > limit }.getDocuments().count == 2)
    #expect(try await items.sum(\.price) == Decimal(string: "4.5"))
    #expect(try await items.minimum(\.price) == Decimal(string: "0.1"))
    try await database.close()
  }

  @Test func `The catalog says which collections have them`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/d").setData(["a": 1])
    func forms() async throws -> ValueForms? {
      try await database.family("c")?.collections[CollectionPattern(["c"])]?.symbols.forms
    }
    #expect(try await forms() == [])
    try await database.document("c/d").setData(["a": try decimal("1")])
    #expect(try await forms() == .decimals)
    try await database.document("c/d").setData(["a": [[try decimal("1")]]])
    #expect(try await forms() == .all)
    try await database.close()
  }

  @Test func `The tree refuses them with a sentence`() async throws {
    let database = try await Database.underTest()
    let error = await #expect(throws: DatabaseError.self) {
      try await database.tree.child("a").setValue(Decimal(1))
    }
    #expect(error?.code == .invalidArgument && error?.message.contains("decimal") == true)
    try await database.close()
  }
}
