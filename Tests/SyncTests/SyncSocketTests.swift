// The streams over real connections: a device and a server on the loopback interface.

#if Server && Sync
  import Logging
  import Ondol
  import OndolServer
  import Testing

  @testable import OndolSync

  @Suite struct SyncSocketTests {
    /// Runs `body` with the address of a server.
    private func serving(
      _ database: Database, port: Int = 0, _ body: @escaping @Sendable (String) async throws -> Void
    ) async throws {
      var options = Server.Options()
      options.firestorePort = port
      options.grace = .milliseconds(100)
      options.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let (addresses, tell) = AsyncStream.makeStream(of: String.self)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try await server.run { addresses in tell.yield(addresses.firestore) }
        }
        group.addTask {
          defer { server.shutDown() }
          for await address in addresses { return try await body(address) }
        }
        try await group.waitForAll()
      }
    }

    @Test func `A device and a server agree over sockets, and after the server's restart`()
      async throws
    {
      let served = try await Database.inMemory(
        options: Database.Options(changeRetention: Database.ChangeRetention()))
      try await served.document("items/lamp").setData(["n": 1])
      let database = try await Database.inMemory()
      let (ports, note) = AsyncStream.makeStream(of: (Sync, Int).self)
      try await serving(served) { address in
        let sync = try await Sync(
          database, with: try .ondol("http://\(address)", project: "p"))
        try await sync.follow(database.collection("items"))
        try await sync.settle()
        try await database.document("items/lamp").updateData(["n": FieldValue.increment(1)])
        try await sync.settle()
        let lamp = try await served.document("items/lamp").getDocument()
        #expect(lamp["n"] as Int? == 2)
        let port = address.split(separator: ":").last.flatMap { Int($0) } ?? 0
        note.yield((sync, port))
      }
      var iterator = ports.makeAsyncIterator()
      let (sync, port) = try #require(await iterator.next())
      // Nobody serves now.
      try await database.document("items/lamp").updateData(["n": FieldValue.increment(1)])
      for await state in sync.states where !state.isOnline { break }
      try await serving(served, port: port) { _ in
        await sync.reconnect()
        try await sync.settle()
        let lamp = try await served.document("items/lamp").getDocument()
        #expect(lamp["n"] as Int? == 3)
      }
      await sync.stop()
      try await database.close()
    }

    @Test func `An address that is none is refused`() {
      for text in [
        "shop.example", "ftp://a", "http://", "http://a/b", "http://a:99999", "http://u@a",
      ] {
        #expect(throws: DatabaseError.self) { try SyncServer.ondol(text, project: "p") }
      }
    }
  }
#endif
