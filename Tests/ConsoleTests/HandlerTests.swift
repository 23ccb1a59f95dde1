// The console's handler without a server: which requests it admits, each route's answer, and its
// responses to wrong requests.

import Foundation
import Ondol
import OndolConsole
import Synchronization
import Testing

/// A handler over a database in memory.
struct ConsoleBench {
  let database: Database
  let handler: ConsoleHandler

  init(_ access: ConsoleAccess = .edit) async throws {
    self.init(try await Database.inMemory(), access)
  }

  init(
    _ database: Database, _ access: ConsoleAccess = .edit, sync: (any ConsoleSyncView)? = nil
  ) {
    self.database = database
    handler = ConsoleHandler(
      database, access: access, token: "secret", holder: nil, sync: sync
    ) { 1_000_000_000 }
    handler.serve(on: 8080)
  }

  /// Sends a request with the token, from the page's own origin, unless the headers say otherwise.
  func ask(
    _ method: String, _ route: String, _ body: String = "", match: String? = nil,
    headers: [(name: String, value: String)] = [], isAPI: Bool = true
  ) async throws -> (status: Int, text: String, response: ConsoleResponse) {
    var all = headers
    func add(_ name: String, _ value: String) {
      if !all.contains(where: { $0.name == name }) { all.append((name, value)) }
    }
    add("Host", "127.0.0.1:8080")
    add("Authorization", "Bearer secret")
    if let match { add("If-Match", "\"\(match)\"") }
    let response = await handler.respond(
      to: ConsoleRequest(
        method: method, target: isAPI ? "/api/v1/\(route)" : route, headers: all,
        body: ConsoleBody(Array(body.utf8))))
    var bytes: [UInt8] = []
    if response.headers.contains(where: { $0.value.hasPrefix("application/json") }) {
      for try await piece in response.body { bytes += piece }
    }
    return (response.status, String(decoding: bytes, as: UTF8.self), response)
  }

  func status(
    _ method: String, _ route: String, _ body: String = "", match: String? = nil,
    headers: [(name: String, value: String)] = []
  ) async throws -> Int {
    try await ask(method, route, body, match: match, headers: headers).status
  }
}

@Suite struct `The console's guard` {
  @Test(arguments: [
    ("Host", "evil.test:8080", 421), ("Host", "127.0.0.1", 421), ("Host", "localhost:8080", 200),
    ("Origin", "http://evil.test", 403), ("Origin", "null", 403),
    ("Origin", "http://127.0.0.1:8080", 200), ("Sec-Fetch-Site", "cross-site", 403),
    ("Sec-Fetch-Site", "same-site", 403), ("Sec-Fetch-Site", "same-origin", 200),
    ("Authorization", "Bearer wrong", 401), ("Authorization", "secret", 401),
  ])
  func `Requests from elsewhere than the page are refused`(name: String, value: String, status: Int)
    async throws
  {
    let bench = try await ConsoleBench()
    #expect(try await bench.status("GET", "database", headers: [(name, value)]) == status)
  }

  @Test func `Two hosts, preflights and tokens in queries are refused`() async throws {
    let bench = try await ConsoleBench()
    let two = [(name: "Host", value: "127.0.0.1:8080"), ("Host", "127.0.0.1:8080")]
    #expect(try await bench.status("GET", "database", headers: two) == 421)
    #expect(try await bench.status("OPTIONS", "database") == 405)
    let none = [(name: "Authorization", value: "")]
    #expect(try await bench.status("GET", "database?token=secret", headers: none) == 401)
  }

