// Contents on a store: parts come before the commit that names them, any range is read without the
// rest, and after any failure on the way, unnamed parts go.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Contents on a store` {
  private let world = SimulatedWorld(seed: 1)
  private let store: SimulatedStore

  init() {
    store = SimulatedStore(seed: 1, environment: world.environment)
  }

  private func open(
    on store: (any RemoteStore)? = nil, gracePeriod: Duration = .zero
  ) async throws -> Database {
    var options = Database.Options()
    options.blobGracePeriod = gracePeriod
    return try await Database.open(
      at: "store", options: options, environment: world.environment, on: store ?? self.store)
  }

  /// Waits for background work.
  private func eventually(_ condition: () async throws -> Bool) async throws {
    for _ in 0..<100_000 where try await !condition() { await Task.yield() }
    #expect(try await condition())
  }

  @Test func `A large one comes back, whole, in ranges and piece by piece`() async throws {
    let (database, other) = (try await open(), try await open())
    let bytes = ContentFixture.noise(40 << 20, seed: 2)
    let film = database.storage.reference(withPath: "film")
    try await film.putData(bytes)
    #expect(store.partCount == 160)
    try await other.refresh()
    let same = other.storage.reference(withPath: "film")
    let isWhole = try await Array(same.data(maxSize: 41 << 20)) == bytes
    #expect(isWhole)
    var random = SeededRandom(seed: 3)
    for _ in 0..<20 {
      let lower = random.below(bytes.count)
      let upper = lower + 1 + random.below(min(3 << 20, bytes.count - lower))
      var found: [UInt8] = []
      for try await piece in same.bytes(in: lower..<upper) { found += piece }
      let isSame = found == Array(bytes[lower..<upper])
      #expect(isSame, "\(lower)..<\(upper)")
    }
    // The same bytes are kept once.
    try await other.storage.reference(withPath: "copy").putData(bytes)
    try await eventually { store.partCount == 160 }
    #expect(try await other.verifyContents() == [])
    for reference in [film, database.storage.reference(withPath: "copy")] {
      try await database.refresh()
      try await reference.delete()
    }
    try await other.close()
    try await eventually {
      _ = try await database.contents.reclaimer.reclaim()
      return store.partCount == 0
    }
    try await database.close()
  }

  @Test func `An upload that fails, or is cancelled, leaves nothing`() async throws {
    let database = try await open()
    let bytes = ContentFixture.noise(1 << 20, seed: 1)
    let file = database.storage.reference(withPath: "file")
    let other = ContentHasher.digest(of: [])
    await #expect(throws: DatabaseError.self) { try await file.putData(bytes, expecting: other) }
    #expect(store.partCount == 0)
    struct Refusal: Error {}
    let chunks = AsyncThrowingStream<[UInt8], any Error> { continuation in
      continuation.yield(bytes)
      continuation.finish(throwing: Refusal())
    }
    await #expect(throws: Refusal.self) { try await file.put(chunks) }
    #expect(store.partCount == 0)
    // Staged, and never named.
    do { _ = try await database.contents.stage(bytes) }
    try await eventually { store.partCount == 0 }
    #expect(try await database.contents.reclaimer.reclaim() == ReclaimReport())
    try await database.close()
  }

  @Test(arguments: [1, 4, 12])
  func `An upload whose process dies is removed after a long silence`(
    mebibytes: Int
  ) async throws {
    let way = MortalStore(store)
    let (first, second) = (try await open(on: way), try await open())
    let intake = first.contents.beginIntake()
    try await intake.append(ContentFixture.noise(mebibytes << 20, seed: 1))
    // Once with all parts and without a commit, otherwise in the middle.
    var staged: StagedContent?
    if mebibytes == 4 { staged = try await intake.finish() }
    way.die()
    #expect(store.partCount > 0)
    try await second.refresh()
    _ = try await second.contents.reclaimer.reclaim()
    #expect(store.partCount > 0, "it may still live")
    world.pass(seconds: 3_700)
    _ = try await second.contents.reclaimer.reclaim()
    #expect(store.partCount == 0)
    withExtendedLifetime((first, staged)) {}
    try await second.close()
  }

  @Test func `An upload that counts as abandoned can no longer be named`() async throws {
    let (first, second) = (try await open(), try await open())
    let bytes = ContentFixture.noise(1 << 20, seed: 1)
    let staged = try await first.contents.stage(bytes)
    try await second.refresh()
    world.pass(seconds: 3_700)
    _ = try await second.contents.reclaimer.reclaim()
    #expect(store.partCount == 0)
    let error = await #expect(throws: DatabaseError.self) {
      try await first.contents.lease(staged)
    }
    #expect(error?.code == .aborted)
    // A repeated put has its bytes there.
    let file = first.storage.reference(withPath: "file")
    try await file.putData(bytes)
    let isSame = try await Array(file.data(maxSize: 2 << 20)) == bytes
    #expect(isSame)
    for database in [first, second] { try await database.close() }
  }

  @Test func `A reader continues while others remove the content`() async throws {
    let (first, second) = (
      try await open(gracePeriod: .seconds(600)), try await open(gracePeriod: .seconds(600))
    )
    let databases = [first, second]
    let bytes = ContentFixture.noise(3 << 20, seed: 1)
    let digest = ContentHasher.digest(of: bytes)
    try await first.storage.reference(withPath: "file").putData(bytes)
    try await first.storage.reference(withPath: "file").delete()
    // Nobody sees the earlier time any more, so only the reader keeps the parts.
    try await second.refresh()
    for database in databases {
      try await database.engine.flush(shardOf: ContentKey.locations.prefix)
    }
    var reader = try await second.contents.reader(of: digest)
    for _ in 0..<7 {
      world.pass(seconds: 100)
      for database in databases { await database.engine.forgetVersions() }
    }
    for _ in 0..<3 {
      _ = try await first.contents.reclaimer.reclaim()
      try await second.refresh()
      for database in databases { await database.engine.forgetVersions() }
    }
    #expect(try await first.contents.reader(of: digest) == nil)
    #expect(store.partCount == 12)
    let isSame = try await reader?.read(0..<bytes.count) == bytes
    #expect(isSame)
    reader = nil
    try await eventually {
      try await second.refresh()
      try await second.engine.flush(shardOf: ContentKey.locations.prefix)
      await second.engine.forgetVersions()
      _ = try await first.contents.reclaimer.reclaim()
      return store.partCount == 0
    }
    for database in databases { try await database.close() }
  }

  @Test func `Damage is reported with its holder`() async throws {
    let database = try await open()
    let file = database.storage.reference(withPath: "file")
    try await file.putData(ContentFixture.noise(1 << 20, seed: 1))
    store.damage(part: 2)
    let error = await #expect(throws: DatabaseError.self) {
      _ = try await file.data(maxSize: 2 << 20)
    }
    #expect(error?.code == .dataLoss)
    #expect(error?.message.contains("file") == true)
    #expect(try await database.verifyContents().count == 1)
    try await database.close()
  }

  @Test func `A store that loses requests and answers keeps each once`() async throws {
    let database = try await open()
    store.faults = StoreFaults(lostRequests: 50, lostAnswers: 50)
    for number in 0..<6 {
      let bytes = ContentFixture.noise(700_000, seed: UInt64(number))
      let file = database.storage.reference(withPath: "file\(number)")
      try await file.putData(bytes)
      let isSame = try await Array(file.data(maxSize: 1 << 20)) == bytes
      #expect(isSame)
    }
    store.faults = .none
    #expect(store.partCount == 18)
    try await database.close()
  }
}
