// A database that is open only for reading, beside the one that writes: documents, indexes and the
// catalog follow, and nothing is written.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A database open for reading only` {
  private let environment = Environment.memory()

  private func open(_ access: Database.Access) async throws -> Database {
    try await Database.open(
      at: "db", options: Database.Options(access: access), environment: environment)
  }

  @Test func `It follows documents, names of fields and indexes`() async throws {
    let writer = try await open(.readWrite)
    try await writer.document("items/a").setData(["n": 1])
    let reader = try await open(.readOnly)
    #expect(try await reader.document("items/a").getDocument().data() == ["n": 1])
    let before = reader.snapshot()

    try await writer.collection("items").createIndex(on: ["color"])
    try await writer.document("items/b").setData(["n": 2, "color": "red"])
    try await writer.document("items/a").delete()
    #expect(try await reader.document("items/a").getDocument().exists)
    #expect(try await reader.refresh())
    #expect(try await !reader.document("items/a").getDocument().exists)
    let reds = reader.collection("items").whereField("color", isEqualTo: "red")
    #expect(try await reds.explain().indexName == "color")
    #expect(try await reds.getDocuments().documents.map(\.documentID) == ["b"])
    #expect(try before.getDocument(reader.document("items/a")).data() == ["n": 1])
    try await writer.close()
    try await reader.close()
  }

  @Test func `A collection that was dropped and recreated is the new one`() async throws {
    let writer = try await open(.readWrite)
    try await writer.document("items/a").setData(["n": 1])
    try await writer.document("others/a").setData(["n": 1])
    let reader = try await open(.readOnly)
    #expect(try await reader.document("items/a").getDocument().exists)
    #expect(try await reader.document("others/a").getDocument().exists)
    try await writer.collection("items").drop()
    try await writer.document("items/b").setData(["m": 2])
    try await writer.collection("others").drop()
    try await reader.refresh()
    #expect(try await !reader.document("items/a").getDocument().exists)
    #expect(try await reader.document("items/b").getDocument().data() == ["m": 2])
    #expect(try await reader.collection("others").getDocuments().documents.isEmpty)
    #expect(try await !reader.document("others/a").getDocument().exists)
    try await writer.close()
    try await reader.close()
  }

  @Test func `Writes of all kinds are refused and leave no trace`() async throws {
    let writer = try await open(.readWrite)
    try await writer.document("items/a").setData(["n": 1])
    let reader = try await open(.readOnly)
    let item = reader.document("items/a")
    for write: @Sendable () async throws -> Void in [
      { try await item.setData(["n": 2]) }, { try await item.delete() },
      { try await reader.document("new/a").setData(["n": 2]) },
      { try await reader.collection("items").createIndex(on: ["n"]) },
      { try await reader.collection("items").drop() }, { try await reader.compact() },
      { try await reader.synchronize() },
    ] {
      let error = await #expect(throws: DatabaseError.self) { try await write() }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("reading only") == true)
    }
    #expect(try await item.getDocument().data() == ["n": 1])
    try await writer.document("items/a").setData(["n": 3])
    try await reader.refresh()
    #expect(try await item.getDocument().data() == ["n": 3])
    try await writer.close()
    try await reader.close()
  }

  @Test func `An index that is not finished stays so, and no query uses it`() async throws {
    let device = SimulatedDevice()
    let writer = try await Database.open(at: "db", on: device)
    try await writer.document("items/a").setData(["n": 1])
    // An open finishes the indexes that it finds. This writer has looked by now.
    await device.clock.advance(by: .zero)
    _ = try await writer.changeCatalog(of: "items") { (edit) throws(DatabaseError) in
      try edit.declareIndex(IndexKind([IndexField(["n"])]), of: CollectionPattern(["items"]))
    }
    let sequence = try writer.engineSnapshot().sequence
    let reader = try await Database.open(
      at: "db", options: Database.Options(access: .readOnly), on: device)
    let query = reader.collection("items").whereField("n", isEqualTo: 1)
    #expect(try await query.explain().indexName == nil)
    #expect(try await query.getDocuments().documents.count == 1)
    await device.clock.advance(by: .zero)
    #expect(try writer.engineSnapshot().sequence == sequence)
    try await reader.close()
    try await writer.close()
  }

  @Test func `Documents are upgraded and expire for a reader, which rewrites and removes none`()
    async throws
  {
    let writer = try await open(.readWrite)
    let items = writer.collection("items")
    let past = try Timestamp(microsecondsSince1970: 0)
    try await items.setTimeToLive(field: "until")
    try await items.document("a").setData(["n": 1])
    try await items.setSchema(version: 1) { fields, _ in fields["n"] = 2 }
    let reader = try await open(.readOnly)
    let seen = reader.collection("items")
    try await seen.setSchema(version: 1) { fields, _ in fields["n"] = 2 }
    try await seen.setTimeToLive(field: "until")
    #expect(try await seen.document("a").getDocument().data() == ["n": 2])
    #expect(reader.reaper.next.withLock { $0 } == nil)
    try await items.document("b").setData(["until": past])
    try await reader.refresh()
    #expect(try await !seen.document("b").getDocument().exists)
    let error = await #expect(throws: DatabaseError.self) {
      try await seen.setSchema(version: 2) { _, _ in }
    }
    #expect(error?.code == .failedPrecondition)
    try await writer.close()
    try await reader.close()
  }

  @Test func `A missing database is reported`() async throws {
    let error = await #expect(throws: DatabaseError.self) { _ = try await open(.readOnly) }
    #expect(error?.code == .notFound)
  }
}
