// Blobs, the tree, and the insides of files, from a shell.

import Foundation
import Ondol
import Testing

@Suite struct `Blobs, the tree and files in the ondol program` {
  let scratch: ScratchDirectory
  let shop: String
  /// The beginning of a PNG of 3 x 2 pixels, and enough bytes after it to go into a pack.
  private static let picture: [UInt8] =
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
    + [0, 0, 0, 3, 0, 0, 0, 2, 8, 2, 0, 0, 0] + (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }

  init() async throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
    let database = try await Database.open(at: shop)
    let picture = try await database.storage.put(Self.picture)
    try await database.document("items/lamp").setData(["photo": picture])
    let photo = database.storage.reference(withPath: "images/a.png")
    try await photo.putData(Self.picture)
    _ = try await photo.derive("small") { Array($0.prefix(100)) }
    try await database.tree.child("scores").setValue(["kim": 3, "lee": ["points": 5]])
    try await database.tree.child("scores/kim").setPriority(1)
    try await database.close()
  }

  private func objects(_ result: ToolResult) throws -> [[String: Any]] {
    try result.lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  // MARK: - Blobs

  @Test func `Contents are listed with their types and holders`() async throws {
    let listed = try objects(try await scratch.ondol("blob", "ls", shop, "--larger", "1000"))
    let content = try #require(listed.first)
    #expect(listed.count == 1)
    #expect(content["what"] as? String == "image/png 3x2 39.1 KB")
    #expect((content["holders"] as? [String])?.contains("items/lamp") == true)
    #expect(content["derived"] as? [String] == ["small"])
    #expect(try await scratch.ondol("blob", "ls", shop, "--unreferenced").output == "")
    let digest = try #require(content["digest"] as? String)
    let holders = try objects(try await scratch.ondol("blob", "refs", shop, digest))
    #expect(holders.contains { $0["name"] as? String == "items/lamp" })
    #expect(holders.contains { $0["kind"] as? String == "derived" })

    let target = scratch.path("a.png")
    let written = try await scratch.ondol("blob", "cat", shop, digest, "-o", target)
    #expect(written.status == 0, "\(written.messages)")
    #expect(try Data(contentsOf: URL(filePath: target)) == Data(Self.picture))
    let part = try await scratch.ondol("blob", "cat", shop, "images/a.png", "--range", "12-15")
    #expect(part.output == "IHDR")
    #expect(try await scratch.ondol("blob", "cat", shop, digest, "--range", "x").status == 2)
    let statistics = try objects(try await scratch.ondol("blob", "stats", shop))
    #expect(statistics.first?["contents"] as? Int == 2)
  }

  @Test func `A file is put, and contents without a holder are removed`() async throws {
    let file = scratch.path("hello.txt")
    try "hello".write(toFile: file, atomically: true, encoding: .utf8)
    let put = try objects(
      try await scratch.ondol("blob", "put", shop, file, "--path", "texts/hello.txt"))
    #expect(
      put.first?["digest"] as? String
        == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
    #expect(try await scratch.ondol("blob", "cat", shop, "texts/hello.txt").output == "hello")
    let collected = try objects(try await scratch.ondol("blob", "gc", shop, "--dry-run"))
    #expect(collected.first?["isDryRun"] as? Bool == true)
    #expect(try await scratch.ondol("blob", "gc", shop).status == 0)
  }

  @Test func `Damaged contents are found`() async throws {
    #expect(try await scratch.ondol("blob", "verify", shop).status == 0)
    let pack = try #require(
      try FileManager.default.contentsOfDirectory(atPath: shop).first { $0.hasSuffix(".pack") })
    let place = URL(filePath: shop).appending(path: pack)
    var bytes = try Data(contentsOf: place)
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: place)
    #expect(try await scratch.ondol("blob", "verify", shop, "--sample", "0.0001").status == 0)
    #expect(try await scratch.ondol("blob", "verify", shop, "--sample", "0").status == 2)
    for arguments in [["blob", "verify", shop], ["check", shop, "--blobs", "--json"]] {
      let result = try await scratch.ondol(arguments)
      #expect(result.status == 4)
      #expect(result.output.contains(pack), "\(result.output)")
    }
    #expect(try await scratch.ondol("check", shop, "--indexes").status == 0)
  }

  // MARK: - The tree

  @Test func `The tree is printed and listed`() async throws {
    let value = try await scratch.ondol("tree", "get", shop, "scores/lee")
    #expect(value.output == #"{"points":5}"# + "\n")
    #expect(try await scratch.ondol("tree", "get", shop, "/scores/kim/").output == "3\n")
    let children = try objects(try await scratch.ondol("tree", "ls", shop, "scores"))
    #expect(children.map { $0["key"] as? String } == ["lee", "kim"])
    #expect(children.last?["priority"] as? Int == 1)
  }

  @Test func `Changes of the tree are printed`() async throws {
    let database = try await Database.open(at: shop)
    let running = try RunningTool("tree", "watch", shop, "scores/lee")
    #expect(running.line()?.contains(#""type":"childAdded","path":"scores/lee/points""#) == true)
    #expect(running.line()?.contains(#""type":"value""#) == true)
    try await database.tree.child("scores/lee/points").setValue(6)
    #expect(running.line()?.contains(#""type":"childChanged""#) == true)
    #expect(await running.interrupt() == 130)
    try await database.close()
  }

  // MARK: - Files

  @Test func `Files show their contents`() async throws {
    let segments = try objects(try await scratch.ondol("segment", "ls", shop))
    let file = try #require(segments.first?["file"] as? String)
    let rows = try objects(try await scratch.ondol("segment", "dump", shop, file, "--limit", "2"))
    #expect(rows.first?["kind"] as? String == "put")
    #expect((rows.first?["key"] as? String)?.isEmpty == false)
    #expect(try await scratch.ondol("segment", "verify", shop, file).status == 0)
    let edits = try objects(try await scratch.ondol("manifest", "dump", shop))
    #expect(edits.contains { ($0["change"] as? String)?.hasPrefix("addSegment") == true })
    let frames = try objects(try await scratch.ondol("log", "dump", shop, "--hex"))
    #expect(frames.contains { $0["kind"] as? String == "seal" })
    let hex = try await scratch.ondol("hexdump", shop, "SUPER", "4096", "--length", "20")
    #expect(hex.lines.first?.hasPrefix("00001000  89 4f 44 4c 0d 0a 1a 0a  ") == true)
    #expect(hex.lines.count == 2)
    #expect(try await scratch.ondol("snapshots", shop).status == 0)

    let place = URL(filePath: shop).appending(path: file)
    var bytes = try Data(contentsOf: place)
    bytes[70] ^= 1
    try bytes.write(to: place)
    let damaged = try await scratch.ondol("segment", "verify", shop, file)
    #expect(damaged.status == 4)
    #expect(damaged.output.contains(file))
  }

  @Test func `Indexes are repaired, files merged, and backups restored`() async throws {
    let database = try await Database.open(at: shop)
    try await database.document("users/u/posts/p").setData(["n": 1])
    try await database.collection("users/u/posts").createIndex(on: ["n"])
    try await database.close()
    let repaired = try objects(try await scratch.ondol("repair", shop, "--rebuild-index"))
    #expect(repaired.map { $0["collection"] as? String } == ["users/posts"])
    let compacted = try objects(try await scratch.ondol("compact", shop))
    #expect(compacted.first?["schema"] as? String == "compact/1")
    for options in [["--max-mb-s", "1000"], ["--target-ratio", "0.9"]] {
      #expect(try await scratch.ondol(["compact", shop] + options).status == 0)
    }
    #expect(try await scratch.ondol("compact", shop, "--max-mb-s", "0").status == 2)
    let (copy, again) = (scratch.path("copy.ondol"), scratch.path("again.ondol"))
    #expect(try await scratch.ondol("backup", shop, copy).status == 0)
    #expect(try await scratch.ondol("restore", copy, again).status == 0)
    #expect(try await scratch.ondol("restore", copy, again).status == 1)
    #expect(try await scratch.ondol("check", again, "--full").status == 0)
    let value = try await scratch.ondol("get", again, "users/u/posts/p")
    #expect(value.output == #"{"n":1}"# + "\n")
  }
}
