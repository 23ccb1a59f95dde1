// The limits in the guide to limits and sizes, each from both sides: the largest value is accepted,
// and one more is refused. Also the defaults when an app chooses nothing.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// A quantity with a limit.
private struct Limit: CustomTestStringConvertible, Sendable {
  let name: String
  let most: Int
  /// Uses an amount of it.
  let use: @Sendable (Database, Int) async throws -> Void

  init(
    _ name: String, _ most: Int, use: @escaping @Sendable (Database, Int) async throws -> Void
  ) {
    self.name = name
    self.most = most
    self.use = use
  }

  var testDescription: String { name }
}

private func text(_ length: Int) -> String { String(repeating: "x", count: length) }

/// A number of maps around a value.
private func nested(_ depth: Int) -> Value {
  (0..<depth).reduce(Value.integer(1)) { inner, _ in .map(["m": inner]) }
}

private let limits: [Limit] = [
  Limit("bytes of an id", 1_500) { database, length in
    try await database.document("c/\(text(length))").setData(["n": 1])
  },
  Limit("bytes of a field's name", 1_500) { database, length in
    try await database.document("c/d").setData([text(length): 1])
  },
  Limit("bytes of a path to a field", 1_500) { database, length in
    let path = FieldPath("a." + text(length - 2))
    _ = try await database.collection("c").whereField(path, isEqualTo: 1).getDocuments()
  },
  Limit("documents within documents", 100) { database, depth in
    let path = Array(repeating: "c/d", count: depth).joined(separator: "/")
    try await database.document(path).setData(["n": 1])
  },
  Limit("maps within maps", 100) { database, depth in
    try await database.document("c/d").setData(["m": nested(depth)])
  },
  Limit("bytes of a path in storage", 1_024) { database, length in
    try await database.storage.reference(withPath: text(length)).putData([1])
  },
  Limit("bytes of a content type", 255) { database, length in
    _ = try await database.storage.put([1], contentType: text(length))
  },
  Limit("bytes of metadata", 8 << 10) { database, length in
    let custom = ["n": text(length - 101)]
    let metadata = StorageMetadata(cacheControl: text(100), customMetadata: custom)
    try await database.storage.reference(withPath: "a").putData([1], metadata: metadata)
  },
  Limit("objects of a page", 1_000) { database, count in
    _ = try await database.storage.reference().list(maxResults: count)
  },
  Limit("bytes of the name of what is derived", 1_000) { database, length in
    let object = database.storage.reference(withPath: "a")
    if try await !object.exists() { try await object.putData([1]) }
    _ = try await object.derive(text(length)) { $0.prefix(1) }
  },
  Limit("bytes of a key of the tree", 1_500) { database, length in
    try await database.tree.child(key: text(length)).setValue(1)
  },
  Limit("nodes within nodes", 100) { database, depth in
    let path = Array(repeating: "k", count: depth).joined(separator: "/")
    try await database.tree.child(path).setValue(1)
  },
  Limit("nodes within nodes of one value", 100) { database, depth in
    try await database.tree.setValue(nested(depth))
  },
  Limit("bytes of a text in the tree", 10 << 20) { database, length in
    try await database.tree.child("a").setValue(text(length))
  },
  Limit("elements of an array of the tree", 1 << 20) { database, count in
    var elements = [Value](repeating: .null, count: count)
    elements[0] = 1
    try await database.tree.child("a").setValue(Value.array(elements))
  },
]

@Suite struct LimitTests {
  @Test(arguments: limits)
  fileprivate func `So much is taken, and one more is refused`(limit: Limit) async throws {
    let database = try await Database.underTest()
    try await limit.use(database, limit.most)
    let version = database.snapshot().version
    let error = await #expect(throws: DatabaseError.self) {
      try await limit.use(database, limit.most + 1)
    }
    #expect(error?.code == .invalidArgument, "\(String(describing: error))")
    let after = database.snapshot().version
    #expect(after == version)
    try await database.close()
  }

  @Test func `A path as a whole has no limit of its own`() async throws {
    let database = try await Database.underTest()
    let name = text(1_500)
    let path = Array(repeating: "\(name)/\(name)", count: 100).joined(separator: "/")
    let document = database.document(path)
    try await document.parent.createIndex(on: ["n"])
    try await document.setData(["n": 1])
    #expect(try await document.getDocument()["n"] as Int? == 1)
    let found = try await document.parent.whereField("n", isEqualTo: 1).getDocuments()
    #expect(found.documents.map(\.reference.path) == [path])
    try await database.compact()
    #expect(try await document.getDocument()["n"] as Int? == 1)
    #expect(try await database.verify(depth: .full).isEmpty)
    try await database.close()
  }

  @Test func `The last collection at the root is one like any other, and there is no other`()
    async throws
  {
    let database = try await Database.underTest()
    try await database.document("first/d").setData(["n": 1])
    // As if all except one had existed.
    var next: [UInt8] = []
    next.appendVarint(524_287 as UInt64)
    var batch = Batch()
    batch.put(CatalogKey.nextFamily, next)
    _ = try await database.engine.commit(batch, durability: .memory)
    try await database.document("last/d").setData(["n": 2])
    try await database.collection("last").createIndex(on: ["n"])
    let error = await #expect(throws: DatabaseError.self) {
      try await database.document("another/d").setData(["n": 3])
    }
    #expect(error?.code == .resourceExhausted)
    for (root, n) in [("first", 1), ("last", 2)] {
      let found = try await database.collection(root).whereField("n", isEqualTo: n).getDocuments()
      #expect(found.documents.map(\.documentID) == ["d"])
    }
    try await database.document("first/d").setData(["n": 4])
    try await database.close()
  }

  @Test func `The default options are those in the guides`() {
    let options = Database.Options()
    #expect(options.access == .readWrite && options.durability == .power)
    #expect(options.cacheSize == 64 << 20 && options.shardCount == 4 && options.fileLimit == nil)
    #expect(options.clock == nil && options.automaticID == nil && !options.automaticIndexes)
    #expect(options.changeRetention == nil)
    #expect(options.blobLease == .seconds(86_400) && options.blobGracePeriod == .seconds(300))
    let retention = Database.ChangeRetention()
    #expect(retention.duration == .seconds(7 * 86_400) && retention.bytes == 64 << 20)
    let engine = EngineOptions()
    #expect(engine.commitLimit == 64 << 20 && engine.valueThreshold == 8 << 10)
    #expect(engine.inlineContentSize == 32 << 10 && engine.packedContentSize == 512 << 10)
  }
}
