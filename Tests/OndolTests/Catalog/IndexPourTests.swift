// Indexes whose rows are poured while documents are written, flushed and merged. Afterwards they
// have the rows of the documents, and they still do after everything has been merged and reopened.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite("Indexes that are poured")
struct IndexPourTests {
  private static func options(_ random: inout SeededRandom) -> EngineOptions {
    var options = EngineOptions()
    options.smallestPour = 1
    options.shardCount = random.pick([1, 2])
    options.memtableSize = random.pick([2 << 10, 8 << 10, 64 << 10])
    options.segmentSize = random.pick([4 << 10, 64 << 10])
    options.blockSize = random.pick([256, 1_024])
    options.smallShardSize = random.pick([0, 8 << 10, 256 << 10])
    options.runLimit = random.pick([1, 2, 8])
    return options
  }

  /// A tombstone that a flush or a merge leaves out before the row that it hides is in place would
  /// let that row come back.
  @Test(arguments: Seeds.first(12))
  func `Beside writes, flushes and merges they have the rows of the documents`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let environment = Environment.memory()
    let options = Self.options(&random)
    var database = try await Database.open(
      at: "/d", environment: environment, engineOptions: options)
    let path = random.pick(["items", "users/a/items"])
    try await fill(database.collection(path), random.pick([0, 3, 400]), &random)
    if random.below(2) == 0 { try await database.engine.flush() }
    try await withThrowingTaskGroup(of: Void.self) { [database] group in
      let isDone = Guarded(false)
      let items = database.collection(path)
      for number in 0..<2 {
        var random = SeededRandom(seed: SeededRandom.derive(seed, number))
        group.addTask {
          while !isDone.withLock({ $0 }) { try await Self.change(items, &random) }
        }
      }
      try await items.createIndex(on: ["n", "-s"])
      try await items.createIndex(on: ["t[]", "-n"])
      try await items.createIndex(on: ["s"], where: .whereField("n", isGreaterThan: 3))
      try await database.collectionGroup("items").createIndex(on: ["-n"])
      isDone.withLock { $0 = true }
      try await group.waitForAll()
    }
    try await auditIndexes(of: database.collection(path), seed: seed)
    try await database.compact()
    try await auditIndexes(of: database.collection(path), seed: seed)
    try await database.close()
    database = try await Database.open(at: "/d", environment: environment, engineOptions: options)
    try await auditIndexes(of: database.collection(path), seed: seed)
    #expect(try await database.verify().isEmpty, "seed \(seed)")
    try await database.close()
  }

  @Test func `Many documents are poured in parts, without omissions`() async throws {
    var options = EngineOptions()
    options.smallestPour = 100
    let database = try await Database.open(
      at: "/d", environment: .memory(), engineOptions: options)
    let items = database.collection("items")
    var random = SeededRandom(seed: 7)
    try await fill(items, 20_000, &random)
    try await database.engine.flush()
    let told = Guarded<[IndexProgress]>([])
    let sequence = try database.engineSnapshot().sequence
    try await items.createIndex(on: ["n", "-s"]) { progress in told.withLock { $0.append(progress) }
    }
    // They are poured at once, so there is one commit for that, in addition to those of the
    // catalog.
    #expect(try database.engineSnapshot().sequence.rawValue - sequence.rawValue < 8)
    #expect(told.withLock { $0.last?.documents } == 20_000)
    #expect(try await items.listIndexes().map(\.entries).first.map { $0 > 15_000 } == true)
    try await auditIndexes(of: items)
    let found = try await items.whereField("n", isEqualTo: 5).count.getAggregation().count
    let all = try await items.getDocuments().documents.filter { $0["n"] as Int? == 5 }
    #expect(found == all.count && found > 0)
    try await database.close()
  }

  @Test func `A task that is cancelled, and a database that is closed, end a pour`() async throws {
    for closes in [false, true] {
      var options = EngineOptions()
      options.smallestPour = 1
      let environment = Environment.memory()
      var database = try await Database.open(
        at: "/d", environment: environment, engineOptions: options)
      var random = SeededRandom(seed: 3)
      try await fill(database.collection("items"), 3_000, &random)
      let building = Task { [database] in
        try await database.collection("items").createIndex(on: ["s"])
      }
      await Task.yield()
      if closes { try await database.close() } else { building.cancel() }
      _ = await building.result
      try await database.close()
      database = try await Database.open(at: "/d", environment: environment, engineOptions: options)
      try await database.collection("items").createIndex(on: ["s"])
      try await auditIndexes(of: database.collection("items"))
      #expect(try await database.verify().isEmpty)
      try await database.close()
    }
  }

  private func fill(
    _ items: CollectionReference, _ count: Int, _ random: inout SeededRandom
  ) async throws {
    for start in stride(from: 0, to: count, by: 500) {
      let batch = items.database.batch()
      for number in start..<min(count, start + 500) {
        try batch.setData(Self.fields(&random), forDocument: items.document("d\(number)"))
      }
      try await batch.commit(durability: .process)
    }
  }

  private static func change(
    _ items: CollectionReference, _ random: inout SeededRandom
  ) async throws {
    let document = items.document("d\(random.below(420))")
    switch random.below(12) {
    case 0: try await items.database.engine.flush()
    case 1...4: try await document.delete(durability: .process)
    default: try await document.setData(fields(&random), durability: .process)
    }
  }

  private static func fields(_ random: inout SeededRandom) -> [String: any FieldConvertible] {
    var fields: [String: any FieldConvertible] = [
      "s": "text \(random.below(30))",
      "t": (0..<random.below(4)).map { _ in random.element(below: 5) },
    ]
    if random.below(5) > 0 { fields["n"] = random.number(below: 9) }
    return fields
  }
}
