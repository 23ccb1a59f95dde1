// Pipelines whose stages keep more rows than the memory holds: the answer is the same, and the
// scratch file is gone afterwards, whatever happens to the device.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine
@testable import OndolTestKit

/// A device with documents, opened with more memory or less.
private struct Shop {
  let fileSystem: SimulatedFileSystem
  let database: Database

  init(
    _ fileSystem: SimulatedFileSystem = SimulatedFileSystem(), memory: Int,
    encryption: Database.Encryption? = nil, seed: UInt64 = 1
  ) async throws {
    self.fileSystem = fileSystem
    var options = Database.Options()
    options.pipelineMemory = memory
    options.encryption = encryption
    options.shardCount = 1
    database = try await Database.open(
      at: "/db", options: options,
      environment: SimulatedWorld(fileSystem: fileSystem, seed: seed).environment)
  }

  /// Documents of few values, so that groups and joins meet.
  func fill(_ count: Int, seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let batch = database.batch()
    for number in 0..<count {
      var fields: [String: Value] = [
        "n": .integer(Int64(number)),
        "a": .integer(Int64(random.below(24))),
        "text": .string("text \(random.below(90)) of some length, to take some memory"),
        "tags": .array((0..<random.below(4)).map { _ in .integer(Int64(random.below(5))) }),
      ]
      switch random.below(6) {
      case 0: break
      case 1: fields["b"] = .double(.nan)
      case 2: fields["b"] = .null
      case 3: fields["b"] = .double(Double(random.below(40)) / 8)
      default: fields["b"] = .integer(Int64(random.below(6)))
      }
      if random.below(3) == 0 {
        fields["of"] = .reference(try DocumentPath("others/\(random.below(count))"))
      }
      try batch.setData(fields, forDocument: database.document("c/\(number)"))
      try batch.setData(
        [
          "a": Value.integer(Int64(random.below(60))),
          "name": Value.string("other \(number) with a name"),
        ],
        forDocument: database.document("others/\(number)"))
    }
    try await batch.commit()
  }

  /// The names of scratch files on the device.
  var scratchFiles: [String] {
    fileSystem.storage.names(in: "/db").filter { $0.hasSuffix(".scratch") }
  }

  /// Scratch files that were made so far: nothing else removes a file here.
  var spills: Int { fileSystem.count(of: .remove) }
}

/// The end of a report, which cancels its task at one of the rows.
private final class CancellingSink: RowSink {
  private let place: Int
  private(set) var taken = 0

  init(at place: Int) {
    self.place = place
  }

  func take(_ row: PipelineRow) -> Bool {
    taken += 1
    if taken == place { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
    return true
  }

  func finish() {}
}

/// Draws pipelines whose stages keep rows.
private struct SpillDraw {
  var random: SeededRandom

  mutating func field() -> Field { Field(FieldPath(random.pick(["a", "b", "text", "n"]))) }

  mutating func order() -> PipelineOrdering {
    random.chance(1, in: 2) ? field().ascending() : field().descending()
  }

  mutating func aggregates() -> [AliasedAggregate] {
    let few = Field("b")
    return (0..<(1 + random.below(4))).map { place in
      let name = random.pick([
        "count", "count_if", "count_distinct", "sum", "average", "minimum", "maximum", "first",
        "last", "array_agg", "array_agg_distinct",
      ])
      let argument: any PipelineOperand =
        switch name {
        case "count_if": few.greaterThan(2)
        case "sum", "average", "minimum", "maximum": field()
        default: few
        }
      return PipelineAggregate.function(name, argument).as("r\(place)")
    }
  }

  mutating func stage(_ pipeline: Pipeline) -> [PipelineStage] {
    let collection = pipeline.database.pipeline().collection("c")
    let others: Pipeline
    switch random.below(9) {
    case 0: others = pipeline.sort(order(), order())
    case 1: others = pipeline.sort(order()).limit(random.below(500))
    case 2:
      return [
        .aggregate(
          aggregates(),
          groups: [field().pipelineSelection]
            + (random.chance(1, in: 2) ? [field().as("other")] : []))
      ]
    case 3: others = pipeline.distinct(field(), Field("tags"))
    case 4:
      others = pipeline.lookup(in: "others", where: "a", equals: Field("a"), as: "found")
    case 5: others = pipeline.lookup(Field("of"), as: "document")
    case 6:
      others = pipeline.window(
        .rank().as("rank"), .total(Field("b")).as("all"), .runningSum(Field("n")).as("running"),
        .lag(Field("n"), rows: 1 + random.below(3)).as("before"),
        groups: random.chance(1, in: 3) ? [] : [Field("a")],
        orders: [order(), Field("n").ascending()])
    case 7: others = pipeline.unnest(Field("tags").as("tag"), indexField: "place")
    default: others = pipeline.union(collection.where(Field("n").lessThan(random.below(90))))
    }
    return (try? others.stages.get().dropFirst().map(\.self)) ?? []
  }

