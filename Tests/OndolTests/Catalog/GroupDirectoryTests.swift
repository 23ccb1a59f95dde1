// A query of a collection group reads the root collections in the directory. Whatever the history
// (collections created, dropped and recreated, earlier snapshots, transactions with writes,
// reopened databases), it must find what querying each collection finds.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct GroupDirectoryTests {
  private static let groups = ["posts", "notes", "c0"]

  /// The paths of a group's documents, found without the directory.
  private static func naive(
    _ group: String, _ paths: Set<String>
  ) -> [String] {
    paths.filter { path in
      let segments = path.split(separator: "/")
      return segments[segments.count - 2] == group
    }.sorted()
  }

  private static func paths(_ snapshot: QuerySnapshot) -> [String] {
    snapshot.documents.map(\.reference.path).sorted()
  }

  @Test(arguments: Seeds.first(24))
  func `A group is found wherever it is, in every snapshot`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let device = SimulatedDevice(seed: seed)
    var database = try await Database.open(at: "app.ondol", on: device)
    var stored: Set<String> = []
    var past: [(snapshot: DatabaseSnapshot, stored: Set<String>)] = []
    for step in 0..<60 {
      let root = "c\(random.below(5))"
      switch random.below(10) {
      case 0:
        try await database.collection(root).drop()
        stored = stored.filter { !$0.hasPrefix(root + "/") }
      case 1:
        past.append((database.snapshot(), stored))
      case 2 where random.below(3) == 0:
        past = []
        try await database.close()
        database = try await Database.open(at: "app.ondol", on: device)
      case 3, 4:
        let path = "\(root)/d/\(Self.groups[random.below(2)])/t\(step)"
        let before = stored
        try await database.runTransaction { transaction in
          try transaction.setData(["n": step], forDocument: database.document(path))
          for group in Self.groups {
            let found = try transaction.getDocuments(database.collectionGroup(group))
            #expect(
              Self.paths(found) == Self.naive(group, before.union([path])), "ONDOL_SEED=\(seed)")
          }
        }
        stored.insert(path)
      default:
        let below = random.below(3) == 0 ? "" : "/d/\(Self.groups[random.below(2)])"
        let path = "\(root)\(below)/d\(random.below(3))"
        try await database.document(path).setData(["n": step])
        stored.insert(path)
      }
      for group in Self.groups where random.below(3) == 0 {
        let found = try await database.collectionGroup(group).getDocuments()
        #expect(Self.paths(found) == Self.naive(group, stored), "ONDOL_SEED=\(seed)")
        for (snapshot, stored) in past {
          let found = try snapshot.getDocuments(database.collectionGroup(group))
          #expect(Self.paths(found) == Self.naive(group, stored), "ONDOL_SEED=\(seed)")
        }
      }
    }
    try await database.close()
  }

  @Test func `A snapshot from before a drop finds the documents, whatever was queried in between`()
    async throws
  {
    let device = SimulatedDevice()
    var database = try await Database.open(at: "app.ondol", on: device)
    try await database.document("a/d/posts/p").setData(["n": 1])
    try await database.close()
    database = try await Database.open(at: "app.ondol", on: device)
    let before = database.snapshot()
    try await database.collection("a").drop()
    #expect(try await database.collectionGroup("posts").getDocuments().isEmpty)
    #expect(try before.getDocuments(database.collectionGroup("posts")).count == 1)
    try await database.close()
  }

  @Test func `A reader finds collections that the writer has created since`() async throws {
    let fileSystem = SimulatedFileSystem()
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    let writer = try await Database.open(at: "/db", environment: world.environment)
    try await writer.document("a/d/posts/p").setData(["n": 1])
    var options = Database.Options()
    options.access = .readOnly
    let reader = try await Database.open(
      at: "/db", options: options, environment: world.environment)
    #expect(try await reader.collectionGroup("posts").getDocuments().count == 1)
    try await writer.document("b/d/posts/p").setData(["n": 1])
    try await reader.refresh()
    #expect(try await reader.collectionGroup("posts").getDocuments().count == 2)
    try await reader.close()
    try await writer.close()
  }

  /// The deletion of a path was once looked up in every root collection, whether it had links or
  /// not.
  @Test func `A linked path stays, whenever its link was made and wherever`() async throws {
    let device = SimulatedDevice()
    var database = try await Database.open(at: "app.ondol", on: device)
    for root in ["a", "b", "c"] { try await database.document("\(root)/d").setData(["n": 1]) }
    // The directory is made before there is any link, and again after each open.
    try await database.storage.reference(withPath: "none").putData([1])
    try await database.storage.reference(withPath: "none").delete()
    for (round, collection) in ["b", "c", "a/d/below", "new"].enumerated() {
      let name = "image\(round)"
      try await database.storage.reference(withPath: name).putData([1])
      try await database.collection(collection).linkBlobs(field: "image")
      try await database.collection(collection).document("x").setData(["image": name])
      for isOpenedAnew in [false, true] {
        if isOpenedAnew {
          try await database.close()
          database = try await Database.open(at: "app.ondol", on: device)
        }
        for earlier in 0...round {
          let error = await #expect(throws: DatabaseError.self) {
            try await database.storage.reference(withPath: "image\(earlier)").delete()
          }
          #expect(error?.code == .failedPrecondition, "image\(earlier) in round \(round)")
        }
      }
    }
    try await database.collection("c").document("x").delete()
    #expect(
      try await database.storage.reference().listAll().items.map(\.name)
        == ["image0", "image2", "image3"])
    try await database.close()
  }
}
