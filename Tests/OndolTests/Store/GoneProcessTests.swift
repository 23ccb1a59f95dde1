// Processes that share a database on a store: writes that one registered for its close are made
// when it closes the database, or by another process after it is gone, but not while it lives.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Processes that are gone` {
  private let world = SimulatedWorld(seed: 1)
  private let store: SimulatedStore

  init() {
    store = SimulatedStore(seed: 1, environment: world.environment)
  }

  private func open(on store: (any RemoteStore)? = nil) async throws -> Database {
    try await Database.open(
      at: "store", environment: world.environment, on: store ?? self.store)
  }

  private func value(_ path: String, in database: Database) async throws -> Value {
    try await database.refresh()
    return try await database.tree.child(path).getData().value
  }

  @Test func `Writes for the close are made by their process, or by another after its end`()
    async throws
  {
    let way = MortalStore(store)
    let first = try await open(on: way)
    try await first.tree.child("users/minji").setValue("here")
    try await first.tree.child("users/minji").onCloseSetValue("gone")
    let second = try await open()
    try await second.tree.child("users/jiho").setValue("here")
    try await second.tree.child("users/jiho").onCloseSetValue("gone")
    // Neither opening, nor reading, nor closing a database makes them for a process that lives.
    let third = try await open()
    await third.carryOutCloseOperationsOfOthers()
    try await third.close()
    #expect(try await value("users/minji", in: second) == .string("here"))
    #expect(try await value("users/jiho", in: second) == .string("here"))
    way.die()
    world.pass(seconds: 121)
    await second.engine.forgetVersions()
    await second.carryOutCloseOperationsOfOthers()
    #expect(try await value("users/minji", in: second) == .string("gone"))
    #expect(try await value("users/jiho", in: second) == .string("here"))
    // Once: later writes there stay.
    try await second.tree.child("users/minji").setValue("back")
    await second.carryOutCloseOperationsOfOthers()
    #expect(try await value("users/minji", in: second) == .string("back"))
    #expect(try await second.verify(depth: .full) == [])
    try await second.close()
    let last = try await open()
    #expect(try await value("users/jiho", in: last) == .string("gone"))
    try await last.close()
    withExtendedLifetime(first) {}
  }

  @Test func `A process that reports now and then does not count as gone`() async throws {
    let (first, second) = (try await open(), try await open())
    try await first.tree.child("a").onCloseSetValue(1)
    for _ in 0..<8 {
      world.pass(seconds: 100)
      for database in [first, second] { await database.engine.forgetVersions() }
      try await second.refresh()
      await second.carryOutCloseOperationsOfOthers()
    }
    #expect(try await value("a", in: second) == .null)
    try await first.close()
    #expect(try await value("a", in: second) != .null)
    try await second.close()
  }

  @Test func `A process that is silent for two minutes counts as gone, and not before`()
    async throws
  {
    let world = SimulatedWorld(seed: 2, clockStep: 0)
    let store = SimulatedStore(seed: 2, environment: world.environment)
    func open() async throws -> Database {
      try await Database.open(at: "store", environment: world.environment, on: store)
    }
    let (first, second) = (try await open(), try await open())
    try await first.tree.child("a").onCloseSetValue(1)
    await first.engine.forgetVersions()
    for (seconds, expected) in [(119, Value.null), (1, .integer(1))] {
      world.pass(seconds: Int64(seconds))
      await second.engine.forgetVersions()
      try await second.refresh()
      await second.carryOutCloseOperationsOfOthers()
      #expect(try await value("a", in: second) == expected)
    }
    for database in [first, second] { try await database.close() }
  }

  @Test func `Another one does it by itself`() throws {
    let seed = UInt64.random(in: 1...1_000)
    let isDone = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let store = SimulatedStore(seed: seed, environment: world.environment)
      let way = MortalStore(store)
      func open(_ way: any RemoteStore) async throws -> Database {
        try await Database.open(at: "store", environment: world.environment, on: way)
      }
      let (first, second) = (try await open(way), try await open(store))
      try await first.tree.child("a").onCloseSetValue(1)
      way.die()
      for _ in 0..<10_000 {
        await world.environment.rest(1_000_000)
        try await second.refresh()
        if try await second.tree.child("a").getData().exists { break }
      }
      let isDone = try await second.tree.child("a").getData().exists
      try await second.close()
      withExtendedLifetime(first) {}
      return isDone
    }
    #expect(isDone, "seed \(seed)")
  }

  @Test func `Another process finishes an index only after its builder is gone`()
    async throws
  {
    let way = MortalStore(store)
    let (first, second) = (try await open(on: way), try await open())
    let batch = second.batch()
    for number in 0..<700 {
      try batch.setData(["price": number], forDocument: second.document("items/\(number)"))
    }
    try await batch.commit()
    try await first.refresh()
    let building = Task {
      try await first.collection("items").createIndex(on: ["price"]) { _ in way.die() }
    }
    while !way.hasDied { await Task.yield() }
    func isReady() async throws -> Bool {
      try await second.refresh()
      let query = second.collection("items").whereField("price", isEqualTo: 7)
      return try await query.explain().indexName == "price"
    }
    try await second.refresh()
    await second.finishWhatWasBegun(isOfOthers: true)
    #expect(try await !isReady(), "who builds it may live")
    await second.finishWhatWasBegun(isOfOthers: true)
    #expect(try await isReady())
    #expect(try await second.verify(depth: .full) == [])
    building.cancel()
    try await second.close()
    withExtendedLifetime(first) {}
  }
}
