// Dumps: a database with something of everything comes back from one to the last byte. Anything
// that no dump contains is refused with its place, without a trap and without remains.

import Foundation
import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Dumps by the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  /// All files below a directory with their bytes.
  private func files(_ directory: String) throws -> [String: Data] {
    var found: [String: Data] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
      found[name] = FileManager.default.contents(atPath: directory + "/" + name)
    }
    return found
  }

  @Test func `A dump that was loaded is dumped as the same bytes`() async throws {
    let seed = UInt64.random(in: 0...(.max))
    let database = try await Database.open(at: shop)
    try await DumpSample(seed: seed).fill(database)
    try await database.close()
    let (first, second) = (scratch.path("first"), scratch.path("second"))
    let other = scratch.path("other.ondol")
    let dumped = try await scratch.ondol("dump", shop, "-o", first)
    #expect(dumped.status == 0, "\(dumped.messages)")
    let loaded = try await scratch.ondol("load", other, first)
    #expect(loaded.status == 0, "seed \(seed): \(loaded.messages)")
    #expect(try await scratch.ondol("dump", other, "-o", second).status == 0)
    let (before, after) = (try files(first), try files(second))
    #expect(before == after, "seed \(seed)")
    #expect(before.keys.contains { $0.hasPrefix("blobs/") } && before["derived.jsonl"] != nil)
    #expect(before["tree.jsonl"] != nil && before["storage.jsonl"] != nil)
    let check = try await scratch.ondol("check", other, "--full")
    #expect(check.status == 0, "\(check.output)")
    // The form of one stream.
    let text = try await scratch.ondol("dump", shop, "-o", "-")
    let third = scratch.path("third.ondol")
    let streamed = try await scratch.ondol(["load", third, "-"], input: text.output)
    #expect(streamed.status == 0, "\(streamed.messages)")
    #expect(try await scratch.ondol("dump", third, "-o", "-").output == text.output)
    let digests = [
      try await scratch.ondol("digest", shop), try await scratch.ondol("digest", third),
    ].map { $0.output.split(separator: "sha256").last }
    #expect(digests[0] == digests[1])
    #expect(try await scratch.ondol("diff", shop, third, "--versions").status == 0)
    try await lookInto(other)
  }

  /// The loaded database works as the dumped one.
  private func lookInto(_ path: String) async throws {
    let (old, new) = (try await Database.open(at: shop), try await Database.open(at: path))
    for place in ["items/i5", "items/i3/notes/a1", "diary/a"] {
      let (left, right) = (
        try await old.document(place).getDocument(), try await new.document(place).getDocument()
      )
      #expect(left.version == right.version && left.data() == right.data())
      #expect(left.updateTime == right.updateTime && left.createTime == right.createTime)
    }
    let photo = new.storage.reference(withPath: "images/온돌 lamp.png")
    let metadata = try await old.storage.reference(withPath: photo.fullPath).getMetadata()
    #expect(try await photo.getMetadata() == metadata)
    _ = try await photo.derive("thumbnail") { _ in
      Issue.record("it was made already")
      return [UInt8]()
    }
    #expect(try await new.tree.getData().value == old.tree.getData().value)
    let written = try await new.document("items/new").setData(["n": 1])
    let newest = try await old.document("items/i5").getDocument().version
    #expect(newest < written.version)
    try await old.close()
    try await new.close()
  }

  @Test func `A dump can be taken of a database in use, and its pipe can be closed`() async throws {
    let database = try await Database.open(at: shop)
    for number in 0..<3_000 {
      try await database.document("items/\(number)").setData(
        ["text": String(repeating: "x", count: 100)], durability: .memory)
    }
    try await database.synchronize()
    let dump = try await scratch.ondol("dump", shop, "-o", scratch.path("D"))
    #expect(dump.status == 0, "\(dump.messages)")
    let tool = try RunningTool("dump", shop, "-o", "-")
    #expect(tool.line() != nil)
    tool.closeOutput()
    #expect(await tool.end() == 0)
    try await database.close()
    #expect(try await scratch.ondol("dump", shop, "-o", scratch.path("D")).status == 1)
    #expect(try await scratch.ondol("dump", scratch.path("none"), "-o", "-").status == 3)
    #expect(try await scratch.ondol("load", shop, scratch.path("D")).status == 1)
  }
}

