// `ondol put`, `patch`, `edit`, `rm`, the commands for indexes, `export`, `diff` and `digest`: what
// they write, and the statuses that scripts rely on.

import Foundation
import Ondol
import Testing

@Suite struct `Writing by the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func status(_ arguments: String...) async throws -> Int32 {
    try await scratch.ondol([arguments[0], shop] + arguments.dropFirst()).status
  }

  private func get(_ path: String) async throws -> String {
    try await scratch.ondol("get", shop, path, "--format", "jsonl").output
  }

  @Test func `A put writes only if its condition holds`() async throws {
    #expect(
      try await status("put", "a/x", #"{"n":1,"$odd":{"$date":"1970-01-01T00:00:00Z"}}"#) == 0)
    #expect(try await get("a/x") == #"{"$odd":{"$date":"1970-01-01T00:00:00Z"},"n":1}"# + "\n")
    #expect(try await status("put", "a/x", "{}", "--create") == 9)
    #expect(try await status("put", "a/y", "{}", "--update") == 3)
    #expect(try await status("put", "a/x", "{}", "--if-version", "77") == 9)
    #expect(try await status("put", "a/x", "{}", "--create", "--update") == 2)
    #expect(try await status("put", "a/x", "[]") == 1)
    #expect(try await status("put", "a", "{}") == 1)
    let put = try await scratch.ondol(
      "put", shop, "a/x", "-", "--update", "--format", "jsonl", input: #"{"n":2}"#)
    #expect(put.status == 0, "\(put.messages)")
    let version = try #require(
      put.output.split(separator: "\"version\":").last?.prefix { $0 != "," })
    #expect(try await status("put", "a/x", #"{"n":3}"#, "--if-version", String(version)) == 0)
    #expect(try await get("a/x") == "{\"n\":3}\n")
  }

  @Test func `A patch sets some fields and leaves the others`() async throws {
    #expect(try await status("put", "a/x", #"{"n":1,"size":{"w":1,"h":2},"old":0}"#) == 0)
    #expect(try await status("patch", "a/x", #"{"size.w":5,"new":true}"#, "--delete", "old") == 0)
    #expect(try await get("a/x") == #"{"n":1,"new":true,"size":{"h":2,"w":5}}"# + "\n")
    #expect(try await status("patch", "a/none", #"{"n":1}"#) == 3)
    #expect(try await status("patch", "a/x", #"{"n":2}"#, "--if-version", "1000") == 9)
    #expect(try await status("patch", "a/x") == 2)
  }

  @Test func `Documents are removed one by one, by condition, and never by accident`() async throws
  {
    let lines = (0..<2_500).map { #"{"__name__":"d\#($0)","n":\#($0)}"# }.joined(separator: "\n")
    #expect(try await scratch.ondol("import", shop, "-", "--into", "a", input: lines).status == 0)
    #expect(try await status("rm", "a/d1") == 0)
    #expect(try await status("rm", "a/d1") == 3)
    #expect(try await status("rm", "a/d2", "--if-version", "77777") == 9)
    #expect(try await status("rm", "a") == 2)
    let dry = try await scratch.ondol(
      "rm", shop, "a", "--where", "n < 4", "--dry-run", "--format", "jsonl")
    #expect(dry.lines.count == 3 && dry.output.contains(#""document":"a/d0""#))
    #expect(try await status("rm", "a", "--where", "n < 2200", "--yes") == 0)
    #expect(try await status("rm", "a", "--limit", "100", "--yes") == 0)
    #expect(try await scratch.ondol("ls", shop, "a", "--ids").lines.count == 200)
    #expect(try await status("rm", "a", "--where", "n > 9999", "--yes") == 3)
    #expect(try await status("rm", "a", "--where", "n >", "--yes") == 2)
  }

  @Test func `Documents that meet a condition are changed alike`() async throws {
    let lines = (0..<1_200).map { #"{"__name__":"d\#($0)","n":\#($0),"name":"Lamp \#($0)"}"# }
    let text = lines.joined(separator: "\n")
    #expect(try await scratch.ondol("import", shop, "-", "--into", "a", input: text).status == 0)
    let set = #"{"size.w":5}"#
    #expect(
      try await status("update", "a", set, "--delete", "name", "--where", "n < 3", "--yes") == 0)
    #expect(try await get("a/d2") == #"{"n":2,"size":{"w":5}}"# + "\n")
    #expect(try await get("a/d3") == #"{"n":3,"name":"Lamp 3"}"# + "\n")
    let dry = try await scratch.ondol(
      "update", shop, "a", #"{"x":1}"#, "--where", "name contains-nocase 'lamp 11'", "--dry-run",
      "--format", "jsonl")
    #expect(dry.lines.count == 111, "\(dry.messages)")
    #expect(try await status("update", "a", #"{"x":1}"#) == 2)
    #expect(try await status("update", "a", "--yes") == 2)
    #expect(try await status("update", "a", #"{"x":1}"#, "--where", "n > 5000", "--yes") == 3)
    #expect(try await status("update", "a", #"{"x":1}"#, "--yes") == 0)
    #expect(try await scratch.ondol("count", shop, "a", "x = 1").output == "1200\n")
  }

  @Test func `An editor changes a document`() async throws {
    #expect(try await status("put", "a/x", #"{"n":1,"text":"온돌"}"#) == 0)
    let edit = { (editor: String) in
      try await scratch.ondol(["edit", shop, "a/x"], environment: ["VISUAL": editor])
    }
    #expect(try await edit("sed -i s/1/2/").status == 0)
    #expect(try await get("a/x") == #"{"n":2,"text":"온돌"}"# + "\n")
    #expect(try await edit("true").status == 0)
    #expect(try await edit("false").status == 1)
    let broken = try await edit("sed -i s/2/}/")
    #expect(broken.status == 1)
    #expect(broken.messages.contains("what was edited is in"), "\(broken.messages)")
    #expect(try await status("edit", "a/none") == 3)
  }

  @Test func `Indexes are created, listed, rebuilt and removed`() async throws {
    for (id, n) in [("x", 1), ("y", 1), ("z", 2)] {
      #expect(try await status("put", "a/\(id)", #"{"n":\#(n),"id":"\#(id)","tags":["t"]}"#) == 0)
    }
    #expect(try await status("mkindex", "a", "n desc, id") == 0)
    #expect(try await status("mkindex", "a", "tags", "--array") == 0)
    #expect(try await status("mkindex", "a", "id", "--unique", "--where", "n > 1") == 0)
    #expect(try await status("mkindex", "a", "tags[], n desc") == 0)
    #expect(try await status("mkindex", "a", "n, id", "--array") == 2)
    #expect(try await status("mkindex", "a", "n", "--group") == 0)
    #expect(try await status("mkindex", "a", "n", "--unique") == 9)
    #expect(try await status("mkindex", "a", "m", "--nulls-not-distinct") == 2)
    #expect(try await status("mkindex", "a", "m", "--unique", "--nulls-not-distinct") == 0)
    #expect(try await status("put", "a/m1", #"{"m":null}"#) == 0)
    #expect(try await status("put", "a/m2", #"{"m":null}"#) == 9)
    #expect(try await status("rmindex", "a", "m unique nulls not distinct") == 0)
    #expect(try await status("mkindex", "a", "m", "--unique") == 0)
    #expect(try await status("put", "a/m2", #"{"m":null}"#) == 0)
    #expect(try await status("mkindex", "a") == 2)
    #expect(try await status("mkindex", "a", "--ttl", "until") == 0)
    #expect(try await status("put", "a/over", #"{"until":{"$date":"2001-01-01T00:00:00Z"}}"#) == 0)
    #expect(try await status("get", "a/over") == 3)
    let built = try await scratch.ondol("reindex", shop, "a", "--format", "jsonl")
    #expect(built.status == 0 && built.lines.count >= 4, "\(built.messages)")
    #expect(try await status("check", "--full") == 0)
    #expect(try await status("rmindex", "a", "--ttl", "--", "-n,id") == 0)
    #expect(try await status("rmindex", "a", "nothing") == 3)
    #expect(try await status("rmindex", "a", "n group", "--group") == 0)
    #expect(try await status("reindex", "a", "nothing") == 3)
  }

  @Test func `An export with types is imported unchanged`() async throws {
    let lines = [
      #"{"__name__":"a","at":{"$date":"2026-05-01T00:00:00Z"},"#
        + #""b":{"$binary":{"base64":"AQI=","subType":"00"}}}"#,
      #"{"__name__":"b","n":{"$numberDouble":"NaN"},"t":"1","u":"a,\"b\"\nc","#
        + #""v":{"$vector":[1.0]}}"#,
    ].joined(separator: "\n")
    #expect(try await scratch.ondol("import", shop, "-", "--into", "x", input: lines).status == 0)
    #expect(try await status("put", "users/u/posts/p", #"{"n":1}"#) == 0)
    for arguments in [["--typed"], ["--typed", "--ejson", "canonical"]] {
      let (directory, other) = (
        scratch.path("E\(arguments.count)"), scratch.path("o\(arguments.count)")
      )
      #expect(try await scratch.ondol(["export", shop, "-o", directory] + arguments).status == 0)
      #expect(try await scratch.ondol("import", other, directory).status == 0)
      #expect(try await scratch.ondol("diff", shop, other).status == 0)
    }
    let csv = try await scratch.ondol("export", shop, "x", "-o", "-", "--format", "csv", "--typed")
    #expect(csv.output.hasPrefix("__name__,at,b,n,t,u,v\r\n"), "\(csv.output)")
    let back = scratch.path("back.ondol")
    let read = try await scratch.ondol(
      ["import", back, "-", "--into", "x", "--as", "csv", "--guess-types"], input: csv.output)
    #expect(read.status == 0, "\(read.messages)")
    let digests = [
      try await scratch.ondol("digest", shop, "x"), try await scratch.ondol("digest", back, "x"),
    ]
    #expect(digests[0].output == digests[1].output)
    let plain = try await scratch.ondol("export", shop, "x", "-o", "-")
    #expect(plain.lines[0] == #"{"__name__":"a","at":"2026-05-01T00:00:00Z","b":"AQI="}"#)
    #expect(try await status("export", "none", "-o", "-") == 3)
    #expect(try await status("export", "-o", "-", "--format", "csv") == 2)
  }

  @Test func `Contents are exported as files, by reference, or not at all`() async throws {
    let database = try await Database.open(at: shop)
    let blob = try await database.storage.put(Array("bytes".utf8))
    try await database.document("a/x").setData(["photo": blob, "list": [blob]])
    try await database.close()
    let directory = scratch.path("E")
    #expect(try await status("export", "-o", directory, "--blobs", "files") == 0)
    let file = "blobs/\(blob.digest.hex.prefix(2))/\(blob.digest.hex)"
    #expect(try String(contentsOfFile: directory + "/" + file, encoding: .utf8) == "bytes")
    let text = try String(contentsOfFile: directory + "/a.jsonl", encoding: .utf8)
    #expect(text == #"{"__name__":"x","list":["\#(file)"],"photo":"\#(file)"}"# + "\n")
    let none = try await scratch.ondol("export", shop, "-o", "-", "--blobs", "none")
    #expect(none.output == #"{"__name__":"x","list":[null]}"# + "\n")
    let references = try await scratch.ondol("export", shop, "-o", "-")
    #expect(references.output.contains(#""sha256":"\#(blob.digest.hex)""#))
    #expect(try await status("export", "-o", "-", "--blobs", "files") == 2)
  }

  @Test func `A difference is named with its fields`() async throws {
    let other = scratch.path("other.ondol")
    for (path, documents) in [
      (shop, ["a": 1, "b": 1, "c": 1]), (other, ["b": 1, "c": 2, "d": 1]),
    ] {
      for (id, n) in documents.sorted(by: { $0.key < $1.key }) {
        _ = try await scratch.ondol("put", path, "x/\(id)", #"{"n":\#(n),"m":0}"#)
      }
    }
    let result = try await scratch.ondol("diff", shop, other, "--format", "jsonl")
    #expect(result.status == 1)
    #expect(
      result.lines == [
        #"{"schema":"diff/1","change":"removed","document":"x/a","fields":[]}"#,
        #"{"schema":"diff/1","change":"changed","document":"x/c","fields":["n"]}"#,
        #"{"schema":"diff/1","change":"added","document":"x/d","fields":[]}"#,
      ])
    #expect(try await scratch.ondol("diff", shop, shop).status == 0)
    #expect(try await status("digest", "none") == 3)
  }

  @Test func `An interrupted import has whole batches only, and says 130`() async throws {
    let lines = (0..<60_000).map { #"{"__name__":"d\#($0)","n":\#($0)}"# }.joined(separator: "\n")
    let file = scratch.path("many.jsonl")
    try lines.write(toFile: file, atomically: true, encoding: .utf8)
    let tool = try RunningTool(
      "import", shop, file, "--into", "a", "--acknowledge", "--resume", "--quiet")
    #expect(tool.line() == "1000")
    #expect(await tool.interrupt() == 130)
    let count = try await scratch.ondol("ls", shop, "a", "--ids").lines.count
    #expect(count.isMultiple(of: 1_000) && (1_000..<60_000).contains(count))
    #expect(try await status("import", file, "--into", "a", "--resume", "--quiet") == 0)
    #expect(try await scratch.ondol("ls", shop, "a", "--ids").lines.count == 60_000)
  }

  @Test func `Writing commands find a database locked that is open elsewhere`() async throws {
    let database = try await Database.open(at: shop)
    try await database.document("a/x").setData(["n": 1])
    #expect(try await status("put", "a/x", "{}") == 5)
    #expect(try await status("rm", "a/x") == 5)
    #expect(try await status("mkindex", "a", "n") == 5)
    #expect(try await status("digest") == 0)
    try await database.close()
  }
}
