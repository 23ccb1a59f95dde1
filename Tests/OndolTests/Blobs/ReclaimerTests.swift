// Contents without a holder go, and their space is freed: not before the grace period ends, not
// while a reader can still see them, and never contents with a holder.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `The reclaimer` {
  private func withFixture(
    grace: Duration = .zero, lease: Duration = .seconds(86_400),
    changes: Database.ChangeRetention? = nil,
    _ body: (ContentFixture) async throws -> Void
  ) async throws {
    let fixture = try await ContentFixture(
      SimulatedWorld(seed: 1), grace: grace, lease: lease, changes: changes)
    try await body(fixture)
    try await fixture.database.close()
  }

  private static let lengths = [50, 5_000, 200_000]

  @Test func `frees contents that lost their last holder`() async throws {
    try await withFixture { fixture in
      for length in Self.lengths {
        let bytes = ContentFixture.noise(length, seed: 1)
        let digest = try await fixture.put(bytes, "a")
        try await fixture.hold(digest, "b")
        try await fixture.release(digest, "a")
        #expect(try await fixture.reclaim().contents == 0)
        let isThere = try await fixture.bytes(of: digest) == bytes
        #expect(isThere)
        try await fixture.release(digest, "b")
        #expect(try await fixture.reclaim().contents == 1)
        let isGone = try await fixture.bytes(of: digest) == nil
        #expect(isGone)
        #expect(try fixture.files().isEmpty)
      }
      let statistics = try await fixture.store.statistics()
      #expect(statistics.contents == 0)
      #expect(statistics.reclaimedBytes > 200_000)
    }
  }

  /// The bytes were refused, the system then refused to remove their file, and it once stayed as
  /// long as the database was open.
  @Test func `removes files whose first removal failed`() async throws {
    try await withFixture { fixture in
      let other = ContentHasher.digest(of: [])
      fixture.world.fileSystem.inject([Fault(failing: [.remove], of: .contents, errno: 5)])
      await #expect(throws: DatabaseError.self) {
        try await fixture.store.stage(ContentFixture.noise(200_000, seed: 1), expecting: other)
      }
      let left = try fixture.files()
      #expect(left.count == 1)
      let report = try await fixture.reclaim()
      #expect(report.files == 1)
      #expect(try fixture.files().isEmpty)
    }
  }

  @Test func `waits for the grace period`() async throws {
    try await withFixture(grace: .seconds(60)) { fixture in
      let digest = try await fixture.put(ContentFixture.noise(5_000, seed: 1), "a")
      try await fixture.release(digest, "a")
      #expect(try await fixture.reclaim().contents == 0)
      fixture.world.pass(seconds: 61)
      #expect(try await fixture.reclaim().contents == 1)
    }
  }

  @Test func `waits for a lease to end, and for nothing when it has ended`() async throws {
    try await withFixture(lease: .seconds(60)) { fixture in
      let bytes = ContentFixture.noise(5_000, seed: 1)
      let staged = try await fixture.store.stage(bytes)
      try await fixture.store.lease(staged)
      let other = try await fixture.store.stage(ContentFixture.noise(5_000, seed: 2))
      try await fixture.store.lease(other)
      #expect(try await fixture.store.statistics().leases == 2)
      try await fixture.hold(staged.digest, "a")
      #expect(try await fixture.store.statistics().leases == 1)
      #expect(try await fixture.reclaim().contents == 0)
      fixture.world.pass(seconds: 61)
      #expect(try await fixture.reclaim().contents == 0, "it is staged still")
      withExtendedLifetime((staged, other)) {}
    }
    try await withFixture(lease: .seconds(60)) { fixture in
      do {
        let staged = try await fixture.store.stage(ContentFixture.noise(5_000, seed: 2))
        try await fixture.store.lease(staged)
      }
      fixture.world.pass(seconds: 61)
      #expect(try await fixture.reclaim().contents == 1)
      #expect(try fixture.files().isEmpty)
    }
  }

  @Test func `keeps contents that someone reads`() async throws {
    try await withFixture { fixture in
      let bytes = ContentFixture.noise(200_000, seed: 1)
      let digest = try await fixture.put(bytes, "a")
      do {
        let reader = try #require(try await fixture.store.reader(of: digest))
        try await fixture.release(digest, "a")
        #expect(try await fixture.reclaim().contents == 0)
        let isSame = try await reader.read(0..<bytes.count) == bytes
        #expect(isSame)
      }
      #expect(try await fixture.reclaim().contents == 1)
    }
  }

  @Test func `keeps contents that an older view can name`() async throws {
    try await withFixture { fixture in
      let digest = try await fixture.put(ContentFixture.noise(5_000, seed: 1), "a")
      do {
        let view = fixture.database.snapshot()
        try await fixture.release(digest, "a")
        #expect(try await fixture.reclaim().contents == 0)
        withExtendedLifetime(view) {}
      }
      #expect(try await fixture.reclaim().contents == 1)
    }
  }

  @Test func `keeps contents that the change feed can name`() async throws {
    let changes = Database.ChangeRetention(duration: nil, bytes: nil)
    try await withFixture(changes: changes) { fixture in
      let digest = try await fixture.put(ContentFixture.noise(5_000, seed: 1), "a")
      try await fixture.release(digest, "a")
      #expect(try await fixture.reclaim().contents == 0)
    }
  }

  @Test func `moves live contents out of a pack that is more than half dead`() async throws {
    try await withFixture { fixture in
      var digests: [BlobDigest] = []
      for number in 0..<200 {
        let bytes = ContentFixture.noise(10_000, seed: UInt64(number))
        digests.append(try await fixture.put(bytes, "\(number)"))
      }
      let before = try fixture.files().reduce(0) { $0 + $1.sizeBytes }
      let reader = try #require(try await fixture.store.reader(of: digests[3]))
      for (number, digest) in digests.enumerated() where number % 4 != 3 {
        try await fixture.release(digest, "\(number)")
      }
      let report = try await fixture.reclaim()
      #expect(report.contents == 150)
      #expect(report.moved > 30)
      let after = try fixture.files().reduce(0) { $0 + $1.sizeBytes }
      #expect(after < before / 2, "\(after) of \(before)")
      let isSame = try await reader.read(0..<10_000) == ContentFixture.noise(10_000, seed: 3)
      #expect(isSame)
      for (number, digest) in digests.enumerated() {
        let expected = number % 4 == 3 ? ContentFixture.noise(10_000, seed: UInt64(number)) : nil
        let isRight = try await fixture.bytes(of: digest) == expected
        #expect(isRight, "\(number)")
      }
    }
  }

  @Test func `finds remains of a crash that no commit names`() async throws {
    let world = SimulatedWorld(seed: 1)
    let fixture = try await ContentFixture(world)
    try await fixture.put(ContentFixture.noise(5_000, seed: 1), "a")
    let staged = [
      try await fixture.store.stage(ContentFixture.noise(200_000, seed: 2)),
      try await fixture.store.stage(ContentFixture.noise(60_000, seed: 3)),
    ]
    let after = SimulatedWorld(fileSystem: world.fileSystem.kill(), seed: 2)
    withExtendedLifetime(staged) {}
    try await fixture.database.close()
    let again = try await ContentFixture(after)
    try await again.reclaim()
    #expect(try again.files().map(\.kind) == [.pack])
    let statistics = try await again.store.statistics()
    #expect(statistics.packs.map(\.deadBytes) == [0])
    let isThere =
      try await again.bytes(of: ContentHasher.digest(of: ContentFixture.noise(5_000, seed: 1)))
      == ContentFixture.noise(5_000, seed: 1)
    #expect(isThere)
    try await again.database.close()
  }

  @Test func `continues in the next life where it stopped in the last`() async throws {
    let world = SimulatedWorld(seed: 1)
    let fixture = try await ContentFixture(world, grace: .seconds(10))
    let digest = try await fixture.put(ContentFixture.noise(5_000, seed: 1), "a")
    try await fixture.release(digest, "a")
    try await fixture.database.close()
    fixture.world.pass(seconds: 11)
    let again = try await ContentFixture(world, grace: .seconds(10))
    try await again.reclaim()
    #expect(try await again.store.statistics().contents == 0)
    #expect(try again.files().isEmpty)
    try await again.database.close()
  }

  /// Whichever comes first, a held content exists, and a missing one has no holder.
  @Test(arguments: Seeds.first(20))
  func `and new holders of the same content agree`(seed: UInt64) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let fixture = try await ContentFixture(world)
      let contents = (0..<4).map {
        ContentFixture.noise($0 < 2 ? 3_000 : 100_000, seed: UInt64($0))
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for worker in 0..<4 {
          group.addTask {
            var random = SeededRandom(seed: SeededRandom.derive(seed, worker))
            for _ in 0..<12 {
              let bytes = random.pick(contents)
              let digest = ContentHasher.digest(of: bytes)
              if random.chance(1, in: 2) {
                try await fixture.put(bytes, "\(worker)")
              } else {
                do {
                  try await fixture.hold(digest, "\(worker)")
                } catch let error as DatabaseError where error.code == .failedPrecondition {
                  continue
                }
              }
              let isThere = try await fixture.bytes(of: digest) == bytes
              #expect(isThere, "SEED=\(seed)")
              if random.chance(3, in: 4) { try await fixture.release(digest, "\(worker)") }
            }
          }
        }
        group.addTask {
          for _ in 0..<20 { _ = try await fixture.store.reclaimer.reclaim() }
        }
        try await group.waitForAll()
      }
      try await auditContents(fixture, contents, seed)
      try await fixture.database.close()
    }
  }
}

