// Contents and database maintenance: damage to any frame is found and reported with the content's
// holders. Backups and salvaged databases have their contents, and so does a reader beside the
// writer.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `The health of contents` {
  private static let lengths = [60, 5_000, 40_000, 300_000]

  private static func bytes(_ number: Int) -> [UInt8] {
    ContentFixture.noise(lengths[number], seed: UInt64(number))
  }

  private func open(
    _ world: SimulatedWorld, at path: String = "/db", access: Database.Access = .readWrite,
    grace: Duration? = nil
  ) async throws -> Database {
    var options = Database.Options(access: access)
    if let grace { options.blobGracePeriod = grace }
    return try await Database.open(
      at: path, options: options, environment: world.environment,
      engineOptions: ContentFixture.smallLimits)
  }

  /// A database whose documents and paths have a content of every kind of place.
  private func fill(_ database: Database) async throws {
    for number in Self.lengths.indices {
      let blob = try await database.storage.put(Self.bytes(number))
      try await database.document("albums/\(number)").setData(["photo": blob])
    }
    try await database.storage.reference(withPath: "images/one.bin").putData(Self.bytes(1))
  }

  private func check(_ database: Database, without lost: Set<Int> = []) async throws {
    for number in Self.lengths.indices where !lost.contains(number) {
      let document = try await database.document("albums/\(number)").getDocument()
      let blob = try #require(document["photo"] as BlobReference?)
      let isSame = try await Array(database.storage.data(of: blob)) == Self.bytes(number)
      #expect(isSame, "\(number)")
    }
  }

  @Test func `Every damaged frame is reported, with its holders`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    try await fill(database)
    try await database.close()
    let directory = try world.fileSystem.openDirectory(at: "/db", create: false)
    var random = SeededRandom(seed: 1)
    for name in try directory.list() where name.hasSuffix(".pack") || name.hasSuffix(".content") {
      let size = Int(try directory.open(name, access: .readOnly).size())
      // Frames of a content's own file begin at multiples of 64 KiB. Those of a pack are anywhere.
      let stretch = name.hasSuffix(".content") ? 64 << 10 : 2 << 10
      for start in stride(from: 0, to: size, by: stretch) {
        let copy = SimulatedFileSystem(storage: world.fileSystem.storage)
        let file = try copy.openDirectory(at: "/db", create: false).open(name, access: .readWrite)
        let offset = UInt64(start + random.below(min(stretch, size - start)))
        let byte = try file.read(at: offset, count: 1)[0]
        let flipped = [byte ^ (1 << UInt8(random.below(8)))]
        try file.write(flipped.bytes, at: offset)
        try await expectDamage(SimulatedWorld(fileSystem: copy, seed: 2), in: name, at: offset)
      }
    }
  }

  /// Expects that unreadable contents report the damage, and that all others can be read.
  private func expectDamage(
    _ world: SimulatedWorld, in name: String, at offset: UInt64
  ) async throws {
    let database = try await open(world)
    var lost: Set<Int> = []
    for number in Self.lengths.indices {
      let document = try await database.document("albums/\(number)").getDocument()
      let blob = try #require(document["photo"] as BlobReference?)
      do throws(DatabaseError) {
        let bytes = try await database.storage.data(of: blob)
        let isSame = Array(bytes) == Self.bytes(number)
        #expect(isSame, "\(name) at \(offset)")
      } catch {
        lost.insert(number)
        #expect(error.code == .dataLoss)
        #expect(error.message.contains("albums/\(number)"), "\(error)")
      }
    }
    // Zeros between two entries belong to nothing.
    if lost.isEmpty { #expect(name.hasSuffix(".pack"), "\(name) at \(offset)") }
    try await check(database, without: lost)
    let findings = try await database.verify(depth: .full).filter { $0.kind == .content }
    #expect(findings.count == lost.count, "\(name) at \(offset): \(findings)")
    try await database.close()
  }

  @Test func `A backup has its contents, whatever is deleted in the meantime`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    try await fill(database)
    try await database.engine.backUp(to: "/copy", in: world.fileSystem) { _, _ in }
    try await database.close()
    let copy = try await open(world, at: "/copy")
    try await check(copy)
    try await copy.close()
    let findings = try await Database.verify(
      at: "/copy", depth: .full, environment: world.environment)
    #expect(findings.filter { $0.severity == .error }.isEmpty, "\(findings)")
  }

  @Test func `A reader beside the writer has them as well`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    try await fill(database)
    let reader = try await open(world, access: .readOnly)
    try await check(reader)
    await #expect(throws: DatabaseError.self) { try await reader.storage.put([1, 2, 3]) }
    try await reader.close()
    try await database.close()
  }

  /// The writer had moved the live contents of a pack, and the reader once called it damaged until
  /// it looked at the files again.
  @Test func `A reader beside the writer finds moved contents`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world, grace: .zero)
    try await fill(database)
    for number in 0..<20 {
      let bytes = ContentFixture.noise(40_000, seed: UInt64(100 + number))
      try await database.storage.reference(withPath: "doomed/\(number)").putData(bytes)
    }
    let reader = try await open(world, access: .readOnly)
    for number in 0..<20 {
      try await database.storage.reference(withPath: "doomed/\(number)").delete()
    }
    let directory = try world.fileSystem.openDirectory(at: "/db", create: false)
    let before = try directory.list().filter { $0.hasSuffix(".pack") }
    for _ in 0..<4 {
      try await database.engine.compact()
      try await database.storage.reclaim()
    }
    let after = try directory.list().filter { $0.hasSuffix(".pack") }
    #expect(Set(before).isDisjoint(with: after), "\(before), then \(after)")
    try await check(reader)
    try await reader.close()
    try await database.close()
  }

  @Test func `A salvaged database has the readable contents`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    try await fill(database)
    try await database.close()
    let whole = try await Database.salvage(
      from: "/db", to: "/whole", environment: world.environment)
    #expect(whole.losses.isEmpty, "\(whole)")
    let copy = try await open(world, at: "/whole")
    try await check(copy)
    try await copy.close()

    // A salvage without the rows finds the contents in files.
    let engine = try await Engine.open(
      at: "/db", options: ContentFixture.smallLimits, environment: world.environment)
    var batch = Batch()
    for number in 1..<Self.lengths.count {
      let key = ContentKey.location(ContentHasher.digest(of: Self.bytes(number)))
      batch.delete(key.bytes)
    }
    _ = try await engine.commit(batch, durability: .power)
    try await engine.close()
    let found = try await Database.salvage(
      from: "/db", to: "/found", environment: world.environment)
    #expect(found.losses.isEmpty, "\(found)")
    let again = try await open(world, at: "/found")
    try await check(again)
    try await again.close()
  }

  @Test func `A long content comes and goes in pieces`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    let intake = database.contents.beginIntake()
    var hasher = ContentHasher()
    for number in 0..<40 {
      let piece = ContentFixture.noise(100_000, seed: UInt64(number))
      hasher.update(piece)
      try await intake.append(piece)
    }
    let staged = try await intake.finish(expecting: hasher.finalize())
    try await database.contents.lease(staged)
    let reader = try #require(try await database.contents.reader(of: staged.digest))
    var read = ContentHasher()
    for start in stride(from: 0, to: reader.length, by: 70_000) {
      read.update(try await reader.read(start..<min(reader.length, start + 70_000)))
    }
    #expect(read.finalize() == staged.digest)
    try await database.close()
  }
}
