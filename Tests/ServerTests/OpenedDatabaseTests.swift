// Databases that a server opens itself: once for all requests, and again after a permanent failure.

#if Server
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct OpenedDatabaseTests {
    private let world = SimulatedWorld(seed: 1)
    private let openings = Guarded(0)

    private func opened() -> OpenedDatabase {
      OpenedDatabase { [world, openings] () throws(DatabaseError) in
        openings.withLock { $0 += 1 }
        return try await Database.open(at: "/db", environment: world.environment)
      }
    }

    private var count: Int { openings.withLock { $0 } }

    @Test func `All callers get the same one`() async throws {
      let opened = opened()
      async let (one, other) = (opened.served(), opened.served())
      #expect(try await one === other)
      #expect(count == 1)
      try await opened.close()
      await #expect {
        _ = try await opened.served()
      } throws: { ($0 as? DatabaseError)?.code == .unavailable }
    }

    /// The disk once refused a sync, and from then on the server refused every write until an
    /// operator restarted it.
    @Test func `A database that a failed write has stopped is reopened`() async throws {
      let opened = opened()
      let first = try await opened.served().database
      try await first.document("c/kept").setData(["n": 1])
      world.fileSystem.inject([
        Fault(failing: [.sync, .write], of: .log, errno: 5, isSticky: true)
      ])
      await #expect(throws: DatabaseError.self) {
        try await first.document("c/lost").setData(["n": 1])
      }
      #expect(first.failure != nil)
      world.fileSystem.inject([])
      let second = try await opened.served().database
      #expect(second !== first && second.failure == nil && count == 2)
      #expect(try await second.document("c/kept").getDocument().exists)
      try await second.document("c/more").setData(["n": 1])
      #expect(try await opened.served().database === second)
      try await opened.close()
    }

    @Test func `The next call retries a failed open`() async throws {
      let opened = opened()
      world.fileSystem.inject([
        Fault(failing: [.create, .open, .read], of: .superblock, errno: 5, isSticky: true),
        Fault(failing: [.create], of: .log, errno: 5, isSticky: true),
      ])
      await #expect(throws: DatabaseError.self) { try await opened.served() }
      world.fileSystem.inject([])
      try await opened.served()
      #expect(count == 2)
      try await opened.close()
    }
  }
#endif
