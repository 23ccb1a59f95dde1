// Groups of writes that a device resends because it got no answer: each is committed once.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct WriteGroupTests {
  /// Adds one to a number, and stores the commit's time.
  private func add(to path: String = "c/a") throws -> ClientWrite {
    ClientWrite(
      path: try DocumentPath(path), .patch([:], mask: []),
      transforms: [
        .init(path: ["n"], .increment(1)), .init(path: ["when"], .serverTimestamp()),
        .init(path: ["tags"], .arrayUnion(["x"])),
      ])
  }

  private func group(_ number: Int64, of stream: String = "s") throws -> WriteGroup {
    try #require(WriteGroup(stream: stream, number: number))
  }

  private func number(in database: Database, at path: String = "c/a") async throws -> Int? {
    try await database.document(path).getDocument()["n"]
  }

  @Test func `A repeated group is answered and not committed`() async throws {
    let database = try await Database.underTest()
    let (write, delete) = (try add(), ClientWrite(path: try DocumentPath("c/b"), .delete))
    let first = try await database.commit([write, delete], as: try group(1))
    let again = try await database.commit([write, delete], as: try group(1))
    #expect(again.time == first.time)
    #expect(again.answers.map(\.transformed) == first.answers.map(\.transformed))
    #expect(again.answers.map(\.updateTime) == first.answers.map(\.updateTime))
    #expect(try await number(in: database) == 1)
    _ = try await database.commit([write], as: try group(1, of: "another"))
    #expect(try await number(in: database) == 2)
  }

  /// A device sends groups without waiting for the answers. The connection broke, the answers to
  /// the last three were lost, and it resends all of them. The server once remembered only the very
  /// last.
  @Test func `All groups whose answers were lost are known`() async throws {
    let database = try await Database.underTest()
    for number in 1...4 { _ = try await database.commit([add()], as: group(Int64(number))) }
    for number in 2...5 { _ = try await database.commit([add()], as: group(Int64(number))) }
    #expect(try await number(in: database) == 5)
  }

  // MARK: - Records that are there already

  /// The record of a stream, as another build or a damaged disk left it.
  private func record(_ names: Value, last: Int64, in database: Database) async throws {
    let records = CollectionReference(
      database: database, place: .success(CollectionPath(unchecked: [WriteStreamRows.root])))
    try await records.document("s").setData([
      WriteStreamRows.Field.group: .integer(last), WriteStreamRows.Field.names: names,
    ])
  }

  private func named(_ number: Int64, _ name: String) throws -> WriteGroup {
    try #require(WriteGroup(stream: "s", number: number, name: name))
  }

  /// Earlier builds wrote the names of a device's groups as an array. A device that has its answer
  /// coming is answered after the server was updated.
  @Test func `Names that an earlier build has written are known`() async throws {
    let database = try await Database.underTest()
    let time = Timestamp(unchecked: 1_000_000)
    try await record(
      .array([
        .array([.string("one"), .timestamp(time)]),
        .array([.string("two"), .null, .integer(5), .string("it is not there")]),
      ]), last: 2, in: database)
    let one = try await database.commit([try add()], as: try named(1, "one"))
    #expect(one.time == time)
    await #expect {
      _ = try await database.commit([add()], as: named(2, "two"))
    } throws: { ($0 as? DatabaseError)?.message == "it is not there" }
    #expect(try await number(in: database) == nil)
    // The next one writes them in the new form.
    _ = try await database.commit([try add()], as: try named(3, "three"))
    #expect(
      try await database.commit([try add()], as: try named(1, "one")).time == time)
    #expect(try await number(in: database) == 1)
  }

  /// Whatever was cut or changed, nothing traps, and no group is committed under a number that is
  /// taken.
  @Test func `Damaged names are no names`() async throws {
    let database = try await Database.underTest()
    _ = try await database.commit([try add()], as: try named(1, "one"))
    let path = try named(1, "one").path
    let row = try await database.document(path).getDocument()
    let whole = try #require(row.data()[WriteStreamRows.Field.names])
    guard case .bytes(let bytes) = whole else {
      Issue.record("the names are no bytes")
      return
    }
    var random = OndolTestKit.SeededRandom(seed: 21)
    for length in 0..<bytes.count {
      var damaged = Array(bytes.prefix(length))
      if let place = damaged.indices.randomElement(using: &random) { damaged[place] ^= 0x55 }
      try await record(.bytes(damaged), last: 1, in: database)
      await #expect(throws: DatabaseError.self) {
        _ = try await database.commit([add()], as: named(1, "other"))
      }
    }
    #expect(try await number(in: database) == 1)
  }

  @Test func `A group that failed may be followed by another with its number`() async throws {
    let database = try await Database.underTest()
    let wrong = ClientWrite(
      path: try DocumentPath("c/missing"), .patch(["x": 1], mask: [["x"]]),
      condition: .exists(true))
    await #expect {
      _ = try await database.commit([wrong], as: group(1))
    } throws: { ($0 as? DatabaseError)?.code == .notFound }
    _ = try await database.commit([try add()], as: try group(1))
    #expect(try await number(in: database) == 1)
  }

  @Test func `Of connections that send the same group at once, one commits it`() async throws {
    let database = try await Database.underTest()
    for round in 1...20 {
      let (write, group) = (try add(), try group(Int64(round)))
      try await withThrowingTaskGroup(of: Timestamp.self) { tasks in
        for _ in 0..<8 { tasks.addTask { try await database.commit([write], as: group).time } }
        var times = Set<Timestamp>()
        for try await time in tasks { times.insert(time) }
        #expect(times.count == 1)
      }
      #expect(try await number(in: database) == round)
    }
  }

  @Test func `It is known after a reopen, and forgotten in time`()
    async throws
  {
    let clock = Guarded<Int64>(1_000_000_000_000_000)
    var environment = Environment.memory()
    environment.now = { clock.withLock { $0 } }
    var database = try await Database.open(at: "/db", environment: environment)
    try await database.prepareForWriteGroups()
    try await database.prepareForWriteGroups()
    _ = try await database.commit([add()], as: group(1))
    try await database.close()

    database = try await Database.open(at: "/db", environment: environment)
    clock.withLock { $0 += 30 * 86_400_000_000 }
    _ = try await database.commit([add()], as: group(1))
    #expect(try await number(in: database) == 1)
    clock.withLock { $0 += 2 * 86_400_000_000 }
    _ = try await database.commit([add()], as: group(1))
    #expect(try await number(in: database) == 2)
    try await database.close()
  }

  @Test func `Apps see nothing of the records`() async throws {
    var options = Database.Options()
    options.changeRetention = Database.ChangeRetention()
    let database = try await Database.underTest(options: options)
    var changes = database.changes().makeAsyncIterator()
    try await database.prepareForWriteGroups()
    _ = try await database.commit([], as: group(1))
    _ = try await database.commit([add()], as: group(2))
    #expect(try await database.readMoment().collectionIDs(below: nil) == ["c"])
    #expect(try await database.declarations().timeToLive.isEmpty)
    #expect(try await changes.next()?.documents.map(\.reference.path) == ["c/a"])
    try await database.document("c/last").setData([:])
    #expect(try await changes.next()?.documents.map(\.reference.path) == ["c/last"])
    #expect(try await database.verify().isEmpty)
  }
}
