// Damage of every kind to a database with something of everything: everything saved was committed
// once, everything undamaged is saved, and the report lists the losses.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

@Suite struct `Salvaging a database` {
  /// In a world with power cuts, so that the files after a kill can be read without the killed
  /// process.
  private let world: SimulatedWorld
  private let sample: SampleDatabase

  init() {
    world = SimulatedWorld(seed: 5)
    sample = SampleDatabase(world.environment)
  }

  /// A saved document, with its metadata.
  private struct Saved: Equatable {
    var fields: [String: Value]
    var version: Version?
    var createTime: Timestamp?
  }

  private func contents(at path: String) async throws -> [String: Saved] {
    let database = try await Database.open(
      at: path, options: Database.Options(access: .readOnly), environment: sample.environment)
    var all: [String: Saved] = [:]
    for group in ["items", "notes"] {
      for document in try await database.collectionGroup(group).getDocuments().documents {
        all[document.reference.path] = Saved(
          fields: document.data(), version: document.version, createTime: document.createTime)
      }
    }
    try await database.close()
    return all
  }

  private func salvage(to path: String = "saved") async throws -> SalvageReport {
    try await Database.salvage(
      from: "db", to: path, environment: sample.environment,
      engineOptions: SampleDatabase.engineOptions)
  }

  /// The sample, which ends with rows in files and, if `killed`, in logs.
  private static func made(killed: Bool = true) async throws -> Self {
    let suite = Self()
    try await suite.sample.make()
    guard killed else { return suite }
    let database = try await suite.sample.open()
    try await suite.sample.fill(database, from: 160, count: 30)
    try await database.document("items/i3").updateData(["name": "last"], durability: .power)
    let left = suite.world.fileSystem.kill()
    try await database.close()
    return Self(left)
  }

  private init(_ fileSystem: SimulatedFileSystem) {
    world = SimulatedWorld(fileSystem: fileSystem, seed: 6)
    sample = SampleDatabase(world.environment)
  }

  /// Salvages after some damage, and checks that the result is sound and was committed.
  @discardableResult
  private func check(
    _ before: [String: Saved], _ what: String, to path: String = "saved",
    mayHide: Bool = false
  ) async throws -> (report: SalvageReport, saved: [String: Saved]) {
    let report = try await salvage(to: path)
    let findings = try await Database.verify(
      at: path, depth: .full, environment: sample.environment)
    #expect(findings == [], "\(what)")
    let saved = try await contents(at: path)
    if report.collections.allSatisfy({ ["items", "items/notes"].contains($0.name) }) {
      #expect(report.collections.reduce(0) { $0 + $1.saved } == saved.count, "\(what)")
    }
    let hasNames = !report.losses.contains { $0.reason.contains("lost-name") }
    for (path, document) in saved {
      if let old = before[path] {
        #expect(old == document || !report.isComplete || mayHide, "\(what): \(path)")
        // The same version is the same document.
        #expect(old.version != document.version || old == document || !hasNames, "\(what): \(path)")
      } else {
        #expect(!report.isComplete || mayHide, "\(what): \(path) is back")
      }
      // Names follow from the number in the id, for every commit.
      if path.utf8.count(where: { $0 == UInt8(ascii: "/") }) == 1 {
        let id = path.dropFirst("items/i".count)
        let values = document.fields.values
        #expect(
          values.contains(.string("item \(id)")) || values.contains(.string("last")),
          "\(what): \(path)")
      }
    }
    if report.isComplete, !mayHide { #expect(saved == before, "\(what)") }
    return (report, saved)
  }

  // MARK: - Sound databases

  @Test(arguments: [false, true])
  func `All of a sound database is saved, with versions, times and indexes`(
    killed: Bool
  ) async throws {
    let life = try await Self.made(killed: killed)
    let before = try await life.contents(at: "db")
    let (report, _) = try await life.check(before, "sound")
    #expect(report.losses == [])
    #expect(report.isComplete)
    #expect(report.collections.map(\.name) == ["items", "items/notes"])
    #expect(report.collections[0].indexes.count == 5)
    #expect(report.collections[1].indexes == ["-stars group"])

    // It continues after the last commit.
    let database = try await Database.open(at: "saved", environment: life.sample.environment)
    let result = try await database.document("items/new").setData(["n": 1])
    #expect(result.version.rawValue > report.lastVersion)
    try await database.close()
  }

