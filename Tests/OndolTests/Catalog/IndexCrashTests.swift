// Power cuts while indexes of every kind are built and dropped, collections are dropped and
// documents are written. After the next open has finished the interrupted work, every index has
// exactly the rows of its documents, and no collection has half an index.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct IndexCrashTests {
  private static let users = 280

  /// Every other seed pours the rows of indexes, however few they are.
  private static func options(_ seed: UInt64) -> EngineOptions {
    var options = EngineOptions()
    options.shardCount = 2
    options.memtableSize = 128 << 10
    options.logSize = 64 << 10
    options.blockSize = 1 << 10
    options.smallShardSize = 64 << 10
    options.smallestPour = seed % 2 == 0 ? 16_384 : 1
    return options
  }

  private static func open(_ world: SimulatedWorld, _ seed: UInt64) async throws -> Database {
    try await Database.open(
      at: "/db", environment: world.environment, engineOptions: options(seed))
  }

  private static func fields(_ number: Int) -> [String: any FieldConvertible] {
    [
      "email": "u\(number)@b.kr", "n": number % 11, "tags": ["t\(number % 5)", "t\(number % 3)"],
    ]
  }

  private static func fill(_ database: Database) async throws {
    let batch = database.batch()
    for number in 0..<users {
      let user = database.document("users/\(number)")
      try batch.setData(fields(number), forDocument: user)
      try batch.setData(fields(number), forDocument: user.collection("posts").document("p"))
      try batch.setData(fields(number), forDocument: database.document("teams/t/posts/\(number)"))
      try batch.setData(fields(number), forDocument: database.document("old/\(number)"))
    }
    try await batch.commit()
    let users = database.collection("users")
    try await users.createIndex(on: ["-n", "email"])
    try await database.collectionGroup("posts").createIndex(on: ["email"])
  }

  /// Makes all changes to indexes at once.
  private static func change(_ database: Database, seed: UInt64) async throws {
    let users = database.collection("users")
    let posts = database.collectionGroup("posts")
    try await withThrowingTaskGroup { group in
      group.addTask { _ = try await users.createIndex(on: ["email"], unique: true) }
      group.addTask { _ = try await users.createIndex(onArray: "tags") }
      group.addTask {
        _ = try await users.createIndex(
          on: ["n"], where: .whereField("n", isGreaterThan: 4))
      }
      group.addTask { _ = try await posts.createIndex(on: ["n"]) }
      group.addTask { try await users.dropIndex(named: "-n,email") }
      group.addTask { try await posts.dropIndex(named: "email group") }
      group.addTask { try await database.collection("old").drop() }
      group.addTask { try await database.collection("teams/t/posts").drop() }
      group.addTask {
        var random = SeededRandom(seed: seed)
        for _ in 0..<60 {
          let user = users.document("\(random.below(Self.users))")
          let document = random.chance(1, in: 2) ? user : user.collection("posts").document("p")
          let durability = random.pick([.memory, .process, .power] as [Ondol.Durability])
          if random.chance(1, in: 4) {
            try await document.delete(durability: durability)
          } else {
            var fields = Self.fields(random.below(Self.users))
            fields["email"] = "\(document.path)"
            try await document.setData(fields, durability: durability)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Opens the database after a crash, waits until all work is finished and checks it.
  private static func recover(_ fileSystem: SimulatedFileSystem, seed: UInt64) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      let database = try await open(world, seed)
      try await waitUntilFinished(database)
      for path in ["users", "users/x/posts", "teams/t/posts", "old"] {
        try await auditIndexes(of: database.collection(path), seed: seed)
      }
      // A collection at the top goes whole or not at all.
      let old = try await database.collection("old").count.getAggregation().count
      #expect(old == 0 || old == users, "seed \(seed)")
      // The rest of one below a document is whole, and can be dropped.
      let posts = try await database.collection("teams/t/posts").getDocuments().documents
      #expect(posts.allSatisfy { $0["email"] as String? == "u\($0.documentID)@b.kr" })
      try await database.collection("teams/t/posts").drop()
      #expect(try await database.collection("teams/t/posts").getDocuments().isEmpty)
      try await database.close()
    }
  }

  private static func waitUntilFinished(_ database: Database) async throws {
    while true {
      let isFinished = try await database.read(try database.engineSnapshot()) {
        (rows) throws(DatabaseError) in
        // As stored, because cached catalogs need not know that the rows of an index are gone.
        for family in try Catalog(clock: { 0 }).families(in: rows) {
          guard family.dropped.isEmpty else { return false }
          for (pattern, entry) in family.collections {
            let wanted = try rows.groupIndexes(CatalogKey.group(pattern.collectionID.text))
            let ofGroup = entry.indexes.map(\.kind).filter(\.isOfGroup)
            guard Set(wanted) == Set(ofGroup), entry.indexes.allSatisfy({ $0.state == .ready })
            else { return false }
          }
        }
        return true
      }
      if isFinished, try await database.droppedFamilies().isEmpty { return }
      await Task.yield()
    }
  }

  @Test(arguments: Seeds.first(4))
  func `After any power cut indexes and documents agree`(seed: UInt64) throws {
    let fileSystem = SimulatedFileSystem()
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      let database = try await Self.open(world, seed)
      try await Self.fill(database)
      fileSystem.keepPictures()
      try await Self.change(database, seed: seed)
      try await database.close()
    }
    var random = SeededRandom(seed: seed)
    let pictures = fileSystem.takePictures()
    #expect(pictures.count > 30, "SEED=\(seed)")
    for _ in 0..<6 {
      let picture = random.pick(pictures)
      let second = SimulatedFileSystem(
        storage: picture.storage.afterPowerCut(seed: random.next()))
      second.keepPictures()
      try Self.recover(second, seed: random.next())
      // The life that finishes the work is cut as well.
      let again = random.pick(second.takePictures())
      let third = SimulatedFileSystem(storage: again.storage.afterPowerCut(seed: random.next()))
      try Self.recover(third, seed: random.next())
    }
  }
}
