// A snapshot that has read ahead: announced reads need no round trip to the store, and others do.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct WarmSnapshotTests {
  /// A database with nothing in memory, and documents that another open has written.
  private func cold(
    _ store: SimulatedStore, _ environment: Environment
  ) async throws -> Database {
    let writer = try await Database.open(at: store.name, environment: environment, on: store)
    try await writer.collection("items").createIndex(on: ["price"])
    for number in 0..<300 {
      try await writer.document("items/i\(number)").setData(["price": number, "name": "n"])
    }
    try await writer.document("settings/main").setData(["theme": "dark"])
    try await writer.close()
    return try await Database.open(at: store.name, environment: environment, on: store)
  }

  @Test func `Warmed reads need no round trip, the others one`() async throws {
    let environment = Environment.memory()
    let store = SimulatedStore(seed: 1, environment: environment)
    let database = try await cold(store, environment)
    let items = database.collection("items")
    let cheap = items.whereField("price", isLessThan: 40).order(by: "price")
    let settings = database.document("settings/main")

    let cold = database.snapshot()
    let trips = try SimulatedStore.reads { () throws in
      #expect(try cold.getDocuments(cheap).count == 40)
    }
    #expect(trips > 0)
    try await database.close()

    // The same in a new open with nothing in memory.
    let second = try await Database.open(at: store.name, environment: environment, on: store)
    let warm = second.collection("items").whereField("price", isLessThan: 40).order(by: "price")
    let snapshot = try await second.snapshot(
      warming: warm, documents: [second.document(settings.path)])
    let prices = try SimulatedStore.reads { () throws in
      #expect(
        try snapshot.getDocuments(warm).documents.map { $0["price"] as Int? } == Array(0..<40))
    }
    #expect(prices == 0)
    let theme = try SimulatedStore.reads { () throws in
      #expect(
        try snapshot.getDocument(second.document(settings.path))["theme"] as String? == "dark")
    }
    #expect(theme == 0)
    let rest = try SimulatedStore.reads { () throws in
      #expect(try snapshot.getDocument(second.document("items/i299")).exists)
    }
    #expect(rest > 0)
    try await second.close()
  }

  @Test func `It stays at its moment, and asks of another database are refused`() async throws {
    let database = try await Database.underTest()
    let other = try await Database.underTest()
    let item = database.document("items/a")
    try await item.setData(["n": 1])
    let snapshot = try await database.snapshot(
      warming: database.collection("items"), documents: [item])
    try await item.setData(["n": 2])
    #expect(try snapshot.getDocument(item)["n"] as Int? == 1)
    #expect(try snapshot.getDocuments(database.collection("items")).documents.count == 1)
    await #expect {
      try await database.snapshot(warming: other.collection("items"))
    } throws: { ($0 as? DatabaseError)?.code == .invalidArgument }
    await #expect {
      try await database.snapshot(warming: [other.document("items/a")])
    } throws: { ($0 as? DatabaseError)?.code == .invalidArgument }
    for database in [database, other] { try await database.close() }
    await #expect {
      try await database.snapshot(warming: database.collection("items"))
    } throws: { ($0 as? DatabaseError)?.code == .failedPrecondition }
  }
}
