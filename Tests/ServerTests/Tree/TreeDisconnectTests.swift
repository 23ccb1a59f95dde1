// What is to be written when a connection ends is written once, however it ends: the client leaves,
// the server stops, its power fails, or another server of a store finds that it has died.

#if Server
  import Ondol
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct `Operations on disconnect` {
    private func value(_ path: String, in database: Database) async throws -> Value {
      try await database.tree.child(path).getData().value
    }

    @Test func `They happen when a session ends, once, and only that session's`() async throws {
      let stage = try await TreeStage.inMemory()
      let (first, minji) = stage.session(1)
      let (second, jiho) = stage.session(2)
      for (session, client, name) in [(first, minji, "minji"), (second, jiho, "jiho")] {
        _ = await client.ask(session, "p", "{\"p\":\"/online/\(name)\",\"d\":true}")
        let answer = await client.ask(session, "o", "{\"p\":\"/online/\(name)\",\"d\":null}")
        #expect(answer?.status == "ok")
        _ = await client.ask(
          session, "om",
          "{\"p\":\"/seen\",\"d\":{\"\(name)\":{\".sv\":{\"increment\":1}},\"last\":\"\(name)\"}}")
      }
      await first.end()
      #expect(try await value("online", in: stage.database) == .map(["jiho": .boolean(true)]))
      #expect(
        try await value("seen", in: stage.database)
          == .map(["minji": .integer(1), "last": .string("minji")]))
      await first.end()
      #expect(try await value("seen/minji", in: stage.database) == .integer(1))
      await second.end()
      #expect(try await value("online", in: stage.database) == .null)
      #expect(try await value("seen/jiho", in: stage.database) == .integer(1))
      #expect(try await stage.database.verify(depth: .full) == [])
    }

    @Test func `A cancelled one does not happen, and a later one replaces those below`()
      async throws
    {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      _ = await client.ask(session, "o", "{\"p\":\"/a\",\"d\":1}")
      _ = await client.ask(session, "o", "{\"p\":\"/b/c\",\"d\":1}")
      _ = await client.ask(session, "o", "{\"p\":\"/b\",\"d\":{\"d\":2}}")
      _ = await client.ask(session, "oc", "{\"p\":\"/a\",\"d\":null}")
      await session.end()
      #expect(try await value("", in: stage.database) == .map(["b": .map(["d": .integer(2)])]))
    }

    @Test func `What rules do not allow is not noted`() async throws {
      let stage = TreeStage(try await Database.inMemory(), isOpen: false)
      try await stage.deploy("{\"rules\": {\"$u\": {\".write\": \"auth.uid == $u\"}}}")
      let (session, client) = stage.session(1)
      _ = await client.ask(session, "auth", "{\"cred\":\"a\"}")
      let own = await client.ask(session, "o", "{\"p\":\"/a\",\"d\":1}")
      let other = await client.ask(session, "o", "{\"p\":\"/b\",\"d\":1}")
      #expect(own?.status == "ok" && other?.status == "permission_denied")
      // Asking wrote nothing.
      #expect(try await value("", in: stage.database) == .null)
      await session.end()
      #expect(try await value("", in: stage.database) == .map(["a": .integer(1)]))
    }

    @Test func `A server that is killed does them at its next start, once`() async throws {
      for seed in Seeds.first(20) {
        let device = SimulatedDevice(seed: seed)
        var random = SeededRandom(seed: seed)
        let database = try await Database.open(
          at: "d.ondol", options: Database.Options(durability: .power), on: device)
        let stage = TreeStage(database)
        var expected = 0
        for number in 0..<(1 + random.below(6)) {
          let (session, client) = stage.session(UInt64(number) << 60 | 5)
          let body = "{\"p\":\"/\",\"d\":{\"n/\(number)\":{\".sv\":{\"increment\":1}}}}"
          let answer = await client.ask(session, "om", body)
          #expect(answer?.status == "ok")
          if random.chance(1, in: 3) { await session.end() }
          expected += 1
        }
        device.powerCut()
        for _ in 0..<2 {
          let next = try await Database.open(at: "d.ondol", on: device)
          let counts = try await value("n", in: next)
          let values = counts.map.map { Array($0.values) } ?? counts.array ?? []
          #expect(values.count == expected, "SEED=\(seed)")
          #expect(values.allSatisfy { $0 == .integer(1) }, "SEED=\(seed)")
          #expect(try await next.verify(depth: .full) == [])
          try await next.close()
        }
      }
    }

    @Test func `Closing the database does them`() async throws {
      let device = SimulatedDevice()
      let database = try await Database.open(at: "d.ondol", on: device)
      let (session, client) = TreeStage(database).session(7)
      _ = await client.ask(session, "o", "{\"p\":\"/a\",\"d\":1}")
      try await database.close()
      await session.end()
      let next = try await Database.open(at: "d.ondol", on: device)
      #expect(try await value("a", in: next) == .integer(1))
      try await next.close()
    }

    @Test func `Of several servers another does those of one that has died, once`() async throws {
      let world = SimulatedWorld(seed: 1)
      let store = SimulatedStore(seed: 1, environment: world.environment)
      func open(on way: (any RemoteStore)? = nil) async throws -> Database {
        try await Database.open(at: "store", environment: world.environment, on: way ?? store)
      }
      let way = MortalStore(store)
      let first = try await open(on: way)
      let (lost, minji) = TreeStage(first).session(1)
      _ = await minji.ask(
        lost, "om", "{\"p\":\"/\",\"d\":{\"minji\":{\".sv\":{\"increment\":1}}}}")
      let (second, third) = (try await open(), try await open())
      // The same number on another server is another connection.
      let (alive, jiho) = TreeStage(second).session(1)
      _ = await jiho.ask(alive, "o", "{\"p\":\"/jiho\",\"d\":1}")
      for database in [second, third] { await database.carryOutCloseOperationsOfOthers() }
      #expect(try await value("", in: second) == .null)
      way.die()
      world.pass(seconds: 121)
      for database in [second, third, second] {
        await database.engine.forgetVersions()
        try await database.refresh()
        await database.carryOutCloseOperationsOfOthers()
      }
      try await second.refresh()
      #expect(try await value("", in: second) == .map(["minji": .integer(1)]))
      await alive.end()
      #expect(
        try await value("", in: second) == .map(["minji": .integer(1), "jiho": .integer(1)]))
      for database in [second, third] { try await database.close() }
      withExtendedLifetime(first) {}
    }
  }
#endif
