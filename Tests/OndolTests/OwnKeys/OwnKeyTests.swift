// Collections with keys of their own: how they are created, and that they behave like all other
// collections. ErasureTests checks what remains after a drop.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

/// Returns the error of a call; nil if there is none.
func thrown(_ body: () async throws -> Void) async -> DatabaseError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? DatabaseError
  }
}

@Suite struct OwnKeyTests {
  // MARK: - Creation

  @Test func `A collection gets a key of its own when it is made, and keeps it`() async throws {
    let place = EncryptedPlace()
    var database = try await place.open()
    let records = database.collection("records")
    #expect(try await !records.hasOwnKey())
    try await records.createWithOwnKey()
    #expect(try await records.hasOwnKey())
    #expect(try await records.document("a").collection("notes").hasOwnKey())
    #expect(try await !database.collection("others").hasOwnKey())
    try await records.document("a").setData(["n": 1])
    try await database.document("others/a").setData(["n": 2])
    try await database.close()
    database = try await place.open()
    #expect(try await database.collection("records").hasOwnKey())
    #expect(try await database.document("records/a").getDocument()["n"] as Int? == 1)
    #expect(try await database.listCollections().map(\.path) == ["others", "records"])
    let listed = try await database.collectionInformation()
    #expect(listed.map(\.hasOwnKey) == [false, true] && listed.allSatisfy { !$0.isLocked })
    let contents = try await database.contents().collections
    #expect(contents.map(\.ownKey) == [nil, .present])
    try await database.close()
  }

  @Test func `A collection that cannot have a key of its own is refused with the reason`()
    async throws
  {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.document("there/a").setData(["n": 1])
    let there = await thrown { try await database.collection("there").createWithOwnKey() }
    #expect(there?.code == .alreadyExists && there?.path == "there")
    try await database.document("there/a").delete()
    // It was written once, and its number is not another's.
    let empty = await thrown { try await database.collection("there").createWithOwnKey() }
    #expect(empty?.code == .alreadyExists)
    try await database.collection("there").drop(includingDeclarations: true)
    try await database.collection("there").createWithOwnKey()
    let again = await thrown { try await database.collection("there").createWithOwnKey() }
    #expect(again?.code == .alreadyExists)
    let below = await thrown { try await database.collection("a/b/c").createWithOwnKey() }
    #expect(below?.code == .invalidArgument && below?.suggestion?.contains("'a'") == true)
    let reserved = await thrown { try await database.collection("__x__").createWithOwnKey() }
    #expect(reserved?.code == .invalidArgument)
    let inside = await thrown {
      try await database.runTransaction { _ in
        try await database.collection("t").createWithOwnKey()
      }
    }
    #expect(inside?.code == .failedPrecondition)
    let reader = try await place.open(access: .readOnly)
    let reading = await thrown { try await reader.collection("r").createWithOwnKey() }
    #expect(reading?.code == .failedPrecondition)
    try await reader.close()
    try await database.close()

    let clear = try await EncryptedPlace().open(nil)
    let refused = await thrown { try await clear.collection("c").createWithOwnKey() }
    #expect(refused?.code == .failedPrecondition && refused?.message.contains("encrypted") == true)
    try await clear.close()
  }