  @Test func `An empty database is saved as one, and dropped collections stay away`() async throws {
    let database = try await sample.open()
    try await database.close()
    #expect(try await salvage().isComplete)
    let again = try await sample.open()
    try await sample.fill(again, count: 40)
    try await sample.declareIndexes(again)
    try await again.collection("items").drop(includingDeclarations: true)
    try await again.collection("others").document("a").setData(["n": 1])
    try await again.close()
    let report = try await salvage(to: "second")
    #expect(report.losses == [])
    #expect(report.collections.map(\.name) == ["others"])
  }

  // MARK: - Whole files

  @Test(.disabled(if: TestedEncryption.isOn))
  func `Without any superblock nothing is lost`() async throws {
    let life = try await Self.made()
    let before = try await life.contents(at: "db")
    try life.sample.replace("SUPER", with: [UInt8](repeating: 7, count: 80_000))
    let (report, _) = try await life.check(before, "SUPER zeroed")
    #expect(report.losses == [])
    try life.sample.directory().remove("SUPER")
    let second = try await life.check(before, "SUPER removed", to: "second")
    #expect(second.report.losses == [])
  }

  @Test(arguments: [false, true])
  func `Without a manifest every document is saved in its newest version`(
    removed: Bool
  ) async throws {
    let life = try await Self.made()
    let before = try await life.contents(at: "db")
    for name in try life.sample.files("MANIFEST-") {
      if removed {
        try life.sample.directory().remove(name)
      } else {
        try life.sample.flip(name, at: 100)
      }
    }
    let (report, saved) = try await life.check(before, "no manifest")
    #expect(!report.isComplete)
    let missing = before.filter { saved[$0.key] != $0.value }
    #expect(missing.isEmpty, "\(missing.keys.sorted().prefix(5)): \(report.losses)")
  }

