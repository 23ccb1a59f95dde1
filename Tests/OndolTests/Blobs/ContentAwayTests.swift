// Contents whose bytes are elsewhere: a document may name one before its bytes are here. Nothing of
// the database's maintenance finds anything missing, a reader is told, and they become
// contents like others once the bytes come.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Contents whose bytes are elsewhere` {
  private static let bytes = ContentFixture.noise(5_000, seed: 3)

  private var content: ExchangedContent {
    ExchangedContent(
      digest: ContentHasher.digest(of: Self.bytes), length: UInt64(Self.bytes.count))
  }

  private func open(
    _ world: SimulatedWorld, at path: String = "/db", access: Database.Access = .readWrite
  ) async throws -> Database {
    var options = Database.Options(access: access)
    options.blobGracePeriod = .zero
    return try await Database.open(
      at: path, options: options, environment: world.environment,
      engineOptions: ContentFixture.smallLimits)
  }

  /// Has a document name the content, as synchronisation does.
  private func name(_ content: ExchangedContent, in database: Database) async throws {
    let fields: [String: Value] = ["photo": .blob(try content.reference)]
    try await database.runTransaction { transaction in
      transaction.expectContents(of: fields)
      try transaction.setData(["photo": fields["photo"]], forDocument: database.document("a/b"))
    }
  }

  private func arrive(_ content: ExchangedContent, in database: Database) async throws {
    let arrival = database.beginArrival(of: content)
    for start in stride(from: 0, to: Self.bytes.count, by: 1_000) {
      try await arrival.append(Array(Self.bytes[start..<(start + 1_000)]))
    }
    try await arrival.finish()
  }

  /// Expects a sound database in which the document names the content, and its bytes are elsewhere.
  private func expectAway(_ database: Database) async throws {
    #expect(try await database.verify() == [])
    let document = try await database.document("a/b").getDocument()
    let blob = try #require(document["photo"] as BlobReference?)
    #expect(blob.digest == content.digest)
    await #expect(throws: DatabaseError.self) { try await database.storage.data(of: blob) }
    #expect(try await database.contentsAway(after: nil, atMost: 10).contents == [content])
  }

  @Test func `The row of one is read back, and refused when it is damaged`() throws {
    for length: UInt64 in [0, 1, 127, 128, 5_000, 1 << 32, ContentLocation.longest] {
      let bytes = ContentLocation.away(length).bytes
      #expect(try ContentLocation(bytes.bytes) == .away(length))
      let isAway = ContentLocation.isAway(bytes.bytes)
      #expect(isAway)
      for count in 0..<bytes.count {
        #expect(throws: MalformedBytes.self) {
          try ContentLocation(Array(bytes.prefix(count)).bytes)
        }
      }
      #expect(throws: MalformedBytes.self) { try ContentLocation((bytes + [0]).bytes) }
    }
    let beyond = ContentLocation.away(ContentLocation.longest + 1).bytes
    #expect(throws: MalformedBytes.self) { try ContentLocation(beyond.bytes) }
  }

  @Test func `No app can name a content that is not stored`() async throws {
    let database = try await open(SimulatedWorld(seed: 1))
    let blob = try content.reference
    await #expect(throws: DatabaseError.self) {
      try await database.document("a/b").setData(["photo": blob])
    }
    try await database.close()
  }

  @Test func `They become contents like others when their bytes come`() async throws {
    let database = try await open(SimulatedWorld(seed: 1))
    try await name(content, in: database)
    try await expectAway(database)
    // A second document may name what the first one holds.
    try await database.document("a/c").setData(["photo": try content.reference])
    #expect(try await !database.hasBytes(of: content.digest))
    try await arrive(content, in: database)
    #expect(try await database.hasBytes(of: content.digest))
    #expect(try await Array(database.storage.data(of: content.reference)) == Self.bytes)
    #expect(try await database.verify() == [])
    try await database.close()
  }

  @Test func `A put of the same bytes stores them`() async throws {
    let database = try await open(SimulatedWorld(seed: 1))
    try await name(content, in: database)
    _ = try await database.storage.put(Self.bytes)
    #expect(try await Array(database.storage.data(of: content.reference)) == Self.bytes)
    #expect(try await database.verify() == [])
    try await database.close()
  }

  @Test func `Other bytes are refused, and nothing of them stays`() async throws {
    let database = try await open(SimulatedWorld(seed: 1))
    try await name(content, in: database)
    let (digest, length) = (content.digest, content.length)
    for (bytes, announced) in [
      (Array(Self.bytes.reversed()), length), (Array(Self.bytes.dropLast()), length),
      (Self.bytes + [1], length), (Self.bytes, length + 1), ([], length),
    ] {
      let arrival = database.beginArrival(
        of: ExchangedContent(digest: digest, length: announced))
      let error = await #expect(throws: DatabaseError.self) {
        try await arrival.append(bytes)
        try await arrival.finish()
      }
      await arrival.abandon()
      #expect(error?.code == .dataLoss)
      try await expectAway(database)
    }
    try await database.close()
  }

  @Test func `They go with their last holder`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    try await name(content, in: database)
    try await database.document("a/b").delete()
    world.pass(seconds: 1)
    try await database.storage.reclaim()
    #expect(try await database.contentsAway(after: nil, atMost: 10).contents == [])
    #expect(try await database.verify() == [])
    try await database.close()
  }

  @Test func `Backups, salvage and dumps keep them`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await open(world)
    try await name(content, in: database)
    try await database.backup(to: "/copy", in: world.fileSystem)
    let dump = try await DumpTexts.dump(database)
    try await database.close()

    let copy = try await open(world, at: "/copy")
    try await expectAway(copy)
    try await copy.close()

    let report = try await Database.salvage(
      from: "/db", to: "/saved", environment: world.environment,
      engineOptions: ContentFixture.smallLimits)
    #expect(report.losses.isEmpty)
    let saved = try await open(world, at: "/saved")
    try await expectAway(saved)
    try await saved.close()

    let restoration = try await Restoration.begin(
      at: "/loaded", environment: world.environment, engineOptions: ContentFixture.smallLimits)
    try await DumpTexts.load(dump, into: restoration)
    let loaded = try await open(world, at: "/loaded")
    try await expectAway(loaded)
    #expect(try await DumpTexts.dump(loaded) == dump)
    try await arrive(content, in: loaded)
    #expect(try await Array(loaded.storage.data(of: content.reference)) == Self.bytes)
    try await loaded.close()
  }
}
