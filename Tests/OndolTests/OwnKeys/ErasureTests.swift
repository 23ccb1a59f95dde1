// What remains of a collection with a key of its own for people with the database's key and without
// this one: nothing, in no file and at no time. After a drop, the key itself is nowhere.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

/// A database of glass, and everything that was ever stored in its collection with a key.
private struct GlassHouse {
  let vault: GlassVault
  let place: EncryptedPlace
  /// The data that no file may contain.
  var secrets: Secrets
  private var random: SeededRandom
  private let fields: [String]
  private(set) var ids: [String] = []
  private let when: String

  init(seed: UInt64, isHiding: Bool = true) {
    vault = GlassVault(isHiding: isHiding)
    var place = EncryptedPlace()
    place.seed = seed
    self.place = place
    // Not the seed of the place's random numbers, from which salts and nonces come.
    secrets = Secrets(seed: seed ^ 0x5EC2_E700)
    random = SeededRandom(seed: seed &* 31)
    fields = (0..<3).map { "field\($0)" }
    when = "SEED=\(seed)"
  }

  func open(at path: String = "/db") async throws -> Database {
    var environment = place.environment
    environment.vault = vault
    let options = Database.Options(cacheSize: 256 << 10, shardCount: 2, changeRetention: .init())
    return try await Database.open(
      at: path, options: options, environment: environment,
      engineOptions: EncryptedPlace.engineOptions)
  }

  /// Collections, indexes of every kind, and a path that documents link.
  func furnish(_ database: Database) async throws {
    let keyed = database.collection("keyed")
    try await keyed.createWithOwnKey()
    for collection in [keyed, database.collection("plain")] {
      try await collection.createIndex(on: [fields[0], fields[1]])
      try await collection.createIndex(on: ["unique"], unique: true)
      try await collection.createSearchIndex(on: ["long"])
    }
    try await database.collectionGroup("below").createIndex(on: [fields[1]])
  }

  private mutating func values() -> [String: Value] {
    let long = secrets.prose(random.below(8) == 0 ? 6_000 : 200)
    // In the form of words in an index.
    secrets.note(Array(long.lowercased().utf8))
    return [
      fields[0]: .string(secrets.text(16)), fields[1]: .bytes(secrets.bytes(40)),
      "unique": .string(secrets.text(20)), "long": .string(long),
      "table": .array([.array([.string(secrets.text(24))]), .array([random.decimal()])]),
    ]
  }

  /// Writes documents, one by one and together with those of other collections.
  mutating func live(_ count: Int, in database: Database) async throws {
    let keyed = database.collection("keyed")
    for number in 0..<count {
      let durability: Ondol.Durability = random.below(2) == 0 ? .process : .power
      switch random.below(6) {
      case 0 where !ids.isEmpty:
        try await keyed.document(random.pick(ids)).delete(durability: durability)
      case 1 where !ids.isEmpty:
        try await keyed.document(random.pick(ids)).setData(values(), durability: durability)
      case 2:
        let id = secrets.text(14)
        ids.append(id)
        let below = keyed.document(id).collection("below").document(secrets.text(12))
        try await below.setData(values(), durability: durability)
      case 3:
        let (id, fields, plain) = (secrets.text(14), values(), "plain text number \(number)")
        ids.append(id)
        let blob = try await database.storage.put(random.bytes(100))
        let scan = try await database.storage.put(
          secrets.bytes(random.below(12) == 0 ? 70_000 : 900), for: keyed)
        try await database.runTransaction { transaction in
          try transaction.setData(fields, forDocument: keyed.document(id))
          try transaction.updateData(
            ["blob": blob, "scan": scan], forDocument: keyed.document(id))
          try transaction.setData(
            ["text": plain, "blob": blob], forDocument: database.document("plain/\(number)"))
        }
      default:
        let id = secrets.text(14)
        ids.append(id)
        try await keyed.document(id).setData(values(), durability: durability)
      }
    }
  }

