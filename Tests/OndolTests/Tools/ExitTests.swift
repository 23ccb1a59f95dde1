// The guarantees for scripts: each exit status, pipes that close, interrupts, unwritable
// directories, names of any characters, and help for every command.

import Foundation
import Ondol
import Testing

@testable import OndolEngine

@Suite struct `How the ondol program ends` {
  let scratch: ScratchDirectory
  let shop: String

  init() async throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
    let lines = (100..<2_100).map {
      #"{"id":"i\#($0)","text":"\#(String(repeating: "x", count: 90))"}"#
    }
    let result = try await scratch.ondol(
      "import", shop, "-", "--into", "items", "--id-field", "id", "--quiet",
      input: lines.joined(separator: "\n"))
    try #require(result.status == 0, "\(result.messages)")
  }

  @Test func `Every command has help`() async throws {
    let top = try await scratch.ondol("--help")
    let names = Self.commands(in: top.output)
    #expect(names.count > 30)
    for name in names {
      let help = try await scratch.ondol(name, "--help")
      #expect(help.status == 0, "\(name)")
      #expect(help.output.contains("USAGE: ondol \(name)"), "\(name)")
      #expect(help.messages == "", "\(name)")
    }
    for (group, name) in [
      ("blob", "cat"), ("tree", "get"), ("log", "dump"), ("segment", "ls"), ("manifest", "dump"),
      ("index", "dump"),
    ] {
      let help = try await scratch.ondol(group, name, "--help")
      #expect(help.output.contains("USAGE: ondol \(group) \(name)"), "\(group) \(name)")
    }
  }

  /// A process with little address space once ended with an illegal instruction and no message.
  @Test func `A process with a small memory limit gets a warning`() async throws {
    let limit = ["/bin/sh", "-c", "ulimit -v 900000; exec \"$@\"", "sh"]
    let limited = try await scratch.ondol(["count", shop, "items"], through: limit)
    #if os(Linux)
      #expect(limited.status == 0)
      #expect(limited.output == "2000\n")
      #expect(limited.messages.contains("878 MiB of addresses"), "\(limited.messages)")
    #endif
    let free = try await scratch.ondol("count", shop, "items")
    #expect(free.messages == "")
  }

  /// The commands in the help.
  private static func commands(in help: String) -> [String] {
    // In groups: a heading, then a command on each line, and the continuation of its sentence
    // further in.
    let sections = help.components(separatedBy: "\n\n").filter {
      $0.prefix { $0 != "\n" }.hasSuffix("SUBCOMMANDS:")
    }
    return sections.flatMap { $0.split(separator: "\n").dropFirst() }
      .filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
      .compactMap { $0.split(separator: " ").first.map(String.init) }
  }

  @Test func `The version tells the tool, the library and the format`() async throws {
    let version = try await scratch.ondol("--version")
    #expect(version.status == 0)
    #expect(version.lines.map { $0.split(separator: " ").first } == ["ondol", "library", "format"])
  }

  @Test(arguments: [
    (0, ["get", "DIR", "items/i100"]), (1, ["get", "DIR", "items"]), (2, ["get", "DIR"]),
    (2, ["query", "DIR", "items", "a ="]), (3, ["get", "DIR", "items/none"]),
    (3, ["count", "nowhere", "items"]), (3, ["segment", "dump", "DIR", "9999.seg"]),
    (3, ["blob", "refs", "DIR", String(repeating: "0", count: 64)]),
    (2, ["blob", "refs", "DIR", "x"]),
    (3, ["tree", "get", "DIR", "none"]), (3, ["hexdump", "DIR", "none"]),
    (2, ["repair", "DIR"]), (2, ["check", "DIR", "--quick", "--blobs"]),
  ])
  func `A status tells the result`(status: Int, arguments: [String]) async throws {
    let result = try await scratch.ondol(arguments.map { $0 == "DIR" ? shop : $0 })
    #expect(result.status == Int32(status), "\(result.messages)")
    if status != 0 {
      #expect(result.output == "")
      #expect(result.messages != "")
    }
  }

  @Test func `A database in use is status 5 for writers, and no problem for readers`()
    async throws
  {
    let database = try await Database.open(at: shop)
    for arguments in [
      ["compact", shop], ["blob", "gc", shop], ["repair", shop, "--rebuild-index"],
    ] {
      #expect(try await scratch.ondol(arguments).status == 5, "\(arguments)")
    }
    for arguments in [["info", shop], ["check", shop], ["blob", "gc", shop, "--dry-run"]] {
      #expect(try await scratch.ondol(arguments).status == 0, "\(arguments)")
    }
    try await database.close()
  }

  @Test func `Files of a newer version are status 6`() async throws {
    let place = URL(filePath: shop).appending(path: "SUPER")
    var bytes = [UInt8](try Data(contentsOf: place))
    for (slot, offset) in Superblock.slotOffsets.enumerated() {
      let start = Int(offset)
      guard bytes.count >= start + Superblock.slotLength, bytes[start] != 0 else { continue }
      // The version, and the checksum that a newer program would have written.
      bytes[start + 8] = 9
      let body = Array(bytes[start..<(start + 4_088)])
      let checksum = seededChecksum(0x4F4E_444F_4C53_4221 ^ UInt64(slot), body.bytes)
      bytes.overwriteLittleEndian(checksum, at: start + 4_088)
    }
    try Data(bytes).write(to: place)
    for arguments in [["info", shop], ["check", shop], ["compact", shop]] {
      let result = try await scratch.ondol(arguments)
      #expect(result.status == 6, "\(arguments): \(result.messages)")
    }
  }

  /// Permissions mean nothing to root, so this runs as nobody.
  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")))
  func `In a directory one may not write, looking works and writing is status 7`() async throws {
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: scratch.directory.path(percentEncoded: false))
    for name in try FileManager.default.subpathsOfDirectory(atPath: shop) + [""] {
      let path = URL(filePath: shop).appending(path: name).path(percentEncoded: false)
      try FileManager.default.setAttributes(
        [.posixPermissions: name.isEmpty ? 0o555 : 0o444], ofItemAtPath: path)
    }
    let nobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    let found = try await scratch.ondol(
      ["get", shop, "items/i100"], through: nobody)
    // If nobody cannot reach the program itself, there is nothing to see.
    guard found.status != 126, found.status != 127 else { return }
    #expect(found.status == 0, "\(found.messages)")
    let refused = try await scratch.ondol(["compact", shop], through: nobody)
    #expect(refused.status == 7, "\(refused.messages)")
    #expect(refused.messages != "")
  }

  @Test func `Behind a pipe that closes it ends quietly`() async throws {
    let running = try RunningTool("ls", shop, "items")
    #expect(running.line()?.contains("i100") == true)
    running.closeOutput()
    #expect(await running.end() == 0)
  }

  @Test func `Interrupted while it compacts, it leaves a sound database`() async throws {
    let running = try RunningTool("compact", shop)
    let status = await running.interrupt()
    // It may have been faster.
    #expect([0, 130, 2].contains(status))
    #expect(try await scratch.ondol("check", shop, "--full").status == 0)
    #expect(try await scratch.ondol("count", shop, "items").output == "2000\n")
  }

  @Test(arguments: ["온돌", "a b", "'\"", "🔥", "ä\u{0308}", "\\", "e\u{301}", "%s", "-x"])
  func `Any characters can be names`(name: String) async throws {
    let directory = scratch.path("d " + name)
    let database = try await Database.open(at: directory)
    try await database.document(DocumentPath("c" + name + "/" + name)).setData([name: 1])
    try await database.tree.child("t" + name.replacing("%", with: "")).setValue(2)
    try await database.close()
    let listed = try await scratch.ondol("ls", directory, "c" + name, "--ids")
    #expect(listed.lines.map { Array($0.unicodeScalars) } == [Array(name.unicodeScalars)])
    let found = try await scratch.ondol("get", directory, "c\(name)/\(name)", "--format", "csv")
    #expect(found.status == 0, "\(found.messages)")
    #expect(found.output.hasSuffix("\n1\n"), "\(found.output)")
    #expect(try await scratch.ondol("count", directory, "c" + name).output == "1\n")
    #expect(try await scratch.ondol("schema", directory).status == 0)
    #expect(try await scratch.ondol("check", directory, "--full").status == 0)
  }
}
