// The REST interface: methods, parameters, tags, errors and streams, with requests as they come
// over HTTP and no server.

#if Server
  import Foundation
  import Ondol
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct `The REST interface of the tree` {
    private let stage: TreeStage
    private let rest: TreeREST

    init() async throws {
      stage = try await TreeStage.inMemory()
      rest = TreeREST(stage.database, stage.access)
    }

    private func ask(
      _ method: String, _ target: String, _ body: String = "", _ headers: [String: String] = [:]
    ) async -> TreeHTTPResponse {
      await rest.respond(
        to: TreeHTTPRequest(
          method: method, target: target, headers: headers, body: Array(body.utf8)))
    }

    private func tag(_ response: TreeHTTPResponse) -> String? {
      response.headers.first { $0.name == "ETag" }?.value
    }

    private let dinosaurs = """
      {"lambeosaurus":{"height":2.1},"stegosaurus":{"height":4},"bruhath":{"height":25},
       "linhenykus":{"height":0.6},"pterodactyl":{"height":0.6}}
      """

    // MARK: - Methods

    @Test func `Each method does what it does`() async throws {
      #expect(await ask("GET", "/a.json").body == "null")
      #expect(
        await ask("PUT", "/a.json", "{\"b\":1,\"c\":[true]}").body == "{\"b\":1,\"c\":[true]}")
      #expect(await ask("GET", "/a/b.json").body == "1")
      #expect(await ask("PATCH", "/a.json", "{\"b\":2,\"d/e\":3}").status == 200)
      #expect(await ask("GET", "/a.json").body == "{\"b\":2,\"c\":[true],\"d\":{\"e\":3}}")
      let name = await ask("POST", "/list.json", "\"x\"").body
      let key = try #require(name.split(separator: "\"").dropFirst(3).first)
      #expect(key.utf8.count == 20)
      #expect(await ask("GET", "/list.json").body == "{\"\(key)\":\"x\"}")
      #expect(await ask("DELETE", "/a/c.json").body == "null")
      #expect(await ask("GET", "/a/c.json").body == "null")
      #expect(
        await ask("POST", "/a.json", "{\"b\":9}", ["x-http-method-override": "PATCH"]).status == 200
      )
      #expect(await ask("GET", "/a/b.json").body == "9")
      #expect(await ask("GET", "/.json?shallow=true").body == "{\"a\":true,\"list\":true}")
      #expect(await ask("GET", "/a/b.json?shallow=true").body == "9")
      #expect(await ask("TRACE", "/a.json").status == 400)
    }

    @Test func `Priorities and server values are the protocol's`() async throws {
      _ = await ask(
        "PUT", "/p.json", "{\"x\":{\".value\":1,\".priority\":\"z\"},\"y\":{\".sv\":\"timestamp\"}}"
      )
      #expect(await ask("GET", "/p/x.json").body == "1")
      #expect(
        await ask("GET", "/p/x.json?format=export").body == "{\".value\":1,\".priority\":\"z\"}")
      let stored = await ask("GET", "/p/y.json").body
      #expect((Int64(stored) ?? 0) > 1_600_000_000_000)
      let answer = await ask("PUT", "/p/n.json", "{\".sv\":{\"increment\":5}}").body
      #expect(answer == "5")
      #expect(await ask("PUT", "/p/n.json", "{\".sv\":{\"increment\":-2}}").body == "3")
    }

    @Test func `Answers are printed as asked`() async throws {
      #expect(
        await ask("PUT", "/a.json?print=silent", "{\"b\":[1,\"x,{\\\"\"],\"c\":\"\\\\\"}").status
          == 204)
      let pretty = """
        {
          "b": [
            1,
            "x,{\\""
          ],
          "c": "\\\\"
        }
        """
      #expect(await ask("GET", "/a.json?print=pretty").body == pretty)
      #expect(await ask("GET", "/a.json?print=silent").body == "")
      #expect(await ask("GET", "/a.json?print=loud").status == 400)
      #expect(await ask("GET", "/a.json?timeout=3s").status == 200)
      for timeout in ["3", "0s", "16min", "-1s", "1h", "999999999999999999999ms"] {
        #expect(await ask("GET", "/a.json?timeout=\(timeout)").status == 400, "\(timeout)")
      }
    }

    // MARK: - Queries

    @Test(arguments: [
      ("orderBy=\"height\"&startAt=3", ["bruhath", "stegosaurus"]),
      ("orderBy=\"height\"&startAfter=4", ["bruhath"]),
      ("orderBy=\"height\"&endBefore=2.1", ["linhenykus", "pterodactyl"]),
      ("orderBy=\"height\"&endAt=0.6,\"linhenykus\"", ["linhenykus"]),
      ("orderBy=\"height\"&equalTo=0.6", ["linhenykus", "pterodactyl"]),
      ("orderBy=\"height\"&equalTo=0.6,\"pterodactyl\"", ["pterodactyl"]),
      ("orderBy=\"height\"&limitToLast=2", ["bruhath", "stegosaurus"]),
      ("orderBy=\"$key\"&startAt=\"m\"&limitToFirst=1", ["pterodactyl"]),
      ("orderBy=\"%24key\"&endAt=%22c%22", ["bruhath"]),
      ("orderBy=\"$value\"&limitToFirst=1", ["bruhath"]),
      ("orderBy=\"$priority\"&limitToFirst=2", ["bruhath", "lambeosaurus"]),
    ])
    func `Queries select`(query: String, expected: [String]) async throws {
      _ = await ask("PUT", "/d.json?print=silent", dinosaurs)
      let body = await ask("GET", "/d.json?\(query)").body
      let found = try JSONDecoder().decode(JSONValue.self, from: Data(body.utf8)).value
      #expect(found.map?.keys.sorted() == expected)
    }

    @Test(arguments: [
      "limitToFirst=2", "orderBy=height", "orderBy=\"height\"&limitToFirst=0",
      "orderBy=\"height\"&limitToFirst=1&limitToLast=1", "orderBy=\"height\"&startAt=x",
      "orderBy=\"height\"&startAt=1&startAfter=1", "orderBy=\"height\"&equalTo=1&endAt=2",
      "orderBy=\"a.b\"", "orderBy=\"\"", "orderBy=1", "orderBy=\"height\"&shallow=true",
      "orderBy=\"$key\"&startAt=1", "orderBy=\"height\"&startAt=1,2", "orderBy=\"height\"&startAt=",
      "orderBy=\"height\"&limitToFirst=99999999999999999999", "format=xml",
    ])
    func `A wrong query is refused`(query: String) async throws {
      _ = await ask("PUT", "/d.json?print=silent", dinosaurs)
      let response = await ask("GET", "/d.json?\(query)")
      #expect(response.status == 400)
      #expect(response.body.hasPrefix("{\"error\":\""))
    }

    @Test func `With rules an order needs an index`() async throws {
      try await stage.deploy(
        "{\"rules\": {\".read\": true, \"d\": {\".indexOn\": [\"height\", \".value\"]}}}")
      #expect(await ask("GET", "/d.json?orderBy=\"height\"").status == 200)
      #expect(await ask("GET", "/d.json?orderBy=\"$value\"").status == 200)
      #expect(await ask("GET", "/d.json?orderBy=\"$key\"").status == 200)
      let response = await ask("GET", "/d.json?orderBy=\"weight\"")
      #expect(response.status == 400 && response.body.contains("Index not defined"))
    }

    // MARK: - Tags

    @Test func `A tag guards a write`() async throws {
      let wants = ["x-firebase-etag": "true"]
      #expect(tag(await ask("GET", "/t.json", "", wants)) == "null_etag")
      let first = await ask("PUT", "/t.json", "1", ["if-match": "null_etag"])
      #expect(first.status == 200)
      let current = try #require(tag(first))
      #expect(tag(await ask("GET", "/t.json", "", wants)) == current)
      let refused = await ask("PUT", "/t.json", "2", ["if-match": "wrong"])
      #expect(refused.status == 412 && refused.body == "1" && tag(refused) == current)
      #expect(await ask("GET", "/t.json", "", ["if-none-match": current]).status == 304)
      #expect(await ask("GET", "/t.json", "", ["if-none-match": "\"\(current)\""]).status == 304)
      #expect(await ask("GET", "/t.json", "", ["if-none-match": "other"]).status == 200)
      #expect(await ask("DELETE", "/t.json", "", ["if-match": current]).status == 200)
      #expect(await ask("PUT", "/t.json", "2", ["if-match": current]).status == 412)
      #expect(await ask("PATCH", "/t.json", "{}", ["if-match": current]).status == 400)
      #expect(await ask("GET", "/t.json?orderBy=\"$key\"", "", wants).status == 400)
    }

    @Test func `Of writers with one tag one wins`() async throws {
      _ = await ask("PUT", "/n.json", "0")
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            for _ in 0..<10 {
              while true {
                let seen = await ask("GET", "/n.json", "", ["x-firebase-etag": "true"])
                let next = "\((Int(seen.body) ?? 0) + 1)"
                let match = ["if-match": tag(seen) ?? ""]
                if await ask("PUT", "/n.json", next, match).status == 200 { break }
              }
            }
          }
        }
      }
      #expect(await ask("GET", "/n.json").body == "40")
    }

    // MARK: - Who may

    @Test func `Credentials come in three ways, and rules decide`() async throws {
      try await stage.deploy(
        "{\"rules\": {\"$u\": {\".read\": \"auth != null\", \".write\": \"auth.uid == $u\"}}}")
      #expect(await ask("GET", "/anna.json").status == 401)
      #expect(await ask("GET", "/anna.json").body == "{\"error\":\"Permission denied\"}")
      #expect(await ask("PUT", "/anna.json?auth=anna", "1").status == 200)
      #expect(await ask("PUT", "/anna.json?access_token=ben", "1").status == 401)
      #expect(await ask("PUT", "/anna.json", "2", ["authorization": "Bearer anna"]).status == 200)
      #expect(await ask("GET", "/anna.json?auth=expired").status == 401)
      #expect(await ask("PUT", "/ben.json?auth=admin", "3").status == 200)
      let acting = "auth=admin&auth_variable_override=%7B%22uid%22%3A%22anna%22%7D"
      #expect(await ask("PUT", "/ben.json?\(acting)", "4").status == 401)
      #expect(await ask("PUT", "/anna.json?\(acting)", "4").status == 200)
      #expect(await ask("GET", "/anna.json?auth=admin&auth_variable_override=null").status == 401)
      // Whoever is no administrator acts as nobody else.
      let user = "auth=ben&auth_variable_override=%7B%22uid%22%3A%22anna%22%7D"
      #expect(await ask("PUT", "/anna.json?\(user)", "5").status == 401)
    }

    @Test func `Administrators read and replace the rules`() async throws {
      let path = "/.settings/rules.json"
      #expect(await ask("GET", path).status == 401)
      #expect(await ask("GET", "\(path)?auth=admin&format=strict").body == "{}")
      let rules = "{\"rules\":{\".read\":true}}"
      #expect(await ask("PUT", "\(path)?auth=admin", rules).body == "{\"status\":\"ok\"}")
      #expect(await ask("GET", "\(path)?auth=admin").body == rules)
      #expect(
        await ask("PUT", "\(path)?auth=admin", "{\"rules\":{\".read\":\"1 +\"}}").status == 400)
      #expect(await ask("GET", "/a.json").status == 200)
      #expect(await ask("PUT", "/a.json", "1").status == 401)
    }

    // MARK: - Hostile input

    @Test(arguments: [
      "/a", "a.json", "/a/../b.json", "/a%2Fb.json", "/a%00.json", "/a%.json", "/a%zz.json",
      "/a%+1.json", "/a.b.json", "/$a.json", "/%5Ba%5D.json", "/%ff.json", "/a%23.json", "",
      "/.info/connected.json", "/.settings/owner.json",
    ])
    func `A wrong path is refused`(path: String) async throws {
      let response = await ask("PUT", path, "1")
      #expect(response.status == 400)
      #expect(response.body.hasPrefix("{\"error\":\"Invalid path"))
    }

    @Test(arguments: [
      "", "{", "{\"a\":1}x", "nul", "{\"a.b\":1}", "{\"a\":{\"b/c\":1}}", "1e999", "NaN", "{'a':1}",
      "{\"a\":1,\"a\":2}", "\u{feff}1",
    ])
    func `A wrong body is refused`(body: String) async throws {
      for method in ["PUT", "POST", "PATCH"] {
        #expect(await ask(method, "/a.json", body).status == 400, "\(method)")
      }
      #expect(await ask("PATCH", "/a.json", "1").status == 400)
      #expect(await ask("GET", "/.json").body == "null")
    }

    // MARK: - Streams

    private func stream(_ target: String) async throws -> TreeEventStream {
      try await TreeEventStream(
        TreeHTTPRequest(method: "GET", target: target), rest, keepAlive: .milliseconds(1))
    }

    /// The next event that tells something.
    private func next(_ events: inout TreeEventStream.Iterator) async throws -> TreeServerEvent? {
      while let event = try await events.next() { if event != .keepAlive { return event } }
      return nil
    }

    @Test func `A stream has the data, and then what changes`() async throws {
      _ = await ask("PUT", "/s.json", "{\"a\":{\"x\":1,\"y\":2}}")
      var events = try await stream("/s.json").makeAsyncIterator()
      #expect(
        try await next(&events)?.text
          == "event: put\ndata: {\"path\":\"/\",\"data\":{\"a\":{\"x\":1,\"y\":2}}}\n\n")
      #expect(try await events.next() == .keepAlive)
      _ = await ask("PUT", "/s/a/x.json", "7")
      #expect(try await next(&events)?.data == "{\"path\":\"/a/x\",\"data\":7}")
      _ = await ask("PATCH", "/s.json", "{\"a/x\":8,\"b\":9}")
      let patch = try await next(&events)
      #expect(patch?.name == "patch")
      #expect(patch?.data == "{\"path\":\"/\",\"data\":{\"a/x\":8,\"b\":9}}")
      _ = await ask("DELETE", "/s.json")
      #expect(try await next(&events)?.data == "{\"path\":\"/\",\"data\":null}")
    }

    @Test func `A stream ends when it may not be seen any more, or the database is closed`()
      async throws
    {
      try await stage.deploy(
        "{\"rules\": {\"s\": {\".read\": \"data.child('open').val() == true\"}}}")
      await #expect(throws: TreeRefusal.denied) { try await stream("/s.json") }
      _ = await ask("PUT", "/s.json?auth=admin", "{\"open\":true}")
      var events = try await stream("/s.json").makeAsyncIterator()
      #expect(try await next(&events)?.name == "put")
      _ = await ask("PUT", "/s.json?auth=admin", "{\"open\":false,\"secret\":1}")
      #expect(try await next(&events) == .cancel)
      #expect(try await next(&events) == nil)
      var all = try await stream("/s.json?auth=admin").makeAsyncIterator()
      #expect(try await next(&all)?.name == "put")
      try await stage.database.close()
      #expect(try await next(&all) == nil)
    }

    @Test func `A stream ends with the credential it was opened with`() async throws {
      let end = stage.database.wallClock + 20_000
      var events = try await stream("/s.json?auth=until%20\(end)").makeAsyncIterator()
      var names: Set<String> = []
      while let event = try await events.next() { names.insert(event.name) }
      #expect(
        names.contains("auth_revoked") && names.isSubset(of: ["put", "keep-alive", "auth_revoked"]))
    }
  }
#endif
