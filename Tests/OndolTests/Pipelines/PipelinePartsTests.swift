// Ways that a pipeline may take give the rows of the plain way, in the same order: a scan in parts,
// a window of which only the first rows or the totals are wanted, fields that are never decoded. A
// stage that changes nothing keeps a pipeline on the plain way.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Ways of pipelines` {
  private static func open(width: Int, memory: Int = 1 << 20) async throws -> Database {
    var (options, engine) = (Database.Options(), EngineOptions())
    options.pipelineMemory = memory
    options.shardCount = 1
    engine.scanWidth = width
    engine.smallestScanPart = 1
    engine.blockSize = 256
    engine.segmentSize = 2 << 10
    return try await Database.open(
      at: "/d", options: options,
      // A database in memory has no place for a scratch file.
      environment: SimulatedWorld(fileSystem: SimulatedFileSystem(), seed: 1).environment,
      engineOptions: engine)
  }

  private static func fill(_ database: Database, seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<3 {
      let batch = database.batch()
      for _ in 0..<150 {
        var fields: [String: Value] = [
          "n": .integer(Int64(random.below(60))),
          "tags": .array((0..<random.below(4)).map { _ in .integer(Int64(random.below(5))) }),
          "map": ["in": .integer(Int64(random.below(3))), "of": "text"],
        ]
        let doubles = [0.1, 1e16, -1e16, 3.7e-9, 1, 2]
        if random.below(4) > 0 { fields["x"] = .double(random.pick(doubles)) }
        if random.below(4) == 0 { fields["x"] = .integer(Int64(random.below(3))) }
        if random.below(4) > 0 { fields["g"] = random.pick(["a", "b", 1, 1.0, nil]) }
        fields["k"] = random.pick([1, 1.0, "one", "two"])
        if random.below(3) > 0 {
          fields["of"] = .reference(try DocumentPath("others/\(random.below(40))"))
        }
        if random.below(9) == 0 { fields["of"] = "no reference" }
        try batch.setData(fields, forDocument: database.document("c/\(random.below(400))"))
      }
      try await batch.commit()
      try await database.engine.flush()
    }
    for number in 0..<30 {
      let fields: [String: Value] = [
        "name": .string("other \(number % 7)"), "size": .integer(Int64(number)),
        "map": ["in": .integer(Int64(number % 3))],
      ]
      try await database.document("others/\(number)").setData(fields)
    }
    try await database.engine.flush()
  }

  private static let aggregates = [
    "count", "count_distinct", "sum", "average", "minimum", "maximum",
  ]

  private static func aggregates(
    of names: [String], _ random: inout SeededRandom
  ) -> [AliasedAggregate] {
    (0..<1 + random.below(3)).map { place in
      let name = random.pick(names)
      let field = Field(FieldPath(random.pick(["x", "n", "g", "k", "document.size"])))
      return PipelineAggregate.function(name, field).as("r\(place)")
    }
  }

  /// - Parameter isPlain: whether stages that change nothing keep it on the plain way.
  private static func pipeline(
    of database: Database, _ random: inout SeededRandom, isPlain: Bool
  ) -> Pipeline {
    let source = database.pipeline().collection("c")
    func plain(_ pipeline: Pipeline) -> Pipeline { isPlain ? pipeline.offset(0) : pipeline }
    var made = source
    if random.below(3) == 0 { made = made.where(Field("n").lessThan(random.below(60))) }
    if random.below(3) == 0 { made = made.where(Field("n").mod(3).equal(1)) }
    made = plain(made)
    if random.below(4) == 0 { made = plain(made.addFields(Field("n").add(1).as("more"))) }
    switch random.below(6) {
    case 0: made = plain(made.unnest(Field("tags").as(random.pick(["tag", "g"]))))
    case 1:
      made = plain(made.unnest(Field("tags").as("tag"), indexField: random.pick([nil, "x"])))
    case 2, 3: made = plain(made.lookup(Field("of"), as: random.pick(["document", "of", "g"])))
    default: break
    }
    var names = aggregates + ["first", "last", "array_agg", "array_agg_distinct"]
    var totalled: [Field] = []
    switch random.below(5) {
    case 0:
      totalled = random.pick([[], [Field("k")], [Field("g")], [Field("k"), Field("g")]])
      made = made.window(
        .total(Field("x")).as("all"), .total(Field("n")).as("sum"), groups: totalled)
      if random.below(2) == 0 { made = made.where(Field("n").multiply(9).lessThan(Field("sum"))) }
      if random.below(2) == 0 {
        made = made.addFields(Field("x").divide(Field("all")).as("share"))
      }
    case 1:
      let wanted = random.below(4)
      made = plain(
        made.window(
          .rowNumber().as("place"), .rank().as("rank"), .lag(Field("n")).as("before"),
          groups: random.pick([[], [Field("g")], [Field("k")]]),
          orders: random.pick([[Field("x").descending()], [Field("n").ascending()], []])))
      made = made.where(
        random.below(2) == 0
          ? Field("place").lessThanOrEqual(wanted)
          : Field("n").greaterThan(3) && Field("place").lessThan(wanted))
    default: break
    }
    var grouped: [any PipelineSelectable] = random.pick([
      [], [Field("k")], [Field("g"), Field("k")], [Field("document.name").as("name")],
      [Field("tag")], [Field("map.in").as("in"), Field("g")], [Field("n").mod(4).as("m")],
      [Field("k").as("kind"), Field("g").as("group"), Field("tag")],
    ])
    // What has totals of groups is often grouped by the same again.
    if !totalled.isEmpty, random.below(3) > 0 { (grouped, names) = (totalled, aggregates) }
    switch random.below(6) {
    case 0: break
    case 1: made = made.select(Field("n"), Field("all"), Field("document.map.in").as("in"))
    case 2 where !grouped.isEmpty:
      made = Pipeline(
        database: database,
        stages: made.stages.map { $0 + [.distinct(grouped.map(\.pipelineSelection))] })
    default:
      let aggregates = aggregates(of: names, &random)
      made = Pipeline(
        database: database,
        stages: made.stages.map {
          $0 + [.aggregate(aggregates, groups: grouped.map(\.pipelineSelection))]
        })
      if random.below(4) == 0 { made = made.sort(Field("r0").descending()).limit(5) }
    }
    return made
  }

  private static func rows(_ pipeline: Pipeline) async -> [String] {
    do {
      return try await pipeline.execute().map { result in
        let fields = result.data().sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return "\(result.reference?.path ?? "-") \(fields)"
      }
    } catch {
      // The plain way has more stages, and counts them.
      return ["\(error)".replacing(/stage \d+/, with: "stage")]
    }
  }

  /// The rows in another order, of which each group may have found its equal values: 1 and 1.0.
  private static func unordered(_ rows: [String]) -> [String] {
    rows.map { $0.replacing(".0\"", with: "\"") }.sorted()
  }

  @Test(arguments: Seeds.first(8))
  func `They give the same rows in the same order`(seed: UInt64) async throws {
    let (whole, parted) = (try await Self.open(width: 1), try await Self.open(width: 3))
    let small = try await Self.open(width: 3, memory: 4 << 10)
    for database in [whole, parted, small] { try await Self.fill(database, seed: seed) }
    var (cut, rewritten) = (0, 0)
    for number in 0..<80 {
      let draw = SeededRandom(seed: SeededRandom.derive(seed, number))
      func pipeline(_ database: Database, isPlain: Bool) -> Pipeline {
        var random = draw
        return Self.pipeline(of: database, &random, isPlain: isPlain)
      }
      let plain = await Self.rows(pipeline(whole, isPlain: true))
      let asked = pipeline(parted, isPlain: false)
      let plan = try PipelinePlan(asked.stages.get())
      if TotalsRewrite(plan) != nil { rewritten += 1 }
      if await plan.isInParts(of: parted) { cut += 1 }
      let name = "seed \(seed), \(number): \(plan.rest)"
      let expected = await Self.rows(pipeline(whole, isPlain: false))
      // The plain way has the order of a query, which a result may not show.
      let isOrdered = !plan.order.isEmpty || !plan.hasInequality
      if isOrdered {
        #expect(expected == plain, "\(name)")
      } else {
        #expect(Self.unordered(expected) == Self.unordered(plain), "\(name)")
      }
      #expect(await Self.rows(asked) == expected, "\(name), in parts")
      // The list of one group alone may be larger than the memory.
      let spilled = await Self.rows(pipeline(small, isPlain: false))
      if spilled.first?.contains("keeps more than") != true {
        #expect(spilled == expected, "\(name), spilled")
      }
    }
    #expect(cut >= 12 && rewritten >= 1, "seed \(seed): \(cut), \(rewritten)")
    for database in [whole, parted, small] { try await database.close() }
  }
}

extension PipelinePlan {
  fileprivate var hasInequality: Bool {
    if case .query(let shape) = source { !shape.filters.isEmpty } else { false }
  }

  fileprivate func isInParts(of database: Database) async -> Bool {
    guard let snapshot = try? database.engineSnapshot() else { return false }
    let rows = Rows(snapshot, database.catalog, mayBlock: true)
    return (try? parts(database, rows)) ?? nil != nil
  }
}
