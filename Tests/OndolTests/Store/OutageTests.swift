// Listeners while the server is away: they do not end with an error, they say that their state may
// be out of date, and they show all later changes before they say that it is current again.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Listeners while the server is away` {
  private let store: SimulatedStore
  private let environment = Environment.memory()

  init() {
    store = SimulatedStore(seed: 1, environment: environment)
  }

  private func open() async throws -> Database {
    try await Database.open(at: store.name, environment: environment, on: store)
  }

  @Test func `Go on, and say that they are out of date`() async throws {
    let (writer, reader) = (try await open(), try await open())
    try await writer.document("items/lamp").setData(["price": 30])
    try await reader.refresh()
    var results = reader.collection("items").snapshots.makeAsyncIterator()
    var documents = reader.document("items/lamp").snapshots.makeAsyncIterator()
    #expect(try await results.next()?.metadata.isStale == false)
    #expect(try await documents.next()?.metadata.isStale == false)
    store.isAway = true
    let (result, document) = (try await results.next(), try await documents.next())
    #expect(result?.metadata.isStale == true && result?.documentChanges.isEmpty == true)
    #expect(document?.metadata.isStale == true && document?.change == nil)
    #expect(document?["price"] as Int? == 30)
    store.isAway = false
    try await writer.document("items/lamp").updateData(["price": 40])
    var last = try await results.next()
    while last?.metadata.isStale == true { last = try await results.next() }
    while last?.documents.first?["price"] as Int? != 40 { last = try await results.next() }
    #expect(last?.metadata.isStale == false)
    for database in [writer, reader] { try await database.close() }
  }

  /// Reads that need the server happen when it is back.
  @Test func `Begin when it is back`() async throws {
    let writer = try await open()
    try await writer.document("items/lamp").setData(["price": 30])
    try await writer.tree.child("lamp").setValue(["price": 30])
    try await writer.close()
    let reader = try await open()
    store.isAway = true
    let result = Task { try await reader.collection("items").snapshots.first { _ in true } }
    let node = Task { try await reader.tree.child("lamp").observe(.value).first { _ in true } }
    let gone = Task { try await reader.collection("items").snapshots.first { _ in true } }
    for _ in 0..<100 { await Task.yield() }
    // A listener that ends takes nothing from the others.
    gone.cancel()
    #expect(try await gone.value == nil)
    store.isAway = false
    #expect(try await result.value?.count == 1)
    #expect(try await node.value?.exists == true)
    try await reader.close()
  }
}
