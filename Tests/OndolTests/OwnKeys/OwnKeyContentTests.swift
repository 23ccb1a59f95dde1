// Contents that are put for a collection with a key of its own: what their references open, who may
// refer to them, and that they go everywhere the documents go. ErasureTests checks that they go
// with the collection's key.

import Foundation
import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

@Suite struct OwnKeyContentTests {
  /// - Parameter leases: whether contents without a holder stay for a while.
  private static func database(
    _ place: EncryptedPlace, leases: Bool = true
  ) async throws -> (Database, CollectionReference) {
    var options = Database.Options(shardCount: 2, encryption: EncryptedPlace.key)
    if !leases { (options.blobLease, options.blobGracePeriod) = (.zero, .zero) }
    let database = try await Database.open(
      at: "/db", options: options, environment: place.environment,
      engineOptions: EncryptedPlace.engineOptions)
    let records = database.collection("records")
    try await records.createWithOwnKey()
    return (database, records)
  }

  // MARK: - Reading

  /// In rows, in packs, and in files of their own; around the ends of frames and of pieces.
  @Test(arguments: Seeds.first(2))
  func `Bytes come back as a whole and in any range`(seed: UInt64) async throws {
    let place = EncryptedPlace()
    var (database, records) = try await Self.database(place)
    var random = SeededRandom(seed: seed)
    let frame = ContentFrame.length
    let lengths = [0, 1, 180, frame - 1, frame, frame + 1, 2 * frame, 99_000, 1 << 20, 1_300_000]
    var expected: [String: [UInt8]] = [:]
    for length in lengths {
      let bytes = random.bytes(length)
      let scan = try await database.storage.put(bytes, for: records)
      #expect(scan.length == length && scan.isSealed)
      #expect(scan.digest != ContentHasher.digest(of: bytes))
      try await records.document("\(length)").setData(["scan": scan])
      expected["\(length)"] = bytes
    }
    for _ in 0..<2 {
      for (id, bytes) in expected {
        let document = try await database.document("records/\(id)").getDocument()
        let scan = try #require(document["scan"] as BlobReference?)
        let when: Comment = "SEED=\(seed), \(id) bytes"
        #expect(try await Array(database.storage.data(of: scan)) == bytes, when)
        for _ in 0..<12 {
          let ends = [random.below(bytes.count + 1), random.below(bytes.count + 1)].sorted()
          var found: [UInt8] = []
          for try await piece in database.storage.bytes(of: scan, in: ends[0]..<ends[1]) {
            found += piece
          }
          #expect(found == Array(bytes[ends[0]..<ends[1]]), when)
        }
      }
      try await database.close()
      database = try await place.open()
    }
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  /// Nothing may take a frame for another, or an end for one.
  @Test func `Frames open in their places only, and none can be missing`() throws {
    var random = SeededRandom(seed: 3)
    let key = BlobKey.random()
    let length = 3 * ContentFrame.length + 10
    let content = random.bytes(length)
    let seal = try #require(ContentSeal(key, length: length))
    let stored = seal.seal(content)
    #expect(stored.count == seal.storedLength)
    #expect(seal.open(stored, 0..<4, 0..<length) == content)
    let whole = ContentFrame.length + SealFormat.tagLength
    var swapped = stored
    swapped.replaceSubrange(0..<whole, with: stored[whole..<2 * whole])
    #expect(seal.open(swapped, 0..<4, 0..<length) == nil)
    #expect(seal.open(Array(stored.dropLast()), 0..<4, 0..<length) == nil)
    for _ in 0..<40 {
      var damaged = stored
      damaged[random.below(stored.count)] ^= 1 << UInt8(random.below(8))
      #expect(seal.open(damaged, 0..<4, 0..<length) == nil)
    }
    // A reference with a smaller length, and a content cut to that.
    let short = try #require(ContentSeal(key, length: 3 * ContentFrame.length))
    #expect(short.open(Array(stored[..<(3 * whole)]), 0..<3, 0..<short.length) == nil)
    let other = try #require(ContentSeal(.random(), length: length))
    #expect(other.open(stored, 0..<4, 0..<length) == nil)
    #expect(ContentSeal(key, length: -1) == nil && ContentSeal(key, length: .max) == nil)
  }

  /// The stored bytes, including tags, are a content like any other, with the same largest size.
  @Test func `The longest content is one that can be stored once it is sealed`() throws {
    let key = BlobKey.random()
    let most = Int(ContentFrame.largestContent)
    let frames = most / (ContentFrame.length + SealFormat.tagLength)
    // Some bytes are left for one more frame.
    let longest = most - (frames + 1) * SealFormat.tagLength
    #expect(ContentSeal(key, length: longest)?.storedLength == most)
    for length in [longest + 1, most - 1, most, most + 1, Int.max, -1] {
      #expect(ContentSeal(key, length: length) == nil, "\(length) bytes")
    }
  }

  @Test func `A reference with another key or another length opens nothing, and says so`()
    async throws
  {
    let (database, records) = try await Self.database(EncryptedPlace(), leases: false)
    let bytes = [UInt8](repeating: 9, count: 70_000)
    let scan = try await database.storage.put(bytes, for: records)
    let forged = try BlobReference(
      digest: scan.digest, length: scan.length, contentType: nil, key: .random())
    let short = try BlobReference(
      digest: scan.digest, length: 69_999, contentType: nil, key: scan.key)
    let refused = await thrown { _ = try await database.storage.data(of: forged) }
    #expect(refused?.code == .permissionDenied)
    let wrong = await thrown { _ = try await database.storage.data(of: short) }
    #expect(wrong?.code == .invalidArgument)
    // Without its key a reference leads to meaningless bytes.
    let keyless = try BlobReference(digest: scan.digest, length: scan.length)
    #expect(try await Array(database.storage.data(of: keyless)) != bytes)
    // It has no holder.
    for _ in 0..<3 { try await database.storage.reclaim() }
    let gone = await thrown { _ = try await database.storage.data(of: scan) }
    #expect(gone?.code == .notFound)
    try await database.close()
  }

  // MARK: - Putting

  @Test func `Only documents of collections with keys of their own refer to it`() async throws {
    let place = EncryptedPlace()
    let (database, records) = try await Self.database(place)
    let scan = try await database.storage.put([1, 2, 3], for: records)
    let below = records.document("a").collection("notes").document("n")
    try await below.setData(["scan": scan])
    for value in [Value.blob(scan), .array([.blob(scan)]), .map(["deep": .blob(scan)])] {
      let error = await thrown { try await database.document("plain/a").setData(["v": value]) }
      #expect(error?.code == .failedPrecondition && error?.path == "plain/a")
    }
    let inTransaction = await thrown {
      try await database.runTransaction { transaction in
        let scan = try await transaction.put([4], for: records)
        try transaction.setData(["scan": scan], forDocument: database.document("plain/b"))
      }
    }
    #expect(inTransaction?.code == .failedPrecondition)
    #expect(try await database.collection("plain").getDocuments().isEmpty)
    let derived = await thrown {
      _ = try await database.storage.derive("small", from: scan) { $0.prefix(1) }
    }
    #expect(derived?.code == .invalidArgument)

    let plain = await thrown {
      _ = try await database.storage.put([1], for: database.collection("plain"))
    }
    #expect(plain?.code == .failedPrecondition && plain?.path == "plain")
    let unexpected = await thrown {
      _ = try await database.storage.put(
        [1], for: records, expecting: ContentHasher.digest(of: [2]))
    }
    #expect(unexpected?.code == .invalidArgument)
    let expected = try await database.storage.put(
      [2], for: records, expecting: ContentHasher.digest(of: [2]))
    #expect(try await Array(database.storage.data(of: expected)) == [2])
    let other = try await EncryptedPlace().open()
    let elsewhere = await thrown { _ = try await other.storage.put([1], for: records) }
    #expect(elsewhere?.code == .invalidArgument)
    try await other.close()
    try await database.close()
  }

  @Test func `Its uploader from before a drop may still refer to it in the next collection`()
    async throws
  {
    let (database, records) = try await Self.database(EncryptedPlace())
    let scan = try await database.storage.put([1, 2, 3], for: records)
    try await records.drop(includingDeclarations: true)
    // It would come back as a collection like any other.
    let refused = await thrown { try await records.document("a").setData(["scan": scan]) }
    #expect(refused?.code == .failedPrecondition)
    try await records.createWithOwnKey()
    try await records.document("a").setData(["scan": scan])
    #expect(try await Array(database.storage.data(of: scan)) == [1, 2, 3])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  @Test func `A transaction brings it, and leaves nothing that no document refers to`()
    async throws
  {
    let (database, records) = try await Self.database(EncryptedPlace(), leases: false)
    let bytes = [UInt8](repeating: 5, count: 30_000)
    let scan = try await database.runTransaction { transaction in
      let scan = try await transaction.put(bytes, for: records, contentType: "image/x")
      try transaction.setData(["scan": scan], forDocument: records.document("a"))
      return scan
    }
    #expect(scan.contentType == "image/x")
    #expect(try await Array(database.storage.data(of: scan)) == bytes)
    _ = try await database.runTransaction { transaction in
      _ = try await transaction.put(bytes, for: records)
    }
    // The same bytes put twice are two contents.
    let again = try await database.storage.put(bytes, for: records)
    #expect(again.digest != scan.digest && again.key != scan.key)
    for _ in 0..<3 { try await database.storage.reclaim() }
    #expect(try await database.storage.statistics().contents == 1)
    try await records.document("a").delete()
    for _ in 0..<3 { try await database.storage.reclaim() }
    #expect(try await database.storage.statistics().contents == 0)
    try await database.close()
  }

  @Test func `While the collection's key is not here nothing can be put for it`() async throws {
    let place = EncryptedPlace()
    let (database, records) = try await Self.database(place)
    let scan = try await database.storage.put([1], for: records)
    try await records.document("a").setData(["scan": scan])
    try await database.backup(to: "/copy", in: place.fileSystem)
    try await database.close()
    let locked = try await place.open(at: "/copy")
    let error = await thrown {
      _ = try await locked.storage.put([1], for: locked.collection("records"))
    }
    #expect(error?.code == .permissionDenied)
    try await locked.close()
  }

  // MARK: - The reference as a value

  @Test func `A reference is the same as a value of every kind, and does not reveal its key`()
    async throws
  {
    let (database, records) = try await Self.database(EncryptedPlace())
    let scan = try await database.storage.put(
      [1, 2, 3], for: records, contentType: "application/pdf")
    let key = try #require(scan.key)
    for text in ["\(scan)", String(reflecting: scan), "\(Value.blob(scan))"] {
      #expect(!text.contains(key.hex) && !text.contains("\(key.bytes[0]), \(key.bytes[1])"))
    }
    var dumped = ""
    dump(scan, to: &dumped)
    // The key is a leaf, with nothing below it. Its first byte alone proves nothing: one key in
    // thirty begins like the end of the length or of a word of the digest.
    #expect(dumped.hasSuffix("▿ key: Optional(a key)\n    - some: a key\n"), "\(dumped)")
    #expect(!dumped.contains(key.hex), "\(dumped)")

    let coded = try JSONDecoder().decode(
      BlobReference.self, from: try JSONEncoder().encode(scan))
    #expect(coded == scan && coded.key == key)
    let keyless = try BlobReference(
      digest: scan.digest, length: 3, contentType: "application/pdf")
    #expect(keyless != scan)
    #expect(ValueOrder.compare(.blob(keyless), .blob(scan)) < 0)

    try await records.createIndex(on: ["scan"])
    struct Record: Codable, Equatable { var scan: BlobReference }
    try await records.document("a").setData(from: Record(scan: scan))
    try await records.document("b").setData(["scan": keyless])
    #expect(try await records.document("a").getDocument().data(as: Record.self).scan == scan)
    let found = try await records.whereField("scan", isEqualTo: scan).getDocuments().documents
    #expect(found.map(\.documentID) == ["a"])
    let ordered = try await records.order(by: "scan").getDocuments().documents
    #expect(ordered.map(\.documentID) == ["b", "a"])
    #expect(ordered.map { $0["scan"] as BlobReference? } == [keyless, scan])
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  @Test func `Extended JSON has it, and refuses a key that is none`() throws {
    let digest = ContentHasher.digest(of: [1])
    let scan = try BlobReference(
      digest: digest, length: 1, contentType: "image/png", key: .random())
    var writer = JSONWriter()
    writer.write(fields: ["scan": .blob(scan)], behind: [])
    let fields = try JSONReader.readDocument(Array(writer.text.utf8))
    #expect(fields == ["scan": .blob(scan)], "\(writer.text)")
    let short = writer.text.replacing(scan.key?.hex ?? "?", with: "00")
    #expect(throws: JSONError.self) { try JSONReader.readDocument(Array(short.utf8)) }
  }
}
