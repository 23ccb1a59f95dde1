// Conditions on parts of texts and on texts regardless of case: shown by examples, with the same
// results from the matcher, the row program, listeners and typed queries.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Conditions on texts` {
  private static let names = [
    "Lamp", "lamp", "LAMPSHADE", "Desk lamp", "ÄPFEL", "äpfel", "한글 이름", "İstanbul", "", "clamp",
  ]

  private func shop() async throws -> (Database, CollectionReference) {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for (number, name) in Self.names.enumerated() {
      try await items.document("d\(number)").setData(["name": name, "n": number])
    }
    try await items.document("none").setData(["n": 99])
    try await items.document("number").setData(["name": 5, "n": 100])
    return (database, items)
  }

  private func found(_ query: Query) async throws -> [String] {
    try await query.order(by: "n").getDocuments().documents.map { $0["name"] as String? ?? "" }
  }

  @Test(arguments: [false, true])
  func `They find the described texts`(isIndexed: Bool) async throws {
    let (database, items) = try await shop()
    if isIndexed {
      try await items.createIndex(on: ["name"])
      try await items.createIndex(on: ["n", "name"])
    }
    #expect(
      try await found(items.whereField("name", containsText: "lamp"))
        == ["lamp", "Desk lamp", "clamp"])
    #expect(
      try await found(items.whereField("name", containsText: "LAMP", ignoringCase: true))
        == ["Lamp", "lamp", "LAMPSHADE", "Desk lamp", "clamp"])
    #expect(
      try await found(items.whereField("name", hasPrefix: "lA", ignoringCase: true))
        == ["Lamp", "lamp", "LAMPSHADE"])
    #expect(
      try await found(items.whereField("name", isEqualTo: "äPFEL", ignoringCase: true))
        == ["ÄPFEL", "äpfel"])
    #expect(try await found(items.whereField("name", containsText: "글 이")) == ["한글 이름"])
    #expect(try await found(items.whereField("name", containsText: "")).count == Self.names.count)
    #expect(
      try await found(items.whereField("name", hasPrefix: "La", ignoringCase: false))
        == ["Lamp"])
    #expect(
      try await found(
        items.whereField("n", isLessThan: 3)
          .whereField("name", containsText: "a")) == ["Lamp", "lamp"])
    let anywhere = items.whereField("name", containsText: "lamp").count
    #expect(try await anywhere.getAggregation().count == 3)
    try await database.close()
  }

  @Test func `Listeners and partial indexes know them`() async throws {
    let (database, items) = try await shop()
    let lamps = items.whereField("name", containsText: "lamp", ignoringCase: true)
    var results = lamps.snapshots.makeAsyncIterator()
    #expect(try await results.next()?.count == 5)
    try await items.document("d4").updateData(["name": "a LaMp"])
    #expect(try await results.next()?.count == 6)
    try await items.document("d0").updateData(["name": "chair"])
    #expect(try await results.next()?.count == 5)
    try await items.createIndex(
      on: ["n"], where: .whereField("name", containsText: "lamp", ignoringCase: true))
    #expect(try await lamps.order(by: "n").getDocuments().count == 5)
    try await items.document("new").setData(["name": "Lamp", "n": -1])
    let first = try await lamps.order(by: "n").limit(to: 1).getDocuments().documents.first
    #expect(first?.documentID == "new")
    try await database.close()
  }
}
