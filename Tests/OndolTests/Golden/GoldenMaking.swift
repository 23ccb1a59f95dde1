// Makes the golden databases, in a world of their own: files in memory, a clock that ticks at each
// look, random numbers from a seed and workers without threads, so that the same code makes the
// same bytes. Sizes are so small that a few documents fill blocks, segments, value files and logs.

import Foundation
import OndolEngine
import OndolTestKit

@testable import Ondol

/// A life of a database that ends in a state worth keeping.
struct GoldenMaking {
  private let world: SimulatedWorld
  private let database: Database

  /// Makes all of them again.
  static func makeAll() async throws {
    try await makeClosed()
    try await makeKilled()
    try await makeNulls(distinct: false)
    try await makeNulls(distinct: true)
  }

  private static var engineOptions: EngineOptions {
    var options = EngineOptions()
    options.memtableSize = 64 << 10
    options.logSize = 24 << 10
    options.firstPrewrittenSize = 4 << 10
    options.segmentSize = 16 << 10
    options.blockSize = 1 << 10
    options.smallShardSize = 0
    options.valueThreshold = 1_000
    options.valueFileSize = 8 << 10
    options.inlineContentSize = 100
    options.packedContentSize = 80 << 10
    options.packSize = 1 << 20
    return options
  }

  private init(seed: UInt64, keepsChanges: Bool = false, on files: SimulatedFileSystem) async throws
  {
    let moment: Int64 = 1_790_000_000_000_000
    world = SimulatedWorld(fileSystem: files, seed: seed, startTime: moment)
    var engineOptions = Self.engineOptions
    if keepsChanges { engineOptions.packedContentSize = 1_500 }
    database = try await Database.open(
      at: Self.place,
      options: Database.Options(
        shardCount: 2, changeRetention: keepsChanges ? Database.ChangeRetention() : nil),
      environment: world.environment, engineOptions: engineOptions)
  }

  private static let place = "/golden"

  // MARK: - Lives

  /// Closed in good order: merged files with compressed blocks and separate large values, flushed
  /// rows and deletions above them, and a log with the last commits.
  private static func makeClosed() async throws {
    let files = SimulatedFileSystem()
    let life = try await GoldenMaking(seed: 1, on: files)
    try await life.writeItems(0..<40)
    try await life.declare()
    try await life.writeValues()
    // Two frames, the second of which is short.
    try await life.writeContents(longText: 2_500)
    try await life.writeTree()
    try await life.database.collection("gone").document("a").setData(["n": 1])
    try await life.database.compact()
    try await life.database.collection("gone").drop()
    try await life.writeItems(30..<48)
    try await life.deleteSome()
    try await life.database.engine.flush()
    try await life.writeItems(46..<52)
    let content = try await GoldenContent.lines(of: life.database)
    try await life.database.close()
    try GoldenDatabase(name: "closed").replace(with: try Self.files(of: files), content: content)
  }

  /// Killed twice: the second life began with the first one's logs, keeps its changes and ends in
  /// the middle of several logs.
  private static func makeKilled() async throws {
    let first = SimulatedFileSystem()
    let early = try await GoldenMaking(seed: 2, keepsChanges: true, on: first)
    try await early.writeItems(0..<8)
    try await early.declare()
    try await early.writeTree()
    let second = first.kill()
    try? await early.database.close()

    let late = try await GoldenMaking(seed: 3, keepsChanges: true, on: second)
    try await late.database.engine.flush()
    try await late.writeContents(longText: 100)
    try await late.writeItems(6..<36)
    try await late.deleteSome()
    try await late.database.tree.child("cars/c1").removeValue()
    let content = try await GoldenContent.lines(of: late.database)
    let files = try Self.files(of: second.kill())
    try? await late.database.close()
    try GoldenDatabase(name: "killed").replace(with: files, content: content)
  }

  /// Closed, with unique indexes in which null is a value, or is not.
  private static func makeNulls(distinct: Bool) async throws {
    let files = SimulatedFileSystem()
    let life = try await GoldenMaking(seed: distinct ? 5 : 4, on: files)
    try await life.writeNulls(distinct: distinct)
    let content = try await GoldenContent.lines(of: life.database)
    try await life.database.close()
    try GoldenDatabase(name: distinct ? "distinct" : "nulls")
      .replace(with: try Self.files(of: files), content: content)
  }

