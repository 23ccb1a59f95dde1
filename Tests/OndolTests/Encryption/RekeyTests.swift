// Databases that are encrypted, decrypted and moved to other keys while they are in use, as an app
// sees it: everything is there all the time, the files have the requested state afterwards, and an
// interrupted change continues.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Documents, blobs of every size, a tree and changes, all of whose bytes differ from any others.
private struct Furniture {
  var secrets: Secrets
  var documents: [String: String] = [:]
  var blobs: [String: [UInt8]] = [:]
  private let collection: String

  init(seed: UInt64) {
    secrets = Secrets(seed: seed)
    collection = secrets.text(12)
  }

  /// Adds to the database, part of it to files.
  mutating func add(to database: Database, count: Int = 60) async throws {
    for number in 0..<count {
      let id = secrets.text(14)
      let text = number % 9 == 0 ? secrets.prose(6_000) : secrets.text(40)
      documents[id] = text
      try await database.collection(collection).document(id).setData(["text": text])
      if number == count / 2 { try await database.engine.flush() }
    }
    for length in [100, 3_000, 30_000, 200_000] {
      let bytes = secrets.bytes(length)
      secrets.note(ContentHasher.digest(of: bytes).bytes)
      let id = secrets.text(11)
      blobs[id] = bytes
      let blob = try await database.storage.put(bytes)
      try await database.document("blobs/\(id)").setData(["blob": blob])
    }
    try await database.tree.child(secrets.text(9)).setValue(secrets.text(30))
  }

  /// Checks that all of it is there, and nothing else.
  func check(_ database: Database, _ when: String) async throws {
    var found: [String: String] = [:]
    for document in try await database.collection(collection).getDocuments().documents {
      found[document.documentID] = document["text"]
    }
    #expect(found == documents, "\(when)")
    for (id, bytes) in blobs {
      let blob = try #require(
        try await database.document("blobs/\(id)").getDocument()["blob"] as BlobReference?)
      #expect(try await Array(database.storage.data(of: blob)) == bytes, "\(when)")
    }
    // The next change rewrites a slot of the superblock that a power cut has torn.
    let findings = try await database.verify(depth: .full)
      .filter { $0.severity == .error || $0.file != "SUPER" }
    #expect(findings.isEmpty, "\(when): \(findings)")
  }

  /// The files that contain something of it.
  func leaks(_ place: EncryptedPlace) throws -> [String] {
    try place.files().filter { secrets.found(in: $0.bytes) > 0 }.map(\.name)
  }
}

@Suite struct RekeyTests {
  private static let key = EncryptedPlace.key
  private static let otherKey = EncryptedPlace.otherKey

  @Test(arguments: Seeds.first(2))
  func `A database is encrypted, takes another key, and is decrypted`(seed: UInt64) async throws {
    var place = EncryptedPlace()
    place.seed = seed
    var furniture = Furniture(seed: seed)
    var database = try await place.open(nil)
    try await furniture.add(to: database)
    try await database.close()
    database = try await place.open(nil)
    let beginning = try database.changeToken()
    try await furniture.add(to: database)
    #expect(try !furniture.leaks(place).isEmpty)

    var fractions: [Double] = []
    try await database.encrypt(with: [Self.key]) { fractions.append($0.fraction) }
    #expect(try furniture.leaks(place).isEmpty, "SEED=\(seed)")
    #expect(fractions == fractions.sorted() && fractions.last == 1 && fractions.count > 2)
    #expect(database.isEncrypted)
    try await furniture.check(database, "encrypted, SEED=\(seed)")
    try await furniture.add(to: database)
    try await database.close()
    #expect(await place.code(nil) == .permissionDenied)
    #expect(await place.code(Self.otherKey) == .permissionDenied)

    database = try await place.open(Self.key)
    try await furniture.check(database, "opened with the key, SEED=\(seed)")
    let before = try place.files()
    try await database.rekey(with: [Self.otherKey])
    try await furniture.add(to: database)
    try await database.close()
    #expect(await place.code(Self.key) == .permissionDenied)
    try await whoHadTheKeyReadsNothing(place, before)
    database = try await place.open(Self.otherKey)
    try await furniture.check(database, "with another key, SEED=\(seed)")
    #expect(try furniture.leaks(place).isEmpty, "SEED=\(seed)")

    try await database.decrypt()
    #expect(!database.isEncrypted)
    try await furniture.check(database, "decrypted, SEED=\(seed)")
    var changes = 0
    for try await change in database.changes(since: beginning) {
      changes += change.documents.count
      if changes >= 3 * 64 { break }
    }
    try await database.close()
    #expect(await place.code(Self.otherKey) == .invalidArgument)
    database = try await place.open(nil)
    try await furniture.check(database, "in the clear, SEED=\(seed)")
    try await database.close()
  }

