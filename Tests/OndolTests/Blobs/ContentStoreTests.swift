// Contents of every length around every limit go in and come out unchanged, and are stored once,
// whoever puts them. Wrong digests, inputs that end too early and full disks leave nothing.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Contents` {
  private func withFixture(
    _ world: SimulatedWorld = SimulatedWorld(seed: 1),
    _ body: (ContentFixture) async throws -> Void
  ) async throws {
    let fixture = try await ContentFixture(world)
    try await body(fixture)
    try await fixture.database.close()
  }

  @Test func `come out as they went in, whatever their length`() async throws {
    let frame = ContentFrame.length
    let lengths = [
      0, 1, 99, 100, 101, 1000, frame - 1, frame, frame + 1, 3 * frame, (1 << 20) - 1, 1 << 20,
      (1 << 20) + 1, (2 << 20) + 12_345,
    ]
    for packed in [64 << 10, 1 << 20] {
      let world = SimulatedWorld(seed: 1)
      var limits = ContentFixture.smallLimits
      limits.packedContentSize = packed
      var digests: [BlobDigest: [UInt8]] = [:]
      let fixture = try await ContentFixture(world, limits)
      for (number, length) in lengths.enumerated() {
        let noise = ContentFixture.noise(length, seed: UInt64(number))
        let text = noise.map { $0 & 1 + 0x30 }
        for bytes in [noise, text] {
          let digest = try await fixture.put(bytes, "\(number)-\(bytes == noise)")
          #expect(digest == ContentHasher.digest(of: bytes))
          digests[digest] = bytes
        }
      }
      for (digest, bytes) in digests {
        let isSame = try await fixture.bytes(of: digest) == bytes
        #expect(isSame, "\(bytes.count) bytes before closing")
      }
      try await fixture.database.close()
      let again = try await ContentFixture(world, limits)
      for (digest, bytes) in digests {
        let isSame = try await again.bytes(of: digest) == bytes
        #expect(isSame, "\(bytes.count) bytes after closing")
      }
      try await again.database.close()
    }
  }

  @Test func `give any range of their bytes`() async throws {
    try await withFixture { fixture in
      var random = SeededRandom(seed: 7)
      for length in [90, 40_000, 64 << 10, 300_000] {
        let bytes = ContentFixture.noise(length, seed: UInt64(length)).map { $0 & 0x3f }
        let digest = try await fixture.put(bytes, "\(length)")
        let reader = try #require(try await fixture.store.reader(of: digest))
        for _ in 0..<50 {
          let lower = random.below(length + 1)
          let upper = lower + random.below(length - lower + 1)
          let isSame = try await reader.read(lower..<upper) == Array(bytes[lower..<upper])
          #expect(isSame, "\(lower)..<\(upper) of \(length)")
        }
        await #expect(throws: DatabaseError.self) { try await reader.read(0..<(length + 1)) }
      }
    }
  }

  @Test func `are stored once, however often and by whomever they are put`() async throws {
    try await withFixture { fixture in
      let image = ContentFixture.noise(10_000, seed: 3)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<1_000 { group.addTask { try await fixture.put(image, "\(number)") } }
        try await group.waitForAll()
      }
      let statistics = try await fixture.store.statistics()
      #expect(statistics.contents == 1)
      #expect(statistics.holders == 1_000)
      #expect(statistics.leases == 0)
      #expect(statistics.logicalBytes == 10_000)
      #expect(try fixture.files().reduce(0) { $0 + $1.sizeBytes } < 11_000)
    }
  }

  @Test func `come in pieces of any length`() async throws {
    try await withFixture { fixture in
      let bytes = ContentFixture.noise(3_000_000, seed: 5)
      var random = SeededRandom(seed: 5)
      for length in [0, 50, 5_000, 64 << 10, 65_537, 1 << 20, 3_000_000] {
        let intake = fixture.store.beginIntake()
        var start = 0
        while start < length {
          let end = min(length, start + 1 + random.below(200_000))
          try await intake.append(Array(bytes[start..<end]))
          start = end
        }
        let staged = try await intake.finish()
        #expect(staged.length == length)
        try await fixture.store.lease(staged)
        let isSame = try await fixture.bytes(of: staged.digest) == Array(bytes[..<length])
        #expect(isSame, "\(length) bytes")
      }
    }
  }

  @Test func `leave nothing when they are not the expected ones`() async throws {
    try await withFixture { fixture in
      let wrong = ContentHasher.digest(of: [1])
      for length in [50, 5_000, 2_000_000] {
        await #expect(throws: DatabaseError.self) {
          try await fixture.store.stage(ContentFixture.noise(length, seed: 1), expecting: wrong)
        }
      }
      try await fixture.reclaim()
      #expect(try await fixture.store.statistics().contents == 0)
      #expect(try fixture.files().isEmpty)
    }
  }

  @Test func `leave nothing when they are cancelled on their way`() async throws {
    try await withFixture { fixture in
      let intake = fixture.store.beginIntake()
      try await intake.append(ContentFixture.noise(3_000_000, seed: 1))
      await intake.abandon()
      do {
        _ = try await fixture.store.stage(ContentFixture.noise(2_000_000, seed: 2))
        _ = try await fixture.store.stage(ContentFixture.noise(20_000, seed: 3))
      }
      try await fixture.reclaim()
      #expect(try fixture.files().isEmpty)
    }
  }

  @Test func `cannot be held when they are not stored`() async throws {
    try await withFixture { fixture in
      let error = await #expect(throws: DatabaseError.self) {
        try await fixture.hold(ContentHasher.digest(of: [1, 2]), "a")
      }
      #expect(error?.code == .failedPrecondition)
    }
  }

  @Test func `are refused when the disk is full, and then nothing of them is there`() async throws {
    let world = SimulatedWorld(seed: 1)
    try await withFixture(world) { fixture in
      try await fixture.put(ContentFixture.noise(30_000, seed: 1), "a")
      try await fixture.database.synchronize()
      let kept = ContentFixture.noise(30_000, seed: 1)
      world.fileSystem.setCapacity(world.fileSystem.used + 50_000)
      let error = await #expect(throws: DatabaseError.self) {
        try await fixture.put(ContentFixture.noise(3_000_000, seed: 2), "b")
      }
      #expect(error?.code == .resourceExhausted)
      // Some room for a pack is reserved before its use.
      var small = 0
      let next = await #expect(throws: DatabaseError.self) {
        while small < 200 {
          small += 1
          try await fixture.put(ContentFixture.noise(60_000, seed: UInt64(small + 9)), "\(small)")
        }
      }
      #expect(next?.code == .resourceExhausted)
      let isThere = try await fixture.bytes(of: ContentHasher.digest(of: kept)) == kept
      #expect(isThere)
      world.fileSystem.setCapacity(nil)
      try await fixture.put(ContentFixture.noise(60_000, seed: 2), "b")
      try await fixture.reclaim()
      let statistics = try await fixture.store.statistics()
      #expect(statistics.contents == small + 1)
      #expect(statistics.packs.reduce(0) { $0 + $1.deadBytes } < 100_000)
    }
  }
}