  @Test func `Thirty-two have one at a time, and a dropped one makes room`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    for number in 0..<32 {
      try await database.collection("c\(number)").createWithOwnKey()
      try await database.document("c\(number)/a").setData(["n": number])
    }
    let refused = await thrown { try await database.collection("more").createWithOwnKey() }
    #expect(refused?.code == .resourceExhausted)
    try await database.collection("c7").drop(includingDeclarations: true)
    try await database.collection("more").createWithOwnKey()
    try await database.engine.flush()
    for number in 0..<32 where number != 7 {
      #expect(try await database.document("c\(number)/a").getDocument()["n"] as Int? == number)
    }
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()
  }

  /// A late caller once made a key all the same, which no collection had until the next one came.
  @Test func `Many at once get different keys, and one name gets one`() async throws {
    let database = try await EncryptedPlace().open()
    // All of them have begun before the first one gets its turn.
    try await database.latches.acquire(.ownKeys)
    let made = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<12 {
        group.addTask {
          await thrown { try await database.collection("c\(number % 4)").createWithOwnKey() } == nil
        }
      }
      for _ in 0..<100 { await Task.yield() }
      database.latches.release(.ownKeys)
      return await group.reduce(into: 0) { count, isMade in count += isMade ? 1 : 0 }
    }
    #expect(made == 4)
    #expect(database.engine.keyedGroups.count == 4)
    let families = try await database.families().filter(\.hasOwnKey)
    #expect(Set(families.map(\.row.number)).count == 4)
    try await database.close()
  }

  /// The key is on the device before there is a collection, and one that a crash left is used.
  @Test func `A power cut while one is made leaves all of it or nothing`() async throws {
    let start = EncryptedPlace()
    let database = try await start.open()
    try await database.document("plain/a").setData(["n": 1])
    try await database.close()
    var (withs, withouts, spares) = (0, 0, 0)
    for operation in 0... {
      let fileSystem = SimulatedFileSystem(storage: start.fileSystem.storage)
      var place = EncryptedPlace(fileSystem)
      place.seed = UInt64(operation)
      let open = try await place.open()
      fileSystem.cutPower(before: fileSystem.operations + operation)
      let error = await thrown { try await open.collection("keyed").createWithOwnKey() }
      let hadPower = fileSystem.hasPower
      try? await open.close()
      let left = EncryptedPlace(
        SimulatedFileSystem(storage: fileSystem.storage.afterPowerCut(seed: place.seed)))
      let again = try await left.open()
      let keyed = again.collection("keyed")
      let isThere = try await keyed.hasOwnKey()
      #expect(error != nil || isThere, "before operation \(operation)")
      if isThere { withs += 1 } else { withouts += 1 }
      if !isThere, !again.engine.keyedGroups.isEmpty { spares += 1 }
      if !isThere { try await keyed.createWithOwnKey() }
      #expect(again.engine.keyedGroups.count == 1, "before operation \(operation)")
      try await keyed.document("a").setData(["n": 2])
      #expect(try await again.document("plain/a").getDocument()["n"] as Int? == 1)
      try await again.close()
      if hadPower { break }
    }
    #expect(withs > 0 && withouts > 0 && spares > 0, "\(withs), \(withouts), \(spares)")
  }

  // MARK: - Same behavior as other collections

  /// The same operations on two collections have the same results.
  @Test(arguments: Seeds.first(3))
  func `It answers as one without a key of its own`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    var place = EncryptedPlace()
    place.seed = seed
    var database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    for life in 0..<3 {
      for collection in [database.collection("keyed"), database.collection("plain")] {
        if life == 0 {
          try await collection.createIndex(on: ["kind", "-n"])
          try await collection.createIndex(on: ["email"], unique: true)
          try await collection.setTimeToLive(field: "end")
        }
        if life == 1 { try await collection.createSearchIndex(on: ["text"]) }
        if life == 2 { try await collection.createIndex(on: ["tags[]"]) }
      }
      for _ in 0..<60 { try await step(&random, database) }
      try await compare(database, hasWords: life > 0, "SEED=\(seed), life \(life)")
      if life == 1 { try await database.engine.flush() }
      if random.below(2) == 0 { try await database.engine.compact() }
      try await database.close()
      database = try await place.open()
      try await compare(database, hasWords: life > 0, "SEED=\(seed), behind life \(life)")
    }
    #expect(try await database.verify(depth: .full) == [], "SEED=\(seed)")
    try await database.close()
  }

  private func step(_ random: inout SeededRandom, _ database: Database) async throws {
    let id = "d\(random.below(40))"
    let fields: [String: Value] = [
      "kind": .string("k\(random.below(4))"), "n": random.number(below: 20),
      "email": .string("m\(random.below(60))"), "text": .string("lamp \(random.below(9)) wood"),
      "tags": .array([random.element(below: 5), .integer(9)]),
    ]
    let kind = random.below(6)
    let blob = kind == 4 ? try await database.storage.put(random.bytes(300)) : nil
    var failures: [DatabaseError.Code?] = []
    for name in ["keyed", "plain"] {
      let collection = database.collection(name)
      let error = await thrown {
        switch kind {
        case 0: try await collection.document(id).delete()
        case 1: try await collection.document(id).updateData(["n": FieldValue.increment(1)])
        case 2:
          try await database.runTransaction { transaction in
            let found = try transaction.getDocuments(collection.whereField("kind", isEqualTo: "k1"))
            try transaction.setData(
              ["kind": "k2", "n": found.count], forDocument: collection.document(id))
          }
        case 3:
          try await collection.document(id).collection("below").document("x").setData(fields)
        case 4: try await collection.document(id).setData(["blob": blob, "n": 3])
        default: try await collection.document(id).setData(fields)
        }
      }
      failures.append(error?.code)
    }
    #expect(failures[0] == failures[1])
  }

  private func compare(
    _ database: Database, hasWords: Bool, _ when: String
  ) async throws {
    var answers: [[String]] = []
    for name in ["keyed", "plain"] {
      let collection = database.collection(name)
      func ids(_ query: Query) async throws -> String {
        try await query.getDocuments().documents.map { "\($0.documentID) \($0.data().count)" }
          .joined(separator: ",")
      }
      var found: [String] = []
      found.append(try await ids(collection.order(by: "n")))
      found.append(
        try await ids(
          collection.whereField("kind", isEqualTo: "k1").order(by: "n", descending: true)))
      found.append(try await ids(collection.whereField("email", isEqualTo: "m7").query))
      found.append(try await ids(collection.whereField("tags", arrayContains: 3).query))
      let counted = try await collection.whereField("n", isGreaterThan: 9).count.getAggregation()
      found.append("\(counted.count)")
      if hasWords {
        let matches = try await collection.query.search("lamp", in: "text").count()
        found.append("\(matches)")
      }
      for document in try await collection.whereField("n", isEqualTo: 3).getDocuments().documents {
        guard let blob = document["blob"] as BlobReference? else { continue }
        found.append("\(try await database.storage.data(of: blob).count)")
      }
      answers.append(found)
    }
    #expect(answers[0] == answers[1], "\(when)")
    let group = try await database.collectionGroup("below").getDocuments().documents
    let halves = Dictionary(grouping: group) { $0.reference.path.hasPrefix("keyed/") }
    #expect(halves[true]?.count == halves[false]?.count, "\(when)")
  }

  @Test func `Listeners to it work like all others`() async throws {
    let database = try await EncryptedPlace().open()
    let keyed = database.collection("keyed")
    var before = keyed.snapshots.makeAsyncIterator()
    #expect(try await before.next()?.count == 0)
    try await keyed.createWithOwnKey()
    try await keyed.document("a").setData(["n": 1])
    while let next = try await before.next(), next.count != 1 {}
    var items = keyed.whereField("n", isGreaterThan: 5).snapshots.makeAsyncIterator()
    #expect(try await items.next()?.count == 0)
    try await keyed.document("b").setData(["n": 7])
    let told = try await items.next()
    #expect(told?.documents.map(\.documentID) == ["b"])
    try await keyed.drop()
    while let next = try await items.next(), next.count != 0 {}
    try await database.close()
  }

  @Test func `Another name leaves it its key`() async throws {
    let place = EncryptedPlace()
    var database = try await place.open()
    try await database.collection("old").createWithOwnKey()
    try await database.document("old/a").setData(["n": 1])
    try await database.collection("other").createWithOwnKey()
    let group = try await database.family("old")?.row.number
    try await database.rename(CollectionRenaming(.init(["old"]), .init(["new"])))
    #expect(try await database.collection("new").hasOwnKey())
    #expect(try await !database.collection("old").hasOwnKey())
    #expect(try await database.family("new")?.row.number == group)
    // One with a key is in the way, whether it has documents or not.
    let error = await thrown {
      try await database.rename(CollectionRenaming(.init(["new"]), .init(["other"])))
    }
    #expect(error?.code == .alreadyExists)
    try await database.close()
    database = try await place.open()
    #expect(try await database.document("new/a").getDocument()["n"] as Int? == 1)
    try await database.collection("new").drop(includingDeclarations: true)
    #expect(try await !database.collection("new").hasOwnKey())
    #expect(database.engine.keyedGroups.count == 1)
    try await database.close()
  }

  // MARK: - Keys of the database

  @Test func `Rekeying gives it another key, and old keys open nothing new`() async throws {
    let place = EncryptedPlace()
    var database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    for number in 0..<80 { try await database.document("keyed/\(number)").setData(["n": number]) }
    let before = try place.files()
    try await database.rekey(with: [EncryptedPlace.otherKey])
    for number in 80..<99 { try await database.document("keyed/\(number)").setData(["n": number]) }
    #expect(try await database.collection("keyed").getDocuments().count == 99)
    try await database.close()
    database = try await place.open(EncryptedPlace.otherKey)
    #expect(try await database.collection("keyed").getDocuments().count == 99)
    #expect(try await database.verify(depth: .full) == [])
    try await database.close()

    // The old keys, which an attacker has kept, beside the new files.
    let old = EncryptedPlace(SimulatedFileSystem(storage: place.fileSystem.storage))
    for name in ["SUPER", "KEYS"] {
      let bytes = try #require(before.first { $0.name == name }).bytes
      try old.directory().open(name, access: .readWrite).write(bytes.bytes, at: 0)
    }
    #expect(await old.code(EncryptedPlace.key) != nil)
    // The old file of keys beside everything else that is new.
    let mixed = EncryptedPlace(SimulatedFileSystem(storage: place.fileSystem.storage))
    let bytes = try #require(before.first { $0.name == "KEYS" }).bytes
    try mixed.directory().open("KEYS", access: .readWrite).write(bytes.bytes, at: 0)
    let error = await thrown {
      let database = try await mixed.open(EncryptedPlace.otherKey)
      _ = try await database.collection("keyed").getDocuments()
    }
    #expect(error != nil)
  }

  @Test func `A database with such collections is not decrypted`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.collection("keyed").createWithOwnKey()
    let error = await thrown { try await database.decrypt() }
    #expect(error?.code == .failedPrecondition && error?.message.contains("keyed") == true)
    try await database.collection("keyed").drop(includingDeclarations: true)
    // A crash would leave such an unused one.
    _ = try await database.engine.makeKeyedGroup()
    try await database.decrypt()
    #expect(!database.isEncrypted)
    try await database.close()
    try await place.open(nil).close()
  }

  // MARK: - Two processes

  @Test func `A reader beside the writer sees new ones and drops`() async throws {
    let place = EncryptedPlace()
    let database = try await place.open()
    try await database.document("plain/a").setData(["n": 1])
    let reader = try await place.open(access: .readOnly)
    #expect(try await reader.collection("keyed").getDocuments().isEmpty)
    try await database.collection("keyed").createWithOwnKey()
    for number in 0..<40 { try await database.document("keyed/\(number)").setData(["n": number]) }
    try await reader.refresh()
    #expect(try await reader.collection("keyed").hasOwnKey())
    #expect(try await reader.collection("keyed").getDocuments().count == 40)
    try await database.engine.flush()
    try await database.collection("second").createWithOwnKey()
    try await database.document("second/a").setData(["n": 1])
    try await reader.refresh()
    #expect(try await reader.collection("keyed").getDocuments().count == 40)
    #expect(try await reader.collection("second").getDocuments().count == 1)
    try await database.collection("keyed").drop(includingDeclarations: true)
    try await reader.refresh()
    #expect(try await reader.collection("keyed").getDocuments().isEmpty)
    #expect(try await reader.collection("second").getDocuments().count == 1)
    try await reader.close()
    let late = try await place.open(access: .readOnly)
    #expect(try await late.collection("second").getDocuments().count == 1)
    try await late.close()
    try await database.close()
  }
}
