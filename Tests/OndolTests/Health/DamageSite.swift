// A database with something of everything, made once, and copies of it to damage: files by their
// bytes, with corrected checksums if the damage must go unnoticed at first, and rows without the
// database's knowledge.

import Foundation
import OndolTestKit

@testable import Ondol
@testable import OndolEngine

/// A copy of the database for damage.
struct DamageSite {
  let sample: SampleDatabase
  private let world: SimulatedWorld

  private init(_ fileSystem: SimulatedFileSystem) {
    world = SimulatedWorld(fileSystem: fileSystem, seed: 8)
    sample = SampleDatabase(world.environment)
  }

  /// The original, closed in good order or killed in the middle.
  struct Original: Sendable {
    fileprivate let closed: SimulatedStorage
    fileprivate let killed: SimulatedStorage

    func copy(killed isKilled: Bool) -> DamageSite {
      DamageSite(SimulatedFileSystem(storage: isKilled ? killed : closed))
    }
  }

  /// Limits at which a few rows fill files, and contents are in rows, packs and files of their own.
  static var engineOptions: EngineOptions {
    var options = SampleDatabase.engineOptions
    options.packSize = 256 << 10
    options.packedContentSize = 64 << 10
    options.inlineContentSize = 100
    return options
  }

  static let original = Task<Original, any Error> {
    let world = SimulatedWorld(seed: 7)
    let sample = SampleDatabase(world.environment)
    var database = try await Database.open(
      at: "db", environment: world.environment, engineOptions: engineOptions)
    try await sample.fill(database)
    try await sample.declareIndexes(database)
    try await fillMore(database)
    try await database.close()
    let closed = world.fileSystem.storage
    database = try await Database.open(
      at: "db", environment: world.environment, engineOptions: engineOptions)
    for number in 0..<20 {
      try await database.document("late/l\(number)").setData([
        "n": number, "name \(number / 7)": true,
      ])
    }
    let killed = world.fileSystem.kill().storage
    try await database.close()
    return Original(closed: closed, killed: killed)
  }

  /// Contents in every kind of place and with every kind of holder, a tree with an index, and
  /// incompressible documents.
  private static func fillMore(_ database: Database) async throws {
    for number in 10..<60 {
      let bytes = ContentFixture.noise(100, seed: UInt64(number))
      try await database.document("noise/n\(number)").setData(["b": bytes])
    }
    // Whether or not a merge runs in the meantime, they are in a segment.
    try await database.engine.flush()
    for (number, length) in [60, 5_000, 300_000].enumerated() {
      let blob = try await database.storage.put(content(length))
      try await database.document("albums/a\(number)").setData(["photo": blob])
    }
    let photo = database.storage.reference(withPath: "images/a.txt")
    try await photo.putData(Array("hello".utf8))
    try await database.collection("diary").linkBlobs(field: "file", under: "images")
    try await database.document("diary/d").setData(["file": "images/a.txt"])
    _ = try await photo.derive("upper") { $0.map { $0 & 0xdf } }
    let scores = database.tree.child("scores")
    try await scores.createIndex(byChild: "points")
    try await scores.setValue(["kim": ["points": 3], "lee": ["points": 5]])
    try await database.tree.child("flags/a").setValue(true)
    try await database.tree.child("flags/a").setPriority(2)
  }

  static func content(_ length: Int) -> [UInt8] {
    ContentFixture.noise(length, seed: UInt64(length))
  }

  // MARK: - Files

  /// The first file whose name begins or ends with the text.
  func file(_ part: String) throws -> String {
    guard let name = try sample.files(part).first else { throw Missing(what: part) }
    return name
  }

  /// The log with commits in it.
  func usedLog() throws -> String {
    let logs = try sample.files("LOG-")
    guard
      let name = try logs.last(where: {
        try sample.bytes(of: $0).dropFirst(4_096).contains { $0 != 0 }
      })
    else { throw Missing(what: "log with commits") }
    return name
  }

  struct Missing: Error {
    var what: String
  }

  func cut(_ name: String) throws {
    let bytes = try sample.bytes(of: name)
    try sample.replace(name, with: Array(bytes.prefix(bytes.count / 2)))
  }

  func remove(_ name: String) throws { try sample.directory().remove(name) }

