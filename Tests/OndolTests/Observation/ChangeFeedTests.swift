// The change feed: its reports, its possible beginnings, its costs. ChangePropertyTests checks that
// it reports every commit whatever happens.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

@Suite struct ChangeFeedTests {
  private static func open(
    _ fileSystem: SimulatedFileSystem = SimulatedFileSystem(),
    retention: Database.ChangeRetention? = .init(), time: Int64 = 1_000_000_000_000_000
  ) async throws -> Database {
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    var engineOptions = EngineOptions()
    engineOptions.memtableSize = 2 << 10
    engineOptions.logSize = 6 << 10
    engineOptions.firstPrewrittenSize = 4 << 10
    return try await Database.open(
      at: "/db", options: .init(shardCount: 1, clock: { time }, changeRetention: retention),
      environment: world.environment, engineOptions: engineOptions)
  }

  private static func write(
    _ count: Int, from first: Int = 0, _ database: Database
  ) async throws {
    for number in first..<(first + count) {
      try await database.document("c/\(number % 10)").setData(["n": number, "text": "some text"])
    }
  }

  /// Commits in several lives, each of which leaves a log.
  private static func live(
    _ lives: Range<Int>, _ fileSystem: SimulatedFileSystem, retention: Database.ChangeRetention
  ) async throws -> [ChangeToken] {
    var tokens: [ChangeToken] = []
    for life in lives {
      let database = try await open(fileSystem, retention: retention)
      tokens.append(try database.changeToken())
      try await write(10, from: 10 * life, database)
      try await database.close()
    }
    return tokens
  }

  private static func next(
    _ count: Int, _ database: Database, since token: ChangeToken?
  ) async throws -> [DatabaseChange] {
    var changes: [DatabaseChange] = []
    for try await change in database.changes(since: token) {
      changes.append(change)
      if changes.count == count { break }
    }
    return changes
  }

  private static func logBytes(_ fileSystem: SimulatedFileSystem) throws -> UInt64 {
    let directory = try fileSystem.openDirectory(at: "/db", create: false)
    return try directory.list().filter { $0.hasPrefix("LOG-") }.reduce(0) { sum, name in
      try sum + directory.open(name, access: .readOnly).size()
    }
  }

  private static func failure(
    _ database: Database, since token: ChangeToken?
  ) async -> DatabaseError.Code? {
    do throws(DatabaseError) {
      for try await _ in database.changes(since: token) { return nil }
      return nil
    } catch {
      return error.code
    }
  }

  // MARK: - Received changes

