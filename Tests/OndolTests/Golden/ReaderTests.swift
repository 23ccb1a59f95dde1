// A reader of the format in another language, which was made from Docs/FileFormat.md and shares
// nothing with the sources, finds in the kept databases what was written. It notices damage, so its
// answers are worth something. Without Python it cannot run; the project's own check installs one.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite(.enabled(if: IndependentReader.python != nil)) struct `A reader of another make` {
  let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
  }

  /// A database whose small values and contents are in files of every kind.
  private static func open(
    at place: String, encryption: Database.Encryption? = nil
  ) async throws -> Database {
    var engineOptions = EngineOptions()
    engineOptions.valueThreshold = 1_000
    engineOptions.inlineContentSize = 100
    engineOptions.packedContentSize = 20_000
    return try await Database.open(
      at: place, options: Database.Options(shardCount: 2, encryption: encryption),
      environment: .live(), engineOptions: engineOptions)
  }

  @Test(.disabled(if: GoldenDatabase.makesNew), arguments: GoldenDatabase.all)
  func `finds the written data`(golden: GoldenDatabase) async throws {
    let reading = try await IndependentReader.read(golden.directory, scratch)
    #expect(reading.status == 0, "\(reading.messages)")
    let expected = try golden.content()
    let difference = reading.lines.difference(from: expected)
    #expect(difference.isEmpty, "\(difference.map { "\($0)".prefix(300) })")
  }

  /// The list of files is rewritten when the database is closed, in parts of 100 bytes.
  @Test(.disabled(if: GoldenDatabase.makesNew))
  func `finds it in a list of files that is in parts`() async throws {
    let golden = GoldenDatabase(name: "closed")
    let place = scratch.path("parts")
    try golden.copy(to: place)
    var options = EngineOptions()
    options.manifestSize = 1
    options.manifestFrameSize = 100
    let engine = try await Engine.open(at: place, options: options)
    var batch = Batch()
    // No row has this key; a deletion leaves none.
    batch.delete([0xFF, 0, 0, 0, 1].bytes)
    _ = try await engine.commit(batch, durability: .power)
    try await engine.close()
    let directory = URL(filePath: place)
    let names = try FileManager.default.contentsOfDirectory(atPath: place)
    let manifest = try #require(names.first { $0.hasPrefix("MANIFEST-") })
    #expect(try Data(contentsOf: directory.appending(path: manifest))[8] == 2)
    let reading = try await IndependentReader.read(directory, scratch)
    #expect(reading.status == 0, "\(reading.messages)")
    #expect(reading.lines.difference(from: try golden.content()).isEmpty)
  }

  /// Every kind of file, after a close and after a kill; and nothing without the key.
  @Test func `finds encrypted data, with the key`() async throws {
    let place = scratch.path("encrypted")
    let key = URL(filePath: scratch.path("key"))
    try Data(TestedEncryption.key).write(to: key)
    let database = try await Self.open(at: place, encryption: .key(TestedEncryption.key))
    var random = OndolTestKit.SeededRandom(seed: 6)
    let items = database.collection("items")
    try await items.createIndex(on: ["n"])
    for number in 0..<60 {
      let bytes = random.bytes(number % 20 == 0 ? 3_000 : 30)
      let fields: [String: Value] = ["n": .integer(Int64(number)), "bytes": .bytes(bytes)]
      try await items.document("i\(number)").setData(fields, durability: .process)
      if number == 40 { try await database.engine.flush() }
    }
    for length in [50, 5_000, 70_000] {
      let blob = try await database.storage.put(random.bytes(length))
      try await database.document("blobs/b\(length)").setData(["blob": blob])
    }
    let expected = try await GoldenContent.lines(of: database)
    let passphrase = "온돌 방 lamp"
    try await database.setEncryptionKeys([
      .key(TestedEncryption.key), .passphrase(passphrase.decomposedStringWithCanonicalMapping),
    ])
    let killed = scratch.path("killed")
    try FileManager.default.copyItem(atPath: place, toPath: killed)
    try await database.close()
    for place in [killed, place] {
      let directory = URL(filePath: place)
      let reading = try await IndependentReader.read(directory, scratch, key: key)
      #expect(reading.status == 0, "\(reading.messages)")
      #expect(reading.lines.difference(from: expected).isEmpty)
      let again = try await IndependentReader.read(directory, scratch, passphrase: passphrase)
      #expect(again.lines == reading.lines, "\(again.messages)")
      let refused = try await IndependentReader.read(directory, scratch)
      #expect(refused.status == 1 && refused.output.isEmpty)
    }
  }

  /// Documents, and contents that only their references open, with a frame, several and none.
  @Test func `finds the data of a collection with a key of its own`() async throws {
    let place = scratch.path("own")
    let key = URL(filePath: scratch.path("own.key"))
    try Data(TestedEncryption.key).write(to: key)
    let database = try await Self.open(at: place, encryption: .key(TestedEncryption.key))
    let records = database.collection("records")
    try await records.createWithOwnKey()
    var random = OndolTestKit.SeededRandom(seed: 8)
    for length in [0, 50, 5_000, 65_537] {
      let scan = try await database.storage.put(random.bytes(length), for: records)
      try await records.document("r\(length)").setData(["scan": scan, "list": [scan]])
      if length == 50 { try await database.engine.flush() }
    }
    let expected = try await GoldenContent.lines(of: database)
    #expect(expected.count { $0.hasPrefix("{\"opened\":") } == 4, "\(expected)")
    try await database.close()
    let reading = try await IndependentReader.read(URL(filePath: place), scratch, key: key)
    #expect(reading.status == 0, "\(reading.messages)")
    #expect(reading.lines.difference(from: expected).isEmpty)
  }

  /// In the middle of each change of keys some files have one key, and others another or none.
  @Test func `finds the data while keys are changed`() async throws {
    let place = scratch.path("changed")
    let database = try await Self.open(at: place)
    var random = OndolTestKit.SeededRandom(seed: 7)
    func add(_ round: Int) async throws {
      for number in 0..<20 {
        let bytes = random.bytes(number % 10 == 0 ? 3_000 : 30)
        try await database.document("items/i\(round)-\(number)").setData([
          "bytes": Value.bytes(bytes)
        ])
      }
      for length in [50, 5_000, 70_000] {
        let blob = try await database.storage.put(random.bytes(length))
        try await database.document("blobs/b\(round)-\(length)").setData(["blob": blob])
      }
    }
    func read(_ name: String, _ secret: [UInt8]?) async throws {
      let expected = try await GoldenContent.lines(of: database)
      try await database.synchronize()
      let copy = scratch.path(name)
      try FileManager.default.copyItem(atPath: place, toPath: copy)
      let key = URL(filePath: scratch.path("\(name).key"))
      try Data(secret ?? []).write(to: key)
      let reading = try await IndependentReader.read(
        URL(filePath: copy), scratch, key: secret == nil ? nil : key)
      #expect(reading.status == 0, "\(name): \(reading.messages)")
      #expect(reading.lines.difference(from: expected).isEmpty, "\(name)")
    }
    let (one, other) = (TestedEncryption.key, [UInt8](repeating: 5, count: 32))
    try await add(0)
    try await database.engine.flush()
    let changes: [(before: [UInt8]?, after: [UInt8]?)] = [(nil, one), (one, other), (other, nil)]
    for (number, (before, after)) in changes.enumerated() {
      try await database.engine.beginKeyChange(to: after.map { DatabaseVault(.key($0)) })
      try await add(number + 1)
      try await database.engine.flush()
      try await add(number + 11)
      try await read("middle\(number)", after ?? before)
      try await database.goOnChangingKeys()
      try await read("end\(number)", after)
    }
    try await database.close()
  }

  /// One byte in the middle of every file of rows and contents. In other files damage may be
  /// harmless: superblocks have copies, and the end of a log may be torn.
  @Test(.disabled(if: GoldenDatabase.makesNew)) func `notices damage`() async throws {
    let golden = GoldenDatabase(name: "closed")
    let endings = [".seg", ".val", ".pack", ".content"]
    for (name, bytes) in try golden.files() where endings.contains(where: name.hasSuffix) {
      let place = scratch.path(name)
      try golden.copy(to: place)
      var damaged = bytes
      damaged[bytes.count / 2] ^= 0x10
      let directory = URL(filePath: place)
      try Data(damaged).write(to: directory.appending(path: name))
      let reading = try await IndependentReader.read(directory, scratch)
      #expect(reading.status == 1 && reading.output.isEmpty, "\(name)")
      #expect(reading.messages.contains(name), "\(name): \(reading.messages)")
    }
  }
}

/// Runs the reader.
enum IndependentReader {
  static let python: URL? = {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").map { URL(filePath: "\($0)/python3") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path(percentEncoded: false)) }
  }()

  private static let program = GoldenDatabase.folder.deletingLastPathComponent()
    .appending(path: "Reader/ondol_reader.py").path(percentEncoded: false)

  static func read(
    _ directory: URL, _ scratch: ScratchDirectory, key: URL? = nil, passphrase: String? = nil
  ) async throws -> ToolResult {
    let python = try #require(python).path(percentEncoded: false)
    // Python's compiled form of the reader's second file stays out of the sources.
    let arguments = [directory, key].compactMap { $0?.path(percentEncoded: false) }
    let way = passphrase.map { ["--passphrase", $0] } ?? []
    return try await scratch.run([python, "-B", program] + arguments + way)
  }
}