/// Loads dumps in memory, whole and damaged ones.
@Suite struct DumpLoaderTests {
  private static func dump() async throws -> [String] {
    let sample = SampleDatabase()
    let database = try await sample.open()
    try await sample.fill(database, count: 12)
    try await sample.declareIndexes(database)
    let blob = try await database.storage.put([1, 2, 3])
    try await database.document("items/blob").setData(["b": blob])
    try await database.storage.reference(withPath: "a/b").putData([4, 5])
    try await database.tree.child("x/y").setValue(5, andPriority: 2)
    let text = try await DumpTexts.dump(database)
    try await database.close()
    return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private static func load(
    _ lines: [String], _ environment: Environment = .memory()
  ) async throws {
    let restoration = try await Restoration.begin(at: "new", environment: environment)
    try await DumpTexts.load((lines.joined(separator: "\n") + "\n").utf8, into: restoration)
  }

  private static func refusal(_ lines: [String]) async -> String? {
    do {
      try await load(lines)
      return nil
    } catch let error as DumpError {
      return "\(error)"
    } catch {
      return "no place: \(error)"
    }
  }

  @Test func `Each thing that a dump cannot say is refused with its place and its reason`()
    async throws
  {
    let lines = try await Self.dump()
    #expect(await Self.refusal(lines) == nil)
    let document = try #require(lines.firstIndex { $0.contains("\"items/i1\"") })
    func changed(_ old: String, _ new: String) -> [String] {
      lines.map { $0.replacing(old, with: new) }
    }
    func without(_ part: String) -> [String] { lines.filter { !$0.contains(part) } }
    var twice = lines
    twice.insert(lines[document], at: document)
    var swapped = lines
    swapped.swapAt(document, document + 1)
    let content = try #require(lines.firstIndex { $0.contains("blobs/") })
    var otherContent = lines
    otherContent[content + 1] = "\"AAAA\""
    var belowLeaf = lines
    let node = try #require(lines.firstIndex { $0.contains("\"path\":[\"x\",\"y\"]") })
    belowLeaf.insert(#"{"path":["x","y","z"],"value":1}"#, at: node + 1)
    var noBase64 = lines
    noBase64[content + 1] = "\"*\""
    let cases: [([String], String)] = [
      ([], "not a dump"), (["{}"], "not a dump"), (twice, "not behind"), (swapped, "not behind"),
      (Array(lines.dropLast(2)), "manifest.json"), (Array(lines.prefix(document)), "missing"),
      (without("\"items/i1\""), "lines, and had"),
      (changed("\"items/i1\"", "\"items/i1/x\""), "segments"),
      (changed("\"items/i1\"", "\"other/i1\""), "no document of items"),
      (changed("\"__version__\":", "\"__v__\":"), "lacks its name"),
      (changed("\"none\":null", "\"none\":nul"), "column"),
      (changed("\"none\":null", "\"__x__\":null"), "__x__"),
      (changed("\"dump/1\"", "\"dump/9\""), "dump/1"), (otherContent, "digest"),
      (noBase64, "base64"), (belowLeaf, "below one with a value"),
      (without(lines[content]), "line"),
      (changed("\"name\":\"code unique\"", "\"name\":\"code\""), "definition"),
      (changed("\"code\":\"c5\"", "\"code\":\"c10\""), "disagree"),
      (changed("\"path\":[\"x\",\"y\"]", "\"path\":[\"x\",\"a/b\"]"), "tree.jsonl, line"),
      // The next check would have reported the database as damaged.
      (changed("\"metageneration\":", "\"meta\":"), "no content, or no metadata"),
      (changed("collections/items.jsonl", "../items.jsonl"), ""),
    ]
    for (number, (lines, reason)) in cases.enumerated() {
      let refusal = await Self.refusal(lines)
      if reason.isEmpty { continue }
      #expect(refusal?.contains(reason) == true, "case \(number): \(refusal ?? "it was loaded")")
      #expect(refusal?.contains("no place") != true, "case \(number): \(refusal ?? "")")
    }
    let place = await Self.refusal(twice)
    #expect(place?.contains("collections/items.jsonl, line \(document + 2)") == true)
  }

  /// In a world with fast time, contents were once given up before their documents held them: a
  /// content may be without a holder for a day, and the load took longer.
  @Test func `A load that takes days keeps its contents`() async throws {
    let lines = try await Self.dump()
    let time = Guarded<Int64>(1 << 50)
    var environment = Environment.memory()
    environment.now = {
      time.withLock {
        $0 += 3_600_000_000; return $0
      }
    }
    environment.sleep = { _ in await Task.yield() }
    environment.rest = environment.sleep
    try await Self.load(lines, environment)
  }

  /// A fuzzer once exchanged a document's two times: the dump was loaded, and the next check
  /// reported the database as damaged.
  @Test func `A document that was changed before it was created is refused`() async throws {
    var lines = try await Self.dump()
    let place = try #require(lines.firstIndex { $0.contains("\"items/i1\"") })
    let created = try #require(lines[place].firstRange(of: "\"__created__\":"))
    let end = try #require(lines[place].firstRange(of: ",\"__updated__\""))
    lines[place].replaceSubrange(
      created.upperBound..<end.lowerBound, with: #"{"$date":"2999-01-01T00:00:00Z"}"#)
    #expect(await Self.refusal(lines)?.contains("before it was created") == true)
  }

  @Test func `A dump with random damage never traps`() async throws {
    let seed = UInt64.random(in: 0...(.max))
    var random = SeededNumbers(seed: seed)
    let lines = try await Self.dump()
    var refused = 0
    for _ in 0..<60 {
      var damaged = lines
      let place = random.below(lines.count)
      switch random.below(5) {
      case 0: damaged.remove(at: place)
      case 1: damaged.insert(lines[random.below(lines.count)], at: place)
      case 2: damaged.swapAt(place, random.below(lines.count))
      default:
        var bytes = Array(damaged[place].utf8)
        if bytes.isEmpty { continue }
        bytes[random.below(bytes.count)] = UInt8(32 + random.below(95))
        damaged[place] = String(decoding: bytes, as: UTF8.self)
      }
      if await Self.refusal(damaged) != nil { refused += 1 }
    }
    #expect(refused > 10, "seed \(seed): \(refused)")
  }
}
