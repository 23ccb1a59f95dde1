// Documents that end at a moment: never seen after it, removed soon after, also over restarts.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ExpiryTests {
  /// A clock that tests turn. Whoever sleeps waits for it to be turned far enough.
  private final class Clock: Sendable {
    private struct State {
      var now: Int64 = 1_000_000
      var sleepers: [(until: Int64, CheckedContinuation<Void, Never>)] = []
      var isOver = false
    }

    private let state = Guarded(State())

    var now: Int64 { state.withLock { $0.now } }

    func turn(by microseconds: Int64) {
      let woken = state.withLock { state in
        state.now += microseconds
        let now = state.now
        let woken = state.sleepers.filter { $0.until <= now }
        state.sleepers.removeAll { $0.until <= now }
        return woken.map(\.1)
      }
      for sleeper in woken { sleeper.resume() }
    }

    /// Lets all who sleep go on, so that a database can be closed.
    func end() {
      let woken = state.withLock { state in
        state.isOver = true
        defer { state.sleepers = [] }
        return state.sleepers.map(\.1)
      }
      for sleeper in woken { sleeper.resume() }
    }

    func doze(_ microseconds: Int64) async {
      await withCheckedContinuation { sleeper in
        let mustWait = state.withLock { state in
          guard !state.isOver, microseconds > 0 else { return false }
          state.sleepers.append((state.now + microseconds, sleeper))
          return true
        }
        if !mustWait { sleeper.resume() }
      }
    }
  }

  private func open(
    _ clock: Clock, _ fileSystem: MemoryFileSystem = MemoryFileSystem()
  ) async throws -> Database {
    var environment = Environment.memory()
    environment.fileSystem = fileSystem
    environment.now = { clock.now }
    environment.sleep = { await clock.doze($0) }
    return try await Database.open(at: "/db", environment: environment)
  }

  private func moment(_ microseconds: Int64) throws -> Timestamp {
    try Timestamp(microsecondsSince1970: microseconds)
  }

  private func close(_ database: Database, _ clock: Clock) async throws {
    // Closing cancels the timer, whose sleep this clock must end.
    async let closed: Void = database.close()
    clock.end()
    try await closed
  }

  /// Waits for the removal that runs in the background.
  private func waitUntil(_ condition: () throws -> Bool) async throws {
    while try !condition() { await Task.yield() }
  }

  private func rowCount(_ collection: CollectionReference) throws -> Int {
    let rows = Rows(
      try collection.database.engineSnapshot(), collection.database.catalog, mayBlock: true)
    let pattern = CollectionPattern(try collection.place.get())
    guard let entry = try rows.catalog.family(pattern.root, in: rows)?.collections[pattern]
    else { return 0 }
    var walk = RangeWalk(rows, [KeyRange(prefix: entry.keyspace.prefix)])
    var count = 0
    while try walk.next() { count += 1 }
    return count
  }

  @Test func `No read returns a document whose time is over`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    let codes = database.collection("codes")
    try await codes.setTimeToLive(field: "expiresAt")
    try await codes.document("a").setData(["n": 1, "expiresAt": try moment(5_000_000)])
    try await codes.document("b").setData(["n": 2, "expiresAt": try moment(9_000_000)])
    try await codes.document("c").setData(["n": 3])
    try await codes.document("d").setData(["n": 4, "expiresAt": "never"])
    try await codes.document("e").setData(["n": 5, "expiresAt": 1])
    let view = database.snapshot()
    #expect(try view.getDocuments(codes).count == 5)
    clock.turn(by: 4_000_000)
    // The clock stands at the very moment; the old snapshot looks at the clock, too.
    #expect(try view.getDocument(codes.document("a")).exists == false)
    #expect(try view.getDocuments(codes).documents.map(\.documentID) == ["b", "c", "d", "e"])
    #expect(try await codes.document("a").getDocument().exists == false)
    #expect(try await codes.getDocuments(ids: ["a", "b"]).map(\.exists) == [false, true])
    #expect(try await codes.count.getAggregation().count == 4)
    #expect(try await codes.whereField("n", isEqualTo: 1).getDocuments().isEmpty)
    try await close(database, clock)
  }

  @Test func `What is over is removed, indexes and all`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    let codes = database.collection("codes")
    try await codes.createIndex(on: ["n"])
    try await codes.setTimeToLive(field: "expiresAt")
    for number in 0..<500 {
      try await codes.document("\(number)").setData(
        ["n": number, "expiresAt": try moment(2_000_000 + Int64(number % 2) * 5_000_000)],
        durability: .memory)
    }
    clock.turn(by: 1_500_000)
    try await waitUntil { try rowCount(codes) == 250 }
    try await auditIndexes(of: codes)
    clock.turn(by: 10_000_000)
    try await waitUntil { try rowCount(codes) == 0 }
    // A moment that is earlier than the timer's sets it anew.
    try await codes.document("late").setData(["expiresAt": try moment(900_000_000)])
    try await codes.document("soon").setData(["expiresAt": try moment(clock.now + 10)])
    clock.turn(by: 20)
    try await waitUntil { try rowCount(codes) == 1 }
    try await close(database, clock)
  }

  @Test func `Documents below others end, too`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    try await database.collection("users/u0/codes").setTimeToLive(field: "at")
    for user in 0..<5 {
      for code in 0..<4 {
        let at = code == 0 ? Value.integer(3) : .timestamp(try moment(Int64(code) * 2_000_000))
        try await database.document("users/u\(user)/codes/c\(code)").setData(["at": at])
      }
    }
    clock.turn(by: 3_500_000)
    try await waitUntil { try rowCount(database.collection("users/u0/codes")) == 10 }
    #expect(try await database.collection("users/u3/codes").getDocuments().count == 2)
    try await close(database, clock)
  }

  @Test func `A document whose time is over is not there for writes either`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    let codes = database.collection("codes")
    try await codes.setTimeToLive(field: "at")
    let document = codes.document("a")
    try await document.setData(["at": try moment(2_000_000), "old": true])
    clock.turn(by: 5_000_000)
    let error = await #expect(throws: DatabaseError.self) {
      try await document.updateData(["n": 1])
    }
    #expect(error?.code == .notFound)
    let result = try await document.create(["n": 1], returning: [.before, .after])
    #expect(result.before?.exists == false)
    #expect(result.after?.data() == ["n": 1])
    #expect(result.after?.createTime == result.commitTime)
    #expect(try await document.getDocument().data() == ["n": 1])
    try await auditIndexes(of: codes)
    try await close(database, clock)
  }

  @Test func `The rule survives a restart, and can be taken back`() async throws {
    let clock = Clock()
    let fileSystem = MemoryFileSystem()
    var database = try await open(clock, fileSystem)
    try await database.collection("codes").setTimeToLive(field: "at")
    try await database.document("codes/a").setData(["at": try moment(2_000_000)])
    try await database.document("codes/b").setData(["at": try moment(9_000_000)])
    try await close(database, clock)

    let later = Clock()
    later.turn(by: 5_000_000)
    database = try await open(later, fileSystem)
    let codes = database.collection("codes")
    #expect(try await codes.document("a").getDocument().exists == false)
    try await waitUntil { try rowCount(codes) == 1 }
    try await codes.setTimeToLive(field: nil)
    later.turn(by: 50_000_000)
    #expect(try await codes.document("b").getDocument().exists)
    try await close(database, later)
  }
}
