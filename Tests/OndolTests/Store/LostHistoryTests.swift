// A server that has lost commits which were shown: a standby has taken over that had not heard of
// them. Whoever only reads or listens asked it for nothing that would tell, and went on showing
// documents that it does not have.

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

  @Test func `Tells those who listen, and then those who read`() async throws {
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
