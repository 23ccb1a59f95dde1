// A database that gets a key, another and none, from a shell.

import Foundation
import Ondol
import Testing

@Suite struct `Keys in the ondol program` {
  let scratch: ScratchDirectory
  let place: String

  init() async throws {
    scratch = try ScratchDirectory()
    place = scratch.path("diary.ondol")
    let database = try await Database.open(at: place)
    for number in 0..<50 {
      try await database.document("notes/n\(number)").setData(["text": "a secret of \(number)"])
    }
    try await database.close()
  }

  private func keyFile(_ name: String, _ byte: UInt8) throws -> String {
    let path = scratch.path(name)
    try Data([UInt8](repeating: byte, count: 32)).write(to: URL(filePath: path))
    return path
  }

  private func text(_ options: String...) async throws -> String? {
    let result = try await scratch.ondol(["get", place, "notes/n7"] + options)
    return result.status == 0 ? result.output : nil
  }

  @Test func `Without the key a check finds damage, and says what it skipped`() async throws {
    let key = try keyFile("one", 1)
    #expect(try await scratch.ondol("encrypt", place, "--key-file", key).status == 0)
    let whole = try await scratch.ondol("check", place)
    #expect(whole.status == 0, "\(whole.messages)")
    #expect(whole.output == "")
    #expect(whole.messages.contains("without the key"))
    #expect(try await scratch.ondol("check", place, "--full").status != 0)
    let names = try FileManager.default.contentsOfDirectory(atPath: place)
    let segment = try #require(names.first { $0.hasSuffix(".seg") })
    let path = place + "/" + segment
    var bytes = try Data(contentsOf: URL(filePath: path))
    bytes[80] ^= 4
    try bytes.write(to: URL(filePath: path))
    let damaged = try await scratch.ondol("check", place)
    #expect(damaged.status == 4, "\(damaged.messages)")
    #expect(damaged.output.contains("\"file\":\"\(segment)\",\"offset\":64"), "\(damaged.output)")
  }

  @Test func `A database is encrypted, takes other keys, and is decrypted`() async throws {
    let (one, other) = (try keyFile("one", 1), try keyFile("other", 2))
    let passphrase = scratch.path("passphrase")
    try "온돌 방 lamp\n".write(toFile: passphrase, atomically: true, encoding: .utf8)
    #expect(try await scratch.ondol("encrypt", place).status == 2)
    #expect(try await scratch.ondol("decrypt", place).status == 1)

    let encrypted = try await scratch.ondol("encrypt", place, "--key-file", one)
    #expect(encrypted.status == 0, "\(encrypted.messages)")
    #expect(encrypted.output.contains("\"isEncrypted\":true"))
    #expect(try await text() == nil)
    #expect(try await text("--key-file", one)?.contains("a secret of 7") == true)
    // An encrypted database is not encrypted again.
    #expect(try await scratch.ondol("encrypt", place, "--key-file", one).status == 1)

    let rekeyed = try await scratch.ondol(
      "rekey", place, "--key-file", one, "--new-key-file", other, "--new-passphrase-file",
      passphrase)
    #expect(rekeyed.status == 0, "\(rekeyed.messages)")
    #expect(try await text("--key-file", one) == nil)
    #expect(try await text("--key-file", other) != nil)
    #expect(try await text("--passphrase-file", passphrase) != nil)

    let decrypted = try await scratch.ondol("decrypt", place, "--passphrase-file", passphrase)
    #expect(decrypted.status == 0, "\(decrypted.messages)")
    #expect(decrypted.output.contains("\"isEncrypted\":false"))
    #expect(try await text()?.contains("a secret of 7") == true)
    #expect(try await text("--key-file", other) == nil)
    #expect(try await scratch.ondol("check", place, "--full").status == 0)
  }
}
