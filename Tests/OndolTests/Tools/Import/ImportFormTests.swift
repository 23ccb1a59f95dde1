// Files of every form through `ondol import`: everything arrives, nothing is taken for another
// form, and refused lines are named with their place and kept.

import Foundation
import Ondol
import Testing

@Suite struct `Files that the ondol program imports` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func write(_ name: String, _ text: String) throws -> String {
    let path = scratch.path(name)
    try Data(text.utf8).write(to: URL(filePath: path))
    return path
  }

  private func listed(_ collection: String) async throws -> [String] {
    try await scratch.ondol("ls", shop, collection, "--format", "jsonl").lines
  }

  /// One of its lines was once taken for a document.
  @Test func `An array over several lines comes in whole`() async throws {
    let file = try write(
      "a.json",
      "[\n{\"id\":\"a\",\"n\":[1]},\n{\"id\":\"b\",\n  \"n\":[{\"x\":2}]\n},\n{\"id\":\"c\"}\n]")
    let result = try await scratch.ondol("import", shop, file, "--into", "t", "--id-field", "id")
    #expect(result.status == 0, "\(result.messages)")
    #expect(
      try await listed("t") == [
        #"{"__name__":"a","id":"a","n":[1]}"#, #"{"__name__":"b","id":"b","n":[{"x":2}]}"#,
        #"{"__name__":"c","id":"c"}"#,
      ])
  }

  @Test(arguments: [
    ("{\"id\":1,\n\"x\":{}}\n\n{\"id\":2} {\"id\":3}\n", [String]()),
    (
      "\u{FEFF}{\"meta\":{\"rows\":0},\"data\":{\"rows\":[{\"id\":1},{\"id\":2},{\"id\":3}]}}",
      ["--at", "data.rows"]
    ),
    ("{\"a.b\":{\"c/d\":[{\"id\":1},{\"id\":2},{\"id\":3}]}}", ["--at", "/a.b/c~1d"]),
    ("id;name\r\n1;\"a;\r\nb\"\r\n2;\r\n3;\"\"\r\n", []),
    ("id\tname\n1\ta\n2\t\n3\t\"b\tc\"\n", []),
    ("id|name\r1|a\r2|\"b\rc\"\r3|", []),
    ("\u{FEFF}id,name\n1,a\n2,b\n3,c", []),
    ("# x\n1;a\n# \"y\n2;b\n3\n", ["--comment", "#", "--columns", "id,name", "--short-rows"]),
  ])
  func `Each form comes in`(text: String, options: [String]) async throws {
    for path in [try write("data", text), "-"] {
      let result = try await scratch.ondol(
        ["import", shop, path, "--into", "t", "--id-field", "id", "--mode", "insert"] + options,
        input: path == "-" ? text : "")
      #expect(result.status == 0, "\(text): \(result.messages)")
      #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines == ["1", "2", "3"])
      _ = try await scratch.ondol("rmcoll", shop, "t", "--yes")
    }
  }

  @Test func `Line breaks in quotes stay, and columns without names are numbered`() async throws {
    let file = try write("n.txt", "1;\"a\r\nb\"\n2;\"c\"\"d\"\n")
    let result = try await scratch.ondol(
      "import", shop, file, "--into", "t", "--no-header", "--id-field", "column1")
    #expect(result.status == 0, "\(result.messages)")
    #expect(
      try await listed("t") == [
        #"{"__name__":"1","column1":"1","column2":"a\r\nb"}"#,
        #"{"__name__":"2","column1":"2","column2":"c\"d"}"#,
      ])
  }

  @Test func `A file in doubt is refused before there is a database`() async throws {
    let texts = [
      "{\"features\":[{\"a\":1}]}", "{\"a\":[\n{\"b\":1}\n}\n", "a,b;c\n1,2;3\n", "[1,2]\n",
      "__type__,b\n1,2\n", "a,a\n1,2\n",
    ]
    for text in texts {
      let file = try write("doubt.txt", text)
      let result = try await scratch.ondol("import", shop, file, "--into", "t")
      #expect(result.status == 1, "\(text): \(result.messages)")
      #expect(result.messages.contains("doubt.txt: "), "\(result.messages)")
      #expect(try await scratch.ondol("ls", shop, "t").status == 3, "\(text)")
    }
  }

  /// The lines in the first quarter of a megabyte are examined first; this one comes after.
  @Test
  func `An object over several lines among lines ends the import, and no part of it comes in`()
    async throws
  {
    let lines = (0..<20_000).map { #"{"id":\#($0),"n":1}"# }
    let file = try write(
      "late.jsonl",
      lines.joined(separator: "\n") + "\n{\"id\":\"x\",\"a\":[\n{\"id\":\"part\"}\n]}\n")
    let result = try await scratch.ondol("import", shop, file, "--into", "t", "--id-field", "id")
    #expect(result.status == 1)
    #expect(result.messages.contains("line 20001: "), "\(result.messages)")
    #expect(result.messages.contains("--as jsonl"), "\(result.messages)")
    let ids = try await scratch.ondol("ls", shop, "t", "--ids").lines
    #expect(ids.count == 20_000 && !ids.contains("part"))
    let json = try await scratch.ondol(
      "import", shop, file, "--into", "t", "--id-field", "id", "--as", "json")
    #expect(json.status == 0, "\(json.messages)")
    #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines.count == 20_001)
  }

  @Test func `Refused records are named with file, line, column and field`() async throws {
    let json = try write(
      "bad.json", "[{\"id\":\"a\"},\n 5,\n{\"id\":\"b\",\n \"n\":tru},\n{\"id\":\"c\",\"__x__\":1}]"
    )
    let first = try await scratch.ondol("import", shop, json, "--into", "t", "--id-field", "id")
    #expect(first.status == 1)
    for text in [
      "bad.json: line 2: column 2: a document must be an object",
      "bad.json: line 4: column 9: this is not a value", "bad.json: line 5: column 1: ",
      "(field \"__x__\")", "--leave-out __x__", "3 bad records were left out",
    ] {
      #expect(first.messages.contains(text), "\(text) in \(first.messages)")
    }
    #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines == ["a"])
    let csv = try write("bad.csv", "id,n\na,1\nb,2\"\nc\nd,4\n")
    let second = try await scratch.ondol("import", shop, csv, "--into", "t", "--id-field", "id")
    #expect(
      second.messages.contains("bad.csv: line 3: column 4: a quote in a cell without quotes (field")
    )
    #expect(second.messages.contains("line 4: 1 cell, and 2 columns; --short-rows"))
    let broken = try write("broken.json", "[{\"id\":\"e\"},\n{\"id\":\"f\"}\n" + "{\"id\":\"g\"}]")
    let third = try await scratch.ondol("import", shop, broken, "--into", "t")
    #expect(third.messages.contains("broken.json: line 3: column 1: ',' or ']' is missing"))
  }

  @Test
  func `Invalid ids, skipped fields and the neighbours of an array are reported`()
    async throws
  {
    let file = try write(
      "t.json", #"{"type":"list","rows":[{"__name__":"x","id":"a","__type__":1,"n":2}]}"#)
    let result = try await scratch.ondol(
      "import", shop, file, "--into", "t", "--at", "rows", "--id-field", "id", "--leave-out",
      "__type__")
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.messages.contains("__name__ of 1 document is left out"), "\(result.messages)")
    #expect(result.messages.contains("__type__ of 1 document is left out"), "\(result.messages)")
    #expect(result.messages.contains("beside the array are type"), "\(result.messages)")
    #expect(try await listed("t") == [#"{"__name__":"a","id":"a","n":2}"#])
  }

  @Test func `Rejects are kept as they are, and come in when they are mended`() async throws {
    let files = [
      ("r.jsonl", "{\"id\":\"a\"}\n{\"id\": tru}\n{\"n\":1}\n", "tru", "\"b\"", 2),
      ("r.json", "[{\"id\":\"a\"},{\"id\":\n tru}, 5]", "tru", "\"b\"", 2),
      ("r.csv", "\u{FEFF}id;n\r\na;1\r\nb;2;3;\r\n\"c;\r\n\"x;4\r\n", "2;3;", "2", 2),
    ]
    for (name, text, wrong, right, count) in files {
      let file = try write(name, text)
      let rejects = scratch.path("rejects-" + name)
      let arguments = [
        "import", shop, file, "--into", name, "--id-field", "id", "--rejects", rejects,
      ]
      let first = try await scratch.ondol(arguments)
      #expect(first.status == 1, "\(first.messages)")
      let kept = try String(contentsOfFile: rejects, encoding: .utf8)
      #expect(kept.hasPrefix("#ondol: rejects/1 {\"as\":"), "\(kept)")
      #expect(kept.components(separatedBy: "\n#ondol: ").count == count + 1, "\(kept)")
      #expect(kept.contains(wrong) && kept.contains(name + ": line "), "\(kept)")
      // They have no other meaning for an unchanged import.
      let again = try await scratch.ondol(
        "import", shop, rejects, "--into", "again", "--id-field", "id")
      #expect(again.status == 1, "\(again.messages)")
      #expect(try await scratch.ondol("ls", shop, "again").status == 3)
      // A second run does not remove them.
      #expect(try await scratch.ondol(arguments).status == 1)
      #expect(try String(contentsOfFile: rejects, encoding: .utf8) == kept)
      try Data(kept.replacing(wrong, with: right).utf8)
        .write(to: URL(filePath: rejects))
      let mended = try await scratch.ondol(
        "import", shop, rejects, "--into", name, "--id-field", "id")
      #expect(mended.messages.contains("Imported 1 document"), "\(mended.messages)")
      #expect(try await scratch.ondol("ls", shop, name, "--ids").lines == ["a", "b"])
    }
  }

  @Test func `Records that the database refuses are also kept`() async throws {
    let text = "{\"id\":\"a\", \"n\": 1}\n{\"id\":\"b\"}\n"
    _ = try await scratch.ondol(
      "import", shop, "-", "--into", "t", "--id-field", "id", input: #"{"id":"a"}"#)
    let rejects = scratch.path("there.jsonl")
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "t", "--id-field", "id", "--mode", "insert", "--rejects",
      rejects, input: text)
    #expect(result.status == 1)
    #expect(
      try String(contentsOfFile: rejects, encoding: .utf8).hasSuffix("\n{\"id\":\"a\", \"n\": 1}\n")
    )
  }

  @Test func `A dry run counts and writes nothing`() async throws {
    let file = try write("d.json", "[{\"id\":\"a\"},{\"id\":1.5},{\"id\":\"b\"}]")
    let result = try await scratch.ondol(
      "import", shop, file, "--into", "t", "--id-field", "id", "--dry-run", "--acknowledge")
    #expect(result.status == 1)
    #expect(result.messages.contains("Would import 2 documents into t"), "\(result.messages)")
    #expect(result.messages.contains("1 bad record was left out"), "\(result.messages)")
    #expect(result.output.isEmpty)
    #expect(!FileManager.default.fileExists(atPath: shop))
    #expect(
      try await scratch.ondol("import", shop, file, "--into", "t", "--dry-run", "--resume").status
        == 2)
  }

  @Test(arguments: [
    ("json", "[", ",\n", "]", [String]()),
    ("json", "{\"x\":1,\"rows\":[", ", ", "],\"y\":2}", ["--at", "rows"]),
    ("txt", "", " \n ", "", ["--as", "json"]),
  ])
  func `An import of JSON continues where it ended`(
    ending: String, start: String, separator: String, end: String, options: [String]
  ) async throws {
    var objects = (0..<2_500).map { "{\"id\":\"d\($0)\",\n\"n\":\($0)}" }
    func text() -> String { start + objects.joined(separator: separator) + end }
    objects[2_100] = "{\"id\":tru}"
    let file = try write("many.\(ending)", text())
    let arguments =
      ["import", shop, file, "--into", "t", "--id-field", "id", "--resume", "--acknowledge"]
      + options
    let first = try await scratch.ondol(arguments + ["--stop-on-error"])
    #expect(first.status == 1)
    #expect(first.messages.contains("line "), "\(first.messages)")
    objects[2_100] = "{\"id\":\"d2100\",\n\"n\":2100}"
    _ = try write("many.\(ending)", text())
    let second = try await scratch.ondol(arguments)
    #expect(second.status == 0, "\(second.messages)")
    #expect(second.output == "500\n")
    #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines.count == 2_500)
  }

  @Test func `A table with comments continues where it ended, and not as another form`()
    async throws
  {
    let lines = (0..<2_500).map { "d\($0);\($0)" }
    let text = "# who\nid;n\n" + lines.joined(separator: "\n# \"and\n") + "\n"
    let file = try write("many.csv", text.replacing("d2100;", with: "d2100;;"))
    let arguments = [
      "import", shop, file, "--into", "t", "--id-field", "id", "--comment", "#", "--resume",
    ]
    #expect(try await scratch.ondol(arguments + ["--stop-on-error"]).status == 1)
    _ = try write("many.csv", text)
    let other = try await scratch.ondol(arguments + ["--delimiter", ","])
    #expect(other.status == 1)
    #expect(other.messages.contains("CSV with ';' between cells so far"), "\(other.messages)")
    let second = try await scratch.ondol(arguments)
    #expect(second.status == 0, "\(second.messages)")
    #expect(try await scratch.ondol("ls", shop, "t", "--ids").lines.count == 2_500)
  }

  @Test func `A directory of several forms comes in, each file into its collection`() async throws {
    let directory = scratch.path("in")
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    for (name, text) in [
      ("a.json", "[{\"n\":1},\n{\"n\":2}]"), ("b.tsv", "x\ty\n1\t2\n"), ("c.jsonl", "{\"n\":1}\n"),
      ("d.csv", "x,y\n1,2,3\n1,2\n"),
    ] {
      try Data(text.utf8).write(to: URL(filePath: directory + "/" + name))
    }
    let rejects = scratch.path("out")
    let result = try await scratch.ondol("import", shop, directory, "--rejects", rejects)
    #expect(result.messages.contains("Imported 5 documents"), "\(result.messages)")
    #expect(try await listed("a").count == 2)
    #expect(try await listed("b").count == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: rejects) == ["d.csv"])
  }
}