  /// The number of runs of stored data in files of each kind.
  func leaks(at path: String = "/db") throws -> [String: Int] {
    var leaks: [String: Int] = [:]
    for (name, bytes) in try files(at: path) {
      let parts = name.split { $0 == "-" || $0 == "." }
      let kind = parts.first { UInt64($0) == nil }.map(String.init) ?? name
      let found = secrets.found(in: bytes)
      if found > 0 { leaks[kind, default: 0] += found }
    }
    return leaks
  }

  func files(at path: String = "/db") throws -> [(name: String, bytes: [UInt8])] {
    let directory = try place.fileSystem.openDirectory(at: path, create: false)
    return try directory.list().map { name in
      let file = try directory.open(name, access: .readOnly)
      return (name, try file.read(at: 0, count: Int(file.size())))
    }
  }

  func expectNothing(_ what: String, at path: String = "/db") throws {
    let leaks = try leaks(at: path)
    #expect(leaks.isEmpty, "\(when), \(what): \(leaks)")
  }

  /// The files that contain a collection's key.
  func keyFiles(at path: String = "/db") throws -> Set<String> {
    var keys = Secrets(seed: 1)
    for secret in vault.secrets { keys.note(secret) }
    return Set(try files(at: path).filter { keys.found(in: $0.bytes) > 0 }.map(\.name))
  }
}

@Suite struct ErasureTests {
  @Test(arguments: Seeds.first(3))
  func `Without its key nothing of a collection is in any file, while it is there and afterwards`(
    seed: UInt64
  ) async throws {
    var house = GlassHouse(seed: seed)
    var database = try await house.open()
    try await house.furnish(database)
    for life in 0..<3 {
      try await house.live(80, in: database)
      try house.expectNothing("written, life \(life)")
      try await database.engine.flush()
      try house.expectNothing("flushed, life \(life)")
      if life == 1 {
        try await database.engine.compact()
        try house.expectNothing("compacted")
      }
      if life == 2 { break }
      try await database.close()
      try house.expectNothing("closed, life \(life)")
      database = try await house.open()
    }
    #expect(try await database.verify(depth: .full) == [], "SEED=\(seed)")
    #expect(try house.keyFiles() == ["KEYS"])
    try await database.backup(to: "/copy", in: house.place.fileSystem)
    try house.expectNothing("in a backup", at: "/copy")
    #expect(try house.keyFiles(at: "/copy").isEmpty)

    try await house.live(40, in: database)
    try await database.collection("keyed").drop(includingDeclarations: true)
    try house.expectNothing("dropped")
    #expect(try house.keyFiles().isEmpty, "SEED=\(seed)")
    #expect(database.engine.keyedGroups.isEmpty)
    if seed % 2 == 0 {
      try await database.engine.flush()
      try await database.engine.compact()
    }
    try await database.close()
    try house.expectNothing("dropped and closed")
    #expect(try house.keyFiles().isEmpty, "SEED=\(seed)")
    database = try await house.open()
    try house.expectNothing("opened again")
    #expect(try await database.verify(depth: .full) == [], "SEED=\(seed)")
    let plain = try await database.collection("plain").getDocuments().documents
    #expect(plain.allSatisfy { ($0["text"] as String?)?.hasPrefix("plain text") == true })
    #expect(!plain.isEmpty)
    try await database.close()
  }

  /// The same search finds the data where the keys of collections hide nothing, in files of every
  /// kind.
  @Test func `A search through the files would find it`() async throws {
    var house = GlassHouse(seed: 5, isHiding: false)
    let database = try await house.open()
    try await house.furnish(database)
    try await house.live(120, in: database)
    var kinds = Set(try house.leaks().keys)
    try await database.engine.flush()
    kinds.formUnion(try house.leaks().keys)
    #expect(kinds.isSuperset(of: ["LOG", "seg", "val"]), "\(kinds)")
    #expect(try house.keyFiles().contains("KEYS"))
    try await database.backup(to: "/copy", in: house.place.fileSystem)
    #expect(try !house.leaks(at: "/copy").isEmpty)
    try await database.close()
  }

