// What a check reports for wrong rows of holders, which the test writes without the database's
// knowledge, and what a salvage restores of storage.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct HolderHealthTests {
  private let world = SimulatedWorld(seed: 3)

  /// A database with a path, a document with a reference, one with a link, and a derived content.
  private func make() async throws -> Database {
    let database = try await Database.open(at: "db", environment: world.environment)
    let photo = database.storage.reference(withPath: "images/a.txt")
    try await photo.putData(
      Array("hello".utf8), metadata: StorageMetadata(customMetadata: ["by": "me"]))
    let blob = try await database.storage.put([UInt8](repeating: 7, count: 9_000))
    try await database.document("items/x").setData(["photo": blob, "list": [["again": blob]]])
    try await database.collection("diary").linkBlobs(field: "file", under: "images")
    try await database.document("diary/d").setData(["file": "images/a.txt"])
    _ = try await photo.derive("upper") { $0.map { $0 & 0xdf } }
    return database
  }

  private func plant(
    _ database: Database, _ change: (Ondol.Rows, inout Batch) throws -> Void
  ) async throws {
    var batch = Batch()
    try change(Ondol.Rows(try database.engineSnapshot(), database.catalog, mayBlock: true), &batch)
    _ = try await database.engine.commit(batch, durability: .power)
  }

  private func key(of path: String, _ rows: Ondol.Rows) throws -> [UInt8] {
    let path = try DocumentPath(path)
    let pattern = CollectionPattern(path.collection)
    let entry = try rows.catalog.family(pattern.root, in: rows)?.collections[pattern]
    return DocumentKey.key(try #require(entry?.keyspace), path)
  }

  @Test func `A database in order has nothing to find`() async throws {
    let database = try await make()
    #expect(try await database.verify(depth: .full) == [])
    try await database.document("diary/d").delete()
    try await database.document("items/x").delete()
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  @Test func `A missing row of a holder is found, with the document it is of`() async throws {
    let database = try await make()
    let blob = try #require(
      try await database.document("items/x").getDocument()["photo"] as BlobReference?)
    try await plant(database) { rows, batch in
      let key = ContentKey.holder(blob.digest, try key(of: "items/x", rows))
      batch.delete(key.bytes)
    }
    let findings = try await database.verify(depth: .full)
    let errors = findings.filter { $0.severity == .error }
    #expect(errors.map(\.kind) == [.holder], "\(findings)")
    #expect(errors.first?.collection == "items" && errors.first?.id == "x")
    #expect(errors.first?.message.contains(blob.digest.hex) == true)
    try await database.close()
  }

  @Test func `A row of a holder that holds nothing is found`() async throws {
    let database = try await make()
    let digest = try #require(
      try await database.storage.reference(withPath: "images/a.txt").getMetadata().sha256)
    try await plant(database) { rows, batch in
      let key = ContentKey.holder(digest, try key(of: "items/x", rows))
      let nothing: [UInt8] = []
      batch.put(key.bytes, nothing.bytes)
    }
    let findings = try await database.verify(depth: .full)
    #expect(findings.map(\.kind) == [.holder], "\(findings)")
    #expect(findings.first?.id == "x")
    try await database.close()
  }

  @Test func `A linked path without an object, and a held content without bytes, are found`()
    async throws
  {
    let database = try await make()
    try await plant(database) { rows, batch in
      let key = try #require(try rows.objectKey("images/a.txt"))
      batch.delete(key.bytes)
    }
    let findings = try await database.verify(depth: .full)
    #expect(findings.allSatisfy { $0.kind == .holder }, "\(findings)")
    #expect(findings.contains { $0.collection == "diary" && $0.id == "d" })
    #expect(findings.contains { $0.storagePath == "images/a.txt" })
    try await database.close()
  }

  @Test func `A salvage brings paths, their metadata and references back`() async throws {
    let database = try await make()
    let photo = database.storage.reference(withPath: "images/a.txt")
    let metadata = try await photo.getMetadata()
    try await database.close()
    let report = try await Database.salvage(
      from: "db", to: "saved", environment: world.environment)
    #expect(report.storagePaths == 1 && report.lostStoragePaths == 0)
    #expect(report.collections.map(\.name) == ["diary", "items"])
    let saved = try await Database.open(at: "saved", environment: world.environment)
    let copy = saved.storage.reference(withPath: "images/a.txt")
    #expect(try await copy.getMetadata() == metadata)
    #expect(try await saved.collection("diary").listIndexes().isEmpty)
    await #expect { try await copy.delete() } throws: {
      ($0 as? DatabaseError)?.code == .failedPrecondition
    }
    try await saved.close()
  }
}