  /// An old superblock with the key that opens it leads to a key that no file is sealed with.
  private func whoHadTheKeyReadsNothing(
    _ place: EncryptedPlace, _ before: [(name: String, bytes: [UInt8])]
  ) async throws {
    let copy = EncryptedPlace(SimulatedFileSystem(storage: place.fileSystem.storage))
    let names = try copy.directory().list()
    for (name, _) in before where name != "SUPER" && name != "LOCK" && name != "RESERVE" {
      #expect(!names.contains(name), "\(name) is still there")
    }
    let old = try #require(before.first { $0.name == "SUPER" }).bytes
    try copy.directory().open("SUPER", access: .readWrite).write(old.bytes, at: 0)
    let code = await copy.code(Self.key)
    #expect(code != nil && code != .permissionDenied)
  }

  @Test func `Writers and listeners notice nothing meanwhile`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(nil)
    var furniture = Furniture(seed: 4)
    try await furniture.add(to: database)
    try await database.document("c/n").setData(["n": 0])
    for round in 0..<3 {
      let writer = Task {
        var count = 0
        while !Task.isCancelled {
          try await database.document("c/n").updateData(["n": FieldValue.increment(1)])
          count += 1
          await Task.yield()
        }
        return count
      }
      let first = try await database.document("c/n").getDocument()["n"] as Int? ?? 0
      switch round {
      case 0: try await database.encrypt(with: [Self.key])
      case 1: try await database.rekey(with: [Self.key, Self.otherKey])
      default: try await database.decrypt()
      }
      writer.cancel()
      let written = try await writer.value
      let last = try await database.document("c/n").getDocument()["n"] as Int? ?? 0
      #expect(last <= first + written && last >= written)
      try await furniture.check(database, "round \(round)")
    }
    try await database.close()
  }

  @Test func `A snapshot reads on, and is waited for`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(nil)
    var furniture = Furniture(seed: 5)
    try await furniture.add(to: database)
    try await database.engine.flush()
    var snapshot: Snapshot? = try database.engine.snapshot()
    let keys = (0..<200).map { [UInt8(0), 0, 16, 0, UInt8($0)] }
    let change = Task { try await database.encrypt(with: [Self.key]) }
    while try furniture.leaks(place).isEmpty || database.engine.border == nil {
      await Task.yield()
    }
    for key in keys { _ = try await snapshot?.get(key) }
    #expect(database.engine.border != nil)
    snapshot = nil
    try await change.value
    #expect(try furniture.leaks(place).isEmpty)
    try await database.close()
  }

  @Test func `Invalid calls are refused`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(nil)
    func code(_ body: () async throws -> Void) async -> DatabaseError.Code? {
      do {
        try await body()
        return nil
      } catch {
        return (error as? DatabaseError)?.code
      }
    }
    #expect(await code { try await database.decrypt() } == .failedPrecondition)
    #expect(await code { try await database.rekey(with: [Self.key]) } == .failedPrecondition)
    for keys in [[], Array(repeating: Self.key, count: 5), [.key([1, 2])]] {
      #expect(await code { try await database.encrypt(with: keys) } == .invalidArgument)
      #expect(await code { try await database.rekey(with: keys) } == .invalidArgument)
    }
    try await database.encrypt(with: [Self.key])
    let again = await code { try await database.encrypt(with: [Self.otherKey]) }
    #expect(again == .failedPrecondition)
    let reader = try await place.open(Self.key, access: .readOnly)
    let refused = await code { try await reader.decrypt() }
    #expect(refused == .failedPrecondition)
    try await reader.close()
    try await database.close()
  }

  @Test func `A reader beside the writer follows`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(Self.key)
    var furniture = Furniture(seed: 6)
    try await furniture.add(to: database)
    let reader = try await place.open(Self.key, access: .readOnly)
    try await furniture.check(reader, "at once")
    for keys in [[Self.key], [Self.otherKey, Self.key]] {
      try await database.rekey(with: keys)
      try await furniture.add(to: database)
      try await reader.refresh()
      try await furniture.check(reader, "after a rekeying")
    }
    try await database.engine.beginKeyChange(to: nil)
    try await furniture.add(to: database)
    try await reader.refresh()
    try await furniture.check(reader, "in a decryption")
    try await database.goOnChangingKeys()
    try await reader.refresh()
    try await furniture.check(reader, "after a decryption")
    try await reader.close()
    // An open without a key gets the error.
    let other = try await place.open(nil, access: .readOnly)
    try await database.encrypt(with: [Self.key])
    let error = await #expect(throws: DatabaseError.self) { try await other.refresh() }
    #expect(error?.code == .permissionDenied)
    try await other.close()
    try await database.close()
  }

  @Test func `A backup in the middle opens`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(Self.key)
    var furniture = Furniture(seed: 7)
    try await furniture.add(to: database)
    try await database.engine.beginKeyChange(
      to: DatabaseVault(Self.otherKey, and: [Self.key]))
    try await furniture.add(to: database)
    try await furniture.check(database, "in the middle")
    try await database.backup(to: "/copy", in: place.fileSystem)
    try await database.goOnChangingKeys()
    try await database.close()
    for key in [Self.key, Self.otherKey] {
      let copy = try await place.open(key, at: "/copy")
      try await furniture.check(copy, "the copy")
      try await copy.goOnChangingKeys()
      #expect(copy.engine.border == nil)
      try await furniture.check(copy, "the copy, at its end")
      try await copy.close()
    }
  }

  private enum Way: CaseIterable {
    case encrypting, rekeying, decrypting

    var before: Database.Encryption? { self == .encrypting ? nil : RekeyTests.key }
    var after: Database.Encryption? {
      switch self {
      case .encrypting: RekeyTests.key
      case .rekeying: RekeyTests.otherKey
      case .decrypting: nil
      }
    }

    func begin(_ database: Database) async throws(DatabaseError) {
      switch self {
      case .encrypting: try await database.encrypt(with: [RekeyTests.key])
      case .rekeying: try await database.rekey(with: [RekeyTests.otherKey])
      case .decrypting: try await database.decrypt()
      }
    }
  }

  /// Before every operation, evenly spread: the remaining files open with the earlier or the later
  /// key, continue, and have everything.
  @Test(arguments: Way.allCases)
  private func `A power cut in the middle loses nothing, and the next open continues`(
    way: Way
  ) async throws {
    let start = EncryptedPlace()
    var furniture = Furniture(seed: 8)
    let database = try await start.open(way.before)
    try await furniture.add(to: database, count: 20)
    try await database.close()
    let whole = EncryptedPlace(SimulatedFileSystem(storage: start.fileSystem.storage))
    let last = try await whole.open(way.before)
    let first = whole.fileSystem.operations
    try await way.begin(last)
    let count = whole.fileSystem.operations - first
    try await last.close()
    var (olds, news) = (0, 0)
    for operation in stride(from: 0, to: count, by: max(1, count / 16)) {
      let fileSystem = SimulatedFileSystem(storage: start.fileSystem.storage)
      var place = EncryptedPlace(fileSystem)
      place.seed = UInt64(operation)
      let open = try await place.open(way.before)
      fileSystem.cutPower(before: fileSystem.operations + operation)
      try? await way.begin(open)
      try? await open.close()
      let left = EncryptedPlace(
        SimulatedFileSystem(storage: fileSystem.storage.afterPowerCut(seed: place.seed)))
      // A decryption needs the key until its end.
      let isNew = await left.code(way.after) == nil
      if isNew { news += 1 } else { olds += 1 }
      let again = try await left.open(isNew ? way.after : way.before)
      try await furniture.check(again, "\(way), before operation \(operation)")
      try await again.goOnChangingKeys()
      #expect(again.engine.border == nil)
      try await furniture.check(again, "\(way), gone on from operation \(operation)")
      if again.isEncrypted {
        #expect(try furniture.leaks(left).isEmpty, "\(way), from operation \(operation)")
      }
      try await again.close()
    }
    #expect(olds > 0)
    #expect(way == .decrypting || news > 0)
  }

  /// A call that its task ended in the middle is continued by the same call.
  @Test func `Cancelled, it continues when it is called again`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open(nil)
    var furniture = Furniture(seed: 9)
    try await furniture.add(to: database)
    let change = Task {
      try await database.encrypt(with: [Self.key]) { _ in
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      }
    }
    _ = await change.result
    try await furniture.check(database, "cancelled")
    let isUnfinished = database.engine.border != nil
    if isUnfinished { try await database.encrypt(with: [Self.otherKey]) }
    #expect(try furniture.leaks(place).isEmpty)
    try await furniture.check(database, "at the end")
    try await database.close()
    #expect(await place.code(isUnfinished ? Self.otherKey : Self.key) == nil)
    #expect(await place.code(isUnfinished ? Self.key : Self.otherKey) == .permissionDenied)
  }
}