  @Test(arguments: [".seg", ".val", "LOG-"])
  func `Of a database without one of its files the rest is saved`(part: String) async throws {
    let life = try await Self.made()
    let before = try await life.contents(at: "db")
    for (number, name) in try life.sample.files(part).enumerated() {
      let bytes = try life.sample.bytes(of: name)
      try life.sample.directory().remove(name)
      let (report, saved) = try await life.check(before, name, to: "saved \(number)")
      #expect(!report.isComplete, "\(name)")
      #expect(report.losses.contains { $0.file == name }, "\(name): \(report.losses)")
      if part == ".val" { #expect(saved.count > before.count / 2, "\(name)") }
      try life.sample.directory().create(name).write(bytes.bytes, at: 0)
    }
  }

  // MARK: - Parts of files

  @Test(arguments: Seeds.first(6))
  func `Whatever bit is flipped, saved data was committed`(seed: UInt64) async throws {
    let life = try await Self.made()
    let before = try await life.contents(at: "db")
    var random = SeededRandom(seed: seed)
    for (number, part) in [".seg", ".val", "LOG-", "MANIFEST-", "SUPER"].enumerated() {
      let name = random.pick(try life.sample.files(part))
      let bytes = try life.sample.bytes(of: name)
      var damaged = bytes
      let place = random.below(bytes.count)
      switch random.below(3) {
      case 0: damaged[place] ^= 1 << UInt8(random.below(8))
      case 1:
        for index in place..<min(bytes.count, place + 512) { damaged[index] = 0 }
      default: damaged.removeSubrange(place...)
      }
      try life.sample.replace(name, with: damaged)
      let what = "SEED=\(seed): \(name) at \(place)"
      let (report, saved) = try await life.check(
        before, what, to: "saved \(number)",
        // The end of an unclosed log may be gone without a trace.
        mayHide: part == "LOG-")
      // A block is some kilobytes, so no single place loses much, except in the catalog.
      if report.collections.count == 2, damaged.count == bytes.count {
        #expect(saved.count > before.count / 2, "\(what): \(report.losses)")
      }
      try life.sample.replace(name, with: bytes)
    }
  }

  @Test func `A broken block costs its documents alone, and the report says which`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    try await database.compact()
    try await database.close()
    let before = try await contents(at: "db")
    // The first of several segments has the catalog; one in the middle has documents.
    let name = try sample.files(".seg")[1]
    try sample.flip(name, at: try sample.bytes(of: name).count / 4)
    let (report, saved) = try await check(before, name)
    #expect(report.losses.count == 1, "\(report.losses)")
    let loss = try #require(report.losses.first)
    #expect(loss.file == name)
    let missing = Set(before.keys).subtracting(saved.keys).sorted()
    #expect(!missing.isEmpty && missing.count < before.count / 2)
    // The block may have the end of one collection and the beginning of the next.
    let isNote = { (path: String) in path.contains("/notes/") }
    for path in missing {
      if let after = loss.after, isNote(after) == isNote(path) { #expect(after < path) }
      if let before = loss.before, isNote(before) == isNote(path) { #expect(path < before) }
    }
  }

  @Test func `A segment without an index is read block by block`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    try await database.compact()
    try await database.close()
    let before = try await contents(at: "db")
    for name in try sample.files(".seg") {
      var bytes = try sample.bytes(of: name)
      for index in (bytes.count - 300)..<bytes.count { bytes[index] ^= 0x55 }
      try sample.replace(name, with: bytes)
    }
    let (report, saved) = try await check(before, "no footers")
    #expect(!report.isComplete)
    #expect(saved.count == before.count, "\(report.losses)")
    #expect(saved == before)
  }

  /// The segment of the catalog, which is alone in its shard.
  private func catalogFile() throws -> String {
    let directory = try sample.directory()
    let superblock = try Superblock.read(
      from: try directory.open(Superblock.name, access: .readOnly))
    let manifest = try Manifest.load(
      superblock, directory: directory, environment: sample.environment, rotationSize: 1 << 20,
      access: .readOnly)
    let segments = manifest.state.shards.flatMap(\.segments)
    let found = segments.first { $0.minKey.starts(with: Keyspace.catalog.prefix) }
    return try #require(found).number.segmentName
  }

  @Test(.disabled(if: TestedEncryption.isOn))
  func `A catalog that cannot be read costs no document its collection or names`()
    async throws
  {
    let database = try await sample.open()
    try await sample.fill(database)
    try await sample.declareIndexes(database)
    try await database.compact()
    try await database.close()
    let before = try await contents(at: "db")
    let name = try catalogFile()
    let bytes = try sample.bytes(of: name)
    for place in stride(from: 70, to: bytes.count, by: bytes.count / 7) {
      try sample.flip(name, at: place)
      let (report, saved) = try await check(before, "at \(place)", to: "saved \(place)")
      #expect(saved == before, "at \(place): \(report)")
      #expect(report.collections.map(\.indexes.count) == [5, 1], "at \(place): \(report)")
      try sample.replace(name, with: bytes)
    }
    try sample.directory().remove(name)
    let (report, saved) = try await check(before, "without a catalog")
    #expect(saved == before)
    #expect(report.collections.map(\.indexes.count) == [5, 1])
    let schema = try await sample.schema(ofItemsAt: "saved")
    #expect(schema.current == 1)
  }

  @Test(.disabled(if: TestedEncryption.isOn))
  func `Names that a damaged commit defined are also in the next one`() async throws {
    let database = try await sample.open()
    for number in 0..<20 {
      try await database.document("items/i\(number)").setData([
        "name": Value.string("item \(number)"), "name \(number / 5)": number,
      ])
    }
    let before = try await contents(at: "db")
    let left = world.fileSystem.kill()
    try await database.close()
    let killed = Self(left).sample
    let name = try #require(
      try killed.files("LOG-").last {
        try killed.bytes(of: $0).dropFirst(4_096).contains { $0 != 0 }
      })
    // Each fifth commit defines a name, the first everything.
    var places: [Int] = []
    let bytes = try killed.bytes(of: name)
    let salt = bytes[40..<48].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    var frames = FrameReader(bytes, salt: salt, from: 4_096)
    while let frame = frames.next() { places.append(frame.offset) }
    #expect(places.count == 20)
    for (number, place) in places.prefix(19).enumerated() {
      let life = Self(SimulatedFileSystem(storage: left.storage))
      try life.sample.flip(name, at: place + 60)
      let (report, saved) = try await life.check(before, "commit \(number)")
      #expect(!report.isComplete)
      #expect(saved == before.filter { $0.key != "items/i\(number)" }, "commit \(number)")
    }
  }

