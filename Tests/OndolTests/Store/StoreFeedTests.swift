// The change feed of a database on a store: the same commits in the same order for every process,
// kept for the configured time and then forgotten with the same error as in files.
// ChangePropertyTests checks that a returning reader receives everything.

import OndolEngine
import OndolPostgres
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `The change feed on a store` {
  enum Kind: CaseIterable {
    case simulated, postgres
  }

  /// An empty store; each call leads to the same one.
  private func newStore(_ kind: Kind) throws -> DatabaseStore {
    switch kind {
    case .simulated:
      let store = SimulatedStore(seed: 1)
      return DatabaseStore { store }
    case .postgres: return .postgres(try TestedStore.newAddress())
    }
  }

  private func open(
    _ store: DatabaseStore, _ retention: Database.ChangeRetention? = .init(duration: nil)
  ) async throws -> Database {
    try await Database.open(on: store, options: .init(changeRetention: retention))
  }

  private func write(_ numbers: Range<Int>, _ database: Database) async throws {
    for number in numbers {
      try await database.document("c/\(number % 3)").setData(["n": number, "text": "some text"])
    }
  }

  /// The numbers that the next commits after a token have written.
  private func next(
    _ count: Int, _ database: Database, since token: ChangeToken
  ) async throws -> [Int] {
    var numbers: [Int] = []
    for try await change in database.changes(since: token) {
      numbers.append(change.documents.first?.after["n"] ?? -1)
      if numbers.count == count { break }
    }
    return numbers
  }

  private func failure(
    _ database: Database, since token: ChangeToken
  ) async -> DatabaseError.Code? {
    do throws(DatabaseError) {
      var changes = database.changes(since: token).makeAsyncIterator()
      _ = try await changes.poll()
      return nil
    } catch {
      return error.code
    }
  }

  // MARK: - Received changes

  /// Three processes write and follow at once, while requests and answers are lost. Each follower
  /// stops now and then, and resumes from the text of its last token.
  @Test(arguments: Seeds.first(16))
  func `Every process receives every commit once, in one order`(seed: UInt64) throws {
    let (processes, writes) = (3, 20)
    let (told, versions) = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      defer { withExtendedLifetime(world) {} }
      let store = SimulatedStore(seed: seed, environment: world.environment)
      var databases: [Database] = []
      for _ in 0..<processes {
        databases.append(
          try await Database.open(
            at: store.name, options: .init(changeRetention: .init(duration: nil)),
            environment: world.environment, on: store))
      }
      store.faults = StoreFaults(lostRequests: 50, lostAnswers: 50, delay: 3_000)
      let start = try databases[0].changeToken()
      return try await withThrowingTaskGroup(of: (Int?, [DatabaseChange], Set<Version>).self) {
        [databases] tasks in
        for (number, database) in databases.enumerated() {
          tasks.addTask {
            (nil, [], try await Self.write(writes, number, database, seed))
          }
          tasks.addTask {
            (number, try await Self.follow(processes * writes, database, since: start, seed), [])
          }
        }
        var told: [Int: [DatabaseChange]] = [:]
        var versions: Set<Version> = []
        for try await (number, changes, written) in tasks {
          if let number { told[number] = changes }
          versions.formUnion(written)
        }
        store.faults = .none
        for database in databases { try await database.close() }
        return (told, versions)
      }
    }
    let first = try #require(told[0])
    #expect(Set(first.map(\.version)) == versions, "seed \(seed)")
    for changes in told.values {
      #expect(changes.map(\.version) == first.map(\.version), "seed \(seed)")
      #expect(changes.map(\.token) == first.map(\.token), "seed \(seed)")
    }
    var state: [String: Int] = [:]
    for (change, next) in zip(first, first.dropFirst()) {
      #expect(change.version < next.version && change.time < next.time, "seed \(seed)")
    }
    for document in first.flatMap(\.documents) {
      // Each change begins where the one before ended.
      #expect(document.before["n"] as Int? == state[document.reference.path], "seed \(seed)")
      state[document.reference.path] = document.after["n"]
    }
  }

  /// Writes documents that others write as well, and returns the acknowledged versions.
  private static func write(
    _ count: Int, _ writer: Int, _ database: Database, _ seed: UInt64
  ) async throws -> Set<Version> {
    var random = SeededRandom(seed: SeededRandom.derive(seed, writer))
    var versions: Set<Version> = []
    while versions.count < count {
      let document = database.document("c/\(random.below(6))")
      do throws(DatabaseError) {
        let result = try await document.setData(["n": writer * count + versions.count])
        versions.insert(result.version)
      } catch {
        // It has not happened.
        guard error.code == .unavailable else { throw error }
      }
    }
    return versions
  }

  private static func follow(
    _ count: Int, _ database: Database, since start: ChangeToken, _ seed: UInt64
  ) async throws -> [DatabaseChange] {
    var changes: [DatabaseChange] = []
    var token = start
    while changes.count < count {
      // In the form that an app stores.
      token = try #require(ChangeToken(token.description))
      do throws(DatabaseError) {
        for try await change in database.changes(since: token) {
          changes.append(change)
          token = change.token
          if changes.count % 7 == 0 || changes.count == count { break }
        }
      } catch {
        // At its beginning a feed does not wait for a store that does not answer.
        guard error.code == .unavailable else { throw error }
      }
    }
    return changes
  }

  @Test(arguments: Kind.allCases)
  func `A feed continues in another process, after a token of any`(_ kind: Kind) async throws {
    let store = try newStore(kind)
    let first = try await open(store)
    let start = try first.changeToken()
    try await write(0..<4, first)
    let second = try await open(store)
    try await write(4..<8, second)
    // Before the first one has received it.
    let middle = try second.changeToken()
    #expect(try await next(8, first, since: start) == Array(0..<8))
    try await write(8..<10, second)
    #expect(try await next(2, first, since: middle) == [8, 9])
    #expect(try await next(10, second, since: start) == Array(0..<10))
    for database in [first, second] { try await database.close() }
    let third = try await open(store)
    #expect(try await next(10, third, since: start) == Array(0..<10))
    #expect(try await next(2, third, since: middle) == [8, 9])
    try await third.close()
  }

  @Test(arguments: Kind.allCases)
  func `A waiting feed wakes on another process's commit`(_ kind: Kind) async throws {
    let store = try newStore(kind)
    let databases = [try await open(store), try await open(store)]
    let feed = databases[0].changes()
    let task = Task {
      var numbers: [Int] = []
      for try await change in feed {
        numbers.append(change.documents[0].after["n"] ?? -1)
        if numbers.count == 6 { break }
      }
      return numbers
    }
    try await write(0..<6, databases[1])
    #expect(try await task.value == Array(0..<6))
    for database in databases { try await database.close() }
  }

  @Test(arguments: Kind.allCases)
  func `Results come with the changes since a token`(_ kind: Kind) async throws {
    let store = try newStore(kind)
    let first = try await open(store)
    try await write(0..<3, first)
    let token = try first.changeToken()
    try await first.close()
    let other = try await open(store)
    try await other.document("c/1").setData(["n": 100])
    try await other.document("c/2").delete()
    try await other.close()
    let second = try await open(store)
    var snapshots = second.collection("c").snapshots(since: token).makeAsyncIterator()
    let snapshot = try #require(try await snapshots.next())
    #expect(Set(snapshot.documentChanges.map(\.document.documentID)) == ["1", "2"])
    #expect(snapshot.documents.map(\.documentID) == ["0", "1"])
    #expect(snapshot.changeToken != nil)
    try await second.close()
  }

  // MARK: - Deleted changes

  @Test(arguments: Kind.allCases)
  func `Excess changes are deleted, the oldest first`(_ kind: Kind) async throws {
    let store = try newStore(kind)
    let database = try await open(store, .init(duration: nil, bytes: 4_000))
    var tokens: [ChangeToken] = []
    for number in 0..<60 {
      tokens.append(try database.changeToken())
      try await write(number..<(number + 1), database)
    }
    await database.engine.forgetVersions()
    var found: [DatabaseError.Code?] = []
    for token in tokens { found.append(await failure(database, since: token)) }
    let kept = found.count { $0 == nil }
    // Once one can be followed, all later ones can.
    #expect(
      found == Array(repeating: .outOfRange, count: 60 - kept) + Array(repeating: nil, count: kept))
    #expect((8..<40).contains(kept))
    #expect(try await next(kept, database, since: tokens[60 - kept]) == Array((60 - kept)..<60))
    try await database.close()
  }

  @Test(arguments: Kind.allCases)
  func `Old changes are deleted, except for the newest`(_ kind: Kind) async throws {
    let store = try newStore(kind)
    let patient = try await open(store, .init(duration: .seconds(3_600), bytes: nil))
    let start = try patient.changeToken()
    try await write(0..<5, patient)
    let newest = try patient.changeToken()
    await patient.engine.forgetVersions()
    #expect(try await next(5, patient, since: start) == Array(0..<5))
    let database = try await open(store, .init(duration: .zero, bytes: nil))
    await database.engine.forgetVersions()
    #expect(await failure(database, since: start) == .outOfRange)
    #expect(await failure(database, since: newest) == nil)
    try await write(5..<6, database)
    #expect(try await next(1, database, since: newest) == [5])
    for database in [database, patient] { try await database.close() }
  }

  @Test(arguments: Kind.allCases)
  func `A commit of a process that keeps nothing ends the history`(_ kind: Kind) async throws {
    let store = try newStore(kind)
    let keeper = try await open(store)
    let start = try keeper.changeToken()
    try await write(0..<3, keeper)
    let before = try keeper.changeToken()
    let other = try await open(store, nil)
    #expect(throws: DatabaseError.self) { try other.changeToken() }
    // It is not a commit, so it ends nothing.
    try await other.refresh()
    #expect(try await next(3, keeper, since: start) == [0, 1, 2])
    try await write(3..<4, other)
    try await keeper.refresh()
    let between = try keeper.changeToken()
    #expect(await failure(keeper, since: between) == nil)
    #expect(await failure(keeper, since: before) == .outOfRange)
    try await write(4..<6, keeper)
    #expect(try await next(2, keeper, since: between) == [4, 5])
    #expect(await failure(keeper, since: before) == .outOfRange)
    // The feed reports the commits before the gap, and then that it cannot continue.
    var changes = keeper.changes(since: start).makeAsyncIterator()
    for number in 0..<3 {
      #expect(try await changes.next()?.documents.first?.after["n"] as Int? == number)
    }
    await #expect {
      try await changes.next()
    } throws: { ($0 as? DatabaseError)?.code == .outOfRange }
    for database in [keeper, other] { try await database.close() }
  }

  @Test(arguments: Kind.allCases)
  func `A program that is not the app keeps what the app keeps, and nothing else`(
    _ kind: Kind
  ) async throws {
    var options = Database.Options()
    options.continuesChanges = true
    let store = try newStore(kind)
    // If no history is configured, it keeps none.
    let early = try await Database.open(on: store, options: options)
    try await write(0..<1, early)
    #expect(!early.keepsChanges)
    try await early.close()
    let app = try await open(store)
    try await write(1..<2, app)
    let start = try app.changeToken()
    let tool = try await Database.open(on: store, options: options)
    try await write(2..<4, tool)
    await tool.engine.forgetVersions()
    #expect(try await next(2, app, since: start) == [2, 3])
    #expect(try await next(2, tool, since: start) == [2, 3])
    #expect(
      try await tool.newestKeptChanges(among: 2, atMost: 9) { $0.documents.first?.after["n"] }
        == [2, 3])
    for database in [app, tool] { try await database.close() }
  }

  @Test func `The token of a commit that the store has lost is refused`() async throws {
    let store = SimulatedStore(seed: 1)
    let first = try await open(DatabaseStore { store })
    try await write(0..<3, first)
    let token = try first.changeToken()
    store.loseNewest(1)
    try? await first.close()
    let second = try await open(DatabaseStore { store })
    #expect(await failure(second, since: token) == .outOfRange)
    // Another commit has its number.
    try await write(7..<9, second)
    #expect(await failure(second, since: token) == .outOfRange)
    try await second.close()
  }

  /// Contents in a change stay as long as the change.
  @Test func `Bytes stay for as long as a change shows them`() async throws {
    let world = SimulatedWorld(seed: 1)
    let store = SimulatedStore(seed: 1, environment: world.environment)
    for bytes in [nil, 0] as [Int?] {
      var options = Database.Options(changeRetention: .init(duration: nil, bytes: bytes))
      options.blobGracePeriod = .zero
      let database = try await Database.open(
        at: store.name, options: options, environment: world.environment, on: store)
      let photo = database.storage.reference(withPath: "photo")
      try await photo.putData([1, 2, 3])
      let token = try database.changeToken()
      try await photo.delete()
      // Not the existing one: that would not be a commit, and history keeps the newest.
      let number = bytes == nil ? 0 : 3
      try await write(number..<(number + 1), database)
      world.pass(seconds: 60)
      await database.engine.forgetVersions()
      try await database.storage.reclaim()
      let contents = try await database.storage.statistics().contents
      #expect(contents == (bytes == nil ? 1 : 0), "\(String(describing: bytes))")
      if bytes == nil {
        var changes = database.changes(since: token).makeAsyncIterator()
        #expect(try await changes.next()?.objects.first?.before?.path == "photo")
      }
      try await database.close()
    }
  }
}
