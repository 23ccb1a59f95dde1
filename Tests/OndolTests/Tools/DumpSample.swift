// The required contents of a dump: something of everything that a database can hold.

import OndolJSON
import OndolTestKit

@testable import Ondol

/// Fills a database with documents, indexes, storage paths, contents and a tree.
struct DumpSample {
  let seed: UInt64

  func fill(_ database: Database) async throws {
    let sample = SampleDatabase()
    try await sample.fill(database, count: 40)
    try await sample.declareIndexes(database)
    var samples = ValueSamples(seed: seed)
    for number in 0..<60 {
      var fields: [String: Value] = [
        "$type": .integer(Int64(number)), "map": ["$date": 1, "x": ["$literal": ["$": 2]]],
        "value": Self.withoutBlobs(samples.value()),
      ]
      fields["온돌 \(number % 3)"] = Self.withoutBlobs(samples.value())
      try await database.collection("odd %\n~").document("d \(number)😀")
        .setData(fields, durability: .process)
      try await database.collection("ODD").document("\(number)").setData(["n": Value.double(-0.0)])
    }
    try await fillContents(database)
    try await fillTree(database)
  }

  private static func withoutBlobs(_ value: Value) -> Value {
    switch value {
    case .blob: .null
    case .array(let elements): .array(elements.map(withoutBlobs))
    case .map(let fields):
      .map(fields.filter { !$0.key.isEmpty && !$0.key.hasPrefix("__") }.mapValues(withoutBlobs))
    default: value
    }
  }

  private func fillContents(_ database: Database) async throws {
    try await database.collection("diary").linkBlobs(field: "file", under: "images")
    let photo = database.storage.reference(withPath: "images/온돌 lamp.png")
    try await photo.putData(
      (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) },
      metadata: StorageMetadata(cacheControl: "private", customMetadata: ["by": "me"]))
    var change = try await photo.getMetadata()
    change.contentLanguage = "ko"
    _ = try await photo.updateMetadata(change)
    _ = try await photo.derive("thumbnail") { Array($0.prefix(100)) }
    let blob = try await database.storage.put(Array("bytes of a document".utf8))
    try await database.document("diary/a").setData(["photo": blob, "file": "images/온돌 lamp.png"])
    try await database.document("diary/b").setData(["photos": [blob]])
  }

  private func fillTree(_ database: Database) async throws {
    let tree = database.tree
    try await tree.child("cars").createIndex(byChild: "name")
    for number in 0..<20 {
      try await tree.child("cars/c\(number)").setValue(
        ["name": "n\(number % 7)", "list": [1, 2.5, true], "at": ServerValue.timestamp()],
        andPriority: number % 3 == 0 ? number : nil)
    }
    try await tree.child("flag").setValue(false)
  }
}

/// Dumps of a database as one text, and back.
enum DumpTexts {
  static func dump(_ database: Database) async throws -> [UInt8] {
    var text: [UInt8] = []
    var writer = DumpWriter(try DumpReader(database), to: DumpStream { text += $0 })
    try await writer.write()
    return text
  }

  static func load(_ text: some Collection<UInt8>, into restoration: Restoration) async throws {
    var rest = Array(text)[...]
    let source = DumpText { count in
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    _ = try await DumpLoader.load(source, into: restoration)
  }
}