  mutating func pipeline(of database: Database) -> Pipeline {
    let source = database.pipeline().collection("c")
    var stages = (try? source.stages.get()) ?? []
    for _ in 0..<(1 + random.below(3)) { stages += stage(source) }
    return Pipeline(database: database, stages: stages)
  }
}

@Suite struct SpillTests {
  private func rows(_ pipeline: Pipeline) async throws -> [String] {
    try await pipeline.execute().map { result in
      let fields = result.data().sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
      return "\(result.reference?.path ?? "-") \(result.updateTime != nil) \(fields)"
    }
  }

  @Test(arguments: Seeds.first(10))
  func `Little memory gives the same rows in the same order as much of it`(
    seed: UInt64
  ) async throws {
    var draw = SpillDraw(random: SeededRandom(seed: seed))
    let rich = try await Shop(memory: 128 << 20)
    try await rich.fill(300, seed: seed)
    let poor = try await Shop(memory: draw.random.pick([9_000, 20_000, 60_000]))
    try await poor.fill(300, seed: seed)
    var (refused, answered) = (0, 0)
    for _ in 0..<24 {
      let pipeline = draw.pipeline(of: rich.database)
      let stages = try pipeline.stages.get()
      let expected = try await rows(pipeline)
      do {
        let found = try await rows(Pipeline(database: poor.database, stages: stages))
        #expect(found == expected, "seed \(seed): \(stages)")
        answered += 1
      } catch let error as DatabaseError where error.code == .resourceExhausted {
        // One group's list, or the documents that one row is joined to, may be too much alone.
        refused += 1
      }
    }
    #expect(answered > 2 * refused && poor.spills > 0, "seed \(seed): \(refused) refused")
    #expect(rich.spills == 0 && poor.scratchFiles.isEmpty, "seed \(seed)")
    // The files are closed, and so the system has their bytes back.
    let open = poor.fileSystem.openFiles
    _ = try await rows(draw.pipeline(of: poor.database).limit(1))
    #expect(poor.fileSystem.openFiles <= open, "seed \(seed)")
    try await rich.database.close()
    try await poor.database.close()
  }

  private func report(_ database: Database) -> Pipeline {
    database.pipeline().collection("c")
      .aggregate(Field("b").sum().as("sum"), groups: [Field("text"), Field("n")])
      .sort(Field("n").descending())
  }

  @Test func `In a transaction and in a snapshot a report spills as well`() async throws {
    let shop = try await Shop(memory: 9_000)
    try await shop.fill(200, seed: 1)
    let expected = try await rows(report(shop.database))
    let report = report(shop.database)
    let before = shop.spills
    let inSnapshot = try shop.database.snapshot().execute(report).count
    let inTransaction = try await shop.database.runTransaction { transaction in
      try transaction.execute(report).count
    }
    #expect(inSnapshot == expected.count && inTransaction == expected.count)
    #expect(shop.spills >= before + 2)
    try await shop.database.close()
  }

  @Test func `A device that fails or is full gives a typed error and keeps no file`() async throws {
    let shop = try await Shop(memory: 9_000)
    try await shop.fill(200, seed: 2)
    let expected = try await rows(report(shop.database))
    let kinds: [(OperationKind, Int32)] = [
      (.create, 5), (.write, 5), (.write, 28), (.read, 5), (.create, 28),
    ]
    for (kind, errno) in kinds {
      var (failed, place) = (0, 0)
      while true {
        shop.fileSystem.inject([Fault(failing: [kind], of: .other, after: place, errno: errno)])
        do {
          #expect(try await rows(report(shop.database)) == expected)
          break
        } catch let error as DatabaseError {
          #expect(error.code == (errno == 28 ? .resourceExhausted : .internal), "\(error)")
          failed += 1
        }
        #expect(shop.scratchFiles.isEmpty, "\(kind) \(place)")
        place += 1 + place / 3
      }
      #expect(failed > 0, "\(kind)")
    }
    shop.fileSystem.inject([])
    shop.fileSystem.setCapacity(shop.fileSystem.used + 6_000)
    let error = await #expect(throws: DatabaseError.self) {
      try await rows(report(shop.database))
    }
    #expect(error?.code == .resourceExhausted && shop.scratchFiles.isEmpty)
    shop.fileSystem.setCapacity(nil)
    // Nothing else has suffered.
    try await shop.database.document("c/new").setData(["n": -1])
    #expect(try await rows(report(shop.database)).count == expected.count + 1)
    try await shop.database.close()
  }

  @Test func `What a crash leaves of a report goes with the next open`() async throws {
    let shop = try await Shop(memory: 9_000)
    try await shop.fill(200, seed: 3)
    // The name is there between two operations only.
    shop.fileSystem.cutPower(before: shop.fileSystem.operations + 1)
    await #expect(throws: DatabaseError.self) { try await rows(report(shop.database)) }
    let left = SimulatedFileSystem(storage: shop.fileSystem.storage.afterKill())
    try? await shop.database.close()
    #expect(left.storage.names(in: "/db").contains { $0.hasSuffix(".scratch") })
    let again = try await Shop(left, memory: 9_000)
    #expect(try await rows(report(again.database)).count == 200)
    try await again.database.document("c/new").setData(["n": 1])
    #expect(again.scratchFiles.isEmpty)
    try await again.database.close()
    #expect(again.scratchFiles.isEmpty)
  }

