// The checks of every store, on a real server.

import Ondol
import OndolEngine
import OndolPostgres
import OndolPostgresTestKit
import OndolTestKit
import Synchronization
import Testing

private let lastDatabase = Atomic(0)

/// A name that no other test has.
func newName() -> String {
  "test\(lastDatabase.add(1, ordering: .relaxed).newValue)"
}

@Suite struct `A store on PostgreSQL` {
  private let conformance: StoreConformance

  init() throws {
    let server = try PostgresServer.shared.get()
    conformance = StoreConformance {
      let name = newName()
      return { try server.store(name) }
    }
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `Keeps the rows of random histories, as of every commit`(_ seed: UInt64) async throws {
    try await conformance.histories(seed: seed, steps: 60)
  }

  @Test(arguments: [2400, 2401, 2410, 8192, 250_000])
  func `Keeps keys that are longer than an index takes`(_ length: Int) async throws {
    try await conformance.longKeys(length)
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `Refuses a group only if a guarded row has changed`(_ seed: UInt64) async throws {
    try await conformance.guards(seed: seed, steps: 100)
  }

  @Test(arguments: [false, true])
  func `Loses no update when several write`(_ byRange: Bool) async throws {
    try await conformance.race(writers: 4, additions: 60, byRange: byRange)
  }

  @Test func `Tells another's history from its own`() async throws {
    try await conformance.otherHistories()
  }

  @Test func `Reports the outcome of a group`() async throws {
    try await conformance.outcomes()
  }

  @Test func `Tells the outcome of a group that is under way`() async throws {
    try await conformance.outcomeRace(rounds: 100)
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `Forgets unpinned versions, and says so`(_ seed: UInt64) async throws {
    try await conformance.forgetting(seed: seed)
  }

  @Test func `Drops keyspaces once no read sees them`() async throws {
    try await conformance.dropping()
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `Keeps annotations, and deletes the oldest`(_ seed: UInt64) async throws {
    try await conformance.history(seed: seed)
    // The simulated store, which other tests use instead, does the same.
    let simulated = StoreConformance {
      let store = SimulatedStore(seed: seed)
      return { store }
    }
    try await simulated.history(seed: seed)
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func `Keeps contents in parts`(_ seed: UInt64) async throws {
    try await conformance.contents(seed: seed)
    // The simulated store, which other tests use instead, does the same.
    let simulated = StoreConformance {
      let store = SimulatedStore(seed: seed)
      return { store }
    }
    try await simulated.contents(seed: seed)
    try await simulated.contentRace(rounds: 20)
  }

  @Test func `Removes parts that are at the end of a cut`() async throws {
    try await conformance.contentCuts()
  }

  @Test(arguments: [(32 << 10, 0), ((32 << 10) + 1, 1), (256 << 10, 1), ((256 << 10) + 1, 2)])
  func `Has a content in its row up to 32 KiB, and beyond in parts`(
    _ length: Int, _ parts: Int
  ) async throws {
    let (server, place) = (try PostgresServer.shared.get(), newName())
    try server.sql("create database \(place)")
    let address = server.address("one", in: place)
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    let writer = try await Database.open(on: .postgres(address))
    try await writer.storage.reference(withPath: "file").putData(bytes)
    try await writer.close()
    #expect(
      try server.sql("select count(*), sum(length(bytes)) from ondol_part", in: place)
        == "\(parts)|\(parts == 0 ? "" : "\(length)")")
    let reader = try await Database.open(on: .postgres(address))
    let file = reader.storage.reference(withPath: "file")
    let isSame = try await Array(file.data(maxSize: 1 << 20)) == bytes
    #expect(isSame)
    try await file.delete()
    try await reader.close()
  }

  @Test func `Keeps no part that is put while its content is removed`() async throws {
    try await conformance.contentRace(rounds: 100)
  }

  @Test func `Wakes waiting calls`() async throws {
    try await conformance.waiting(rounds: 20)
  }

  @Test func `Says that it does not have a commit`() async throws {
    try await conformance.lostCommits()
    // The simulated store, which other tests use instead, does the same.
    let simulated = StoreConformance {
      let store = SimulatedStore(seed: 1)
      return { store }
    }
    try await simulated.lostCommits()
  }

  @Test func `Says that it is closed`() async throws {
    try await conformance.closing()
  }
}