  private static func files(
    of system: SimulatedFileSystem
  ) throws -> [(name: String, bytes: [UInt8])] {
    let directory = try system.openDirectory(at: place, create: false)
    return try directory.list().filter { $0 != "RESERVE" }.sorted().map { name in
      let file = try directory.open(name, access: .readOnly)
      return (name, try file.read(at: 0, count: Int(file.size())))
    }
  }

  // MARK: - Written data

  private func writeItems(_ numbers: Range<Int>) async throws {
    let items = database.collection("items")
    for number in numbers {
      var fields: [String: Value] = [
        "name": .string("온돌 \(number)"), "price": .integer(Int64(number * number * 997)),
        "tags": .array((0..<(number % 4)).map { .string("t\($0)") }),
        "size": .map(["width": .double(Double(number) / 4), "height": .integer(Int64(-number))]),
      ]
      if number % 5 == 0 { fields["code"] = .string("c\(number)") }
      if number % 8 == 0 {
        fields["text"] = .string(String(repeating: "A long story of \(number). ", count: 60))
      }
      try await items.document("i\(number)").setData(fields, durability: .process)
      if number % 3 == 0 {
        try await items.document("i\(number)").collection("notes").document("n\(number % 2)")
          .setData(["stars": Value.integer(Int64(number % 6))], durability: .process)
      }
    }
  }

  /// Documents, older and younger than the indexes, that have null in fields of unique indexes, or
  /// lack the fields.
  private func writeNulls(distinct: Bool) async throws {
    let items = database.collection("items")
    var documents: [[String: Value]] = [
      ["code": nil, "place": nil, "seat": 1], ["code": "c1", "price": 997, "place": nil],
      ["place": nil], ["code": 2, "place": nil, "seat": nil], ["code": "c4", "place": 4],
      ["place": 4, "seat": nil], ["seat": nil], [:], ["code": 8, "place": 4, "seat": 8],
    ]
    if distinct {
      documents[1]["code"] = .null
      documents += [
        ["code": nil, "place": 4, "seat": nil], ["code": nil, "place": nil, "seat": 1],
      ]
    }
    for (number, fields) in documents.enumerated() {
      if number == 4 {
        try await items.createIndex(on: ["code"], unique: true, nullsDistinct: distinct)
        try await items.createIndex(on: ["place", "-seat"], unique: true, nullsDistinct: distinct)
      }
      try await items.document("i\(number)").setData(fields, durability: .process)
      try await items.document("i\(number)").collection("parts").document("p")
        .setData(["n": Value.null], durability: .process)
    }
    try await items.document("i0").collection("parts")
      .createIndex(on: ["-n"], unique: true, nullsDistinct: distinct)
  }

  private func deleteSome() async throws {
    for number in stride(from: 1, to: 40, by: 9) {
      try await database.document("items/i\(number)").delete(durability: .process)
    }
  }

  /// Indexes of every kind, and all other declarations of a collection.
  private func declare() async throws {
    let items = database.collection("items")
    try await items.createIndex(on: ["price", "-name"])
    try await items.createIndex(on: ["code"], unique: true)
    try await items.createIndex(onArray: "tags")
    try await items.createIndex(on: ["size.width"], where: .whereField("price", isGreaterThan: 8))
    try await database.collectionGroup("notes").createIndex(on: ["-stars"])
    try await items.setTimeToLive(field: "until")
    try await database.collection("diary").linkBlobs(field: "file", under: "images")
    try await items.document("later").setData([
      "until": Value.timestamp(try Timestamp(microsecondsSince1970: 32_503_680_000_000_000))
    ])
  }