  @Test(.disabled(if: TestedEncryption.isOn))
  func `Documents whose collection has lost its name get another`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    try await database.close()
    try await sample.plant { database, batch in
      let rows = Ondol.Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
      var walk = RangeWalk(rows, [KeyRange(prefix: Keyspace.mirror.prefix)])
      while try walk.next() { batch.delete(walk.cursor.key.array) }
    }
    let unmirrored = try await sample.open()
    try await unmirrored.compact()
    try await unmirrored.close()
    let before = try await contents(at: "db")
    try sample.directory().remove(try catalogFile())
    let report = try await salvage()
    #expect(!report.isComplete)
    #expect(report.collections.map(\.name) == ["recovered-1", "recovered-1/recovered-4098"])
    #expect(report.collections.reduce(0) { $0 + $1.saved } == before.count)
    let findings = try await Database.verify(
      at: "saved", depth: .full, environment: sample.environment)
    #expect(findings == [])
    let saved = try await Database.open(at: "saved", environment: sample.environment)
    let document = try await saved.document("recovered-1/i7").getDocument()
    #expect(document.data().count == before["items/i7"]?.fields.count)
    #expect(document.data().values.contains(.string("item 7")))
    try await saved.document("recovered-1/i7").updateData(["n": 1])
    #expect(try await saved.verify() == [])
    try await saved.close()
  }

  @Test func `Commits after a hole in a log are saved`() async throws {
    let database = try await sample.open()
    for number in 0..<20 {
      try await database.document("items/i\(number)").setData([
        "name": Value.string("item \(number)")
      ])
    }
    let before = try await contents(at: "db")
    // The last may be one created before its use.
    let name = try #require(
      try sample.files("LOG-").last { try sample.bytes(of: $0).contains { $0 != 0 } })
    var bytes = try sample.bytes(of: name)
    // Somewhere among the commits.
    let end = try #require(bytes.lastIndex { $0 != 0 })
    let middle = (4096 + end) / 2
    for index in middle..<(middle + 64) { bytes[index] = 0xff }
    try sample.replace(name, with: bytes)
    let life = Self(world.fileSystem.kill())
    let (report, saved) = try await life.check(before, "a hole")
    try? await database.close()
    #expect(!report.isComplete)
    #expect(saved.count >= 17 && saved.count < 20, "\(saved.count)")
    #expect(saved["items/i19"] != nil)
  }

  // MARK: - Refusals

  @Test func `It changes nothing in its source, and overwrites nothing`() async throws {
    let life = try await Self.made(killed: false)
    func files() throws -> [String: [UInt8]] {
      try Dictionary(
        uniqueKeysWithValues: life.sample.files("").map { ($0, try life.sample.bytes(of: $0)) })
    }
    let before = try files()
    _ = try await life.salvage()
    #expect(try files() == before)
    let error = await #expect(throws: DatabaseError.self) { try await life.salvage(to: "db") }
    #expect(error?.code == .alreadyExists)
    #expect(try files() == before)
    let missing = await #expect(throws: DatabaseError.self) {
      try await Database.salvage(from: "none", to: "x", environment: life.sample.environment)
    }
    #expect(missing?.code == .notFound)
  }

  @Test func `A cancelled salvage leaves nothing`() async throws {
    let life = try await Self.made(killed: false)
    let sample = life.sample
    let running = Guarded<Task<SalvageReport, any Error>?>(nil)
    let task = Task {
      while running.withLock({ $0 == nil }) { await Task.yield() }
      return try await Database.salvage(
        from: "db", to: "saved", environment: sample.environment
      ) { _ in running.withLock { $0?.cancel() } }
    }
    running.withLock { $0 = task }
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    let left = try sample.environment.fileSystem.openDirectory(at: "saved", create: false)
    #expect(try left.list() == [])
  }
}
