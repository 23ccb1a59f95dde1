// Sessions of the WebSocket protocol: what each request is answered with, what is pushed and in
// which order, and what is refused.

#if Server
  import Foundation
  import Ondol
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct `Sessions of the tree` {
    private func value(_ path: String, _ stage: TreeStage) async throws -> Value {
      try await stage.database.tree.child(path).getData().value
    }

    @Test func `A session greets, keeps alive and answers pings`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(35) { $0.host = "127.0.0.1:9000" }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await session.run() }
        // The greeting has its turn first or later; a request waits for no greeting.
        await session.receive("0")
        await session.receive("{\"t\":\"c\",\"d\":{\"t\":\"p\",\"d\":{}}}")
        #expect(client.state.withLock { $0.pongs } == 1)
        while client.state.withLock({ $0.hello }) == nil { await Task.yield() }
        group.cancelAll()
      }
      let hello = client.state.withLock { $0.hello }
      #expect(hello?["v"] == .string("5") && hello?["h"] == .string("127.0.0.1:9000"))
      #expect(hello?["s"] == .string("z") && hello?["ts"]?.integer != nil)
    }

    @Test func `A write is seen by whoever made it before it is acknowledged`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      let (other, _) = stage.session(2)
      #expect(await client.listen(session, "/rooms")?.status == "ok")
      #expect(client.view("rooms") == .null)
      let listener = TreeClient()
      _ = await listener.ask(other, "p", "{\"p\":\"/rooms/b\",\"d\":2}")
      // The other's write as well, because it came before.
      let answer = await client.ask(session, "p", "{\"p\":\"/rooms/a\",\"d\":{\"n\":1}}")
      #expect(answer == TreeClient.Answer(status: "ok", data: .string("")))
      #expect(client.view("rooms") == .map(["a": .map(["n": .integer(1)]), "b": .integer(2)]))
      #expect(try await value("rooms/a/n", stage) == .integer(1))
    }

    @Test func `Only what changed is pushed, and one commit is one message`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      _ = await client.ask(
        session, "p", "{\"p\":\"/\",\"d\":{\"a\":{\"x\":1,\"y\":2},\"b\":{\"z\":3}}}")
      _ = await client.listen(session, "/")
      func last() -> (action: String, body: Value)? { client.state.withLock { $0.pushes.last } }
      _ = await client.ask(session, "p", "{\"p\":\"/a/x\",\"d\":7}")
      #expect(last()?.action == "d")
      #expect(last()?.body == .map(["p": .string("a/x"), "d": .integer(7)]))
      _ = await client.ask(session, "m", "{\"p\":\"/\",\"d\":{\"a/y\":8,\"b\":null,\"c/d\":true}}")
      #expect(last()?.action == "m")
      #expect(
        last()?.body["d"]
          == .map(["a/y": .integer(8), "b": .null, "c": .map(["d": .boolean(true)])]))
      _ = await client.ask(session, "p", "{\"p\":\"/a/.priority\",\"d\":\"first\"}")
      #expect(
        last()?.body == .map(["p": .string("a/.priority"), "d": .string("first")]))
      let count = client.state.withLock { $0.pushes.count }
      _ = await client.ask(session, "p", "{\"p\":\"/a/x\",\"d\":7}")
      #expect(client.state.withLock { $0.pushes.count } == count)
      #expect(client.view("") == (try await stage.database.tree.getData().exportedValue))
    }

    @Test func `A client that has the data already is not sent it again`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      let data = "{\"a\":{\".value\":1,\".priority\":2},\"b\":{\"c\":\"d\"}}"
      _ = await client.ask(session, "p", "{\"p\":\"/x\",\"d\":\(data)}")
      _ = await client.listen(session, "/x")
      let view = try #require(client.listening("/x")?.view)
      let hash = TreeHash.hash(of: try await stage.database.tree.child("x").getData().nodeData)
      let (second, again) = stage.session(2)
      _ = await again.listen(second, "/x", hash: hash, keeping: view)
      #expect(again.listening("/x")?.pushes == 0)
      _ = await again.ask(second, "p", "{\"p\":\"/x/b/c\",\"d\":\"e\"}")
      #expect(again.listening("/x")?.pushes == 1)
      #expect(
        again.view("/x") == (try await stage.database.tree.child("x").getData().exportedValue))
      let (third, late) = stage.session(3)
      _ = await late.listen(third, "/x", hash: hash, keeping: view)
      #expect(late.listening("/x")?.pushes == 1)
    }

    @Test func `Queries have their own view, and a window's change is one message`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      _ = await client.ask(
        session, "p", "{\"p\":\"/s\",\"d\":{\"a\":{\"n\":1},\"b\":{\"n\":2},\"c\":{\"n\":3}}}")
      _ = await client.listen(
        session, "/s", query: "{\"i\":\"n\",\"l\":2,\"vf\":\"r\"}", tag: 4)
      #expect(
        client.view("s", tag: 4)
          == .map(["b": .map(["n": .integer(2)]), "c": .map(["n": .integer(3)])]))
      _ = await client.ask(session, "p", "{\"p\":\"/s/d\",\"d\":{\"n\":4}}")
      #expect(
        client.view("s", tag: 4)
          == .map(["c": .map(["n": .integer(3)]), "d": .map(["n": .integer(4)])]))
      #expect(client.state.withLock { $0.pushes.last?.action } == "m")
      _ = await client.ask(session, "n", "{\"p\":\"/s\",\"q\":{},\"t\":4}")
      let count = client.state.withLock { $0.pushes.count }
      _ = await client.ask(session, "p", "{\"p\":\"/s/e\",\"d\":{\"n\":5}}")
      #expect(client.state.withLock { $0.pushes.count } == count)
    }

    @Test func `A transaction by hash wins once, and the loser has what it lost to`() async throws {
      let stage = try await TreeStage.inMemory()
      let sessions = (1...4).map { stage.session(UInt64($0)) }
      _ = await sessions[0].1.ask(sessions[0].0, "p", "{\"p\":\"/n\",\"d\":0}")
      for (session, client) in sessions { _ = await client.listen(session, "/n") }
      let stale = await withTaskGroup(of: Int.self) { group in
        for (session, client) in sessions {
          group.addTask {
            var stale = 0
            for _ in 0..<25 {
              while true {
                let seen = client.view("n")
                let hash = Self.hash(seen)
                let next = (seen.integer ?? 0) + 1
                let answer = await client.ask(
                  session, "p", "{\"p\":\"/n\",\"d\":\(next),\"h\":\"\(hash)\"}")
                if answer?.status == "ok" { break }
                #expect(answer?.status == "datastale")
                // What it was computed from has been replaced before the answer.
                #expect(client.view("n") != seen)
                stale += 1
              }
            }
            return stale
          }
        }
        return await group.reduce(0, +)
      }
      #expect(try await value("n", stage) == .integer(100))
      print("Transactions by hash: 100 won, \(stale) lost")
    }

    private static func hash(_ value: Value) -> String {
      guard let number = value.integer else { return "" }
      let digits = String(Double(number).bitPattern, radix: 16)
      let text = "number:" + String(repeating: "0", count: 16 - digits.count) + digits
      return ReferenceHash.base64(ofText: text)
    }

    @Test func `A get answers with values and priorities`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      _ = await client.ask(
        session, "p", "{\"p\":\"/g\",\"d\":{\"a\":{\".value\":1,\".priority\":5},\"b\":2}}")
      let all = await client.ask(session, "g", "{\"p\":\"/g\",\"q\":{}}")
      #expect(
        all?.data
          == .map([
            "a": .map([".value": .integer(1), ".priority": .integer(5)]), "b": .integer(2),
          ]))
      let one = await client.ask(
        session, "g", "{\"p\":\"/g\",\"q\":{\"i\":\".value\",\"sp\":2,\"ep\":2}}")
      #expect(one?.data == .map(["b": .integer(2)]))
    }

    @Test func `The server computes its values`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      let body = """
        {"p":"/v","d":{"t":{".sv":"timestamp"},"n":{".sv":{"increment":2}},
         "p":{".value":1,".priority":{".sv":"timestamp"}}}}
        """
      for _ in 0..<2 { #expect(await client.ask(session, "p", body)?.status == "ok") }
      _ = await client.ask(session, "m", "{\"p\":\"/v\",\"d\":{\"n\":{\".sv\":{\"increment\":3}}}}")
      let snapshot = try await stage.database.tree.child("v").getData()
      let now = stage.database.wallClock / 1_000
      #expect(snapshot.childSnapshot(forPath: "n").value == .integer(7))
      let time = try #require(snapshot.childSnapshot(forPath: "t").value.integer)
      #expect((now - 60_000...now).contains(time))
      let priority = try #require(snapshot.childSnapshot(forPath: "p").priority?.integer)
      #expect((now - 60_000...now).contains(priority))
    }

    // MARK: - Who may

    @Test func `Rules decide, and a listener loses what it may not see any more`() async throws {
      let stage = TreeStage(try await Database.inMemory(), isOpen: false)
      let (session, client) = stage.session(1)
      #expect(await client.listen(session, "/users/anna")?.status == "permission_denied")
      try await stage.deploy(
        """
        {"rules": {"users": {"$user": {
          ".read": "auth.uid == $user && !root.child('locked').child($user).exists()",
          ".write": "auth.uid == $user && (!data.exists() || newData.exists())",
          "age": {".validate":
            "newData.isNumber() && (!data.exists() || newData.val() > data.val())"}}}}}
        """)
      #expect(await client.listen(session, "/users/anna")?.status == "permission_denied")
      let answer = await client.ask(session, "auth", "{\"cred\":\"anna\"}")
      #expect(answer?.status == "ok" && answer?.data["auth"]?["uid"] == .string("anna"))
      #expect(await client.listen(session, "/users/anna")?.status == "ok")
      func write(_ path: String, _ json: String) async -> String? {
        await client.ask(session, "p", "{\"p\":\"\(path)\",\"d\":\(json)}")?.status
      }
      #expect(await write("/users/anna", "{\"age\":30}") == "ok")
      #expect(await write("/users/anna/age", "29") == "permission_denied")
      #expect(await write("/users/anna/age", "31") == "ok")
      #expect(await write("/users/ben", "{\"age\":30}") == "permission_denied")
      #expect(await write("/users/anna", "null") == "permission_denied")
      #expect(client.view("users/anna") == .map(["age": .integer(31)]))
      // An administrator locks her out: the next change says so instead of showing itself.
      let (admin, office) = stage.session(2)
      _ = await office.ask(admin, "gauth", "{\"cred\":\"admin\"}")
      #expect(await office.ask(admin, "p", "{\"p\":\"/locked/anna\",\"d\":true}")?.status == "ok")
      #expect(await office.ask(admin, "p", "{\"p\":\"/users/anna/age\",\"d\":99}")?.status == "ok")
      _ = await client.ask(session, "s", "{\"c\":{}}")
      try await stage.poll(session)
      #expect(client.listening("users/anna")?.isRevoked == true)
      #expect(client.view("users/anna") == .map(["age": .integer(31)]))
    }

    @Test func `Signing out revokes, and a credential ends by itself`() async throws {
      let clock = ManualClock()
      let device = SimulatedDevice(clock: clock)
      let stage = TreeStage(try await Database.open(at: "auth.ondol", on: device), isOpen: false)
      try await stage.deploy("{\"rules\": {\"a\": {\".read\": \"auth != null\"}}}")
      try await clock.watch {
        let (session, client) = stage.session(1)
        _ = await client.ask(session, "auth", "{\"cred\":\"anna\"}")
        #expect(await client.listen(session, "/a")?.status == "ok")
        _ = await client.ask(session, "unauth", "{}")
        #expect(client.listening("a")?.isRevoked == true)
        let end = clock.microsecondsSince1970 + 3_600_000_000
        _ = await client.ask(session, "auth", "{\"cred\":\"until \(end)\"}")
        #expect(await client.listen(session, "/a")?.status == "ok")
        await clock.advance(by: .seconds(3_599))
        #expect(await client.ask(session, "g", "{\"p\":\"/a\"}")?.status == "ok")
        await clock.advance(by: .seconds(1))
        #expect(await client.ask(session, "g", "{\"p\":\"/a\"}")?.status == "permission_denied")
        #expect(client.state.withLock { $0.pushes.contains { $0.action == "ac" } })
        #expect(client.listening("a")?.isRevoked == true)
        #expect(
          await client.ask(session, "auth", "{\"cred\":\"expired\"}")?.status == "expired_token")
        try await stage.database.close()
      }
    }

    @Test func `An administrator acts as somebody else`() async throws {
      let stage = TreeStage(try await Database.inMemory(), isOpen: false)
      try await stage.deploy("{\"rules\": {\"$u\": {\".write\": \"auth.uid == $u\"}}}")
      let (session, client) = stage.session(1)
      for (acting, own, other) in [
        ("", "ok", "ok"), (",\"authvar\":{\"uid\":\"a\"}", "ok", "permission_denied"),
        (",\"noauth\":true", "permission_denied", "permission_denied"),
      ] {
        _ = await client.ask(session, "gauth", "{\"cred\":\"admin\"\(acting)}")
        #expect(await client.ask(session, "p", "{\"p\":\"/a\",\"d\":1}")?.status == own)
        #expect(await client.ask(session, "p", "{\"p\":\"/b\",\"d\":1}")?.status == other)
      }
    }

    // MARK: - Hostile input

    @Test(arguments: [
      "{", "[]", "1234567", "{\"t\":\"x\",\"d\":{}}", "{\"t\":\"d\",\"d\":{\"a\":\"q\"}}", "null",
      "{\"t\":\"d\"}", "{\"t\":\"d\",\"d\":{\"r\":1e999}}", String(repeating: "[", count: 5_000),
      "\"\"",
    ])
    func `What is no message ends the session`(frame: String) async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      await session.receive(frame)
      #expect(client.isClosed)
      #expect(await client.ask(session, "p", "{\"p\":\"/a\",\"d\":1}") == nil)
      #expect(try await value("a", stage) == .null)
    }

    @Test(arguments: [
      "{\"p\":\"/a/../b\",\"d\":1}", "{\"p\":\"/a.b\",\"d\":1}", "{\"p\":\"/$a\",\"d\":1}",
      "{\"p\":\"/a#b\",\"d\":1}", "{\"p\":\"/[a]\",\"d\":1}", "{\"p\":\"/a\\u0007\",\"d\":1}",
      "{\"p\":\"/a\\u007f\",\"d\":1}", "{\"p\":7,\"d\":1}", "{\"d\":1}",
      "{\"p\":\"/a\",\"d\":{\"b/c\":1}}", "{\"p\":\"/a\",\"d\":{\"\":1}}",
      "{\"p\":\"/a\",\"d\":{\"b\":{\".x\":1}}}", "{\"p\":\"/a\",\"d\":{\".value\":1,\"b\":1}}",
      "{\"p\":\"/a\",\"d\":{\".sv\":\"now\"}}",
      "{\"p\":\"/a\",\"d\":{\".value\":1,\".priority\":true}}", "{\"p\":\"/a/.priority\",\"d\":{}}",
    ])
    func `A wrong write is refused, and nothing of it is there`(body: String) async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      let answer = try #require(await client.ask(session, "p", body))
      #expect(answer.status == "invalid_data")
      #expect(try await value("", stage) == .null)
      #expect(await client.ask(session, "p", "{\"p\":\"/a\",\"d\":1}")?.status == "ok")
    }

    @Test func `Keys that look alike are different, and percent signs are themselves`() async throws
    {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      _ = await client.listen(session, "/k")
      for (key, number) in [("\u{e9}", 1), ("e\u{301}", 2), ("%2F", 3), ("a b", 4), ("\u{301}", 5)]
      {
        let body = "{\"p\":\(TreeText.json("/k/" + key)),\"d\":\(number)}"
        #expect(await client.ask(session, "p", body)?.status == "ok")
      }
      let children = try await stage.database.tree.child("k").getData().children
      #expect(children.count == 5)
      let numbers = Dictionary(
        uniqueKeysWithValues: children.map { (Array(($0.key ?? "").utf8), $0.value) })
      #expect(numbers[Array("\u{e9}".utf8)] == .integer(1))
      #expect(numbers[Array("e\u{301}".utf8)] == .integer(2))
      #expect(numbers[Array("%2F".utf8)] == .integer(3))
      #expect(numbers[Array("\u{301}".utf8)] == .integer(5))
      let json = TreeText.json(try await stage.database.tree.child("k").getData().nodeData)
      #expect(Array(json.utf8).split(separator: UInt8(ascii: ",")).count == 5)
    }

    @Test func `Nesting has a limit that is an answer`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      for (depth, status) in [(90, "ok"), (110, "invalid_data")] {
        let json =
          String(repeating: "{\"a\":", count: depth) + "1" + String(repeating: "}", count: depth)
        #expect(await client.ask(session, "p", "{\"p\":\"/deep\",\"d\":\(json)}")?.status == status)
      }
    }

    @Test func `What is too large ends the session before it is kept`() async throws {
      let stage = try await TreeStage.inMemory()
      func session() -> (TreeSession, TreeClient) { stage.session(1) { $0.messageLimit = 1 << 16 } }
      let (first, one) = session()
      await first.receive("999999")
      #expect(one.isClosed)
      let (second, two) = session()
      await second.receive("9")
      for _ in 0..<5 { await second.receive(String(repeating: "1", count: 16_000)) }
      #expect(two.isClosed)
      let (third, three) = session()
      _ = await three.ask(
        third, "p", "{\"p\":\"/a\",\"d\":\"\(String(repeating: "x", count: 60_000))\"}")
      #expect(!three.isClosed)
      #expect(try await value("a", stage).string?.count == 60_000)
    }

    @Test func `Listens and operations on disconnect are limited`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1) {
        $0.mostListens = 2
        $0.mostOnDisconnect = 2
      }
      for (number, status) in [(1, "ok"), (2, "ok"), (3, "too_big")] {
        #expect(await client.listen(session, "/l\(number)")?.status == status)
        let answer = await client.ask(session, "o", "{\"p\":\"/o\(number)\",\"d\":1}")
        #expect(answer?.status == status)
      }
      #expect(await client.listen(session, "/l1")?.status == "ok")
      await session.end()
    }

    @Test func `A closed database ends the session`() async throws {
      let stage = try await TreeStage.inMemory()
      let (session, client) = stage.session(1)
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await session.run() }
        _ = await client.listen(session, "/a")
        try? await stage.database.close()
      }
      #expect(client.isClosed)
    }
  }

  extension TreeStage {
    /// Has a session push what has changed, as its task would.
    func poll(_ session: TreeSession) async throws {
      try await session.push()
    }
  }
#endif
