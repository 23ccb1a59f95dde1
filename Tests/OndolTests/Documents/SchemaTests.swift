// Documents of earlier schemas: upgraded whenever they are met, and all of them in the background.

import OndolEngine
import Testing

@testable import Ondol

@Suite struct SchemaTests {
  struct Broken: Error {}

  /// From schema 0 to 1 the price becomes a number of cents, from 1 to 2 it gets a currency.
  private func declare(_ items: CollectionReference, version: Int = 2) async throws {
    try await items.setSchema(version: version) { fields, from in
      if from < 1, let price = fields["price"]?.integer {
        fields["cents"] = .integer(price * 100)
        fields["price"] = nil
      }
      if from < 2, version >= 2 { fields["currency"] = "KRW" }
    }
  }

  /// Waits for the work in the background.
  private func waitUntilUpgraded(_ items: CollectionReference) async throws {
    let pattern = CollectionPattern(try items.place.get())
    while items.database.catalog.picture(of: pattern.root)?.collections[pattern]?
      .schema.epochs.isEmpty == false
    {
      await Task.yield()
    }
  }

  @Test func `Documents are upgraded when they are met, and then all are rewritten`() async throws {
    let database = try await Database.inMemory()
    let items = database.collection("items")
    for number in 0..<250 {
      try await items.document("\(number)").setData(["price": number], durability: .memory)
    }
    let old = database.snapshot()
    try await declare(items)
    #expect(
      try await items.document("7").getDocument().data() == ["cents": 700, "currency": "KRW"])
    let updated = try await items.document("8").updateData(
      ["cents": FieldValue.increment(1)], returning: .after)
    #expect(updated.after?.data() == ["cents": 801, "currency": "KRW"])
    #expect(try await items.getDocuments().documents.allSatisfy { $0["cents"] as Int? != nil })
    try await waitUntilUpgraded(items)
    #expect(
      try await items.whereField("currency", isEqualTo: "KRW").count.getAggregation().count == 250)
    #expect(try await items.document("7").getDocument()["cents"] as Int? == 700)
    _ = old
    try await database.close()
  }

  @Test func `A document that is new has the new schema already`() async throws {
    let database = try await Database.inMemory()
    let items = database.collection("items")
    try await items.document("old").setData(["price": 1])
    try await declare(items, version: 1)
    try await items.document("new").setData(["price": 5])
    try await waitUntilUpgraded(items)
    #expect(try await items.document("new").getDocument().data() == ["price": 5])
    #expect(try await items.document("old").getDocument().data() == ["cents": 100])
    try await declare(items, version: 2)
    try await waitUntilUpgraded(items)
    #expect(
      try await items.document("new").getDocument().data() == ["price": 5, "currency": "KRW"])
    try await database.close()
  }

  @Test func `An earlier schema than the documents' is refused`() async throws {
    let items = try await Database.inMemory().collection("items")
    try await declare(items, version: 2)
    let error = await #expect(throws: DatabaseError.self) {
      try await declare(items, version: 1)
    }
    #expect(error?.code == .failedPrecondition)
  }

  @Test func `The schema survives a restart, and an upgrade that failed is tried again`()
    async throws
  {
    var environment = Environment.memory()
    environment.fileSystem = MemoryFileSystem()
    var database = try await Database.open(at: "/db", environment: environment)
    try await database.document("items/a").setData(["price": 1])
    try await database.collection("items").setSchema(version: 1) { _, _ in throw Broken() }
    let document = database.document("items/a")
    let error = await #expect(throws: DatabaseError.self) { try await document.getDocument() }
    #expect(error?.path == "items/a")
    try await database.close()

    database = try await Database.open(at: "/db", environment: environment)
    try await declare(database.collection("items"), version: 1)
    #expect(try await database.document("items/a").getDocument().data() == ["cents": 100])
    try await waitUntilUpgraded(database.collection("items"))
    #expect(try await database.document("items/a").getDocument().data() == ["cents": 100])
    try await database.close()
  }
}