  /// A value of every kind, and those at the ends of each range.
  private func writeValues() async throws {
    let values: [(String, Value)] = [
      ("null", .null), ("booleans", [true, false]),
      (
        "integers",
        .array(
          [
            0, 1, -1, 1_023, -1_024, 1_024, -1_025, 32_767, -32_768, 32_768, 1 << 31, -1 << 31,
            1 << 53,
          ]
          .map { .integer($0) } + [.integer(.max), .integer(.min)])
      ),
      (
        "doubles",
        .array(
          [
            0, -0.0, 0.5, 0.1, -1.5, 1e300, .leastNonzeroMagnitude, 1e16, 1e-5, 123_456_789.125,
            .infinity,
            -.infinity, .nan,
          ]
          .map { .double($0) })
      ),
      ("texts", ["", "a", "\"quoted\"\\\n\t\u{1}\u{7f}", "온돌 😀", "\0"]),
      ("bytes", [.bytes([]), .bytes([0, 255, 1])]),
      (
        "timestamps",
        [
          .timestamp(.minimum), .timestamp(.maximum),
          .timestamp(try Timestamp(microsecondsSince1970: -1)),
          .timestamp(try Timestamp(microsecondsSince1970: 1_777_627_800_250_000)),
        ]
      ),
      ("reference", .reference(try DocumentPath("items/i3/notes/n1"))),
      ("place", .geoPoint(try GeoPoint(latitude: 37.5, longitude: -127.25))),
      ("vectors", [.vector(VectorValue([])), .vector(VectorValue([1, -0.5, .nan]))]),
      ("empty", [[:], .map(["in": []])]),
      ("odd", ["$date": 1, "a.b": 2, "__x": 3, "온돌": ["$literal": [:]]]),
      ("deep", [["a": [["b": [["c": 1]]]]]]),
    ]
    for (name, value) in values {
      try await database.collection("values").document(name).setData(["value": value])
    }
    // Tables of more than 60 KiB make a container wide.
    let wide: [String: Value] = [
      "elements": .array((0..<21).map { .integer($0) }),
      "text": .string(String(repeating: "x", count: 61_500)), "z": 2.25,
    ]
    try await database.collection("values").document("wide").setData(wide)
    // More names than one byte can number.
    try await database.collection("many").document("names").setData(
      Dictionary(uniqueKeysWithValues: (0..<300).map { ("n\($0)", Value.integer(Int64($0))) }))
  }

  /// Contents of every size, by paths and in documents, and one made from another.
  private func writeContents(longText: Int) async throws {
    let storage = database.storage
    var noise = SeededRandom(seed: 5)
    let png = Array("\u{89}PNG\r\n".utf8) + (0..<2_000).map { _ in UInt8(noise.below(256)) }
    let lamp = storage.reference(withPath: "images/온돌 lamp.png")
    try await lamp.putData(
      png,
      metadata: StorageMetadata(
        contentType: "image/png", cacheControl: "private", customMetadata: ["by": "me"]))
    var change = try await lamp.getMetadata()
    change.contentLanguage = "ko"
    _ = try await lamp.updateMetadata(change)
    _ = try await lamp.derive("thumbnail") { Array($0.prefix(300)) }
    try await storage.reference(withPath: "texts/short").putData(Array("short".utf8))
    try await storage.reference(withPath: "texts/empty").putData([])
    try await storage.reference(withPath: "texts/long").putData(
      Array(String(repeating: "Under the floor it is warm. ", count: longText).utf8))
    let blob = try await storage.put(Array(String(repeating: "diary ", count: 200).utf8))
    try await database.document("diary/a").setData(["photo": blob, "file": "images/온돌 lamp.png"])
    try await database.document("diary/b").setData(["photos": [blob]])
  }

  private func writeTree() async throws {
    let tree = database.tree
    try await tree.child("cars").createIndex(byChild: "name")
    for number in 0..<12 {
      try await tree.child("cars/c\(number)").setValue(
        ["name": "n\(number % 5)", "list": [1, 2.5, true], "at": ServerValue.timestamp()],
        andPriority: number % 3 == 0 ? number : nil)
    }
    try await tree.child("flag").setValue(false, andPriority: "first")
    try await tree.child("keys").setValue([
      "-0": 1, "-00": 2, "7": 3, "007": 4, "-12": 5, "2147483647": 6, "2147483648": 7, "온돌": 8,
    ])
    try await tree.child("empty text").setValue("")
  }
}
