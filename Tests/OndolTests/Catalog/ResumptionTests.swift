// Indexes that an earlier life left unfinished. They are finished in the background, beside reads,
// writes and closing, in orders that a seed decides.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ResumptionTests {
  private static let documents = 700
  private static let pattern = CollectionPattern(["items"])

  /// Leaves a database with an index that is declared but empty.
  private static func leaveUnfinished(
    _ world: SimulatedWorld, _ kinds: [IndexKind] = [IndexKind([IndexField(["n"])])]
  ) async throws {
    let database = try await Database.open(at: "/db", environment: world.environment)
    let batch = database.batch()
    for number in 0..<documents {
      try batch.setData(["n": number % 7], forDocument: database.document("items/\(number)"))
    }
    try await batch.commit()
    for kind in kinds {
      _ = try await database.changeCatalog(of: "items") { (edit) throws(DatabaseError) in
        try edit.declareIndex(kind, of: pattern)
      }
    }
    try await database.close()
  }

  /// The observations of an index until it was ready: explanations of a query, and its progress.
  private static func buildBesideWrites(
    seed: UInt64
  ) throws -> (plans: Int, progress: Set<Int>) {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      try await leaveUnfinished(world)
      let database = try await Database.open(at: "/db", environment: world.environment)
      let items = database.collection("items")
      let query = items.whereField("n", isEqualTo: 3)
      var expected = (0..<documents).count { $0 % 7 == 3 }
      var plans = 0
      var progress: Set<Int> = []
      while true {
        let plan = try await query.explain()
        if plan.indexName == "n" { break }
        #expect(plan.access == .scan, "SEED=\(seed)")
        #expect(plan.buildingIndexes == ["n"], "SEED=\(seed)")
        plans += 1
        guard plans < 40 else {
          await Task.yield()
          continue
        }
        try await items.document("\(plans)").setData(["n": 3], durability: .memory)
        if plans % 7 != 3 { expected += 1 }
        #expect(try await query.getDocuments().count == expected, "SEED=\(seed)")
        if let state = try await items.listIndexes().first?.progress {
          #expect(state.documents <= state.total, "SEED=\(seed)")
          progress.insert(state.documents)
        }
      }
      #expect(try await query.getDocuments().count == expected, "SEED=\(seed)")
      try await auditIndexes(of: items, seed: seed)
      try await database.close()
      return (plans, progress)
    }
  }

  @Test func `An index is built beside queries and writes, which do without it`() throws {
    var plans = 0
    var progress: Set<Int> = []
    for seed in Seeds.first(16) {
      let seen = try Self.buildBesideWrites(seed: seed)
      plans += seen.plans
      progress.formUnion(seen.progress)
    }
    #expect(plans > 6, "queries came while it was being built")
    #expect(!progress.isEmpty, "it was seen how far it was")
  }

  @Test(arguments: Seeds.first(3))
  func `Closing stops it, and the next open continues`(seed: UInt64) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      try await Self.leaveUnfinished(world)
      var openings = 0
      var places: [[UInt8]] = []
      while true {
        let database = try await Database.open(at: "/db", environment: world.environment)
        openings += 1
        let index = try #require(
          try await database.family("items")?.collections[Self.pattern]?.indexes.first)
        if case .building(let through?) = index.state { places.append(through) }
        if index.state == .ready {
          try await auditIndexes(of: database.collection("items"), seed: seed)
          try await database.close()
          break
        }
        for _ in 0..<(20 * openings) { await Task.yield() }
        try await database.close()
        #expect(database.builds.all.isEmpty)
      }
      #expect(places == places.sorted { $0.lexicographicallyPrecedes($1) }, "SEED=\(seed)")
      #expect(openings > 1, "SEED=\(seed)")
    }
  }

  @Test(arguments: Seeds.first(3))
  func `A repeated create, or a drop, meets the one in the background`(seed: UInt64) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let kinds = [false, true].map { IndexKind([IndexField(["n"], descending: $0)]) }
      try await Self.leaveUnfinished(world, kinds)
      let database = try await Database.open(at: "/db", environment: world.environment)
      let items = database.collection("items")
      try await withThrowingTaskGroup { group in
        group.addTask { try await items.createIndex(on: ["n"]) }
        group.addTask {
          try await items.dropIndex(named: "-n")
          return ""
        }
        try await group.waitForAll()
      }
      #expect(try await items.listIndexes().map(\.name) == ["n"], "SEED=\(seed)")
      #expect(try await items.listIndexes().map(\.state) == [.ready], "SEED=\(seed)")
      try await auditIndexes(of: items, seed: seed)
      try await database.close()
    }
  }

  @Test func `A unique index that documents disagree with is given up, and others are built`()
    async throws
  {
    try SimulationExecutor.run(seed: 1) { executor in
      let world = SimulatedWorld(seed: 1, threads: executor)
      let fields = [IndexField(["n"])]
      try await Self.leaveUnfinished(world, [IndexKind(fields, isUnique: true), IndexKind(fields)])
      let database = try await Database.open(at: "/db", environment: world.environment)
      let items = database.collection("items")
      while try await items.listIndexes().contains(where: { $0.state == .building }) {
        await Task.yield()
      }
      #expect(try await items.listIndexes().map(\.name) == ["n"])
      try await auditIndexes(of: items)
      try await database.close()
    }
  }
}
