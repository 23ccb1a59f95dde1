// Aggregates and lookups in transactions and snapshots: with the transaction's own writes, and
// guarded like all other reads.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Numbers in transactions` {
  private func shop() async throws -> (Database, CollectionReference) {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<10 {
      try await items.document("d\(number)").setData([
        "price": number, "kind": number % 2 == 0 ? "even" : "odd", "user": "u\(number % 3)",
      ])
    }
    for number in 0..<2 {
      try await database.collection("users").document("u\(number)").setData(["name": "n\(number)"])
    }
    return (database, items)
  }

  private func numbers(_ items: CollectionReference) -> AggregateQuery {
    items.aggregate([.count(), .sum("price"), .maximum("price")])
  }

  @Test func `They have the transaction's own writes in them`() async throws {
    let (database, items) = try await shop()
    try await database.runTransaction { transaction in
      let numbers = numbers(items)
      #expect(try transaction.getAggregation(numbers).count == 10)
      try transaction.setData(["price": 100, "kind": "odd"], forDocument: items.document("new"))
      try transaction.deleteDocument(items.document("d9"))
      let after = try transaction.getAggregation(numbers)
      #expect(after.count == 10)
      #expect(after[.sum("price")] as Int? == 136)
      #expect(after[.maximum("price")] as Int? == 100)
      let groups = try transaction.getAggregation(items.count.group(by: "kind"))
      #expect(groups.map(\.aggregation.count) == [5, 5])
    }
    let view = database.snapshot()
    #expect(try view.getAggregation(numbers(items))[.sum("price")] as Int? == 136)
    #expect(try view.getAggregation(items.count.group(by: "kind")).count == 2)
    try await items.document("later").setData(["price": 1])
    #expect(try view.getAggregation(items.count).count == 10)
    try await database.close()
  }

  @Test func `A number that others change makes the transaction run again`() async throws {
    let (database, items) = try await shop()
    var attempts = 0
    let count = try await database.runTransaction { transaction in
      let count = try transaction.getAggregation(items.count).count
      // After the read, because a body whose read must wait runs again.
      attempts += 1
      if attempts == 1 {
        _ = try await Task.detached { try await items.document("other").setData(["price": 1]) }
          .value
      }
      try transaction.setData(["count": count], forDocument: database.document("sums/items"))
      return count
    }
    #expect(attempts == 2)
    #expect(count == 11)
    try await database.close()
  }

  @Test func `A lookup's targets are guarded, existing or not`() async throws {
    let (database, items) = try await shop()
    for changed in ["users/u0", "users/u2"] {
      var attempts = 0
      try await database.runTransaction { transaction in
        let lookup = items.whereField("price", isLessThan: 3).order(by: "price")
          .lookup("user", in: "users", as: "who")
        let found = try transaction.getDocuments(lookup).documents
        attempts += 1
        #expect(found.count == 3)
        #expect(found[1]["who.name"] as String? == "n1")
        if attempts == 1 {
          _ = try await Task.detached {
            try await database.document(changed).setData(["name": "new"])
          }.value
        } else {
          let place = changed == "users/u0" ? 0 : 2
          #expect(found[place]["who.name"] as String? == "new")
        }
        try transaction.setData(["x": attempts], forDocument: database.document("sums/lookup"))
      }
      #expect(attempts == 2, "\(changed)")
    }
    try await database.close()
  }
}
