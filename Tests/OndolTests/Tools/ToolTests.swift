// The `ondol` program as its users see it: text in, text out, and a status that scripts can rely
// on.

import Foundation
import Ondol
import Testing

@Suite struct `The ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func importItems(_ lines: String...) async throws {
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "upload", "--id-field", "id",
      input: lines.joined(separator: "\n"))
    try #require(result.status == 0, "\(result.messages)")
  }

  // MARK: - Import

  @Test func `Imported documents are listed again, to the last digit`() async throws {
    let lines = [
      #"{"__name__":"max","value":9223372036854775807}"#,
      #"{"__name__":"min","value":-9223372036854775808}"#,
      #"{"__name__":"one","value":1}"#,
      #"{"__name__":"one point zero","value":1.0}"#,
      #"{"__name__":"tenth","value":0.1}"#,
      #"{"__name__":"불","value":{"가":[true,false,null,"\n\"\\😀"],"나":{}}}"#,
    ]
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "values", "--id-field", "__name__",
      input: lines.joined(separator: "\n"))
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output == "")
    let listed = try await scratch.ondol("ls", shop, "values")
    #expect(listed.status == 0)
    #expect(listed.lines == lines)
  }

  @Test func `An import from a file answers with the counts it has committed`() async throws {
    let lines = (1...2_500).map { #"{"id":\#($0),"half":\#($0 / 2)}"# }
    let file = scratch.path("numbers.jsonl")
    try lines.joined(separator: "\r\n").write(toFile: file, atomically: true, encoding: .utf8)
    let result = try await scratch.ondol(
      "import", shop, file, "--into", "numbers", "--id-field", "id", "--acknowledge",
      "--durability", "process")
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output == "1000\n2000\n2500\n")
    #expect(result.messages.contains("2500"))
    let listed = try await scratch.ondol("ls", shop, "numbers", "--ids")
    let ids = (1...2_500).map(String.init).sorted()
    #expect(listed.lines == ids)
    let part = try await scratch.ondol(
      "ls", shop, "numbers", "--ids", "--offset", "1234", "--limit", "1100")
    #expect(part.lines == Array(ids[1_234..<2_334]))
  }

  @Test(arguments: ["power", "process"])
  func `A killed import has lost nothing it acknowledged, and half of no batch`(
    durability: String
  ) async throws {
    let lines = (1...50_000).map { #"{"id":"\#($0)","text":"온돌 \#($0)"}"# }
    let file = scratch.path("numbers.jsonl")
    try lines.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
    let printed = try await scratch.ondol(
      "import", shop, file, "--into", "numbers", "--id-field", "id", "--acknowledge",
      "--durability", durability, killedAfterLines: 3)
    let acknowledged = try #require(printed.last.flatMap { Int($0) })
    #expect(acknowledged >= 3_000)
    let listed = try await scratch.ondol("ls", shop, "numbers", "--ids")
    #expect(listed.status == 0, "\(listed.messages)")
    let ids = listed.lines
    #expect(ids.count >= acknowledged)
    #expect(ids.count.isMultiple(of: 1_000))
    #expect(Set(ids) == Set((1...ids.count).map(String.init)))
  }

  @Test(arguments: [
    (#"{"id":"c","a":}"#, "value"),
    (#"{"name":"no id"}"#, "\"id\""),
    (#"{"id":1.5}"#, "whole number"),
    (#"[1, 2]"#, "object"),
    (#"{"id":"a/b/c"}"#, "/"),
    (#"{"id":"c","id":"d"}"#, "twice"),
    (#"{"id":"c","__x__":1}"#, "__x__"),
  ])
  func `A bad line ends the import with its number and its reason`(
    line: String, reason: String
  ) async throws {
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "upload", "--id-field", "id", "--stop-on-error",
      input: #"{"id":"a"}"# + "\n\n" + #"{"id":"b"}"# + "\n" + line + "\n" + #"{"id":"z"}"#)
    #expect(result.status == 1)
    #expect(result.messages.contains("line 4"), "\(result.messages)")
    #expect(result.messages.contains(reason), "\(result.messages)")
    let listed = try await scratch.ondol("ls", shop, "upload", "--ids")
    #expect(listed.lines == ["a", "b"])
  }

  // MARK: - Looking

  @Test func `A document is printed as JSON, and a missing one is status 3`() async throws {
    try await importItems(#"{"id":"lamp","name":"라탄 조명","price":39000}"#)
    let found = try await scratch.ondol("get", shop, "upload/lamp")
    #expect(found.status == 0)
    #expect(found.output == #"{"id":"lamp","name":"라탄 조명","price":39000}"# + "\n")
    let missing = try await scratch.ondol("get", shop, "upload/desk")
    #expect(missing.status == 3)
    #expect(missing.output == "")
    #expect(missing.messages.contains("upload/desk"))
  }

  @Test func `Looking at a database that is not there makes none`() async throws {
    let result = try await scratch.ondol("ls", shop, "upload")
    #expect(result.status == 3)
    #expect(result.messages.contains(shop))
    #expect(!FileManager.default.fileExists(atPath: shop))
  }

  @Test func `Offset and limit cut the list`() async throws {
    try await importItems(#"{"id":"a"}"#, #"{"id":"b"}"#, #"{"id":"c"}"#, #"{"id":"d"}"#)
    let middle = try await scratch.ondol(
      "ls", shop, "upload", "--ids", "--offset", "1", "--limit", "2")
    #expect(middle.lines == ["b", "c"])
    let end = try await scratch.ondol(
      "ls", shop, "upload", "--ids", "--offset", "3", "--limit", "9")
    #expect(end.lines == ["d"])
    let none = try await scratch.ondol("ls", shop, "upload", "--limit", "0")
    #expect(none.status == 0)
    #expect(none.output == "")
  }

  @Test func `A table lines up, also where characters are two cells wide`() async throws {
    try await importItems(
      #"{"id":"a","name":"라탄 조명","price":39000}"#, #"{"id":"b","name":"Chair","price":5}"#)
    let table = try await scratch.ondol("ls", shop, "upload", "--format", "table")
    #expect(
      table.lines == [
        "__name__  id  name       price",
        "--------  --  ---------  -----",
        "a         a   라탄 조명  39000",
        "b         b   Chair          5",
      ])
  }

  @Test func `JSON is one array`() async throws {
    try await importItems(#"{"id":"a"}"#, #"{"id":"b"}"#)
    let listed = try await scratch.ondol("ls", shop, "upload", "--format", "json")
    let array = try JSONSerialization.jsonObject(with: Data(listed.output.utf8))
    let documents = try #require(array as? [[String: String]])
    #expect(documents.map { $0["__name__"] } == ["a", "b"])
    let empty = try await scratch.ondol("ls", shop, "nothing", "--format", "json")
    #expect(empty.output == "[]\n")
  }

  @Test func `Values that JSON has no notation for carry their type`() async throws {
    let database = try await Database.open(at: shop)
    try await database.collection("kinds").document("all").setData([
      "at": Timestamp(microsecondsSince1970: 1_709_164_800_000_001),
      "bytes": [1, 2, 255] as [UInt8],
      "nothing": nil,
      "number": Double.nan,
      "place": GeoPoint(latitude: 37.5, longitude: 127),
      "to": DocumentPath("upload/lamp"),
      "vector": VectorValue([1, 0.5]),
    ])
    try await database.close()
    let found = try await scratch.ondol("get", shop, "kinds/all")
    #expect(
      found.output == """
        {"at":{"$date":"2024-02-29T00:00:00.000001Z"},"bytes":{"$binary":{"base64":"AQL/",\
        "subType":"00"}},"nothing":null,"number":{"$numberDouble":"NaN"},\
        "place":{"$geoPoint":[37.5,127.0]},"to":{"$reference":"upload/lamp"},\
        "vector":{"$vector":[1.0,0.5]}}

        """)
  }

  // MARK: - Statuses

  @Test(arguments: [
    ["ls"], ["import", "a"], ["ls", "a", "b", "--limit", "-1"], ["burn", "a"],
  ])
  func `Wrong usage is status 2 and leaves standard output empty`(
    arguments: [String]
  ) async throws {
    let result = try await scratch.ondol(arguments)
    #expect(result.status == 2)
    #expect(result.output == "")
    #expect(result.messages != "")
  }

  @Test func `Help and version are no mistakes`() async throws {
    let help = try await scratch.ondol("--help")
    #expect(help.status == 0)
    #expect(help.output.contains("import"))
    let version = try await scratch.ondol("--version")
    #expect(version.status == 0)
    #expect(version.output.hasPrefix("ondol "))
  }

  @Test func `Reading works beside an open database, writing is status 5`()
    async throws
  {
    let database = try await Database.open(at: shop)
    try await database.collection("upload").document("a").setData(["x": 1])
    let found = try await scratch.ondol("get", shop, "upload/a")
    #expect(found.status == 0, "\(found.messages)")
    #expect(found.output == #"{"x":1}"# + "\n")
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "upload", "--id-field", "id", input: #"{"id":"b"}"#)
    #expect(result.status == 5, "\(result.messages)")
    #expect(result.output == "")
    try await database.close()
  }

  // MARK: - Check

  @Test func `A check of a sound database says nothing, at any depth, also while it is open`()
    async throws
  {
    let database = try await Database.open(at: shop)
    try await database.collection("upload").createIndex(on: ["x"])
    try await database.collection("upload").document("a").setData(["x": 1])
    for arguments in [[], ["--quick"], ["--full"], ["--format", "table"]] {
      let result = try await scratch.ondol(["check", shop] + arguments)
      #expect(result.status == 0, "\(result.messages)")
      #expect(result.output == "")
      #expect(result.messages == "0 errors, 0 warnings\n")
    }
    try await database.close()
    let result = try await scratch.ondol("check", shop, "--format", "json", "--quiet")
    #expect(result.output == "[]\n")
    #expect(result.messages == "")
  }

  @Test func `Findings of a check are lines of JSON, and status 4 if data is lost`()
    async throws
  {
    try await importItems(#"{"id":"a"}"#)
    let file = try #require(
      try FileManager.default.contentsOfDirectory(atPath: shop).first { $0.hasSuffix(".seg") })
    for (name, offset, status) in [("SUPER", 72, 0), (file, 70, 4)] {
      let place = URL(filePath: shop).appending(path: name)
      var bytes = try Data(contentsOf: place)
      // The first copies of the superblock are written at its first change.
      bytes[offset + (name == "SUPER" ? 4_096 : 0)] ^= 1
      try bytes.write(to: place)
      let result = try await scratch.ondol("check", shop)
      #expect(result.status == Int32(status), "\(result.messages)")
      let finding = try #require(
        try result.lines.last.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) }
          as? [String: Any])
      #expect(finding["schema"] as? String == "check/1")
      #expect(finding["file"] as? String == name)
      #expect(finding["severity"] as? String == (status == 0 ? "warning" : "error"))
      #expect(finding["offset"] is Int)
    }
    #expect(try await scratch.ondol("check", scratch.path("nothing")).status == 3)
    #expect(try await scratch.ondol("check", shop, "--quick", "--full").status == 2)
  }

  @Test(arguments: ["SUPER", "MANIFEST-1"])
  func `Damage is status 4 and names the file`(file: String) async throws {
    try await importItems(#"{"id":"a"}"#)
    let place = URL(filePath: shop).appending(path: file)
    let damaged = try Data(contentsOf: place).map { $0 ^ 0xFF }
    try Data(damaged).write(to: place)
    let result = try await scratch.ondol("get", shop, "upload/a")
    #expect(result.status == 4, "\(result.messages)")
    #expect(result.messages.contains(file), "\(result.messages)")
    #expect(result.output == "")
  }

  @Test func `A name that cannot be is status 1 and says why`() async throws {
    try await importItems(#"{"id":"a"}"#)
    let result = try await scratch.ondol("get", shop, "upload")
    #expect(result.status == 1)
    #expect(result.messages.contains("upload"))
  }

  @Test func `Info names the collections and how much is in them`() async throws {
    try await importItems(#"{"id":"a"}"#, #"{"id":"b"}"#)
    let result = try await scratch.ondol("info", shop)
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output.contains("upload"))
    #expect(result.lines.contains { $0.contains("upload") && $0.contains("2") })
  }
}