  @Test func `After a hundred wrong tokens only the right one is listened to`() async throws {
    let bench = try await ConsoleBench()
    let wrong = [(name: "Authorization", value: "Bearer wrong")]
    for _ in 0..<100 { #expect(try await bench.status("GET", "database", headers: wrong) == 401) }
    for _ in 0..<3 { #expect(try await bench.status("GET", "database") == 200) }
    let answer = try await bench.ask("GET", "database", headers: wrong)
    #expect(answer.status == 429)
    #expect(answer.response.headers.contains { $0.name == "Retry-After" })
  }

  /// Twenty bodies, each within its limit, once kept 577 MB.
  @Test func `Long bodies share one limit, and free it once they are answered`()
    async throws
  {
    let bench = try await ConsoleBench()
    let piece = [UInt8](repeating: UInt8(ascii: " "), count: 31 << 20)
    /// A body of one piece, which reports that it was taken and ends on command.
    @Sendable func ask(
      _ taken: AsyncStream<Void>.Continuation, _ end: AsyncStream<Void>
    ) async -> ConsoleResponse {
      let begun = Atomic(false)
      return await bench.handler.respond(
        to: ConsoleRequest(
          method: "POST", target: "/api/v1/query",
          headers: [("Host", "127.0.0.1:8080"), ("Authorization", "Bearer secret")],
          body: ConsoleBody {
            if !begun.exchange(true, ordering: .relaxed) { return piece }
            taken.yield()
            for await _ in end {}
            return nil
          }))
    }
    let taken = AsyncStream.makeStream(of: Void.self)
    let ends = AsyncStream.makeStream(of: Void.self)
    let over = AsyncStream.makeStream(of: Void.self)
    over.continuation.finish()
    async let first = ask(taken.continuation, ends.stream)
    async let second = ask(taken.continuation, over.stream)
    var both = taken.stream.makeAsyncIterator()
    await both.next()
    _ = await second
    await both.next()
    // Only the first body's piece is kept now.
    #expect(await ask(taken.continuation, over.stream).status == 400)
    let others = AsyncStream.makeStream(of: Void.self)
    async let third = ask(taken.continuation, others.stream)
    await both.next()
    await both.next()
    let refused = await ask(taken.continuation, over.stream)
    #expect(refused.status == 429)
    #expect(refused.headers.contains { $0.name == "Retry-After" })
    ends.continuation.finish()
    others.continuation.finish()
    #expect(await first.status == 400)
    #expect(await third.status == 400)
    #expect(await ask(taken.continuation, over.stream).status == 400)
  }

  @Test func `The page needs no token and has its policy`() async throws {
    let bench = try await ConsoleBench()
    let page = try await bench.ask(
      "GET", "/", headers: [("Authorization", ""), ("Sec-Fetch-Site", "cross-site")], isAPI: false)
    #expect(page.status == 200)
    let policy = page.response.headers.first { $0.name == "Content-Security-Policy" }?.value
    #expect(policy?.contains("require-trusted-types-for 'script'") ?? false)
    let links = page.response.headers.first { $0.name == "Link" }?.value
    let styles = ["base", "pages"].map { "</assets/\($0).css>; rel=preload; as=style" }
    #expect(links == styles.joined(separator: ", "))
    #expect(try await bench.ask("GET", "/assets/base.css", isAPI: false).status == 200)
    for path in ["/assets/../Package.swift", "/assets/%2e%2e/a", "/nothing", "/assets/"] {
      #expect(try await bench.ask("GET", path, isAPI: false).status == 404)
    }
  }
}

@Suite struct `The console's routes` {
  @Test func `Documents come back to the last bit`() async throws {
    let bench = try await ConsoleBench()
    let fields = """
      {"$odd":true,"a":{"$numberLong":"9223372036854775807"},"b":{"$numberDouble":"NaN"},\
      "c":{"$numberDouble":"-0.0"},"d":"가나다 image",\
      "e":{"$literal":{"$date":{"$numberLong":"1"}}}}
      """
    let put = try await bench.ask(
      "PUT", "document?path=a%2Fb", "{\"fields\":\(fields)}", match: "0")
    #expect(put.status == 200)
    #expect(put.text.contains("\"fields\":\(fields)"))
    let stored = try await bench.database.document("a/b").getDocument()
    #expect(stored.get("a") == Value.integer(.max))
  }

  @Test func `A write happens only in the version that was seen`() async throws {
    let bench = try await ConsoleBench()
    let path = "document?path=a%2Fb"
    #expect(try await bench.status("PUT", path, "{\"fields\":{\"x\":1}}") == 400)
    #expect(try await bench.status("PUT", path, "{\"fields\":{\"x\":1}}", match: "0") == 200)
    let late = try await bench.ask("PUT", path, "{\"fields\":{\"x\":2}}", match: "0")
    #expect(late.status == 409)
    #expect(late.text.contains("\"current\":{\"path\":\"a/b\""))
    let version = try await bench.database.document("a/b").getDocument().version
    let patch = "{\"set\":{\"y\":{\"$numberLong\":\"3\"}},\"delete\":[\"x\"]}"
    #expect(try await bench.status("PATCH", path, patch, match: "\(version)") == 200)
    #expect(try await bench.database.document("a/b").getDocument().data() == ["y": 3])
    #expect(try await bench.status("DELETE", path, match: "\(version)") == 409)
  }

  @Test func `Without write access nothing is written`() async throws {
    let bench = try await ConsoleBench(.read)
    for (method, route) in [
      ("PUT", "document?path=a%2Fb"), ("POST", "document?collection=a"), ("POST", "delete"),
      ("POST", "indexes"), ("PUT", "tree?path=a"), ("PUT", "object?path=a"),
    ] {
      #expect(try await bench.status(method, route, "{}", match: "0") == 403)
    }
    #expect(try await bench.status("POST", "tasks", "{\"kind\":\"compact\"}") == 403)
    #expect(try await bench.status("POST", "tasks", "{\"kind\":\"verify\"}") == 200)
  }

  @Test func `Queries answer pages, plans, groups and the place of a wrong condition`() async throws
  {
    let bench = try await ConsoleBench()
    for number in 0..<7 {
      try await bench.database.document("n/\(number)").setData(["v": number])
    }
    let first = try await bench.ask(
      "POST", "query",
      "{\"collection\":\"n\",\"where\":\"v > 1\",\"order\":\"v\",\"limit\":3,"
        + "\"explain\":\"analyze\"}"
    )
    #expect(first.status == 200)
    #expect(first.text.contains("\"last\":false"))
    #expect(first.text.contains("\"way\":\"scan\""))
    #expect(first.text.contains("\"op\":\">\""))
    let wrong = try await bench.ask("POST", "query", "{\"collection\":\"n\",\"where\":\"v ? 1\"}")
    #expect(wrong.status == 400)
    #expect(wrong.text.contains("\"offset\":2"))
    #expect(try await bench.status("POST", "query", "{\"collection\":\"n\",\"odd\":1}") == 400)
    #expect(try await bench.status("POST", "query", "{\"collection\":\"n\",\"limit\":501}") == 400)
    let count = try await bench.ask("POST", "count", "{\"collection\":\"n\",\"where\":\"v < 3\"}")
    #expect(count.text == "{\"count\":3}")
    let sum = try await bench.ask(
      "POST", "query", "{\"collection\":\"n\",\"aggregate\":[{\"op\":\"sum\",\"field\":\"v\"}]}")
    #expect(sum.text.contains("\"values\":[{\"$numberLong\":\"21\"}]"))
  }

  @Test func `The tree is written only if it is unchanged since it was read`() async throws {
    let bench = try await ConsoleBench()
    #expect(try await bench.status("PUT", "tree?path=a%2Fb", "{\"value\":1}") == 200)
    let late = try await bench.ask("PUT", "tree?path=a%2Fb", "{\"value\":2,\"expected\":3}")
    #expect(late.status == 409)
    #expect(try await bench.status("PUT", "tree?path=a%2Fb", "{\"value\":2,\"expected\":1}") == 200)
    #expect(try await bench.database.tree.child("a/b").getData().value == 2)
  }

  /// Levels of random trees, in pages of random length, compared with reading everything.
  @Test(arguments: 0..<12)
  func `A level of the tree shows the stored nodes`(seed: Int) async throws {
    let bench = try await ConsoleBench()
    var random = Noise(state: UInt64(seed) &* 6_007 &+ 3)
    func value(_ depth: Int) -> Value {
      guard depth > 0, Int.random(in: 0..<3, using: &random) > 0 else { return .integer(7) }
      var children: [String: Value] = [:]
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        let key =
          ["\(Int.random(in: -3...9, using: &random))", "k", "é", "a b", "A", "z"]
          .randomElement(using: &random) ?? "k"
        children[key] = value(depth - 1)
      }
      return .map(children)
    }
    try await bench.database.tree.child("top").setValue(Value.map(["a": value(4), "b": value(3)]))
    for path in ["", "top", "top/a", "top/a/k", "top/b", "top/none"] {
      let all = try await (path.isEmpty ? bench.database.tree : bench.database.tree.child(path))
        .queryOrderedByKey().getData()
      var seen: [String] = []
      var after: String?
      while true {
        let limit = Int.random(in: 1...4, using: &random)
        let behind = after.map { "&after=\(Self.escaped($0))" } ?? ""
        let answer = try await bench.ask(
          "GET", "tree?path=\(Self.escaped(path))&limit=\(limit)\(behind)")
        let level = try #require(
          try JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [String: Any])
        let node = level["node"] as? [String: Any]
        #expect(level["exists"] as? Bool == all.exists, "seed \(seed), \(path)")
        #expect(node?["children"] as? Int ?? 0 == all.childrenCount, "seed \(seed), \(path)")
        let children = level["children"] as? [[String: Any]] ?? []
        for child in children {
          let key = child["key"] as? String ?? ""
          seen.append(key)
          let there = all.childSnapshot(forPath: key)
          #expect(child["children"] as? Int ?? 0 == there.childrenCount, "seed \(seed), \(path)")
          #expect((child["value"] == nil) == there.hasChildren, "seed \(seed), \(path)")
        }
        guard level["more"] as? Bool ?? false else { break }
        #expect(children.count == limit, "seed \(seed), \(path)")
        after = seen.last
      }
      #expect(seen == all.children.compactMap(\.key), "seed \(seed), \(path)")
    }
  }

