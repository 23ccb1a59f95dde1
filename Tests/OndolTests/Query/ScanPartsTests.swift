// A scan that is read in parts finds what a whole scan finds: the same documents in the same order,
// the same numbers to the last bit, the same groups. There are two databases with equal documents,
// and one cuts every scan that it can. The test counts the cut scans, and requires a minimum.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Scans in parts` {
  private static func open(width: Int) async throws -> Database {
    var options = EngineOptions()
    options.scanWidth = width
    options.smallestScanPart = 1
    options.blockSize = 256
    options.segmentSize = 2 << 10
    return try await Database.open(at: "/d", environment: .memory(), engineOptions: options)
  }

  private static func fields(_ random: inout SeededRandom) -> [String: Value] {
    var fields: [String: Value] = ["n": .integer(Int64(random.below(40)))]
    // Far apart, so that a sum depends on the order unless it is exact.
    let doubles = [0.1, 1e16, -1e16, 3.7e-9, -2.5, 1e300, -1e300, 0x1p-1074]
    if random.below(4) > 0 { fields["x"] = .double(random.pick(doubles)) }
    if random.below(3) == 0 { fields["x"] = .integer(Int64(random.below(9))) }
    if random.below(8) == 0 { fields["x"] = random.decimal() }
    if random.below(3) > 0 { fields["g"] = random.pick(["a", "b", 1, 1.0, nil, random.grid()]) }
    return fields
  }

  private static func query(_ items: CollectionReference, _ random: inout SeededRandom) -> Query {
    var query = items.query
    if random.below(4) > 0 {
      query = query.whereField("n", isLessThan: [2, 20, 40][random.below(3)])
    }
    if random.below(4) == 0 { query = query.whereField("g", in: ["a", 1]) }
    switch random.below(4) {
    case 0: query = query.order(by: "x", descending: random.below(2) == 0)
    case 1: query = query.order(by: "n").order(by: "x", missing: .last)
    default: break
    }
    if random.below(2) == 0 {
      let count = random.below(30) + 1
      query = random.below(3) == 0 ? query.limit(toLast: count) : query.limit(to: count)
    }
    if random.below(3) == 0 { query = query.offset(random.below(20)) }
    return query
  }

  private static func text(_ document: DocumentSnapshot) -> String {
    let fields = document.data().map { "\($0): \($1)" }.sorted()
    return "\(document.documentID) \(fields)"
  }

  /// All answers to a query, as text.
  private static func answers(to query: Query) async throws -> [String] {
    let found = try await query.getDocuments()
    let numbers: [AggregateField] = [
      .count(), .sum("x"), .average("x"), .minimum("x"), .maximum("n"),
    ]
    let aggregate = try await query.aggregate(numbers).getAggregation()
    let groups = try await query.aggregate(numbers).group(by: "g").getAggregation()
    return [
      "\(found.documents.map(text)) \(found.isLastPage)",
      "\(found.cursor.map(String.init(describing:)) ?? "")",
      "\(try await query.count.getAggregation().count)",
      "\(numbers.map { aggregate[$0] })",
      "\(groups.map { group in (group.key, numbers.map { group.aggregation[$0] }) })",
    ]
  }

  @Test(arguments: Seeds.first(6))
  func `They find what a whole scan finds`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let (whole, parted) = (try await Self.open(width: 1), try await Self.open(width: 3))
    for turn in 0..<4 {
      for number in 0..<400 {
        let (id, fields) = ("d\(random.below(900))", Self.fields(&random))
        for database in [whole, parted] {
          let document = database.collection("items").document(id)
          if number % 7 == 0 {
            try await document.delete()
          } else {
            try await document.setData(fields, durability: .memory)
          }
        }
      }
      // Otherwise the last ones are in memory, above the part that is cut.
      if turn < 3 { for database in [whole, parted] { try await database.engine.flush() } }
    }
    var cut = 0
    for number in 0..<60 {
      let draw = SeededRandom(seed: SeededRandom.derive(seed, number))
      var (first, second) = (draw, draw)
      let query = Self.query(parted.collection("items"), &second)
      let rows = Rows(try parted.engineSnapshot(), parted.catalog, mayBlock: true)
      if try ScanParts(Executor(query.shape.get(), in: parted, rows)) != nil { cut += 1 }
      let expected = try await Self.answers(
        to: Self.query(whole.collection("items"), &first))
      let found = try await Self.answers(to: query)
      for (answer, other) in zip(found, expected) {
        #expect(answer == other, "seed \(seed), \(query)")
      }
    }
    // The last documents by id are found from the end, without a cut.
    #expect(cut >= 50, "seed \(seed)")
    for database in [whole, parted] { try await database.close() }
  }

  @Test func `A scan without a waiting caller ends`() async throws {
    let database = try await Self.open(width: 2)
    let items = database.collection("items")
    for number in 0..<500 { try await items.document("d\(number)").setData(["n": number]) }
    try await database.engine.flush()
    let query = items.whereField("n", isGreaterThan: 3)
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let scan = try #require(try ScanParts(Executor(query.shape.get(), in: database, rows)))
    let looked = Guarded(0)
    let task = Task {
      try await scan.read(into: 0) { (count, executor) throws(DatabaseError) in
        looked.withLock { $0 += 1 }
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
        count += try executor.count()
      }
    }
    await #expect { try await task.value } throws: { ($0 as? DatabaseError)?.code == .cancelled }
    #expect(looked.withLock { $0 } <= 2)
    try await database.close()
  }

  @Test func `One worker's failure is the scan's`() async throws {
    let database = try await Self.open(width: 3)
    let items = database.collection("items")
    for number in 0..<500 { try await items.document("d\(number)").setData(["n": number]) }
    try await database.engine.flush()
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let executor = try Executor(
      items.whereField("n", isGreaterThan: 3).shape.get(), in: database, rows)
    let scan = try #require(try ScanParts(executor))
    let turns = Guarded(0)
    await #expect {
      try await scan.read(into: 0) { (_, _) throws(DatabaseError) in
        let turn = turns.withLock {
          $0 += 1
          return $0
        }
        if turn == 2 { throw DatabaseError(.dataLoss, "a rotten block") }
      }
    } throws: {
      ($0 as? DatabaseError)?.code == .dataLoss
    }
    try await database.close()
  }
}
