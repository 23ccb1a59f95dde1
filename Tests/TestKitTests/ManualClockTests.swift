// The test controls time: the database's timed work happens when the clock is moved, not before,
// and without any waiting. Public calls only.

import Ondol
import OndolTestKit
import Testing

@Suite struct ManualClockTests {
  private static let path = "app.ondol"

  private func moment(_ clock: ManualClock, plus seconds: Int64 = 0) throws -> Timestamp {
    try Timestamp(microsecondsSince1970: clock.microsecondsSince1970 + seconds * 1_000_000)
  }

  @Test func `Server timestamps are the clock's`() async throws {
    let clock = ManualClock()
    let database = try await Database.open(at: Self.path, on: SimulatedDevice(clock: clock))
    await clock.advance(by: .seconds(90))
    let expected = try moment(clock)
    try await database.document("a/b").setData(["at": FieldValue.serverTimestamp()])
    #expect(try await database.document("a/b").getDocument()["at"] as Timestamp? == expected)
    try await database.close()
  }

  @Test func `A document is removed and listeners have it when the clock has passed its end`()
    async throws
  {
    let clock = ManualClock()
    let database = try await Database.open(at: Self.path, on: SimulatedDevice(clock: clock))
    let sessions = database.collection("sessions")
    try await sessions.setTimeToLive(field: "end")
    try await sessions.document("a").setData(["end": try moment(clock, plus: 60)])
    try await sessions.document("b").setData(["end": try moment(clock, plus: 3_600)])
    var results = sessions.snapshots.makeAsyncIterator()
    #expect(try await results.next()?.documents.count == 2)

    await clock.advance(by: .seconds(59))
    #expect(try await sessions.getDocuments().documents.map(\.documentID) == ["a", "b"])
    await clock.advance(by: .seconds(1))
    let changes = try await results.next()?.documentChanges
    #expect(changes?.map(\.type) == [.removed])
    #expect(changes?.first?.document.documentID == "a")
    #expect(try await sessions.getDocuments().documents.map(\.documentID) == ["b"])
    try await database.close()
  }

  @Test func `Periodic writes survive a power cut once their time has passed`() async throws {
    var lost = 0
    for seed in Seeds.first(50) {
      let device = SimulatedDevice(seed: seed)
      var database = try await Database.open(
        at: Self.path, options: .init(durability: .periodic(.seconds(10))), on: device)
      try await database.document("a/early").setData([:])
      await device.clock.advance(by: .seconds(10))
      try await database.document("a/late").setData([:])
      await device.clock.advance(by: .seconds(9))
      device.powerCut()
      database = try await Database.open(at: Self.path, on: device)
      #expect(try await database.document("a/early").getDocument().exists, "\(device)")
      if try await !database.document("a/late").getDocument().exists { lost += 1 }
      try await database.close()
    }
    #expect(lost > 0)
  }

  @Test func `Contents without a holder go when their lease ends`() async throws {
    let device = SimulatedDevice()
    let database = try await Database.open(at: Self.path, on: device)
    let blob = try await database.storage.put([1, 2, 3] as [UInt8])
    await device.clock.advance(by: .seconds(3_600))
    #expect(try await database.storage.data(of: blob).count == 3)
    await device.clock.advance(by: .seconds(2 * 86_400))
    let error = await #expect(throws: DatabaseError.self) {
      _ = try await database.storage.data(of: blob)
    }
    #expect(error?.code == .notFound)
    try await database.close()
  }

  @Test func `A database in memory can look at the clock`() async throws {
    let clock = ManualClock(microsecondsSince1970: 1_000_000)
    let database = try await Database.inMemory(
      options: .init(clock: { clock.microsecondsSince1970 }))
    let result = try await database.document("a/b").setData([:])
    #expect(result.commitTime == (try moment(clock)))
    // The clock stands still, and the times of commits still increase.
    let next = try await database.document("a/b").setData(["n": 1])
    let (first, second) = (result.commitTime, next.commitTime)
    #expect(second.microsecondsSince1970 == first.microsecondsSince1970 + 1)
    try await database.close()
  }

  @Test func `A database that is let go of unclosed keeps no task by the clock`() async throws {
    let clock = ManualClock()
    let device = SimulatedDevice(clock: clock)
    for _ in 1...3 {
      let database = try await Database.open(at: Self.path, on: device)
      try await database.document("a/b").setData([:], durability: .periodic(.seconds(1)))
      device.kill()
    }
    await clock.advance(by: .seconds(10))
    let database = try await Database.open(at: Self.path, on: device)
    #expect(try await database.document("a/b").getDocument().exists)
    try await database.close()
  }

  @Test func `A body that waits while nothing runs is ended, whatever it waits for`() async throws {
    let clock = ManualClock()
    let device = SimulatedDevice(clock: clock)
    await #expect(throws: ManualClock.Stuck.self) {
      try await clock.watch {
        let database = try await Database.open(at: Self.path, on: device)
        var snapshots = database.collection("a").snapshots.makeAsyncIterator()
        // There are no writes, so there is no second one.
        for _ in 0..<2 { _ = try await snapshots.next() }
      }
    }
    let (numbers, end) = AsyncStream.makeStream(of: Int.self)
    await #expect(throws: ManualClock.Stuck.self) {
      try await clock.watch { for await _ in numbers {} }
    }
    end.finish()
  }

  @Test func `A body that is watched has its result, its errors and its time`() async throws {
    let clock = ManualClock()
    let device = SimulatedDevice(clock: clock)
    let count = try await clock.watch {
      let database = try await Database.open(at: "watched.ondol", on: device)
      let sessions = database.collection("sessions")
      try await sessions.setTimeToLive(field: "end")
      let end = try Timestamp(microsecondsSince1970: clock.microsecondsSince1970 + 1_000_000)
      async let first = sessions.snapshots.first { !$0.isEmpty }
      try await sessions.document("a").setData(["end": end])
      #expect(try await first?.count == 1)
      await clock.advance(by: .seconds(2))
      let count = try await sessions.getDocuments().count
      try await database.close()
      return count
    }
    #expect(count == 0)
    struct Failure: Error {}
    await #expect(throws: Failure.self) { try await clock.watch { throw Failure() } }
  }
}
