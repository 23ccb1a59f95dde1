// `ondol search` and the index that it needs: its output for people and for programs, and that a
// dump, a recovery and a check know the index.

import Foundation
import Ondol
import Testing

@Suite struct `Searches by the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func fill() async throws {
    let lines = [
      #"{"id":"a","title":"온돌","body":"온돌방에서 잤다"}"#,
      #"{"id":"b","title":"마루","body":"온돌방 옆 마루 a lamp"}"#,
      #"{"id":"c","title":"Lamp","body":"a lamp and a lantern"}"#,
    ]
    let imported = try await scratch.ondol(
      "import", shop, "-", "--into", "notes", "--id-field", "id",
      input: lines.joined(separator: "\n"))
    try #require(imported.status == 0, "\(imported.messages)")
    let made = try await scratch.ondol("mkindex", shop, "notes", "title, body", "--search")
    try #require(made.status == 0, "\(made.messages)")
  }

  private func ids(_ arguments: String...) async throws -> [String] {
    let result = try await scratch.ondol(
      ["search", shop, "notes"] + arguments + ["--format", "jsonl"])
    #expect(result.status == (result.output.isEmpty ? 3 : 0), "\(result.messages)")
    return result.output.split(separator: "\n").compactMap { line in
      let fields = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return fields?["__name__"] as? String
    }
  }

  @Test func `Words, phrases and signs find documents`() async throws {
    #expect(try await scratch.ondol("search", shop, "notes", "온돌").status != 0)
    try await fill()
    #expect(try await Set(ids("온돌")) == ["a", "b"])
    #expect(try await ids("온돌 -마루") == ["a"])
    #expect(try await ids("+온돌 +lamp") == ["b"])
    #expect(try await ids("\"a lantern\"") == ["c"])
    #expect(try await ids("온돌", "--in", "title") == ["a"])
    #expect(try await ids("lan*") == ["c"])
    #expect(try await ids("온돌", "--limit", "1").count == 1)
    #expect(try await ids("nothing").isEmpty)
    let table = try await scratch.ondol(
      "search", shop, "notes", "온돌", "--in", "body", "--format", "table", "--color", "always")
    #expect(table.output.contains("\u{1B}[1m온돌\u{1B}[0m방에서 잤다"), "\(table.output)")
    let explained = try await scratch.ondol(
      "search", shop, "notes", "lantern", "--explain", "--format", "jsonl")
    #expect(explained.output.contains(#""word":"lantern""#), "\(explained.output)")
    let listed = try await scratch.ondol("indexes", shop, "notes", "--format", "jsonl")
    #expect(listed.output.contains("title,body search"), "\(listed.output)")
  }

  @Test func `An index of English stems finds other forms of a word`() async throws {
    try await fill()
    #expect(try await ids("lamps").isEmpty)
    let wrong = try await scratch.ondol("mkindex", shop, "notes", "body", "--english")
    #expect(wrong.status == 2)
    let made = try await scratch.ondol(
      "mkindex", shop, "notes", "body", "--search", "--english")
    try #require(made.status == 0, "\(made.messages)")
    #expect(try await Set(ids("lamps", "--in", "body")) == ["b", "c"])
    let listed = try await scratch.ondol("indexes", shop, "notes", "--format", "jsonl")
    #expect(listed.output.contains("body search english"), "\(listed.output)")
  }

  @Test func `A dump and a recovery bring the index along`() async throws {
    try await fill()
    #expect(try await scratch.ondol("check", shop).status == 0)
    let dump = scratch.path("dump")
    #expect(try await scratch.ondol("dump", shop, "-o", dump).status == 0)
    let loaded = try await scratch.ondol("load", scratch.path("loaded.ondol"), dump)
    #expect(loaded.status == 0, "\(loaded.messages)")
    let recovered = try await scratch.ondol("recover", shop, scratch.path("recovered.ondol"))
    #expect(recovered.status == 0, "\(recovered.messages)")
    for name in ["loaded.ondol", "recovered.ondol"] {
      let found = try await scratch.ondol(
        "search", scratch.path(name), "notes", "lantern", "--format", "jsonl")
      #expect(found.output.contains("a lamp and a lantern"), "\(name): \(found.messages)")
      #expect(try await scratch.ondol("check", scratch.path(name)).status == 0)
    }
  }
}
