// Proves that options which no database can have are refused before anything is made.

import Ondol
import Testing

@Suite struct OptionsTests {
  @Test(arguments: [-1, 0, 1_025, .max])
  func `A number of shards that cannot be is refused`(count: Int) async throws {
    let error = await #expect(throws: DatabaseError.self) {
      _ = try await Database.inMemory(options: .init(shardCount: count))
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test func `A cache that cannot be is refused, and one of nothing works`() async throws {
    let error = await #expect(throws: DatabaseError.self) {
      _ = try await Database.inMemory(options: .init(cacheSize: -1))
    }
    #expect(error?.code == .invalidArgument)
    let database = try await Database.inMemory(options: .init(cacheSize: 0))
    try await database.document("a/b").setData(["n": 1])
    try await database.compact()
    #expect(try await database.document("a/b").getDocument()["n"] as Int? == 1)
    try await database.close()
  }
}
