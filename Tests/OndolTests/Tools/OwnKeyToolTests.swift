// Collections with keys of their own, from a shell.

import Foundation
import Ondol
import Testing

@Suite struct `Collections' own keys in the ondol program` {
  let scratch: ScratchDirectory
  let place: String
  let key: String

  init() async throws {
    scratch = try ScratchDirectory()
    place = scratch.path("diary.ondol")
    key = scratch.path("key")
    try Data([UInt8](repeating: 1, count: 32)).write(to: URL(filePath: key))
    var options = Database.Options()
    options.encryption = .key([UInt8](repeating: 1, count: 32))
    let database = try await Database.open(at: place, options: options)
    try await database.document("plain/a").setData(["n": 1])
    try await database.close()
  }

  private func ondol(_ words: String...) async throws -> ToolResult {
    try await scratch.ondol(words + ["--key-file", key])
  }

  @Test func `A collection is made with a key and removed with it`() async throws {
    #expect(try await ondol("mkcoll", place, "records").status == 2)
    #expect(try await ondol("mkcoll", place, "records", "--own-key").status == 0)
    #expect(try await ondol("mkcoll", place, "records", "--own-key").status == 9)
    #expect(try await ondol("mkcoll", place, "plain", "--own-key").status == 9)
    #expect(try await ondol("put", place, "records/r", #"{"text":"a lamp"}"#).status == 0)
    let listed = try await ondol("ls", place)
    #expect(
      listed.lines == [
        #"{"schema":"ls/1","collection":"plain","ownKey":null}"#,
        #"{"schema":"ls/1","collection":"records","ownKey":"present"}"#,
      ], "\(listed.output)")
    #expect(try await ondol("colls", place).output.contains(#""ownKey":"present""#))
    #expect(try await ondol("info", place).output.contains(#""ownKey":"present""#))
    #expect(try await ondol("info", place, "--format", "table").output.contains("own key"))
    #expect(try await ondol("decrypt", place).status == 1)
    #expect(try await ondol("rmcoll", place, "nothing", "--yes").status == 3)
    #expect(try await ondol("rmcoll", place, "records").status == 2)
    #expect(try await ondol("rmcoll", place, "records", "--declarations", "--yes").status == 0)
    #expect(try await ondol("ls", place).lines == [#"{"schema":"ls/1","collection":"plain"}"#])
    #expect(try await ondol("check", place, "--full").status == 0)
  }

  @Test func `A content is put for it, found by the document, and deleted with it`()
    async throws
  {
    #expect(try await ondol("mkcoll", place, "records", "--own-key").status == 0)
    let (file, text) = (scratch.path("scan.txt"), "what nobody may read")
    try Data(text.utf8).write(to: URL(filePath: file))
    #expect(try await ondol("blob", "put", place, file, "--for", "plain").status == 1)
    let both = try await ondol("blob", "put", place, file, "--for", "records", "--path", "a")
    #expect(both.status == 2)
    let put = try await ondol("blob", "put", place, file, "--for", "records")
    #expect(put.status == 0, "\(put.messages)")
    let answer = try #require(
      try JSONSerialization.jsonObject(with: Data(put.output.utf8)) as? [String: Any])
    let blob = try #require(answer["blob"] as? [String: Any])
    let fields = String(
      decoding: try JSONSerialization.data(withJSONObject: ["scan": blob]), as: UTF8.self)
    #expect(try await ondol("put", place, "plain/a", fields).status == 1)
    #expect(try await ondol("put", place, "records/r", fields).status == 0)
    let cat = try await ondol("blob", "cat", place, "records/r", "--field", "scan")
    #expect(cat.output == text, "\(cat.messages)")
    #expect(try await ondol("blob", "cat", place, "records/r", "--field", "no").status == 3)
    let digest = try #require(answer["digest"] as? String)
    let stored = scratch.path("stored")
    #expect(try await ondol("blob", "cat", place, digest, "-o", stored).status == 0)
    #expect(try Data(contentsOf: URL(filePath: stored)) != Data(text.utf8))

    let dump = scratch.path("dump")
    #expect(try await ondol("dump", place, "-o", dump).status == 0)
    let (loaded, clear) = (scratch.path("loaded.ondol"), scratch.path("clear.ondol"))
    #expect(try await ondol("load", loaded, dump, "--quiet").status == 0)
    let again = try await ondol("blob", "cat", loaded, "records/r", "--field", "scan")
    #expect(again.output == text, "\(again.messages)")
    #expect(try await ondol("check", loaded, "--full").status == 0)
    // In a plain database nothing is kept apart, and the loaded collection can be written again.
    #expect(try await scratch.ondol("load", clear, dump, "--quiet").status == 0)
    let open = try await scratch.ondol("blob", "cat", clear, "records/r", "--field", "scan")
    #expect(open.output == text, "\(open.messages)")
    #expect(try await scratch.ondol("put", clear, "records/r", fields).status == 0)
    let export = scratch.path("export")
    let exported = try await ondol("export", place, "-o", export, "--blobs", "files")
    #expect(exported.status == 0, "\(exported.messages)")
    let name = export + "/blobs/\(digest.prefix(2))/\(digest)"
    #expect(try String(contentsOfFile: name, encoding: .utf8) == text)
  }

  @Test func `Backups leave keys out unless they are asked for`() async throws {
    #expect(try await ondol("mkcoll", place, "records", "--own-key").status == 0)
    #expect(try await ondol("put", place, "records/r", #"{"text":"a lamp"}"#).status == 0)
    let (without, with) = (scratch.path("without"), scratch.path("with"))
    #expect(try await ondol("backup", place, without).status == 0)
    #expect(try await ondol("backup", place, with, "--with-keys").status == 0)
    let files = FileManager.default
    #expect(!files.fileExists(atPath: without + "/KEYS"))
    #expect(files.fileExists(atPath: with + "/KEYS"))
    #expect(try await ondol("get", with, "records/r").output.contains("a lamp"))

    let get = try await ondol("get", without, "records/r")
    #expect(get.status == 7 && get.messages.contains("KEYS"), "\(get.messages)")
    #expect(try await ondol("get", without, "plain/a").status == 0)
    #expect(try await ondol("ls", without).output.contains(#""ownKey":"missing""#))
    #expect(try await ondol("colls", without).output.contains(#""ownKey":"missing""#))
    let check = try await ondol("check", without, "--full")
    #expect(check.status == 0, "\(check.messages)")
    #expect(check.output.contains(#""severity":"warning""#))
    #expect(try await ondol("digest", without).status == 1)
    #expect(try await ondol("digest", without, "plain").status == 0)
    #expect(try await ondol("diff", with, without).status == 1)

    let dump = try await ondol("dump", without, "-o", "-", "--quiet")
    #expect(dump.status == 0, "\(dump.messages)")
    #expect(dump.messages.contains("records is left out"), "\(dump.messages)")
    #expect(!dump.output.contains("records"))
    let export = try await ondol("export", without, "-o", scratch.path("export"))
    #expect(export.status == 0 && export.messages.contains("records is left out"))

    let archive = scratch.path("archive.ondol")
    #expect(try await ondol("restore", with, archive).status == 0)
    #expect(try await ondol("get", archive, "records/r").status == 0)
    #expect(try await ondol("rmcoll", without, "records", "--yes").status == 0)
    #expect(try await ondol("ls", without).lines.count == 1)
  }

  @Test func `A dump records the key, and the loaded collection gets another if possible`()
    async throws
  {
    #expect(try await ondol("mkcoll", place, "records", "--own-key").status == 0)
    #expect(try await ondol("put", place, "records/r", #"{"text":"a lamp"}"#).status == 0)
    let dump = scratch.path("dump")
    #expect(try await ondol("dump", place, "-o", dump).status == 0)
    let declared = try String(contentsOfFile: dump + "/indexes.jsonl", encoding: .utf8)
    #expect(declared.contains(#""ownKey":true"#), "\(declared)")
    let loaded = scratch.path("loaded.ondol")
    let load = try await ondol("load", loaded, dump, "--quiet")
    #expect(load.status == 0 && load.messages.isEmpty, "\(load.messages)")
    #expect(try await ondol("get", loaded, "records/r").output.contains("a lamp"))
    #expect(try await ondol("ls", loaded).output.contains(#""ownKey":"present""#))
    #expect(try await ondol("check", loaded, "--full").status == 0)
    let again = scratch.path("again")
    #expect(try await ondol("dump", loaded, "-o", again).status == 0)
    #expect(
      try String(contentsOfFile: again + "/indexes.jsonl", encoding: .utf8) == declared)
    #expect(try await ondol("put", loaded, "records/s", #"{"n":1}"#).status == 0)

    let clear = scratch.path("clear.ondol")
    let open = try await scratch.ondol("load", clear, dump, "--quiet")
    #expect(open.status == 0)
    #expect(open.messages.contains("records had a key of its own"), "\(open.messages)")
    #expect(try await scratch.ondol("get", clear, "records/r").output.contains("a lamp"))
  }
}
