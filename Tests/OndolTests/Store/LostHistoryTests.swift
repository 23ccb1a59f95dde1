// A server that has lost visible commits, because a standby without them has taken over. A process
// that only read or listened once made no request that would reveal that, and continued to show
// documents that no longer exist.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A store that has lost what is shown` {
  private let store: SimulatedStore
  private let environment = Environment.memory()

  init() {
    store = SimulatedStore(seed: 1, environment: environment)
  }

  private func open() async throws -> Database {
    try await Database.open(at: store.name, environment: environment, on: store)
  }

  private func expectOutOfStep(_ call: () async throws -> Void) async {
    let error = await #expect(throws: DatabaseError.self) { try await call() }
    #expect(error?.code == .unavailable)
    #expect(error?.message.hasPrefix("the database must be opened again") == true)
  }

  @Test func `Notifies listeners, and then readers`() async throws {
    let (writer, reader) = (try await open(), try await open())
    try await writer.document("items/lamp").setData(["price": 30])
    try await writer.tree.child("lamp").setValue(["price": 30])
    try await reader.refresh()
    var results = reader.collection("items").snapshots.makeAsyncIterator()
    var documents = reader.document("items/lamp").snapshots.makeAsyncIterator()
    var nodes = reader.tree.child("lamp").observe(.value).makeAsyncIterator()
    #expect(try await results.next()?.count == 1)
    #expect(try await documents.next()?.exists == true)
    #expect(try await nodes.next()?.exists == true)
    store.loseNewest(2)
    await expectOutOfStep { _ = try await results.next() }
    await expectOutOfStep { _ = try await documents.next() }
    await expectOutOfStep { _ = try await nodes.next() }
    await expectOutOfStep { _ = try await reader.document("items/lamp").getDocument() }
    await expectOutOfStep { _ = try await reader.collection("items").snapshots.first { _ in true } }
    for database in [writer, reader] { try await database.close() }
    let other = try await open()
    #expect(try await other.document("items/lamp").getDocument().exists == false)
    try await other.close()
  }
}
