// What the change feed reports of collections with keys of their own: everything of every commit
// while the keys exist, and for a commit over several collections the rest after one is erased.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

@Suite struct OwnKeyFeedTests {
  private static func changes(
    _ database: Database, since token: ChangeToken
  ) async throws -> [DatabaseChange] {
    var iterator = database.changes(since: token).makeAsyncIterator()
    var changes: [DatabaseChange] = []
    while let change = try await iterator.poll() { changes.append(change) }
    return changes
  }

  private static func describe(_ changes: [DatabaseChange]) -> [String] {
    changes.map { change in
      change.documents.map { document in
        let before = document.before["n"] as Int?
        let after = document.after["n"] as Int?
        return "\(document.reference.path) \(before ?? -1) \(after ?? -1)"
      }.joined(separator: ", ")
        + (change.droppedCollection.map { "dropped \($0)" } ?? "")
    }
  }

  /// Commits over two collections with keys and one without, in the order of their first writes.
  private static func write(
    _ database: Database, _ random: inout SeededRandom, rounds: Int
  ) async throws -> [[String]] {
    var values: [String: Int] = [:]
    var commits: [[String]] = []
    for round in 0..<rounds {
      var paths: [String] = []
      for _ in 0..<(1 + random.below(6)) {
        let name = random.pick(["keyed", "second", "plain", "also"])
        let path = "\(name)/\(random.below(9))"
        if !paths.contains(path) { paths.append(path) }
      }
      let batch = database.batch()
      for path in paths {
        try batch.setData(["n": round], forDocument: database.document(path))
      }
      try await batch.commit()
      commits.append(
        paths.map { path in
          defer { values[path] = round }
          return "\(path) \(values[path] ?? -1) \(round)"
        })
    }
    return commits
  }

  @Test(arguments: Seeds.first(4))
  func `Every commit comes in the order of its writes, and its rest after a drop`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    var place = EncryptedPlace()
    place.seed = seed
    var database = try await place.open()
    for name in ["keyed", "second"] { try await database.collection(name).createWithOwnKey() }
    let token = try database.changeToken()
    var expected = try await Self.write(database, &random, rounds: 25)
    #expect(
      try await Self.describe(Self.changes(database, since: token))
        == expected.map { $0.joined(separator: ", ") }, "SEED=\(seed)")
    if random.below(2) == 0 { try await database.engine.flush() }
    try await database.close()
    database = try await place.open()
    #expect(
      try await Self.describe(Self.changes(database, since: token))
        == expected.map { $0.joined(separator: ", ") }, "SEED=\(seed), opened again")

    try await database.collection("keyed").drop(includingDeclarations: true)
    expected = expected.map { $0.filter { !$0.hasPrefix("keyed/") } }
    // A commit of nothing else is no longer a change.
    let left = expected.filter { !$0.isEmpty }.map { $0.joined(separator: ", ") }
    // An open of the database has the key in memory, and may still receive it.
    try await database.close()
    database = try await place.open()
    let told = try await Self.describe(Self.changes(database, since: token))
    #expect(told == left + ["dropped keyed"], "SEED=\(seed)")
    let reader = try await place.open(access: .readOnly)
    #expect(
      try await Self.describe(Self.changes(reader, since: token)) == left + ["dropped keyed"])
    try await reader.close()
    try await database.close()
  }

  @Test func `Without the keys only the others' part is reported`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    let token = try database.changeToken()
    try await database.document("keyed/a").setData(["n": 1])
    let batch = database.batch()
    try batch.setData(["n": 2], forDocument: database.document("keyed/a"))
    try batch.setData(["n": 2], forDocument: database.document("plain/a"))
    try await batch.commit()
    try await database.close()
    try place.directory().remove("KEYS")
    let locked = try await place.open()
    #expect(try await Self.describe(Self.changes(locked, since: token)) == ["plain/a -1 2"])
    try await locked.close()
  }

  @Test func `Records with places that cannot be are refused`() async throws {
    let database = try await Database.underTest()
    for bytes in [[4, 0, 1], [4, 0, 2, 3, 3], [4, 0, 1, 0xff], [5], [4, 0, 0, 0]] as [[UInt8]] {
      #expect(throws: MalformedBytes.self) { try ChangeRecord.read(bytes, in: database) }
    }
    try await database.close()
  }
}