  /// Writes the files into a directory of the disk.
  func export(to directory: URL) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for name in try sample.directory().list() {
      try Data(try sample.bytes(of: name)).write(to: directory.appending(path: name))
    }
  }

  // MARK: - False contents in files

  private func loadManifest() throws -> Manifest {
    let superblock = try Superblock.read(
      from: try sample.directory().open(Superblock.name, access: .readOnly))
    return try Manifest.load(
      superblock, directory: try sample.directory(), environment: world.environment,
      rotationSize: 1 << 20)
  }

  /// Makes the manifest contain something else about a segment with rows of the collection "noise".
  /// Returns the file's name.
  @discardableResult
  func misdescribeSegment(_ change: (inout SegmentMetadata) -> Void) throws -> String {
    let manifest = try loadManifest()
    for (shard, state) in manifest.state.shards.enumerated() {
      for run in state.runs {
        guard var segment = run.segments.first, segment.valueReferences.isEmpty else { continue }
        change(&segment)
        try manifest.commit([
          .dropSegment(shard: shard, number: segment.number),
          .addSegment(shard: shard, level: run.level, run: run.id, segment),
        ])
        return segment.number.segmentName
      }
    }
    throw Missing(what: "segment")
  }

  func misdescribeValueFile(_ change: (inout ValueFileMetadata) -> Void) throws -> String {
    let manifest = try loadManifest()
    for (shard, state) in manifest.state.shards.enumerated() {
      guard var file = state.valueFiles.values.min(by: { $0.number < $1.number }) else { continue }
      change(&file)
      try manifest.commit([.addValueFile(shard: shard, file)])
      return file.number.valueFileName
    }
    throw Missing(what: "value file")
  }

  /// An uncompressed block of rows.
  struct PlainBlock {
    var file: String
    var metadata: SegmentMetadata
    var offset: Int
    var length: Int
  }

  /// The first uncompressed block of a segment. The blocks of "noise" are uncompressed.
  func plainBlock() throws -> PlainBlock {
    for segment in try loadManifest().state.shards.flatMap(\.segments) {
      let name = segment.number.segmentName
      let bytes = try sample.bytes(of: name)
      var offset = DataFileHeader.length
      // The trailer of an uncompressed block has its length, so this tries all possible lengths.
      while offset < bytes.count {
        guard let length = Self.length(of: bytes, at: offset, salt: segment.salt) else { break }
        let codec = bytes[offset + length + 4]
        if codec == 0, bytes[offset + length + 5] == BlockKind.data.rawValue,
          String(decoding: bytes[offset..<(offset + length)], as: UTF8.self).contains("n1")
        {
          return PlainBlock(file: name, metadata: segment, offset: offset, length: length)
        }
        offset += length + StoredBlock.trailerLength
      }
    }
    throw Missing(what: "plain block")
  }

  /// The stored length of the block that begins there, found by trying.
  private static func length(of bytes: [UInt8], at offset: Int, salt: UInt64) -> Int? {
    let trailer = StoredBlock.trailerLength
    let end = min(bytes.count - trailer, offset + 4_096)
    guard offset < end else { return nil }
    let seed = contextSeed(salt: salt, offset: UInt64(offset))
    return (1..<(end - offset)).first { length in
      let body = offset..<(offset + length + 8)
      let stored = (0..<8).reduce(UInt64(0)) { sum, index in
        sum | UInt64(bytes[offset + length + 8 + index]) << UInt64(8 * index)
      }
      return seededChecksum(seed, bytes.bytes.extracting(body)) == stored
    }
  }

  /// Changes a block's bytes and corrects its checksum.
  func lie(in block: PlainBlock, _ change: (inout [UInt8]) -> Void) throws {
    var bytes = try sample.bytes(of: block.file)
    var raw = Array(bytes[block.offset..<(block.offset + block.length)])
    change(&raw)
    var sealed: [UInt8] = []
    _ = StoredBlock.seal(
      raw.bytes, kind: .data, compress: false, salt: block.metadata.salt,
      offset: UInt64(block.offset), appendingTo: &sealed)
    bytes.replaceSubrange(block.offset..<(block.offset + sealed.count), with: sealed)
    try sample.replace(block.file, with: bytes)
  }

  // MARK: - Rows

  /// Opens the database, writes rows without its knowledge, and closes it.
  func plant(
    _ write: (Database, Ondol.Rows, inout Batch) async throws -> Void
  ) async throws {
    let database = try await Database.open(
      at: "db", environment: world.environment, engineOptions: Self.engineOptions)
    var batch = Batch()
    let rows = Ondol.Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    try await write(database, rows, &batch)
    _ = try await database.engine.commit(batch, durability: .power)
    try await database.close()
  }

  /// The collection's entry in the catalog.
  static func entry(_ collection: String, _ rows: Ondol.Rows) throws -> CollectionEntry {
    let pattern = CollectionPattern(collection.split(separator: "/").map(String.init))
    guard
      let entry = try rows.catalog.family(pattern.root, in: rows)?.collections[pattern]
    else { throw Missing(what: collection) }
    return entry
  }

  static func key(_ path: String, _ rows: Ondol.Rows) throws -> [UInt8] {
    let path = try DocumentPath(path)
    return DocumentKey.key(try entry(path.collection.description, rows).keyspace, path)
  }

  /// An index of "items" by its name, and the rows of a document.
  static func index(
    _ name: String, of id: String, _ database: Database, _ rows: Ondol.Rows
  ) async throws -> (index: IndexDefinition, rows: [IndexRow]) {
    guard let index = try entry("items", rows).allIndexes.first(where: { $0.name == name }) else {
      throw Missing(what: name)
    }
    let fields = try await database.document("items/\(id)").getDocument().data()
    return (index, index.rows(of: fields, ancestors: [], id: id))
  }
}
