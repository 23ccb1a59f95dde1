// Options that opening refuses before it creates anything: those that no database can have.

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
}
