// Encrypted databases as people see them with the key, with another one and with none, and as
// people see them with only the files: nothing stored is recognisable in them.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

/// Files in memory, and ways to open the database in them.
struct EncryptedPlace {
  let fileSystem: SimulatedFileSystem
  var seed: UInt64 = 1

  static let key = Database.Encryption.key(TestedEncryption.key)
  static let otherKey = Database.Encryption.key([UInt8](repeating: 7, count: 32))

  /// Small files, and contents of every kind of place.
  static var engineOptions: EngineOptions {
    var options = EngineOptions()
    options.memtableSize = 64 << 10
    options.logSize = 64 << 10
    options.firstPrewrittenSize = 16 << 10
    options.segmentSize = 64 << 10
    options.valueThreshold = 1_500
    options.inlineContentSize = 200
    options.packedContentSize = 100_000
    options.cacheSize = 256 << 10
    return options
  }

  init(_ fileSystem: SimulatedFileSystem = SimulatedFileSystem()) {
    self.fileSystem = fileSystem
  }

  var environment: Environment {
    var environment = SimulatedWorld(fileSystem: fileSystem, seed: seed).environment
    environment.vault = nil
    return environment
  }

  func open(
    _ encryption: Database.Encryption? = key, at path: String = "/db",
    access: Database.Access = .readWrite
  ) async throws -> Database {
    var options = Database.Options(
      cacheSize: 256 << 10, shardCount: 2, access: access, changeRetention: .init())
    options.encryption = encryption
    return try await Database.open(
      at: path, options: options, environment: environment, engineOptions: Self.engineOptions)
  }

  func directory() throws -> any Directory {
    try fileSystem.openDirectory(at: "/db", create: false)
  }

  func files() throws -> [(name: String, bytes: [UInt8])] {
    let directory = try directory()
    return try directory.list().map { name in
      let file = try directory.open(name, access: .readOnly)
      return (name, try file.read(at: 0, count: Int(file.size())))
    }
  }

  func code(
    _ encryption: Database.Encryption?, access: Database.Access = .readWrite
  ) async -> DatabaseError.Code? {
    do {
      try await open(encryption, access: access).close()
      return nil
    } catch {
      return (error as? DatabaseError)?.code
    }
  }
}

/// Data to store, all of whose bytes differ from any others.
struct Secrets {
  private(set) var runs: Set<UInt64> = []
  private var random: OndolTestKit.SeededRandom

  /// The numbers differ from those of a simulated world of the same seed. The salts of files are
  /// drawn from that, and were taken for stored data.
  init(seed: UInt64) {
    random = SeededRandom(seed: SeededRandom.derive(seed, 1))
  }