  @Test(arguments: [false, true])
  func `An encrypted database writes no row in plain`(isEncrypted: Bool) async throws {
    let shop = try await Shop(
      memory: 9_000, encryption: isEncrypted ? .key(Array(repeating: 7, count: 32)) : nil)
    try await shop.fill(200, seed: 4)
    let secret = shop.database.pipeline().collection("c")
      .select(
        PipelineExpression.function(
          "string_concat", "sec", "ret ", Field("text")
        ).as("told"), Field("n")
      ).sort(Field("told").ascending())
    let spills = shop.spills
    #expect(try await secret.execute().count == 200 && shop.spills > spills)
    let word = Array("secret text".utf8)
    let storage = shop.fileSystem.storage
    let isPlain = storage.files.contains { number, file in
      guard !storage.isNamed(number) else { return false }
      let bytes = file.current.read(at: 0, count: file.current.size)
      return bytes.indices.contains { bytes[$0...].starts(with: word) }
    }
    #expect(isPlain != isEncrypted)
    try await shop.database.close()
  }

  /// Cancels at one row of the answer after another. What a stage still has to give is in memory or
  /// in the file, and no more of it comes than a batch has.
  @Test func `A report that is cancelled at any row ends within a batch and leaves no file`()
    async throws
  {
    let shop = try await Shop(memory: 9_000)
    try await shop.fill(400, seed: 6)
    let all = shop.database.pipeline().collection("c")
    let reports = [
      all.sort(Field("text").ascending()), all.distinct(Field("n"), Field("text")),
      report(shop.database),
      all.lookup(in: "others", where: "a", equals: Field("a"), as: "found"),
      all.window(
        .total(Field("b")).as("all"), groups: [Field("a")], orders: [Field("n").ascending()]),
      all.sample(390), all.union(all).unnest(Field("tags").as("tag")),
    ]
    let open = shop.fileSystem.openFiles
    for report in reports {
      let plan = try PipelinePlan(report.stages.get())
      let rows = try shop.database.engineSnapshot()
      for place in [1, 7, 60, 120] {
        let database = shop.database
        let task = Task { () -> (code: DatabaseError.Code, taken: Int) in
          let reading = Rows(rows, database.catalog, mayBlock: true, canBeCancelled: true)
          let end = CancellingSink(at: place)
          do throws(DatabaseError) {
            try PipelineExecution(plan, PipelineContext(database, reading)).run(into: end)
            return (.ok, end.taken)
          } catch {
            return (error.code, end.taken)
          }
        }
        let (code, taken) = await task.value
        #expect(code == .cancelled && taken < place + 256, "\(place): \(taken) of \(plan.rest)")
        #expect(shop.scratchFiles.isEmpty && shop.fileSystem.openFiles <= open)
      }
    }
    try await shop.database.close()
  }

  @Test func `A sample beyond the memory has as many rows as it is asked for, each once`()
    async throws
  {
    let shop = try await Shop(memory: 9_000)
    try await shop.fill(300, seed: 7)
    let spills = shop.spills
    let all = shop.database.pipeline().collection("c")
    var found: [String: Int] = [:]
    for _ in 0..<12 {
      let paths = try await all.sample(250).execute().compactMap(\.reference?.path)
      #expect(paths.count == 250 && Set(paths).count == 250)
      for path in paths { found[path, default: 0] += 1 }
    }
    // Each row is as likely: of twelve samples, none has all but a few of them always or never.
    #expect(found.count == 300 && found.values.count { $0 == 12 } < 120)
    #expect(shop.spills > spills && shop.scratchFiles.isEmpty)
    try await shop.database.close()
  }

  @Test func `A report that is cancelled while it spills leaves no file`() async throws {
    let shop = try await Shop(memory: 9_000)
    try await shop.fill(200, seed: 5)
    let all = shop.database.pipeline().collection("c")
    let plan = try PipelinePlan(all.union(all).sort(Field("text").ascending()).stages.get())
    let open = shop.fileSystem.openFiles
    let before = shop.spills
    let rows = try shop.database.engineSnapshot()
    let task = Task { () -> (code: DatabaseError.Code, spills: Int) in
      let reading = Rows(rows, shop.database.catalog, mayBlock: true, canBeCancelled: true)
      var reads = 0
      var spills = 0
      let context = PipelineContext(shop.database, reading) { _ in
        reads += 1
        guard reads == 2 else { return }
        // The rows of the first source have been sorted and written.
        spills = shop.spills - before
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      }
      do throws(DatabaseError) {
        _ = try plan.results(context)
        return (.ok, spills)
      } catch {
        return (error.code, spills)
      }
    }
    let (code, spills) = await task.value
    #expect(code == .cancelled && spills == 1)
    #expect(shop.scratchFiles.isEmpty && shop.fileSystem.openFiles <= open)
    try await shop.database.close()
  }
}