/// Every holder's content exists, and finally no content without a holder does.
private func auditContents(
  _ fixture: ContentFixture, _ contents: [[UInt8]], _ seed: UInt64
) async throws {
  // A merge under way may see an older state for a while.
  var held: Set<BlobDigest> = []
  for bytes in contents {
    let digest = ContentHasher.digest(of: bytes)
    let isHeld = try await fixture.store.read { (rows) throws(DatabaseError) in
      try !rows.holderNames(of: digest, atMost: 1).isEmpty
    }
    if isHeld { held.insert(digest) }
  }
  for _ in 0..<200 where try await fixture.store.statistics().contents > held.count {
    try await fixture.reclaim()
    await Task.yield()
  }
  for bytes in contents {
    let digest = ContentHasher.digest(of: bytes)
    let names = try await fixture.store.read { (rows) throws(DatabaseError) in
      try rows.holderNames(of: digest, atMost: 10)
    }
    let found = try await fixture.bytes(of: digest)
    let isRight = found == (names.isEmpty ? nil : bytes)
    #expect(isRight, "SEED=\(seed) \(digest) held by \(names)")
  }
  let statistics = try await fixture.store.statistics()
  let live = statistics.packs.reduce(0) { $0 + $1.liveBytes }
  let dead = statistics.packs.reduce(0) { $0 + $1.deadBytes }
  #expect(dead <= live, "SEED=\(seed) \(statistics)")
}
