// Rows about documents of a collection with a key of its own that are outside of it: a content's
// holders, an index's progress, the documents that a migration could not change. None contains an
// id or a value.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct OwnKeyRowTests {
  private static let id = "an-id-that-nobody-may-see"

  /// All rows outside of collections with keys of their own.
  private static func commonRows(_ database: Database) throws -> [(key: [UInt8], value: [UInt8])] {
    let rows = Rows(try database.engine.snapshot(), database.catalog, mayBlock: true)
    var found: [(key: [UInt8], value: [UInt8])] = []
    // A cursor stays in its shard, and there are as many families as shards.
    for family in 0..<UInt32(4) {
      let lower = Keyspace(family: family, member: 0).prefix
      let upper = Keyspace(family: Keyspace.commonFamilyLimit, member: 0).prefix
      var walk = RangeWalk(rows, [KeyRange(lower: lower, upper: upper)])
      while try walk.next() { found.append((walk.cursor.key.array, try walk.value.array)) }
    }
    return found
  }

  private static func expectNoID(_ database: Database, _ when: String) throws {
    var secrets = Secrets(seed: 1)
    secrets.note(Array(id.utf8))
    for row in try commonRows(database) {
      #expect(secrets.found(in: row.key) == 0 && secrets.found(in: row.value) == 0, "\(when)")
    }
  }

  @Test func `Only the collection reveals the holders of a content`() async throws {
    let database = try await EncryptedPlace().open()
    let keyed = database.collection("keyed")
    try await keyed.createWithOwnKey()
    let (one, other) = (
      try await database.storage.put([UInt8](repeating: 1, count: 400)),
      try await database.storage.put([UInt8](repeating: 2, count: 400))
    )
    try await keyed.document(Self.id).setData(["blob": one, "more": other])
    try await keyed.document(Self.id).collection("below").document(Self.id).setData(["blob": one])
    try await database.document("plain/p").setData(["blob": one])
    try Self.expectNoID(database, "held")
    func holders(_ blob: BlobReference) async throws -> Set<String> {
      try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
        Set(try rows.holderNames(of: blob.digest, atMost: 9))
      }
    }
    #expect(
      try await holders(one)
        == ["a document of keyed", "a document of keyed/below", "plain/p"])
    #expect(try await database.verify(depth: .full) == [])
    try await keyed.document(Self.id).updateData(["blob": FieldValue.delete()])
    #expect(try await holders(one) == ["a document of keyed/below", "plain/p"])
    try await keyed.document(Self.id).delete(recursive: true)
    #expect(try await holders(one) == ["plain/p"])
    #expect(try await holders(other).isEmpty)
    try await keyed.document(Self.id).setData(["blob": one])
    try await keyed.drop(includingDeclarations: true)
    #expect(try await holders(one) == ["plain/p"])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  @Test func `A row of a holder that is missing or too many is found`() async throws {
    let database = try await EncryptedPlace().open()
    let keyed = database.collection("keyed")
    try await keyed.createWithOwnKey()
    let blob = try await database.storage.put([UInt8](repeating: 1, count: 400))
    let other = try await database.storage.put([UInt8](repeating: 2, count: 400))
    try await keyed.document("a").setData(["blob": blob])
    try await keyed.document("b").setData(["blob": other])
    func plant(_ change: (inout Batch, [UInt8]) throws -> Void) async throws {
      let rows = Rows(try database.engine.snapshot(), database.catalog, mayBlock: true)
      let entry = try #require(try rows.entry(of: CollectionPattern(["keyed"])))
      let key = DocumentKey.key(entry.keyspace, ancestors: [], id: "a")
      var batch = Batch()
      try change(&batch, try database.catalog.keys.name(ofRow: key))
      _ = try await database.engine.commit(batch, durability: .process)
    }
    let nothing: [UInt8] = []
    try await plant { batch, name in
      batch.put(ContentKey.holder(other.digest, name).bytes, nothing.bytes)
    }
    var findings = try await database.verify(depth: .full)
    #expect(findings.map(\.kind) == [.holder] && findings.first?.collection == "keyed")
    #expect(findings.first?.id == nil)
    try await plant { batch, name in
      batch.delete(ContentKey.holder(other.digest, name).bytes)
      batch.delete(ContentKey.holder(blob.digest, name).bytes)
    }
    findings = try await database.verify(depth: .full).filter { $0.severity == .error }
    #expect(findings.map(\.kind) == [.holder])
    #expect(findings.first?.collection == "keyed" && findings.first?.id == "a")
    try await database.close()
  }

  /// In the middle of building, and after a kill at that point.
  @Test func `An index's progress is sealed, and it continues from there`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    let keyed = database.collection("keyed")
    try await keyed.createWithOwnKey()
    for number in 0..<600 {
      try await keyed.document("\(Self.id)-\(number)").setData(
        ["n": number], durability: .process)
    }
    let pattern = CollectionPattern(["keyed"])
    let kind = IndexKind([IndexField(["n"])])
    let index = try await database.changeCatalog(of: "keyed") { (edit) throws(DatabaseError) in
      try edit.declareIndex(kind, of: pattern)
    }
    let builder = IndexBuilder(database: database, pattern: pattern, keyspace: index.keyspace)
    let step = try await database.read(try database.engineSnapshot()) {
      (rows) throws(DatabaseError) in try builder.nextStep(in: rows)
    }
    #expect(step?.documents == IndexBuilder.batchCount)
    _ = try await database.engine.commit(try #require(step).batch, durability: .power)
    try Self.expectNoID(database, "being built")
    #expect(try await builder.countDocuments() == 600 - IndexBuilder.batchCount)
    let left = EncryptedPlace(
      SimulatedFileSystem(storage: place.fileSystem.storage.afterKill()))
    let again = try await left.open()
    await again.finishWhatWasBegun()
    #expect(try await again.collection("keyed").listIndexes().map(\.state) == [.ready])
    let found = try await again.collection("keyed").whereField("n", isLessThan: 300).getDocuments()
    #expect(found.count == 300)
    #expect(try await again.verify(depth: .full) == [])
    try await again.close()
    try await database.close()
  }

  @Test func `Documents that a migration could not change are counted, and not named`() async throws
  {
    struct Refused: Error, CustomStringConvertible {
      var description: String { "not with \(OwnKeyRowTests.id)" }
    }
    let database = try await EncryptedPlace().open()
    try await database.collection("keyed").createWithOwnKey()
    try await database.document("keyed/\(Self.id)").setData(["n": 1])
    try await database.document("plain/a").setData(["n": 1])
    var migrator = Migrator()
    migrator.register("one") { migration in
      migration.transform("keyed") { _ in throw Refused() }
      migration.transform("plain") { $0["n"] = 2 }
    }
    let report = try await migrator.migrate(database)
    #expect(report.migrations.first?.failures.map(\.path) == ["keyed/\(Self.id)"])
    let applied = try #require(try await database.listMigrations().first)
    #expect(applied.failureCount == 1 && applied.failures.isEmpty)
    try Self.expectNoID(database, "migrated")
    try await database.close()
  }
}
