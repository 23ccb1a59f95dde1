// Backups and recovered files, from a shell.

import Foundation
import Ondol
import Testing

@Suite struct `The ondol program and damage` {
  let scratch: ScratchDirectory
  let shop: String
  let copy: String

  init() async throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
    copy = scratch.path("copy.ondol")
    let lines = (100..<400).map { #"{"id":"i\#($0)","n":\#($0)}"# }
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "items", "--id-field", "id",
      input: lines.joined(separator: "\n"))
    try #require(result.status == 0, "\(result.messages)")
  }

  private func object(_ result: ToolResult) throws -> [String: Any] {
    let data = Data(try #require(result.lines.last).utf8)
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test func `A backup is a database, made while another program has it open`() async throws {
    let database = try await Database.open(at: shop)
    let result = try await scratch.ondol("backup", shop, copy)
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output == "")
    try await database.close()
    #expect(try await scratch.ondol("verify-backup", copy, "--quiet").status == 0)
    let listed = try await scratch.ondol("ls", copy, "items", "--ids")
    #expect(listed.lines == (100..<400).map { "i\($0)" })
    let again = try await scratch.ondol("backup", shop, copy)
    #expect(again.status == 1)
    #expect(again.messages.contains("not empty"), "\(again.messages)")
  }

  @Test func `A sound database is recovered whole, a damaged one with status 8`() async throws {
    let whole = try await scratch.ondol("recover", shop, copy)
    #expect(whole.status == 0, "\(whole.messages)")
    let report = try object(whole)
    #expect(report["schema"] as? String == "recover/1")
    #expect(report["isComplete"] as? Bool == true)
    #expect(try await scratch.ondol("verify-backup", copy).status == 0)

    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: shop).first {
        $0.hasPrefix("MANIFEST-")
      })
    let place = URL(filePath: shop).appending(path: name)
    try Data(try Data(contentsOf: place).map { $0 ^ 0xFF }).write(to: place)
    #expect(try await scratch.ondol("backup", shop, scratch.path("none")).status == 4)
    let other = scratch.path("other.ondol")
    let result = try await scratch.ondol("recover", shop, other, "--format", "table")
    #expect(result.status == 8, "\(result.messages)")
    #expect(result.output.contains("items: 300 documents"), "\(result.output)")
    #expect(result.output.contains("lost: \(name)"), "\(result.output)")
    #expect(try await scratch.ondol("get", other, "items/i123").status == 0)
    #expect(try await scratch.ondol("recover", scratch.path("nothing"), copy).status == 3)
  }
}