  private static func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }.joined()
  }

  @Test func `Children are counted up to a limit, and nodes with more say so`() async throws {
    let bench = try await ConsoleBench()
    var many: [String: Value] = [:]
    for number in 0..<150 { many["n\(number)"] = .integer(1) }
    try await bench.database.tree.setValue(Value.map(["many": .map(many), "few": ["a": 1]]))
    let answer = try await bench.ask("GET", "tree")
    #expect(answer.text.contains("{\"key\":\"few\",\"children\":1}"))
    #expect(answer.text.contains("{\"key\":\"many\",\"children\":100,\"uncounted\":true}"))
  }

  @Test func `A console opened later shows the kept changes`() async throws {
    var options = Database.Options()
    options.changeRetention = .init()
    let folder = FileManager.default.temporaryDirectory.appending(path: "kept-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let database = try await Database.open(at: folder.path, options: options)
    for number in 0..<30 {
      try await database.document("n/\(number % 3)").setData(["v": number])
    }
    let bench = ConsoleBench(database)
    let all = try await bench.ask("GET", "changes?limit=20")
    #expect(all.text.contains("\"source\":\"log\""))
    #expect(all.text.components(separatedBy: "\"token\"").count == 20 + 2)
    #expect(all.text.contains("{\"v\":{\"$numberLong\":\"29\"}}"))
    #expect(!all.text.contains("{\"v\":{\"$numberLong\":\"6\"}}"))
    let below = try await bench.ask("GET", "changes?path=n%2F1")
    #expect(below.text.components(separatedBy: "\"token\"").count == 10 + 2)
    try await database.document("n/1").setData(["v": 30])
    let later = try await bench.ask("GET", "changes?limit=2")
    #expect(later.text.contains("{\"v\":{\"$numberLong\":\"30\"}}"))
    #expect(later.text.components(separatedBy: "\"token\"").count == 2 + 2)
    bench.handler.close()
    try await database.close()
  }

  @Test func `An index of a group is rebuilt`() async throws {
    let bench = try await ConsoleBench()
    for number in 0..<20 {
      try await bench.database.document("u/\(number % 4)/posts/\(number)").setData(["v": number])
    }
    let group = bench.database.collectionGroup("posts")
    let name = try await group.createIndex(on: ["v"])
    #expect(
      try await bench.status(
        "POST", "tasks", "{\"kind\":\"rebuildIndex\",\"collection\":\"posts\",\"name\":\"\(name)\"}"
      )
        == 404)
    #expect(
      try await bench.status(
        "POST", "tasks", "{\"kind\":\"rebuildIndex\",\"group\":\"posts\",\"name\":\"\(name)\"}")
        == 200)
    var tasks = ""
    repeat {
      tasks = try await bench.ask("GET", "tasks").text
      await Task.yield()
    } while tasks.contains("\"state\":\"running\"")
    #expect(tasks.contains("\"state\":\"done\""))
    let index = try #require(try await group.listIndexes().first)
    #expect(index.name == name)
    #expect(index.entries == 20)
  }

  @Test func `Objects are kept and their bytes have no type of their own`() async throws {
    let bench = try await ConsoleBench()
    let put = try await bench.ask(
      "PUT", "object?path=a%2Fb.html&type=text%2Fhtml", "<b>", match: "0")
    #expect(put.status == 200)
    let object = try await bench.database.storage.reference(withPath: "a/b.html").getMetadata()
    #expect(object.contentType == "text/html")
    let digest = try #require(object.sha256)
    let content = try await bench.ask(
      "GET", "content/\(digest.hex)", headers: [("Range", "bytes=1-")])
    #expect(content.status == 206)
    let type = content.response.headers.first { $0.name == "Content-Type" }?.value
    #expect(type == "application/octet-stream")
    var bytes: [UInt8] = []
    for try await piece in content.response.body { bytes += piece }
    #expect(bytes == Array("b>".utf8))
  }

  @Test func `Wrong requests get the reason`() async throws {
    let bench = try await ConsoleBench()
    #expect(try await bench.status("GET", "nothing") == 404)
    #expect(try await bench.status("GET", "database?odd=1") == 400)
    #expect(try await bench.status("GET", "tree?path=a&path=b") == 400)
    #expect(try await bench.status("POST", "query", "{") == 400)
    #expect(try await bench.status("GET", "document?path=a%2Fb") == 404)
    #expect(try await bench.status("GET", "live?watch=%21") == 400)
    #expect(try await bench.status("DELETE", "tasks/none") == 404)
  }
}