  @Test(arguments: Seeds.first(2))
  func `A copy with keys opens everything, also after the collection was dropped`(
    seed: UInt64
  ) async throws {
    var house = GlassHouse(seed: seed)
    let database = try await house.open()
    try await house.furnish(database)
    try await house.live(100, in: database)
    let expected = try await database.collection("keyed").getDocuments().documents
    #expect(!expected.isEmpty)
    try await database.backup(to: "/with", in: house.place.fileSystem, withKeys: true)
    try await database.backup(to: "/without", in: house.place.fileSystem)
    #expect(try house.keyFiles(at: "/with") == ["KEYS"])
    try await database.collection("keyed").drop()
    try await database.close()

    let copy = try await house.open(at: "/with")
    let found = try await copy.collection("keyed").getDocuments().documents
    #expect(found.map(\.documentID) == expected.map(\.documentID), "SEED=\(seed)")
    #expect(found.map { $0.data() } == expected.map { $0.data() }, "SEED=\(seed)")
    #expect(try await copy.verify(depth: .full) == [])
    try await copy.close()

    let locked = try await house.open(at: "/without")
    let error = await #expect(throws: DatabaseError.self) {
      try await locked.collection("keyed").getDocuments()
    }
    #expect(error?.code == .permissionDenied)
    #expect(try await locked.collection("plain").getDocuments().count > 0)
    try await locked.close()
  }

  /// The remaining declarations get another key, because the earlier one goes with the documents.
  @Test func `Declarations continue with another key`() async throws {
    var house = GlassHouse(seed: 9)
    let database = try await house.open()
    try await house.furnish(database)
    try await house.live(60, in: database)
    let before = Set(house.vault.secrets)
    let group = try #require(database.engine.keyedGroups.keys.first)
    try await database.collection("keyed").drop()
    #expect(try await database.collection("keyed").hasOwnKey())
    #expect(try await database.collection("keyed").listIndexes().count == 3)
    #expect(database.engine.keyedGroups.count == 1 && database.engine.keyedGroups[group] == nil)
    let old = try house.files().first { $0.name == "KEYS" }?.bytes ?? []
    var keys = Secrets(seed: 1)
    for secret in before { keys.note(secret) }
    #expect(keys.found(in: old) == 0)
    try await house.live(60, in: database)
    try await database.engine.flush()
    try house.expectNothing("written again")
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  @Test func `Two collections have two keys, and one goes without the other`() async throws {
    let vault = GlassVault()
    let place = EncryptedPlace()
    func open() async throws -> Database {
      var environment = place.environment
      environment.vault = vault
      return try await Database.open(
        at: "/db", options: .init(shardCount: 1), environment: environment,
        engineOptions: EncryptedPlace.engineOptions)
    }
    var database = try await open()
    for name in ["a", "b", "c"] {
      try await database.collection(name).createWithOwnKey()
      for number in 0..<50 {
        try await database.document("\(name)/\(number)").setData(["n": number])
      }
    }
    try await database.collection("b").drop(includingDeclarations: true)
    #expect(database.engine.keyedGroups.count == 2)
    for name in ["a", "c"] {
      #expect(try await database.collection(name).getDocuments().count == 50)
    }
    try await database.close()
    database = try await open()
    for name in ["a", "c"] {
      #expect(try await database.collection(name).getDocuments().count == 50)
      #expect(try await database.collection(name).hasOwnKey())
    }
    #expect(try await database.collection("b").getDocuments().isEmpty)
    #expect(try await !database.collection("b").hasOwnKey())
    try await database.collection("b").createWithOwnKey()
    try await database.document("b/x").setData(["n": 1])
    #expect(try await database.collection("b").getDocuments().count == 1)
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }
}