  @Test func `A commit comes with its documents before and after it`() async throws {
    let database = try await Self.open()
    let (a, b) = (database.document("c/a"), database.document("c/x/d/b"))
    let start = try database.changeToken()
    try await a.setData(["n": 1, "at": FieldValue.serverTimestamp()])
    let batch = database.batch()
    try batch.updateData(["n": FieldValue.increment(2), "new": "field"], forDocument: a)
    try batch.setData(["m": ["deep": [1, 2]]], forDocument: b)
    try await batch.commit()
    try await a.delete()

    let changes = try await Self.next(3, database, since: start)
    #expect(changes.map(\.version).sorted() == changes.map(\.version))
    #expect(
      changes.map { $0.documents.map(\.type) } == [[.added], [.modified, .added], [.removed]])
    #expect(changes[0].documents[0].after["at"] as Timestamp? == changes[0].time)
    #expect(changes[0].documents[0].after.version == changes[0].version)
    #expect(!changes[0].documents[0].before.exists)
    #expect(changes[1].documents[0].before == changes[0].documents[0].after)
    #expect(changes[1].documents[0].after["n"] as Int? == 3)
    #expect(changes[1].documents[1].reference == b)
    #expect(changes[1].documents[1].after == (try await b.getDocument()))
    #expect(changes[2].documents[0].before == changes[1].documents[0].after)
    #expect(!changes[2].documents[0].after.exists)
    try await database.close()
  }

  @Test func `The feed omits writes that change nothing, and created indexes`()
    async throws
  {
    let database = try await Self.open()
    let start = try database.changeToken()
    try await Self.write(3, database)
    try await database.collection("c").createIndex(on: ["n"])
    try await database.document("c/2").updateData(["n": 2])
    try await database.document("c/9").setData(["n": 9])
    let changes = try await Self.next(4, database, since: start)
    #expect(
      changes.map { $0.documents.map(\.reference.documentID) } == [["0"], ["1"], ["2"], ["9"]])
    try await database.close()
  }

  @Test func `A dropped collection is reported by its name`() async throws {
    let database = try await Self.open()
    try await Self.write(2, database)
    let token = try database.changeToken()
    try await database.collection("c").drop()
    try await database.document("d/1").setData(["n": 1])
    let changes = try await Self.next(2, database, since: token)
    #expect(changes.map(\.droppedCollection) == ["c", nil])
    #expect(changes.map(\.documents.count) == [0, 1])
    await #expect {
      for try await _ in database.collection("c").snapshots(since: token) {}
    } throws: { ($0 as? DatabaseError)?.code == .outOfRange }
    try await database.close()
  }

  @Test func `Changes from before a drop can be read after it`() async throws {
    let database = try await Self.open()
    let start = try database.changeToken()
    try await Self.write(2, database)
    try await database.collection("c").drop()
    let changes = try await Self.next(2, database, since: start)
    #expect(changes[1].documents[0].after["text"] as String? == "some text")
    try await database.close()
  }

  // MARK: - Following

  @Test func `A feed waits for the next commit and ends with the database`() async throws {
    let database = try await Self.open()
    let (told, teller) = AsyncStream.makeStream(of: Int.self)
    let feed = database.changes()
    let task = Task {
      for try await change in feed { teller.yield(change.documents[0].after["n"] ?? -1) }
      teller.finish()
    }
    var iterator = told.makeAsyncIterator()
    for number in 0..<5 {
      try await database.document("c/a").setData(
        ["n": number], durability: number % 2 == 0 ? .memory : .power)
      #expect(await iterator.next() == number)
    }
    try await database.close()
    #expect(await iterator.next() == nil)
    try await task.value
  }

  @Test func `A feed ends when its task is cancelled`() async throws {
    let database = try await Self.open()
    let feed = database.changes()
    let task = Task {
      for try await _ in feed {}
    }
    for _ in 0..<100 { await Task.yield() }
    task.cancel()
    try await task.value
    try await database.close()
  }

  // MARK: - Tokens

  @Test func `A token is text and comes back from it`() async throws {
    let database = try await Self.open()
    try await Self.write(3, database)
    let token = try database.changeToken()
    #expect(ChangeToken(token.description) == token)
    for text in ["", "1-2-3", "1-2-3-4-5", "1-2-3-", "a-b-c-ä", "-1-2-3-4"] {
      #expect(ChangeToken(text) == nil)
    }
    try await database.close()
  }

  @Test func `Changes must be kept to be followed`() async throws {
    let database = try await Self.open(retention: nil)
    try await Self.write(1, database)
    #expect(await Self.failure(database, since: nil) == .failedPrecondition)
    #expect(throws: DatabaseError.self) { try database.changeToken() }
    try await database.close()
  }

  @Test func `The token of another database is refused`() async throws {
    let (one, other) = (
      try await Self.open(),
      try await Database.underTest(
        options: .init(changeRetention: .init()))
    )
    let token = try other.changeToken()
    #expect(await Self.failure(one, since: token) == .invalidArgument)
    try await one.close()
    try await other.close()
  }

  @Test func `Opening without retention ends the history with the first commit`() async throws {
    let fileSystem = SimulatedFileSystem()
    let token = try await Self.live(0..<10, fileSystem, retention: .init())[0]
    let before = try Self.logBytes(fileSystem)

    let second = try await Self.open(fileSystem, retention: nil)
    try await second.close()
    let third = try await Self.open(fileSystem)
    #expect(try await Self.next(100, third, since: token).count == 100)
    try await third.close()

    let fourth = try await Self.open(fileSystem, retention: nil)
    try await Self.write(1, fourth)
    try await fourth.close()
    let after = try Self.logBytes(fileSystem)
    #expect(after < before / 4)

    let fifth = try await Self.open(fileSystem)
    try await Self.write(1, from: 200, fifth)
    let later = try fifth.changeToken()
    try await Self.write(1, from: 201, fifth)
    let failure = await Self.failure(fifth, since: token)
    #expect(failure == .outOfRange)
    #expect(try await Self.next(1, fifth, since: later).count == 1)
    try await fifth.close()
  }

  // MARK: - Trimming

  @Test func `Excess changes are deleted, the oldest first`() async throws {
    let fileSystem = SimulatedFileSystem()
    let limit = 64 << 10
    var tokens: [ChangeToken] = []
    let retention = Database.ChangeRetention(duration: nil, bytes: limit)
    for part in 0..<6 {
      tokens += try await Self.live(
        (10 * part)..<(10 * part + 10), fileSystem, retention: retention)
      #expect(try Self.logBytes(fileSystem) <= UInt64(limit + 8 << 10))
    }
    let database = try await Self.open(fileSystem, retention: retention)
    var found: [DatabaseError.Code?] = []
    for token in tokens { found.append(await Self.failure(database, since: token)) }
    let kept = found.count { $0 == nil }
    // Once one can be followed, all later ones can.
    #expect(
      found == Array(repeating: .outOfRange, count: 60 - kept) + Array(repeating: nil, count: kept))
    #expect((3..<20).contains(kept))
    let changes = try await Self.next(10 * kept, database, since: tokens[60 - kept])
    #expect(changes.last?.documents.first?.after["n"] as Int? == 599)
    try await database.close()
  }

  @Test func `Old changes are deleted`() async throws {
    let fileSystem = SimulatedFileSystem()
    let retention = Database.ChangeRetention(duration: .seconds(3_600), bytes: nil)
    let token = try await Self.live(0..<10, fileSystem, retention: retention)[0]
    let kept = try Self.logBytes(fileSystem)
    let second = try await Self.open(
      fileSystem, retention: retention, time: 1_000_000_000_000_000 + 2 * 3_600_000_000)
    #expect(try await Self.next(100, second, since: token).count == 100)
    try await Self.write(1, from: 100, second)
    try await second.close()
    let left = try Self.logBytes(fileSystem)
    #expect(left < kept / 2)
    let third = try await Self.open(fileSystem, retention: retention)
    let failure = await Self.failure(third, since: token)
    #expect(failure == .outOfRange)
    try await third.close()
  }

  // MARK: - Damage

  @Test func `A damaged or missing log is an error that names it, and the database opens`()
    async throws
  {
    for removes in [false, true] {
      let fileSystem = SimulatedFileSystem()
      let token = try await Self.live(0..<10, fileSystem, retention: .init())[0]
      let directory = try fileSystem.openDirectory(at: "/db", create: false)
      let numbers = try directory.list().compactMap { FileNumber.parse($0, prefix: "LOG-") }
      let name = try #require(numbers.sorted().dropFirst().first).logName
      if removes {
        try directory.remove(name)
      } else {
        let file = try directory.open(name, access: .readWrite)
        let byte = try file.read(at: 4_300, count: 1)[0]
        try file.write([byte ^ 1].bytes, at: 4_300)
      }
      let second = try await Self.open(fileSystem)
      #expect(try await second.document("c/9").getDocument()["n"] as Int? == 99)
      do throws(DatabaseError) {
        for try await _ in second.changes(since: token) {}
      } catch {
        #expect(error.code == (removes ? .notFound : .dataLoss))
        #expect(error.path == name)
      }
      try await second.close()
    }
  }

  @Test func `Records of any other form are refused`() async throws {
    let database = try await Self.open()
    var good: [UInt8] = [1]
    good.append(texts: ["n"])
    for bytes: [UInt8] in [
      [], [0], [3], [1], [2], [2, 0], [2, 2, 1, 97, 1, 98], good, good + [1],
      good + [1, 2, 1, 97, 1, 98, 4], good + [1, 1, 1, 97, 0], good + [0, 0],
      good + [1, 2, 1, 97, 1, 98, 1, 3, 0, 0, 0], good + [255, 255, 255, 255, 15],
    ] {
      #expect(throws: MalformedBytes.self) { try ChangeRecord.read(bytes, in: database) }
    }
    try await database.close()
  }
}