@Suite struct `The console's stream` {
  /// Writes that come faster than the page takes its events: every commit is reported or counted,
  /// the newest among the reported ones.
  @Test func `A feed tells the newest and counts those before`() async throws {
    let bench = try await ConsoleBench()
    let watch = Data("[{\"id\":\"w\",\"kind\":\"feed\"}]".utf8).base64EncodedString()
    let response = try await bench.ask("GET", "live?watch=\(watch.replacing("=", with: ""))")
    var pieces = response.response.body.makeAsyncIterator()
    _ = try await pieces.next()
    var versions: [Int] = []
    var counted = 0
    for round in 0..<4 {
      // In the third round, more than the monitor remembers.
      let writes = [1, 20, 1_500, 300][round]
      for number in 0..<writes {
        try await bench.database.document("n/a").setData(
          ["v": round * 10_000 + number], durability: .memory)
      }
      let newest = try await bench.database.document("n/a").getDocument().version
      repeat {
        let text = String(decoding: try #require(try await pieces.next()), as: UTF8.self)
        for line in text.split(separator: "\n") where line.contains("\"changes\":[") {
          let event = try #require(
            try JSONSerialization.jsonObject(with: Data(line.dropFirst(6).utf8)) as? [String: Any])
          counted += event["skipped"] as? Int ?? 0
          for change in event["changes"] as? [[String: Any]] ?? [] {
            versions.append(Int(change["version"] as? String ?? "") ?? 0)
          }
        }
      } while versions.last != Int("\(newest)")
    }
    #expect(versions.count + counted == 1_821)
    #expect(versions == versions.sorted() && Set(versions).count == versions.count)
    #expect(counted > 0)
    bench.handler.close()
  }

  @Test func `It begins with everything and continues with changes`() async throws {
    let bench = try await ConsoleBench()
    try await bench.database.document("n/a").setData(["v": 1])
    let watch = "[{\"id\":\"w\",\"kind\":\"query\",\"collection\":\"n\",\"limit\":50}]"
    let response = try await bench.ask(
      "GET", "live?watch=\(Data(watch.utf8).base64EncodedString().replacing("=", with: ""))")
    #expect(response.status == 200)
    var pieces = response.response.body.makeAsyncIterator()
    var text = String(decoding: try await pieces.next() ?? [], as: UTF8.self)
    #expect(text.contains("event: version"))
    #expect(text.contains("event: state"))
    #expect(text.contains("n/a"))
    try await bench.database.document("n/b").setData(["v": 2])
    while !text.contains("n/b") {
      text = String(decoding: try #require(try await pieces.next()), as: UTF8.self)
    }
    #expect(text.contains("event: changes"))
    #expect(text.contains("\"type\":\"added\""))
    #expect(text.contains("id: "))
    bench.handler.close()
  }
}
