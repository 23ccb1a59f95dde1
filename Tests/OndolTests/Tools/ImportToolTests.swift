// `ondol import` beyond plain lines: modes, bad lines, resuming, CSV, directories.

import Foundation
import Ondol
import Testing

@Suite struct `Imports by the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func write(_ name: String, _ lines: [String]) throws -> String {
    let path = scratch.path(name)
    try (lines.joined(separator: "\n") + "\n").write(
      toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  private func listed(_ collection: String) async throws -> [String] {
    try await scratch.ondol("ls", shop, collection, "--format", "jsonl").lines
  }

  @Test func `Typed values are imported as such, and as plain maps on request`()
    async throws
  {
    let line =
      #"{"__name__":"a","at":{"$date":"2026-05-01T09:30:00.000001Z"},"n":{"$numberLong":"1"}}"#
    let typed = try await scratch.ondol("import", shop, "-", "--into", "t", input: line)
    #expect(typed.status == 0, "\(typed.messages)")
    #expect(
      try await listed("t") == [
        #"{"__name__":"a","at":{"$date":"2026-05-01T09:30:00.000001Z"},"n":1}"#
      ])
    let plain = try await scratch.ondol("import", shop, "-", "--into", "p", "--plain", input: line)
    #expect(plain.status == 0)
    let maps = try await listed("p")
    #expect(
      maps == [
        #"{"__name__":"a","at":{"$literal":{"$date":"2026-05-01T09:30:00.000001Z"}},"#
          + #""n":{"$literal":{"$numberLong":"1"}}}"#
      ])
  }

  @Test func `Numbers keep every digit, or are rounded on request`() async throws {
    let file = try write(
      "numbers.jsonl",
      [
        #"{"id":18446744073709551615,"n":0.1234567890123456789,"g":[[1,2],[[0.5]]]}"#,
        #"{"id":"b","n":0.10}"#,
        #"{"id":"c","n":0.123456789012345678901234567890123456789}"#,
      ])
    let exact = try await scratch.ondol("import", shop, file, "--into", "e", "--id-field", "id")
    #expect(exact.status == 1)
    #expect(exact.messages.contains("line 3: column 15: "), "\(exact.messages)")
    #expect(exact.messages.contains("38 digits"), "\(exact.messages)")
    #expect(
      try await listed("e") == [
        #"{"__name__":"18446744073709551615","g":[[1,2],[[0.5]]],"#
          + #""id":{"$numberDecimal":"18446744073709551615"},"#
          + #""n":{"$numberDecimal":"0.1234567890123456789"}}"#,
        #"{"__name__":"b","id":"b","n":0.1}"#,
      ])
    let found = try await scratch.ondol(
      "query", shop, "e", "n < 0.10m or n = 0.1234567890123456789m", "--format", "jsonl")
    #expect(found.lines.count == 1, "\(found.messages)")
    let rounded = try await scratch.ondol(
      "import", shop, "-", "--into", "d", "--numbers", "double",
      input: #"{"__name__":"a","n":0.1234567890123456789,"m":18446744073709551615}"#)
    #expect(rounded.status == 0, "\(rounded.messages)")
    #expect(
      try await listed("d") == [
        #"{"__name__":"a","m":1.8446744073709552e+19,"n":0.12345678901234568}"#
      ])
  }

  @Test func `Bad lines are left out, told of and counted`() async throws {
    let file = try write(
      "mixed.jsonl", [#"{"id":"a"}"#, "no", "", #"{"id":"b"}"#, #"{"x":1}"#, #"{"id":"c"}"#])
    let result = try await scratch.ondol("import", shop, file, "--into", "t", "--id-field", "id")
    #expect(result.status == 1)
    #expect(result.messages.contains("line 2: column 1"), "\(result.messages)")
    #expect(result.messages.contains("line 5: there is no field \"id\""), "\(result.messages)")
    #expect(result.messages.contains("2 bad lines"), "\(result.messages)")
    #expect(try await listed("t").count == 3)
  }

  @Test func `Each mode follows its rule for existing and missing documents`()
    async throws
  {
    let old = #"{"__name__":"old","a":1,"b":1}"#
    let expected: [(String, Int32, [String])] = [
      ("insert", 1, [#"{"__name__":"new","a":2}"#, old]),
      ("upsert", 0, [#"{"__name__":"new","a":2}"#, #"{"__name__":"old","a":2}"#]),
      ("merge", 0, [#"{"__name__":"new","a":2}"#, #"{"__name__":"old","a":2,"b":1}"#]),
      ("replace", 1, [#"{"__name__":"old","a":2}"#]),
    ]
    for (mode, status, documents) in expected {
      _ = try await scratch.ondol("import", shop, "-", "--into", mode, input: old)
      let result = try await scratch.ondol(
        "import", shop, "-", "--into", mode, "--mode", mode,
        input: #"{"__name__":"old","a":2}"# + "\n" + #"{"__name__":"new","a":2}"#)
      #expect(result.status == status, "\(mode): \(result.messages)")
      #expect(try await listed(mode) == documents, "\(mode)")
    }
  }

  @Test func `A resumed import continues where the last one ended`() async throws {
    var lines = (0..<2_500).map { #"{"__name__":"d\#($0)","n":\#($0)}"# }
    lines[2_100] = "broken"
    let file = try write("many.jsonl", lines)
    let first = try await scratch.ondol(
      "import", shop, file, "--into", "t", "--mode", "insert", "--resume", "--stop-on-error")
    #expect(first.status == 1)
    let checkpoint = shop + ".import"
    #expect(FileManager.default.fileExists(atPath: checkpoint))
    lines[2_100] = #"{"__name__":"d2100","n":2100}"#
    _ = try write("many.jsonl", lines)
    // Lines before the place would be refused, because their documents exist.
    let second = try await scratch.ondol(
      "import", shop, file, "--into", "t", "--mode", "upsert", "--resume", "--acknowledge")
    #expect(second.status == 0, "\(second.messages)")
    #expect(second.output == "500\n")
    #expect(!FileManager.default.fileExists(atPath: checkpoint))
    #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines.count == 2_500)
  }

  @Test func `Another file is not resumed`() async throws {
    let file = try write("many.jsonl", (0..<1_500).map { #"{"__name__":"d\#($0)"}"# } + ["x"])
    let arguments = ["import", shop, file, "--into", "t", "--resume", "--stop-on-error"]
    #expect(try await scratch.ondol(arguments).status == 1)
    _ = try write("many.jsonl", (0..<1_500).map { #"{"__name__":"e\#($0)"}"# })
    let result = try await scratch.ondol(arguments)
    #expect(result.status == 1)
    #expect(result.messages.contains("not what was imported so far"), "\(result.messages)")
    #expect(try await scratch.ondol("import", shop, "-", "--into", "t", "--resume").status == 2)
  }

  @Test func `CSV is imported as texts, or as the types of its cells`() async throws {
    let file = try write(
      "items.csv",
      [
        "__name__,n,text,more", #"a,1,"1","{""x"":[1,2.5]}""#,
        "b,,\"two\nlines, and \"\"quotes\"\"\",",
        #"c,true,"",{}"#,
      ])
    let guessed = try await scratch.ondol("import", shop, file, "--into", "g", "--guess-types")
    #expect(guessed.status == 0, "\(guessed.messages)")
    #expect(
      try await listed("g") == [
        #"{"__name__":"a","more":{"x":[1,2.5]},"n":1,"text":"1"}"#,
        #"{"__name__":"b","text":"two\nlines, and \"quotes\""}"#,
        #"{"__name__":"c","more":{},"n":true,"text":""}"#,
      ])
    #expect(try await scratch.ondol("import", shop, file, "--into", "t").status == 0)
    #expect(
      try await listed("t")[0] == #"{"__name__":"a","more":"{\"x\":[1,2.5]}","n":"1","text":"1"}"#)
    let ragged = try write("ragged.csv", ["__name__,n", "a,1,2", "b\"c,1", "d,4"])
    let result = try await scratch.ondol("import", shop, ragged, "--into", "r")
    #expect(result.status == 1)
    #expect(result.messages.contains("line 2: 3 cells, and 2 columns"), "\(result.messages)")
    #expect(result.messages.contains("line 3: column 2"), "\(result.messages)")
    #expect(try await listed("r").count == 1)
  }

  /// One quote too many once took in all lines after it, and one bad line was counted.
  @Test func `An unclosed quote is reported with all lines that it takes in`() async throws {
    let file = try write("open.csv", ["__name__,n", "a,1", "b,\"2", "c,3", "d,4"])
    let result = try await scratch.ondol("import", shop, file, "--into", "q")
    #expect(result.status == 1)
    #expect(
      result.messages.contains("lines 3 to 5: column 3: a quote that begins here is never closed"),
      "\(result.messages)")
    #expect(result.messages.contains("Imported 1 document into q"), "\(result.messages)")
    #expect(result.messages.contains("3 bad lines were left out."), "\(result.messages)")
    #expect(try await listed("q") == [#"{"__name__":"a","n":"1"}"#])
    let one = try write("one.csv", ["__name__,n", "a,1,2"])
    let single = try await scratch.ondol("import", shop, one, "--into", "q")
    #expect(single.messages.contains("1 bad line was left out."), "\(single.messages)")
  }

  @Test func `Documents without an id get one, and whole paths need no collection`() async throws {
    let result = try await scratch.ondol("import", shop, "-", "--into", "t", input: "{}\n{}\n")
    #expect(result.status == 0, "\(result.messages)")
    #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines.count == 2)
    let path = try await scratch.ondol("import", shop, "-", input: #"{"__name__":"a/b/c/d","n":1}"#)
    #expect(path.status == 0, "\(path.messages)")
    #expect(try await scratch.ondol("get", shop, "a/b/c/d").output == "{\"n\":1}\n")
  }

  @Test func `A database that is open elsewhere is status 5`() async throws {
    let database = try await Database.open(at: shop)
    let result = try await scratch.ondol("import", shop, "-", "--into", "t", input: "{}")
    #expect(result.status == 5)
    try await database.close()
  }
}
