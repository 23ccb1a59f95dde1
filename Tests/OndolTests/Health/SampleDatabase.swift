// A database in memory with something of everything, and ways to damage it.

import OndolEngine
import OndolTestKit

@testable import Ondol

/// A file system with one database in it, at `db`.
struct SampleDatabase {
  let environment: Environment

  /// Few rows fill a file, and values are separated from their keys early.
  static var engineOptions: EngineOptions {
    var options = EngineOptions()
    options.memtableSize = 16 << 10
    options.logSize = 64 << 10
    options.segmentSize = 16 << 10
    options.blockSize = 1 << 10
    options.smallShardSize = 0
    options.valueThreshold = 2_000
    options.valueFileSize = 32 << 10
    return options
  }

  /// - Parameter environment: the place; in memory by default.
  init(_ environment: Environment = .tested()) {
    self.environment = environment
  }

  func open() async throws -> Database {
    try await Database.open(
      at: "db", environment: environment, engineOptions: Self.engineOptions)
  }

  func verify(_ depth: VerificationDepth = .full) async throws -> [Finding] {
    try await Database.verify(at: "db", depth: depth, environment: environment)
  }

  /// Documents with values of many kinds, including large ones, collections below documents, and
  /// every kind of index.
  func fill(_ database: Database, from first: Int = 0, count: Int = 120) async throws {
    let items = database.collection("items")
    for number in first..<(first + count) {
      var fields: [String: Value] = [
        "n": .integer(Int64(number % 17)), "name": .string("item \(number)"),
        "tags": .array((0..<(number % 4)).map { .string("t\($0)") }),
        "at": .timestamp(try Timestamp(microsecondsSince1970: Int64(number) * 1_000_000)),
        "place": .geoPoint(try GeoPoint(latitude: Double(number % 90), longitude: 127)),
        "more": .map([
          "to": .reference(try DocumentPath("items/i\(number / 2)")), "half": .double(0.5),
        ]),
        "vector": .vector(VectorValue([1, Double(number)])), "bytes": .bytes([1, 2]), "none": .null,
      ]
      if number % 7 == 0 {
        fields["price"] = DecimalValue("\(number).1").map { .decimal($0) }
        fields["grid"] = .array([.array([.integer(Int64(number))]), .array([])])
      }
      if number % 5 == 0 { fields["code"] = .string("c\(number)") }
      if number % 9 == 0 {
        fields["text"] = .string(String(repeating: "온돌 \(number) ", count: 400))
      }
      try await items.document("i\(number)").setData(fields, durability: .process)
      if number % 3 == 0 {
        try await items.document("i\(number)").collection("notes").document("a\(number % 2)")
          .setData(["stars": Value.integer(Int64(number % 6))], durability: .process)
      }
    }
    for number in stride(from: first, to: first + count, by: 11) {
      try await items.document("i\(number)").delete(durability: .process)
    }
  }

  func declareIndexes(_ database: Database) async throws {
    let items = database.collection("items")
    try await items.createIndex(on: ["n", "-name"])
    try await items.createIndex(on: ["code"], unique: true)
    try await items.createIndex(onArray: "tags")
    try await items.createIndex(on: ["name"], where: .whereField("n", isGreaterThan: 8))
    try await database.collectionGroup("notes").createIndex(on: ["-stars"])
    try await items.setTimeToLive(field: "until")
    try await items.setSchema(version: 1) { fields, _ in fields["schema"] = 1 }
  }

  /// Makes the database, with older documents than indexes and younger ones, and closes it.
  func make() async throws {
    let database = try await open()
    try await fill(database)
    try await declareIndexes(database)
    try await fill(database, from: 100, count: 60)
    try await database.close()
  }

  // MARK: - Damage

  /// The names of its files that begin or end with the text.
  ///
  /// A file that was merged away stays until its last reader has ended, possibly a moment after the
  /// database was closed. It is not included, because damage to it damages nothing.
  func files(_ part: String) throws -> [String] {
    let left = (try? FileInspector(at: "db", environment: environment).leftFiles()) ?? []
    return try directory().list().filter { name in
      (name.hasPrefix(part) || name.hasSuffix(part)) && !left.contains(name)
    }.sorted()
  }

  func directory() throws -> any Directory {
    try environment.fileSystem.openDirectory(at: "db", create: false)
  }

  func bytes(of name: String) throws -> [UInt8] {
    let file = try directory().open(name, access: .readOnly)
    return try file.read(at: 0, count: Int(file.size()))
  }

  /// Replaces a file's bytes.
  func replace(_ name: String, with bytes: [UInt8]) throws {
    let directory = try directory()
    try directory.remove(name)
    try directory.create(name).write(bytes.bytes, at: 0)
  }

  /// Flips a bit.
  func flip(_ name: String, at offset: Int, bit: Int = 3) throws {
    var bytes = try bytes(of: name)
    bytes[offset] ^= 1 << UInt8(bit)
    try replace(name, with: bytes)
  }

  /// Opens the database, writes rows without its knowledge, and closes it.
  func plant(_ write: (Database, inout Batch) async throws -> Void) async throws {
    let database = try await open()
    var batch = Batch()
    try await write(database, &batch)
    _ = try await database.engine.commit(batch, durability: .process)
    try await database.close()
  }
}

extension SampleDatabase {
  /// The schema of "items" in the database at `path`.
  func schema(ofItemsAt path: String) async throws -> SchemaHistory {
    let database = try await Database.open(at: path, environment: environment)
    let schema = try await database.entry("items")?.schema
    try await database.close()
    return schema ?? SchemaHistory()
  }
}

extension Database {
  /// The catalog's entry of a pattern.
  func entry(_ collectionIDs: String...) async throws -> CollectionEntry? {
    let pattern = CollectionPattern(collectionIDs)
    return try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.family(pattern.root, in: rows)?.collections[pattern]
    }
  }
}

extension Batch {
  mutating func put(_ row: IndexRow) {
    put(row.key, row.value)
  }

  mutating func put(_ key: [UInt8], _ value: [UInt8]) {
    put(key.bytes, value.bytes)
  }

  mutating func delete(_ key: [UInt8]) {
    delete(key.bytes)
  }
}
