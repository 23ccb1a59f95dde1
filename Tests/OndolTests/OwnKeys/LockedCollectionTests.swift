// A database without the keys of its collections, such as a backup: every call on such a collection
// reports that and names it, nothing else differs, and nothing else fails because of it.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct LockedCollectionTests {
  /// A database with a readable collection, and one whose key is missing.
  private static func place(
    _ more: (Database) async throws -> Void = { _ in }
  ) async throws -> EncryptedPlace {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    let blob = try await database.storage.put([UInt8](repeating: 7, count: 900))
    for number in 0..<30 {
      try await database.document("keyed/\(number)").setData(["n": number, "text": "a lamp"])
      try await database.document("plain/\(number)").setData(["n": number])
    }
    try await database.document("keyed/0/below/x").setData(["n": 1])
    try await database.document("plain/0/below/x").setData(["n": 1])
    try await database.document("keyed/held").setData(["blob": blob])
    for name in ["keyed", "plain"] {
      try await database.collection(name).createIndex(on: ["n"])
    }
    try await more(database)
    try await database.close()
    try place.directory().remove("KEYS")
    return place
  }

  private static let calls: [(String, @Sendable (Database) async throws -> Void)] = [
    ("get", { _ = try await $0.document("keyed/1").getDocument() }),
    ("get below", { _ = try await $0.document("keyed/0/below/x").getDocument() }),
    ("get some", { _ = try await $0.collection("keyed").getDocuments(ids: ["1", "2"]) }),
    ("query", { _ = try await $0.collection("keyed").getDocuments() }),
    (
      "query by an index",
      { _ = try await $0.collection("keyed").whereField("n", isEqualTo: 3).getDocuments() }
    ),
    ("count", { _ = try await $0.collection("keyed").count.getAggregation() }),
    ("group", { _ = try await $0.collectionGroup("below").getDocuments() }),
    ("explain", { _ = try await $0.collection("keyed").query.explain() }),
    ("set", { try await $0.document("keyed/1").setData(["n": 2]) }),
    ("create", { try await $0.document("keyed/new").create(["n": 2]) }),
    ("update", { try await $0.document("keyed/1").updateData(["n": 2]) }),
    ("delete", { try await $0.document("keyed/1").delete() }),
    ("delete what is not there", { try await $0.document("keyed/none").delete() }),
    ("add", { _ = try await $0.collection("keyed").addDocument(["n": 2]) }),
    (
      "batch",
      { database in
        let batch = database.batch()
        try batch.setData(["n": 1], forDocument: database.document("plain/1"))
        try batch.setData(["n": 1], forDocument: database.document("keyed/1"))
        try await batch.commit()
      }
    ),
    (
      "transaction",
      { database in
        try await database.runTransaction { transaction in
          _ = try transaction.getDocument(database.document("keyed/1"))
        }
      }
    ),
    (
      "snapshot",
      { database in
        _ = try database.snapshot().getDocument(database.document("keyed/1"))
      }
    ),
    (
      "listen",
      { database in
        var items = database.collection("keyed").snapshots.makeAsyncIterator()
        _ = try await items.next()
      }
    ),
    (
      "listen to a document",
      { database in
        var items = database.document("keyed/1").snapshots.makeAsyncIterator()
        _ = try await items.next()
      }
    ),
    ("index", { _ = try await $0.collection("keyed").createIndex(on: ["text"]) }),
    ("list indexes", { _ = try await $0.collection("keyed").listIndexes() }),
    ("time to live", { try await $0.collection("keyed").setTimeToLive(field: "end") }),
    ("collections below", { _ = try await $0.document("keyed/0").listCollections() }),
  ]

  @Test func `Every call on it says which key is missing`() async throws {
    let place = try await Self.place()
    let database = try await place.open()
    for (name, call) in Self.calls {
      let error = await thrown { try await call(database) }
      #expect(error?.code == .permissionDenied, "\(name): \(String(describing: error))")
      #expect(error?.message.contains("'keyed'") == true, "\(name)")
      #expect(error?.message.contains("KEYS") == true, "\(name)")
    }
    let reader = try await place.open(access: .readOnly)
    for (name, call) in Self.calls.prefix(8) {
      #expect(await thrown { try await call(reader) }?.code == .permissionDenied, "\(name)")
    }
    try await reader.close()
    // None of it changed anything, and everything else works.
    try await database.document("plain/31").setData(["n": 31])
    let plain = database.collection("plain")
    #expect(try await plain.whereField("n", isEqualTo: 31).getDocuments().count == 1)
    #expect(try await plain.getDocuments().count == 31)
    try await database.engine.flush()
    try await database.engine.compact()
    try await database.close()
  }

  @Test func `It is listed, and every walk over all collections skips it and says so`()
    async throws
  {
    let place = try await Self.place()
    let database = try await place.open()
    #expect(try await database.listCollections().map(\.path) == ["keyed", "plain"])
    #expect(try await database.collection("keyed").hasOwnKey())
    let listed = try await database.collectionInformation()
    #expect(listed.map(\.isLocked) == [true, false] && listed.map(\.hasOwnKey) == [true, false])
    #expect(listed[0].count == 0 && !listed[0].isExact && listed[1].count == 30)
    let contents = try await database.contents().collections
    #expect(contents.filter { $0.ownKey == .missing }.map(\.pattern) == ["keyed", "keyed/below"])
    let findings = try await database.verify(depth: .full)
    #expect(findings.allSatisfy { $0.severity == .warning }, "\(findings)")
    #expect(findings.contains { $0.collection == "keyed" && $0.kind == .document })
    let reader = try DumpReader(database)
    #expect(try await reader.lockedCollections() == ["keyed"])
    #expect(
      try await reader.collections().map { $0.pattern.joined(separator: "/") }
        == ["plain", "plain/below"])
    #expect(try await database.declarations().indexes.map(\.collection) == ["plain"])
    try await database.close()
  }

  @Test func `A check from outside passes over it as well`() async throws {
    let place = try await Self.place()
    var environment = place.environment
    environment.vault = DatabaseVault(EncryptedPlace.key)
    let findings = try await Database.verify(at: "/db", depth: .full, environment: environment)
    #expect(findings.allSatisfy { $0.severity == .warning }, "\(findings)")
    #expect(findings.contains { $0.collection == "keyed" })
  }

  @Test func `It can be dropped, and its contents go`() async throws {
    let place = try await Self.place()
    var database = try await place.open()
    #expect(try await database.storage.statistics().documents == 1)
    try await database.collection("keyed").drop(includingDeclarations: true)
    #expect(try await !database.collection("keyed").hasOwnKey())
    #expect(try await database.collection("keyed").getDocuments().isEmpty)
    #expect(try await database.storage.statistics().documents == 0)
    #expect(try await database.collectionGroup("below").getDocuments().count == 1)
    try await database.document("keyed/a").setData(["n": 1])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
    database = try await place.open()
    #expect(try await database.collection("keyed").getDocuments().count == 1)
    #expect(database.engine.keyedGroups.isEmpty)
    try await database.close()
  }

  /// A new key would replace the file that may come back.
  @Test func `No other collection gets a key before it is back or the collection dropped`()
    async throws
  {
    let place = try await Self.place()
    let database = try await place.open()
    let dropping = await thrown { try await database.collection("keyed").drop() }
    #expect(dropping?.code == .permissionDenied)
    let making = await thrown { try await database.collection("new").createWithOwnKey() }
    #expect(making?.code == .permissionDenied && making?.message.contains("KEYS") == true)
    try await database.document("plain/a").setData(["n": 1])
    try await database.collection("keyed").drop(includingDeclarations: true)
    try await database.collection("new").createWithOwnKey()
    try await database.document("new/a").setData(["n": 1])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  @Test func `With its key restored it is unchanged`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    try await database.document("keyed/a").setData(["n": 1])
    try await database.close()
    let file = try place.directory().open("KEYS", access: .readOnly)
    let bytes = try file.read(at: 0, count: Int(file.size()))
    try place.directory().remove("KEYS")
    let locked = try await place.open()
    try await locked.document("plain/a").setData(["n": 1])
    try await locked.engine.flush()
    try await locked.close()
    try? place.directory().remove("KEYS")
    try place.directory().create("KEYS").write(bytes.bytes, at: 0)
    let again = try await place.open()
    #expect(try await again.document("keyed/a").getDocument()["n"] as Int? == 1)
    #expect(try await again.verify(depth: .full) == [])
    try await again.close()
  }

  @Test func `Salvaged collections have keys again, and unreadable ones are named`() async throws {
    let place = EncryptedPlace()
    var database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    try await database.collection("keyed").createIndex(on: ["n"])
    try await database.collection("empty").createWithOwnKey()
    let blob = try await database.storage.put([UInt8](repeating: 3, count: 500))
    for number in 0..<40 {
      try await database.document("keyed/\(number)").setData(["n": number, "blob": blob])
      try await database.document("plain/\(number)").setData(["n": number])
    }
    let bytes = [UInt8](repeating: 4, count: 70_000)
    let scan = try await database.storage.put(bytes, for: database.collection("keyed"))
    try await database.document("keyed/0").updateData(["scan": scan])
    try await database.close()
    var environment = place.environment
    environment.vault = DatabaseVault(EncryptedPlace.key)
    let whole = try await Database.salvage(
      from: "/db", to: "/saved", environment: environment,
      engineOptions: EncryptedPlace.engineOptions)
    #expect(whole.isComplete, "\(whole)")
    database = try await place.open(at: "/saved")
    for name in ["keyed", "empty"] {
      #expect(try await database.collection(name).hasOwnKey())
    }
    #expect(database.engine.keyedGroups.count == 2)
    #expect(try await database.collection("keyed").getDocuments().count == 40)
    #expect(try await database.storage.statistics().documents == 41)
    let saved = try await database.document("keyed/0").getDocument()["scan"] as BlobReference?
    #expect(try await Array(database.storage.data(of: try #require(saved))) == bytes)
    try await database.document("empty/a").setData(["n": 1])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()

    try place.directory().remove("KEYS")
    let part = try await Database.salvage(
      from: "/db", to: "/part", environment: environment,
      engineOptions: EncryptedPlace.engineOptions)
    #expect(!part.isComplete)
    #expect(part.losses.contains { $0.reason.contains("'keyed'") }, "\(part.losses)")
    #expect(part.collections.first { $0.name == "plain" }?.saved == 40)
    database = try await place.open(at: "/part")
    #expect(try await database.collection("plain").getDocuments().count == 40)
    #expect(try await database.collection("keyed").getDocuments().isEmpty)
    #expect(try await database.collection("keyed").hasOwnKey())
    try await database.document("keyed/a").setData(["n": 1])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  /// A path that it may link does not go, but one outside of all its links' folders does.
  @Test func `Storage paths that it may link stay`() async throws {
    let place = try await Self.place { database in
      for name in ["images/a", "others/b"] {
        try await database.storage.reference(withPath: name).putData([1, 2, 3])
      }
      try await database.collection("keyed").linkBlobs(field: "path", under: "images")
      try await database.document("keyed/0").setData(["path": "images/a"])
    }
    let database = try await place.open()
    let storage = database.storage
    let error = await thrown { try await storage.reference(withPath: "images/a").delete() }
    #expect(error?.code == .permissionDenied && error?.message.contains("'keyed'") == true)
    try await storage.reference(withPath: "others/b").delete()
    try await database.collection("keyed").drop(includingDeclarations: true)
    try await storage.reference(withPath: "images/a").delete()
    try await database.close()
  }

  /// All upkeep waits for the key, without a log message.
  @Test func `An index that was being built waits for the key`() async throws {
    let recorder = LogRecorder()
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    for number in 0..<20 { try await database.document("keyed/\(number)").setData(["n": number]) }
    try await database.collection("keyed").setTimeToLive(field: "end")
    _ = try await database.changeCatalog(of: "keyed") { (edit) throws(DatabaseError) in
      try edit.declareIndex(IndexKind([IndexField(["n"])]), of: CollectionPattern(["keyed"]))
    }
    try await database.collectionGroup("keyed").createIndex(on: ["later"])
    try await database.close()
    let file = try place.directory().open("KEYS", access: .readOnly)
    let bytes = try file.read(at: 0, count: Int(file.size()))
    try place.directory().remove("KEYS")
    var options = Database.Options()
    options.encryption = EncryptedPlace.key
    recorder.record(&options)
    let locked = try await Database.open(
      at: "/db", options: options, environment: place.environment)
    await locked.finishWhatWasBegun()
    _ = try await locked.removeEnded()
    try await locked.collectionGroup("keyed").createIndex(on: ["another"])
    try await locked.close()
    let told = recorder.messages.filter { $0.hasPrefix("error") || $0.contains("index") }
    #expect(told.isEmpty, "\(told)")
    try? place.directory().remove("KEYS")
    try place.directory().create("KEYS").write(bytes.bytes, at: 0)
    let again = try await place.open()
    await again.finishWhatWasBegun()
    let indexes = try await again.collection("keyed").listIndexes()
    #expect(indexes.map(\.state) == [.ready, .ready, .ready], "\(indexes)")
    #expect(try await again.collectionGroup("keyed").listIndexes().count == 2)
    #expect(try await again.verify(depth: .full) == [])
    try await again.close()
  }
}
