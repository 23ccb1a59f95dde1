// Options that opening refuses before it creates anything: those that no database can have.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Opening a database` {
  /// A count that the superblock cannot store was once accepted, and the database could not be
  /// reopened.
  @Test(arguments: [-1, 0, 1_025, .max])
  func `refuses a number of shards that cannot be stored`(count: Int) async throws {
    await #expect { try await Database.underTest(options: .init(shardCount: count)) } throws: {
      ($0 as? DatabaseError)?.code == .invalidArgument
    }
  }

  @Test(arguments: [1, 1_024])
  func `takes the least and the greatest number of shards`(count: Int) async throws {
    let database = try await Database.underTest(options: .init(shardCount: count))
    try await database.collection("a").document("b").setData(["n": 1])
    #expect(try await database.collection("a").getDocuments().count == 1)
    try await database.close()
  }

  @Test func `refuses a limit of open files that is too low, and works with the lowest`()
    async throws
  {
    await #expect { try await Database.underTest(options: .init(fileLimit: 63)) } throws: {
      ($0 as? DatabaseError)?.code == .invalidArgument
    }
    let database = try await Database.underTest(options: .init(fileLimit: 64))
    try await database.document("a/b").setData(["n": 1])
    #expect(try await database.document("a/b").getDocument()["n"] as Int? == 1)
    try await database.close()
  }

  @Test func `refuses a cache of less than nothing, and works with none`() async throws {
    await #expect { try await Database.underTest(options: .init(cacheSize: -1)) } throws: {
      ($0 as? DatabaseError)?.code == .invalidArgument
    }
    let database = try await Database.underTest(options: .init(cacheSize: 0))
    try await database.document("a/b").setData(["n": 1])
    try await database.compact()
    #expect(try await database.document("a/b").getDocument()["n"] as Int? == 1)
    try await database.close()
  }

  /// An opening reads which collections are followed last, when the engine works already. When that
  /// read failed, the engine went on without its database, and the directory stayed claimed: no
  /// later opening in the process succeeded.
  @Test func `that fails once, at any read, claims nothing`() throws {
    let failures = try SimulationExecutor.run(seed: 1) { executor in
      // Much is left to flush and to merge when the power goes.
      var small = EngineOptions()
      (small.memtableSize, small.segmentSize, small.blockSize) = (16_384, 8_192, 1_024)
      (small.logSize, small.runLimit, small.callersSync) = (6_144, 4, false)
      let options = small
      func open(_ fileSystem: SimulatedFileSystem) async throws -> Database {
        let world = SimulatedWorld(fileSystem: fileSystem, seed: 1, threads: executor)
        return try await Database.open(
          at: "/db", options: .init(changeRetention: .init()), environment: world.environment,
          engineOptions: options)
      }
      let fileSystem = SimulatedFileSystem()
      let first = try await open(fileSystem)
      try await first.syncFollows.document("1").setData(["collection": "others"])
      for number in 0..<200 {
        try await first.document("items/i\(number)").setData([
          "n": number, "text": String(repeating: "abcdefgh", count: 100 + number % 7),
        ])
      }
      var failures: Set<String> = []
      for place in 0... {
        let left = fileSystem.crash(seed: 1)
        left.inject([Fault(failing: [.read, .open], after: place, errno: 5)])
        do {
          try await open(left).close()
        } catch {
          failures.insert("\(error)")
        }
        let isOver = left.faults.contains { $0.after >= 0 }
        left.inject([])
        let database = try await open(left)
        let count = try await database.collection("items").getDocuments().count
        #expect(count == 200, "place \(place)")
        try await database.close()
        if isOver { break }
      }
      try await first.close()
      return failures
    }
    #expect(failures.contains { $0.contains(".seg") }, "\(failures)")
  }
}