  /// Returns a text of letters and digits, and records it.
  mutating func text(_ length: Int) -> String {
    let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
    let bytes = (0..<length).map { _ in random.pick(letters) }
    note(bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  mutating func bytes(_ length: Int) -> [UInt8] {
    let bytes = random.bytes(length)
    note(bytes)
    return bytes
  }

  /// Repeating words, so that blocks are compressed.
  mutating func prose(_ length: Int) -> String {
    let words = (0..<8).map { _ in text(9) }
    var prose = ""
    while prose.utf8.count < length { prose += random.pick(words) + " " }
    note(Array(prose.utf8))
    return prose
  }

  mutating func below(_ bound: Int) -> Int { random.below(bound) }

  mutating func note(_ bytes: [UInt8]) { Self.forEachRun(of: bytes) { _ = runs.insert($0) } }

  /// Calls `body` with every run of eight bytes.
  private static func forEachRun(of bytes: [UInt8], _ visit: (UInt64) -> Void) {
    var run: UInt64 = 0
    for (index, byte) in bytes.enumerated() {
      run = run << 8 | UInt64(byte)
      if index >= 7 { visit(run) }
    }
  }

  /// Returns the number of runs of eight bytes in `bytes` that belong to stored data.
  func found(in bytes: [UInt8]) -> Int {
    var count = 0
    Self.forEachRun(of: bytes) { count += runs.contains($0) ? 1 : 0 }
    return count
  }
}

@Suite struct EncryptionTests {
  // MARK: - Keys

  @Test func `Only the key opens it, and other opens get the reason`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.document("c/a").setData(["text": "hello"])
    try await database.close()
    for access in [.readWrite, .readOnly] as [Database.Access] {
      #expect(await place.code(nil, access: access) == .permissionDenied)
      #expect(await place.code(EncryptedPlace.otherKey, access: access) == .permissionDenied)
    }
    let again = try await place.open()
    #expect(try await again.document("c/a").getDocument()["text"] == "hello")
    try await again.close()
  }

  @Test func `A key for a database in the clear is refused, and says so`() async throws {
    let place = EncryptedPlace()
    try await place.open(nil).close()
    #expect(await place.code(EncryptedPlace.key) == .invalidArgument)
    #expect(await place.code(EncryptedPlace.key, access: .readOnly) == .invalidArgument)
    #expect(await place.code(nil) == nil)
  }

  @Test(arguments: [0, 16, 31, 33]) func `A key has 32 bytes`(count: Int) async {
    let key = Database.Encryption.key([UInt8](repeating: 1, count: count))
    #expect(await EncryptedPlace().code(key) == .invalidArgument)
  }

  /// Every other file is garbage, and nothing reads it.
  @Test func `Another key is refused before anything else is read`() async throws {
    let place = EncryptedPlace()
    try await place.open().close()
    for (name, bytes) in try place.files() where name != "SUPER" && name != "LOCK" {
      let rubbish = [UInt8](repeating: 0x55, count: bytes.count)
      try place.directory().open(name, access: .readWrite).write(rubbish.bytes, at: 0)
    }
    #expect(await place.code(EncryptedPlace.otherKey) == .permissionDenied)
    #expect(await place.code(nil) == .permissionDenied)
    #expect(await place.code(EncryptedPlace.key) == .dataLoss)
  }

  @Test func `A key shows itself nowhere`() async throws {
    let key = EncryptedPlace.key
    for text in ["\(key)", "\(String(reflecting: key))"] {
      #expect(!text.contains("161"))
    }
    var text = ""
    dump(key, to: &text)
    #expect(!text.contains("161"))
    var options = Database.Options()
    options.encryption = key
    let database = try await Database.inMemory(options: options)
    #expect(database.options.encryption == nil)
    #expect(database.environment.vault == nil)
    try await database.close()
  }

  // MARK: - Other keys

  @Test func `Its keys can be replaced, and the earlier ones no longer open it`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.document("c/a").setData(["text": "hello"])
    #expect(database.isEncrypted)
    let recovery = Database.Encryption.key(Database.Encryption.randomKey())
    for keys in [[], Array(repeating: recovery, count: 5), [.key([1, 2])]] {
      let error = await #expect(throws: DatabaseError.self) {
        try await database.setEncryptionKeys(keys)
      }
      #expect(error?.code == .invalidArgument)
    }
    try await database.setEncryptionKeys([EncryptedPlace.otherKey, recovery])
    try await database.document("c/b").setData(["text": "later"])
    try await database.close()
    #expect(await place.code(EncryptedPlace.key) == .permissionDenied)
    for key in [EncryptedPlace.otherKey, recovery] {
      let again = try await place.open(key)
      #expect(try await again.document("c/a").getDocument()["text"] == "hello")
      #expect(try await again.document("c/b").getDocument()["text"] == "later")
      try await again.close()
    }
    // No slot contains anything of the earlier key.
    let slots = try place.directory().open("SUPER", access: .readWrite)
    for slot in [0, 4_096, 65_536, 69_632] as [UInt64] {
      let copy = EncryptedPlace(SimulatedFileSystem(storage: place.fileSystem.storage))
      let file = try copy.directory().open("SUPER", access: .readWrite)
      let kept = try slots.read(at: slot, count: 4_096)
      for other in [0, 4_096, 65_536, 69_632] as [UInt64] where other != slot {
        try file.write([UInt8](repeating: 0, count: 4_096).bytes, at: other)
      }
      try file.write(kept.bytes, at: slot)
      #expect(await copy.code(EncryptedPlace.key) != nil)
    }
  }

  @Test func `A database in the clear has no keys to change`() async throws {
    let database = try await EncryptedPlace().open(nil)
    #expect(!database.isEncrypted)
    let error = await #expect(throws: DatabaseError.self) {
      try await database.setEncryptionKeys([EncryptedPlace.key])
    }
    #expect(error?.code == .failedPrecondition)
    try await database.close()
  }

  /// Whatever comes in between, one of the two opens it, and after the end only the new one.
  @Test func `A power cut while keys are changed leaves one that opens it`() async throws {
    let start = EncryptedPlace()
    let database = try await start.open()
    try await database.document("c/a").setData(["text": "hello"])
    try await database.close()
    var (olds, news) = (0, 0)
    for operation in 0... {
      let fileSystem = SimulatedFileSystem(storage: start.fileSystem.storage)
      var place = EncryptedPlace(fileSystem)
      place.seed = UInt64(operation)
      let open = try await place.open()
      fileSystem.cutPower(before: fileSystem.operations + operation)
      let isDone: Bool
      do {
        try await open.setEncryptionKeys([EncryptedPlace.otherKey])
        isDone = true
      } catch {
        isDone = false
      }
      let hadPower = fileSystem.hasPower
      try? await open.close()
      let left = EncryptedPlace(
        SimulatedFileSystem(storage: fileSystem.storage.afterPowerCut(seed: place.seed)))
      let opensOld = await left.code(EncryptedPlace.key) == nil
      let opensNew = await left.code(EncryptedPlace.otherKey) == nil
      #expect(opensOld != opensNew, "before operation \(operation)")
      #expect(!isDone || opensNew, "before operation \(operation)")
      olds += opensOld ? 1 : 0
      news += opensNew ? 1 : 0
      if hadPower { break }
    }
    #expect(olds > 0 && news > 0)
  }

  // MARK: - Files

  /// Writes something of every kind, and searches the files again and again.
  @Test(arguments: Seeds.first(3)) func `Nothing stored is in the files`(seed: UInt64) async throws
  {
    let (sealed, _) = try await leaks(EncryptedPlace.key, seed: seed)
    #expect(sealed.isEmpty, "SEED=\(seed): \(sealed)")
    // The same search finds the data in plain files, of every kind.
    let (clear, kinds) = try await leaks(nil, seed: seed)
    for kind in ["LOG", "MANIFEST", "seg", "val", "pack", "content"] {
      #expect(kinds.contains(kind), "SEED=\(seed): no file of kind \(kind)")
      if kind != "MANIFEST" {
        #expect(clear[kind] ?? 0 > 0, "SEED=\(seed): nothing found in a file of kind \(kind)")
      }
    }
  }

  /// The number of runs of stored data in files of each kind, and the kinds of files that exist.
  private func leaks(
    _ key: Database.Encryption?, seed: UInt64
  ) async throws -> (leaks: [String: Int], kinds: Set<String>) {
    var place = EncryptedPlace()
    place.seed = seed
    var secrets = Secrets(seed: seed)
    secrets.note(TestedEncryption.key)
    var (leaks, kinds): ([String: Int], Set<String>) = ([:], [])
    func look() throws {
      for (name, bytes) in try place.files() {
        // The part before the number, or after it.
        let parts = name.split { $0 == "-" || $0 == "." }
        let kind = parts.first { UInt64($0) == nil }.map(String.init) ?? name
        kinds.insert(kind)
        let found = secrets.found(in: bytes)
        if found > 0 { leaks[kind, default: 0] += found }
      }
    }
    let collection = secrets.text(12)
    var digests: [[UInt8]] = []
    for life in 0..<3 {
      let database = try await place.open(key)
      if life == 0 {
        try await database.collection(collection).createIndex(on: [secrets.text(10)])
        try await database.collection(collection).createIndex(on: ["name"], unique: true)
      }
      for _ in 0..<120 {
        let document = database.collection(collection).document(secrets.text(14))
        let fields: [String: Value] = [
          "name": .string(secrets.text(16)), secrets.text(9): .bytes(secrets.bytes(40)),
          "long": .string(secrets.prose(secrets.below(8) == 0 ? 6_000 : 300)),
        ]
        try await document.setData(
          fields, durability: secrets.below(2) == 0 ? .process : .power)
      }
      try await database.tree.child(secrets.text(9)).setValue(secrets.text(30))
      for length in [100, 3_000, 30_000, 300_000] {
        let bytes = secrets.bytes(length)
        digests.append(ContentHasher.digest(of: bytes).bytes)
        let blob = try await database.storage.put(bytes)
        try await database.document("\(collection)/\(secrets.text(11))").setData(["blob": blob])
      }
      try await database.storage.reference(withPath: secrets.text(20))
        .putData(Array(secrets.prose(40_000).utf8))
      for digest in digests { secrets.note(digest) }
      try look()
      try await database.engine.flush()
      try look()
      if life == 1 { try await database.engine.compact() }
      if life == 2 {
        try await database.backup(to: "/copy", in: place.fileSystem)
      }
      try await database.close()
      try look()
    }
    return (leaks, kinds)
  }

  // MARK: - What goes on

  @Test func `Without its superblock nothing can be salvaged, and nothing is made`() async throws {
    let place = EncryptedPlace()
    try await place.open().close()
    try place.directory().remove("SUPER")
    let environment = place.environment.opening(with: EncryptedPlace.key)
    let error = await #expect(throws: DatabaseError.self) {
      try await Database.salvage(from: "/db", to: "/saved", environment: environment)
    }
    #expect(error?.code == .permissionDenied)
    #expect((try? place.fileSystem.openDirectory(at: "/saved", create: false)) == nil)
  }

  @Test func `Everything comes back, in every way`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    let beginning = try database.changeToken()
    var random = SeededRandom(seed: 3)
    var expected: [String: [UInt8]] = [:]
    for number in 0..<300 {
      let bytes = random.bytes(number % 50 == 0 ? 4_000 : 60)
      expected["d\(number)"] = bytes
      let fields: [String: Value] = ["bytes": .bytes(bytes), "n": .integer(Int64(number))]
      try await database.document("c/d\(number)").setData(fields, durability: .process)
    }
    let content = random.bytes(400_000)
    let blob = try await database.storage.put(content)
    try await database.document("blobs/a").setData(["blob": blob])
    func check(_ database: Database, _ way: String) async throws {
      var found: [String: [UInt8]] = [:]
      for document in try await database.collection("c").getDocuments().documents {
        guard case .bytes(let bytes) = document["bytes"] as Value? else { continue }
        found[document.documentID] = Array(bytes)
      }
      #expect(found == expected, "\(way)")
      #expect(try await Array(database.storage.data(of: blob)) == content, "\(way)")
    }
    try await check(database, "at once")
    let reader = try await place.open(access: .readOnly)
    try await check(reader, "beside the writer")
    try await database.document("c/late").setData(["bytes": Value.bytes([1, 2, 3])])
    expected["late"] = [1, 2, 3]
    try await reader.refresh()
    try await check(reader, "after a refresh")
    try await reader.close()
    try await database.backup(to: "/copy", in: place.fileSystem)
    try await database.compact()
    try await check(database, "after a compaction")
    var changes = 0
    for try await change in database.changes(since: beginning) {
      changes += change.documents.isEmpty ? 0 : 1
      if changes == 302 { break }
    }
    #expect(changes == 302)
    try await database.close()
    let again = try await place.open()
    try await check(again, "after closing")
    #expect(try await again.verify(depth: .full) == [])
    try await again.close()
    let copy = try await place.open(at: "/copy")
    try await check(copy, "in a backup")
    try await copy.close()
    var environment = place.environment
    environment.vault = DatabaseVault(EncryptedPlace.key)
    #expect(
      try await Database.verify(at: "/db", depth: .full, environment: environment) == [])
    let report = try await Database.salvage(
      from: "/db", to: "/saved", environment: environment,
      engineOptions: EncryptedPlace.engineOptions)
    #expect(report.isComplete, "\(report)")
    let saved = try await place.open(at: "/saved")
    try await check(saved, "salvaged")
    try await saved.close()
  }
}
