// Documents that expire at a moment: never visible after it, removed soon after, also over
// restarts.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ExpiryTests {
  /// A clock that tests move. A sleeping task waits until it has moved far enough.
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

    /// Lets all sleeping tasks continue, so that a database can be closed.
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

  /// Waits for the background removal.
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
    // The clock shows the exact moment. The old snapshot keeps its own.
    #expect(try view.getDocument(codes.document("a")).exists)
    #expect(try view.getDocuments(codes).count == 5)
    #expect(try view.getDocuments(codes, ids: ["a", "b"]).map(\.exists) == [true, true])
    let later = database.snapshot()
    #expect(try later.getDocument(codes.document("a")).exists == false)
    #expect(try later.getDocuments(codes).documents.map(\.documentID) == ["b", "c", "d", "e"])
    #expect(try await codes.document("a").getDocument().exists == false)
    #expect(try await codes.getDocuments(ids: ["a", "b"]).map(\.exists) == [false, true])
    #expect(try await codes.count.getAggregation().count == 4)
    #expect(try await codes.whereField("n", isEqualTo: 1).getDocuments().isEmpty)
    try await close(database, clock)
  }

  @Test func `Expired documents are removed, including index rows`() async throws {
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
    // A moment earlier than the timer's resets it.
    try await codes.document("late").setData(["expiresAt": try moment(900_000_000)])
    try await codes.document("soon").setData(["expiresAt": try moment(clock.now + 10)])
    clock.turn(by: 20)
    try await waitUntil { try rowCount(codes) == 1 }
    try await close(database, clock)
  }

  @Test func `Documents below others also expire`() async throws {
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

  @Test func `A transaction reads its writes with an expired document's unique values`()
    async throws
  {
    let clock = Clock()
    let database = try await open(clock)
    let codes = database.collection("codes")
    try await codes.setTimeToLive(field: "at")
    try await codes.createIndex(on: ["code"], unique: true)
    try await suspendRemoval(codes)
    try await codes.document("old").setData(["at": try moment(2_000_000), "code": 7])
    clock.turn(by: 5_000_000)
    let sevens = codes.whereField("code", isEqualTo: 7)
    try await database.runTransaction { transaction in
      try transaction.setData(["code": 7], forDocument: codes.document("new"))
      #expect(try transaction.getDocuments(sevens).documents.map(\.documentID) == ["new"])
    }
    #expect(try await sevens.getDocuments().documents.map(\.documentID) == ["new"])
    #expect(try rowCount(codes) == 1)
    try await auditIndexes(of: codes)
    // An unexpired document may be in the way until the end of the transaction, and no longer.
    let error = await #expect(throws: DatabaseError.self) {
      try await database.runTransaction { transaction in
        try transaction.setData(["code": 7], forDocument: codes.document("third"))
        let found = try transaction.getDocuments(sevens).documents.map(\.documentID)
        #expect(found == ["new", "third"])
      }
    }
    #expect(error?.code == .alreadyExists)
    try await close(database, clock)
  }

  // A document that nobody could see once kept its unique values until it was removed.
  @Test func `An expired document frees its unique values at once`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    let codes = database.collection("codes")
    try await codes.setTimeToLive(field: "at")
    try await codes.createIndex(on: ["code"], unique: true)
    // Not removed in the meantime: the rows of the moments are like those of an unfinished index.
    try await suspendRemoval(codes)
    try await codes.document("old").setData(["at": try moment(2_000_000), "code": 7, "other": 1])
    var changes = codes.snapshots.makeAsyncIterator()
    #expect(try await changes.next()?.count == 1)
    clock.turn(by: 5_000_000)
    try await codes.document("new").create(["code": 7])
    #expect(try await changes.next()?.documents.map(\.documentID) == ["new"])
    #expect(try rowCount(codes) == 1)
    try await auditIndexes(of: codes)
    let error = await #expect(throws: DatabaseError.self) {
      try await codes.document("third").create(["code": 7])
    }
    #expect(error?.code == .alreadyExists)

    try await codes.dropIndex(named: "code unique")
    try await codes.document("again").setData(["at": try moment(7_000_000), "code": 7])
    clock.turn(by: 5_000_000)
    try await resumeRemoval(codes)
    try await codes.createIndex(on: ["code"], unique: true)
    #expect(try rowCount(codes) == 1)
    try await close(database, clock)
  }

  /// Makes the index of the moments unfinished, or ready.
  private func setState(
    _ state: IndexDefinition.State, _ collection: CollectionReference
  ) async throws {
    let pattern = CollectionPattern(try collection.place.get())
    try await collection.database.changeCatalog(of: pattern.root) { edit in
      for var index in edit.family.collections[pattern]?.ends ?? [] {
        index.state = state
        edit.put(index, in: pattern)
      }
    }
  }

  private func suspendRemoval(_ collection: CollectionReference) async throws {
    try await setState(.building(through: nil), collection)
  }

  private func resumeRemoval(_ collection: CollectionReference) async throws {
    try await setState(.ready, collection)
  }

  // Removal once used an index that could be dropped, and then nothing was removed any more.
  @Test func `Removal needs no index that anybody can drop`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    let codes = database.collection("codes")
    try await codes.createIndex(on: ["at"])
    try await codes.setTimeToLive(field: "at")
    try await codes.document("a").setData(["at": try moment(2_000_000)])
    for index in try await codes.listIndexes() { try await codes.dropIndex(named: index.name) }
    #expect(try await codes.listIndexes().isEmpty)
    clock.turn(by: 5_000_000)
    try await waitUntil { try rowCount(codes) == 0 }
    try await codes.setTimeToLive(field: nil)
    let family = try #require(try await database.family("codes"))
    #expect(family.collections.values.allSatisfy { $0.ends.isEmpty })
    try await close(database, clock)
  }

  // A database of an earlier version has the rule but no index of the moments.
  @Test func `An index of the moments that is missing is made when the database is opened`()
    async throws
  {
    let clock = Clock()
    let fileSystem = MemoryFileSystem()
    var database = try await open(clock, fileSystem)
    var codes = database.collection("codes")
    try await codes.setTimeToLive(field: "at")
    try await codes.document("a").setData(["at": try moment(2_000_000)])
    let entry = try await database.family("codes")?.collections.values.first
    let index = try #require(entry?.ends.first)
    try await database.dropIndex(index.keyspace, of: CollectionPattern(["codes"]))
    try await close(database, clock)

    let later = Clock()
    later.turn(by: 5_000_000)
    database = try await open(later, fileSystem)
    codes = database.collection("codes")
    try await waitUntil { try rowCount(codes) == 0 }
    try await close(database, later)
  }

  // Each removal once walked all documents before the expired ones. Now the first to expire comes
  // first, wherever it is, so that a removal needs only the first rows.
  @Test func `The first to expire comes first, whatever it is below`() async throws {
    let clock = Clock()
    let database = try await open(clock)
    try await database.collection("users/u/codes").setTimeToLive(field: "at")
    var random = SeededRandom(seed: 7)
    for user in 0..<60 {
      for code in 0..<2 {
        try await database.document("users/u\(user)/codes/\(code)").setData(
          ["at": try moment(2_000_000 + Int64(random.below(50))), "n": user], durability: .memory)
      }
    }
    try await database.document("users/u1/codes/none").setData(["at": "never"])
    let family = try #require(try await database.family("users"))
    let index = try #require(family.collections.values.lazy.compactMap(\.ends.first).first)
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    var walk = RangeWalk(rows, [KeyRange(prefix: index.keyspace.prefix)])
    var moments: [Timestamp] = []
    while try walk.next() {
      var reader = KeyReader(walk.cursor.key)
      try reader.skip(raw: 4)
      guard case .value(.timestamp(let moment)) = try reader.component() else { continue }
      moments.append(moment)
    }
    #expect(moments.count == 120)
    #expect(moments == moments.sorted())
    clock.turn(by: 1_000_025)
    try await database.removeEnded()
    let left = moments.count { $0.microsecondsSince1970 > clock.now }
    #expect(try rowCount(database.collection("users/u/codes")) == 1 + left)
    try await close(database, clock)
  }
}
