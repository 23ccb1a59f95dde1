// Looking into a database from a shell: queries, counts, the shapes of documents, and changes while
// an app writes.

import Foundation
import Ondol
import Testing

@Suite struct `Looking with the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() async throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
    let database = try await Database.open(
      at: shop, options: Database.Options(changeRetention: .init(bytes: 1 << 20)))
    let items = database.collection("items")
    for n in 0..<10 {
      try await items.document("i\(n)").setData(
        ["n": n, "kind": n % 2 == 0 ? "even" : "odd", "tags": ["t\(n % 3)"]], durability: .memory)
    }
    try await items.createIndex(on: ["kind", "n"])
    try await database.document("users/a/posts/p").setData(["이름": "온돌"])
    try await database.document("users/b/posts/q").setData(["size": ["w": 1.5]])
    try await database.close()
  }

  private func objects(_ result: ToolResult) throws -> [[String: Any]] {
    try result.lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  @Test func `A query has conditions, an order, a part and fields`() async throws {
    let found = try await scratch.ondol(
      "query", shop, "items", "kind = \"even\" and n > 2", "--order", "n desc", "--limit", "2",
      "--select", "n")
    #expect(found.status == 0, "\(found.messages)")
    #expect(found.lines == [#"{"__name__":"i8","n":8}"#, #"{"__name__":"i6","n":6}"#])
    let none = try await scratch.ondol("query", shop, "items", "n > 99", "--format", "json")
    #expect(none.output == "[]\n")
    let group = try await scratch.ondol("query", shop, "posts", "--group")
    #expect(
      try objects(group).map { $0["__name__"] as? String } == [
        "users/a/posts/p", "users/b/posts/q",
      ])
  }

  @Test func `A condition that makes no sense is wrong usage, and pointed at`() async throws {
    let result = try await scratch.ondol("query", shop, "items", "kind == even")
    #expect(result.status == 2)
    #expect(result.output == "")
    #expect(result.messages.contains("\n  kind == even\n          ^"), "\(result.messages)")
  }

  // An empty answer once looked the same whether nothing matched or a name was mistyped.
  @Test(arguments: [
    (["query", "itms"], "", "collection itms"), (["ls", "itms"], "", "collection itms"),
    (["ls", "itms", "--ids"], "", "collection itms"),
    (["count", "itms"], "0\n", "collection itms"),
    (["schema", "itms"], "", "collection itms"), (["indexes", "itms"], "", "collection itms"),
    (["query", "psts", "--group"], "", "collection psts"),
    (["query", "items", "m = 3 or n > 99"], "", "field m"),
    (["query", "items", "--order", "kid"], "", "field kid"),
    (
      ["query", "items", "n = 1", "--select", "kid, n"], #"{"__name__":"i1","n":1}"# + "\n",
      "field kid"
    ),
    (
      ["agg", "items", "--sum", "m"], #"{"schema":"agg/1","count":10,"sum(m)":0}"# + "\n", "field m"
    ),
    (["agg", "items", "--sum", "n", "--group-by", "kid"], "", "field kid"),
  ])
  func `An unknown name is reported, with status 3`(
    words: [String], output: String, name: String
  ) async throws {
    let result = try await scratch.ondol([words[0], shop] + words.dropFirst())
    #expect(result.status == 3)
    #expect(result.output == output)
    #expect(result.messages.contains(name), "\(result.messages)")
  }

  @Test(arguments: [
    ["query", "items", "n > 99"], ["query", "items", "n > 99", "--order", "kind"],
    ["query", "items", "--limit", "0"], ["query", "items", "__name__ = \"x\""],
    ["query", "items", "--offset", "50", "--select", "tags"], ["count", "items", "n > 99"],
    ["agg", "items", "n = 0", "--sum", "n"], ["agg", "items", "n > 99", "--min", "kind"],
    ["ls", "items", "--offset", "50"], ["indexes", "users/posts"],
  ])
  func `An empty answer with known names is status 0`(words: [String]) async throws {
    let result = try await scratch.ondol([words[0], shop] + words.dropFirst())
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.messages == "")
  }

  @Test func `A query explains itself, with its cost when it is carried out`() async throws {
    let plan = try await scratch.ondol(
      "query", shop, "items", "kind = \"odd\"", "--explain", "--format", "table")
    #expect(plan.output.contains("index 'kind,n'"), "\(plan.output)")
    let cost = try await scratch.ondol("query", shop, "items", "kind = \"odd\"", "--analyze")
    let object = try #require(try objects(cost).first)
    #expect(object["schema"] as? String == "query/1")
    #expect(object["documentsReturned"] as? Int == 5)
  }

  @Test func `Counts and sums, of all and of groups`() async throws {
    #expect(try await scratch.ondol("count", shop, "items").output == "10\n")
    let some = try await scratch.ondol("count", shop, "items", "not n < 4", "--format", "jsonl")
    #expect(some.output == #"{"schema":"count/1","count":6}"# + "\n")
    let all = try await scratch.ondol(
      "agg", shop, "items", "--sum", "n", "--max", "n", "--format", "csv")
    #expect(all.output == "count,sum(n),max(n)\n10,45,9\n")
    let groups = try await scratch.ondol(
      "agg", shop, "items", "--sum", "n", "--group-by", "kind", "--format", "table")
    #expect(
      groups.lines == [
        "kind  count  sum(n)", "----  -----  ------", "even      5      20", "odd       5      25",
      ])
  }

  @Test func `Collections, indexes and fields are listed`() async throws {
    let collections = try objects(try await scratch.ondol("colls", shop))
    #expect(collections.map { $0["collection"] as? String } == ["items", "users/posts"])
    #expect(collections.map { $0["documents"] as? Int } == [10, 2])
    let indexes = try objects(try await scratch.ondol("indexes", shop, "items"))
    #expect(indexes.map { $0["index"] as? String } == ["kind,n"])
    #expect(indexes.first?["entries"] as? Int == 10)
    let fields = try objects(try await scratch.ondol("schema", shop, "items"))
    #expect(fields.map { $0["field"] as? String } == ["kind", "n", "tags", "tags[]"])
    #expect(fields.map { $0["kinds"] as? String } == ["string", "integer", "array", "string"])
    let info = try objects(try await scratch.ondol("info", shop))
    #expect(info.first?["schema"] as? String == "info/1")
    #expect((info.first?["collections"] as? [Any])?.count == 2)
  }

  @Test func `One field, several documents, and the ones that are missing`() async throws {
    let field = try await scratch.ondol("get", shop, "users/b/posts/q", "--field", "size.w")
    #expect(field.output == #"{"size.w":1.5}"# + "\n")
    let raw = try await scratch.ondol(
      "get", shop, "users/a/posts/p", "--field", "`이름`", "--format", "raw")
    #expect(raw.output == "온돌\n")
    let several = try await scratch.ondol("get", shop, "items/i1", "items/none", "items/i2")
    #expect(several.status == 3)
    #expect(try objects(several).map { $0["__name__"] as? String } == ["i1", "i2"])
    #expect(try await scratch.ondol("get", shop, "items/i1", "--field", "none").status == 3)
  }

  @Test func `Lists go backwards, by prefix, and tell versions`() async throws {
    let back = try await scratch.ondol("ls", shop, "items", "--ids", "--desc", "--limit", "2")
    #expect(back.lines == ["i9", "i8"])
    let part = try await scratch.ondol("ls", shop, "users/a/posts", "--ids", "--prefix", "p")
    #expect(part.lines == ["p"])
    let long = try objects(try await scratch.ondol("ls", shop, "items", "-l", "--limit", "1"))
    #expect(long.first?["version"] is Int)
    #expect(long.first?["fields"] as? Int == 3)
    let top = try objects(try await scratch.ondol("ls", shop))
    #expect(top.map { $0["collection"] as? String } == ["items", "users"])
  }

  @Test func `Numbers are printed for people, programs and Prometheus`() async throws {
    let object = try #require(try objects(try await scratch.ondol("stats", shop)).first)
    #expect(object["schema"] as? String == "stats/1")
    #expect((object["directoryBytes"] as? Int ?? 0) > 0)
    let metrics = try await scratch.ondol("stats", shop, "--prom")
    #expect(metrics.output.contains("# TYPE ondol_directory_bytes gauge\nondol_directory_bytes "))
    let running = try RunningTool("stats", shop, "--watch", "1ms")
    for _ in 0..<3 { #expect(running.line()?.contains("stats/1") == true) }
    #expect(await running.interrupt() == 130)
  }

  // MARK: - Live

  @Test func `A watch prints the app's changes, until it is interrupted`() async throws {
    let database = try await Database.open(at: shop)
    let running = try RunningTool("watch", shop, "items", "n >= 9")
    #expect(running.line()?.contains(#""type":"current","count":1"#) == true)
    try await database.document("items/new").setData(["n": 12])
    let added = try #require(running.line())
    #expect(added.contains(#""type":"added","path":"items/new""#), "\(added)")
    #expect(added.contains(#""fields":{"n":12}"#), "\(added)")
    #expect(running.line()?.contains(#""count":2"#) == true)
    try await database.document("items/i9").delete()
    #expect(running.line()?.contains(#""type":"removed","path":"items/i9""#) == true)
    #expect(await running.interrupt() == 130)
    try await database.close()
    #expect(try await scratch.ondol("check", shop, "--full").status == 0)
  }

  @Test func `Every change of every commit can be followed from a token on`() async throws {
    let options = Database.Options(changeRetention: .init(bytes: 1 << 20))
    let database = try await Database.open(at: shop, options: options)
    let token = try database.changeToken()
    try await database.document("items/i1").updateData(["n": 100])
    try await database.document("other/o").setData(["x": 1])
    try await database.document("items/i2").delete()
    let running = try RunningTool(
      "tail", shop, "--since", token.description, "--coll", "items")
    #expect(running.line()?.contains(#""type":"begin""#) == true)
    let modified = try #require(running.line())
    #expect(modified.contains(#""type":"modified","path":"items/i1""#), "\(modified)")
    #expect(running.line()?.contains(#""type":"removed","path":"items/i2""#) == true)
    let since = try RunningTool("watch", shop, "items", "--since", token.description)
    #expect(since.line()?.contains(#""type":"removed","path":"items/i2""#) == true)
    #expect(await since.interrupt() == 130)
    #expect(await running.interrupt() == 130)
    try await database.close()
    #expect(try await scratch.ondol("tail", shop, "--since", "nonsense").status == 2)
  }

  @Test func `The rows of an index are printed as they are stored`() async throws {
    let database = try await Database.open(at: shop)
    let items = database.collection("items")
    try await items.document("odd one").setData(["kind": "odd"])
    let long = String(repeating: "x", count: 10_000)
    try await items.document("long").setData(["kind": .string(long), "n": 3] as [String: Value])
    let posts = database.collection("users/a/posts")
    try await posts.document("z").setData(["rank": 2.0])
    try await posts.createIndex(on: ["-rank"])
    try await database.close()

    let all = try await scratch.ondol(
      "index", "dump", shop, "items", "kind,n", "--ejson", "relaxed")
    #expect(all.status == 0, "\(all.messages)")
    #expect(
      all.lines.first == #"{"schema":"index-dump/1","values":["even",0],"missing":[],"cut":[],"#
        + #""document":"items/i0"}"#)
    #expect(all.lines.count == 12)
    #expect(
      all.lines.contains { $0.contains(#"["odd",null],"missing":["n"]"#) }, "\(all.output)")
    #expect(all.lines.last?.contains(#"[null,3],"missing":[],"cut":["kind"]"#) == true)
    let some = try objects(
      try await scratch.ondol(
        "index", "dump", shop, "items", "kind,n", "--from", #""f""#, "--to", #""odd""#, "--limit",
        "2"))
    #expect(some.map { $0["document"] as? String } == ["items/odd one", "items/i1"])
    let descending = try await scratch.ondol("index", "dump", shop, "users/posts", "--", "-rank")
    #expect(descending.output.contains(#""values":[2]"#), "\(descending.output)")
    #expect(descending.output.contains(#""document":"users/a/posts/z""#))
    #expect(try await scratch.ondol("index", "dump", shop, "items", "none").status == 3)
    #expect(
      try await scratch.ondol("index", "dump", shop, "items", "kind,n", "--from", "{").status == 2)
  }

  @Test func `The metadata of a document and of the last commit is printed`() async throws {
    let revision = try objects(try await scratch.ondol("get", shop, "items/i3", "--rev"))
    #expect((revision.first?["__version__"] as? Int ?? 0) > 0)
    #expect(revision.first?["__updated__"] != nil)
    #expect(revision.first?["n"] as? Int == 3)
    let info = try objects(try await scratch.ondol("info", shop))
    #expect(info.first?["isClosed"] as? Bool == true)
    #expect(info.first?["lastCommit"] != nil)
    let database = try await Database.open(at: shop)
    try await database.document("items/new").setData(["n": 1])
    let beside = try objects(try await scratch.ondol("info", shop))
    #expect(beside.first?["isClosed"] as? Bool == false)
    try await database.close()
  }
}
