// The program on a database on a server: the same commands with an address instead of a directory,
// and an error message where only files are supported.

import Foundation
import Ondol
import OndolPostgres
import OndolPostgresTestKit
import Testing

@Suite struct `The ondol program on a server` {
  let scratch: ScratchDirectory
  let address: String

  init() throws {
    scratch = try ScratchDirectory()
    address = try TestedStore.newAddress()
  }

  /// Runs it, and expects a status.
  @discardableResult
  private func ondol(
    _ words: String..., status: Int32 = 0, input: String = "",
    at location: SourceLocation = #_sourceLocation
  ) async throws -> ToolResult {
    let result = try await scratch.ondol(words, input: input)
    #expect(
      result.status == status, "\(words): \(result.messages)\(result.output)",
      sourceLocation: location)
    return result
  }

  @Test func `Documents are written, found, changed and removed there`() async throws {
    try await ondol("put", address, "items/lamp", #"{"name":"등잔","price":30}"#)
    try await ondol("put", address, "items/table", #"{"name":"상","price":120}"#)
    #expect(try await ondol("get", address, "items/lamp").output.contains("등잔"))
    try await ondol("mkindex", address, "items", "price")
    let found = try await ondol("query", address, "items", "price < 50", "--format", "jsonl")
    #expect(found.lines.count == 1 && found.output.contains("등잔"))
    #expect(try await ondol("count", address, "items").output.contains("2"))
    try await ondol("patch", address, "items/lamp", #"{"price":40}"#)
    try await ondol("rm", address, "items/table")
    let info = try await ondol("info", address, "--format", "json")
    #expect(info.output.contains(#""documents":1"#) && info.output.contains(#""files":[]"#))
    try await ondol("stats", address)
    // The shell opens the database that its first word names.
    let shell = try await scratch.ondol([address], input: "get items/lamp\nput items/x {}\n")
    #expect(shell.output.contains("40") && shell.status == 7, "\(shell.messages)")
    let database = try await Database.open(on: .postgres(address))
    #expect(try await database.document("items/lamp").getDocument().get("price") == 40)
    try await database.close()
  }

  @Test func `A database moves there by its dump, and back, and is the same`() async throws {
    let seed = UInt64.random(in: 0...(.max))
    let files = scratch.path("shop.ondol")
    let database = try await Database.open(at: files)
    try await DumpSample(seed: seed).fill(database)
    try await database.close()
    let dump = scratch.path("dump")
    try await ondol("dump", files, "-o", dump)
    try await ondol("load", address, dump)
    try await ondol("load", address, dump, status: 1)
    try await ondol("diff", files, address, "--versions")
    let sums = [try await ondol("digest", files), try await ondol("digest", address)]
      .map { $0.output.split(separator: "sha256").last }
    #expect(sums[0] == sums[1], "seed \(seed)")
    let text = try await ondol("dump", address, "-o", "-").output
    let back = scratch.path("back.ondol")
    try await ondol("load", back, "-", input: text)
    try await ondol("diff", back, files, "--versions")
    try await ondol("check", back, "--full")
  }

  @Test func `A command that only reads creates nothing there`() async throws {
    let none = try await ondol("get", address, "items/a", status: 3)
    #expect(none.messages.contains("no database"))
    for words in [["ls", address], ["info", address], ["dump", address, "-o", "-"]] {
      #expect(try await scratch.ondol(words).status == 3)
    }
    try await ondol("put", address, "items/a", "{}")
    try await ondol("get", address, "items/a")
  }

  /// Someone has removed a document's row with SQL, and left the index's rows.
  @Test func `A check there looks at documents and indexes`() async throws {
    try await ondol("put", address, "items/lamp", #"{"name":"등잔"}"#)
    try await ondol("put", address, "items/table", #"{"name":"상"}"#)
    try await ondol("mkindex", address, "items", "name")
    try await ondol("check", address)
    let gone = try PostgresServer.shared.get().sql(
      """
      with gone as (
        delete from ondol_row using ondol_database d
          where d.name = '\(address.split(separator: "=").last ?? "")' and ondol_row.db = d.db
            and position('lamp'::bytea in key) > 0
            and position(convert_to('등잔', 'UTF8') in value) > 0
          returning 1)
        select count(*) from gone
      """)
    #expect(gone == "1")
    let check = try await ondol("check", address, status: 4)
    #expect(check.output.contains("name"), "\(check.output)")
  }

  @Test func `A command for files says that there are none`() async throws {
    try await ondol("put", address, "items/a", "{}")
    for words in [
      ["check", address, "--quick"], ["compact", address],
      ["recover", address, scratch.path("new")],
      ["log", "dump", address], ["manifest", "dump", address], ["snapshots", address],
      ["backup", address, scratch.path("new")],
    ] {
      let result = try await scratch.ondol(words)
      #expect(result.status == 1, "\(words): \(result.messages)")
      #expect(result.messages.contains("server"), "\(words): \(result.messages)")
      #expect(!FileManager.default.fileExists(atPath: scratch.path("new")))
    }
    let key = try await scratch.ondol(
      ["get", address, "items/a"],
      environment: ["ONDOL_KEY": String(repeating: "0", count: 64)])
    #expect(key.status == 1 && key.messages.contains("key"))
  }

  @Test func `No message has the password`() async throws {
    let secret = "postgresql://ann:s3cr3t@127.0.0.1:1/shop"
    for words in [
      ["get", secret, "a/b"], ["digest", secret], ["check", secret], ["load", secret, "none"],
    ] {
      let result = try await scratch.ondol(words)
      #expect(result.status == 1, "\(words[0]): \(result.messages)")
      #expect(!(result.messages + result.output).contains("s3cr3t"), "\(words[0])")
    }
  }
}
