// The order of rows that no stage has sorted, or that a sort leaves equal: that of the query with
// the same conditions and orders.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct PipelineOrderTests {
  /// A condition as both write it.
  private struct Condition {
    let filter: Filter
    let expression: PipelineExpression
    /// As Google's clients write a query as a pipeline: the field exists, and the comparison holds.
    let asked: PipelineExpression
  }

  private func condition(_ random: inout SeededRandom) -> Condition {
    let name = random.pick(["a", "b", "c"])
    let field = Field(FieldPath(name))
    let value = Value.integer(Int64(random.below(6)))
    let filter: Filter
    let expression: PipelineExpression
    switch random.below(5) {
    case 0:
      filter = .whereField(FieldPath(name), isGreaterThan: value)
      expression = field.greaterThan(value).pipelineExpression
    case 1:
      filter = .whereField(FieldPath(name), isLessThanOrEqualTo: value)
      expression = field.lessThanOrEqual(value).pipelineExpression
    case 2:
      filter = .whereField(FieldPath(name), isNotEqualTo: value)
      // A field that a document lacks differs from every value in a pipeline.
      expression = .function("and", field.notEqual(value), field.exists())
    case 3:
      let values = [value, .integer(Int64(random.below(6)))]
      filter = .whereField(FieldPath(name), in: values)
      expression = field.equalAny(values).pipelineExpression
    default:
      filter = .whereField(FieldPath(name), isEqualTo: value)
      expression = field.equal(value).pipelineExpression
    }
    return Condition(
      filter: filter, expression: expression,
      asked: .function("and", field.exists(), expression))
  }

  @Test(arguments: Seeds.first(12))
  func `A pipeline and the query with its conditions come in one order`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    for number in 0..<60 {
      var fields: [String: Value] = ["n": .integer(Int64(number))]
      for name in ["a", "b", "c"] where random.below(5) > 0 {
        fields[name] = .integer(Int64(random.below(6)))
      }
      try await collection.document("d\((number * 37) % 60)").setData(fields, durability: .memory)
    }
    for name in ["a", "b"] where random.chance(1, in: 2) {
      try await collection.createIndex(on: [name])
    }
    for _ in 0..<40 {
      let conditions = (0..<random.below(4)).map { _ in condition(&random) }
      var query = collection.query
      var (plain, asked) = (
        database.pipeline().collection("c"), database.pipeline().collection("c")
      )
      for condition in conditions {
        query = query.whereFilter(condition.filter)
        plain = plain.where(condition.expression)
        asked = asked.where(condition.asked)
      }
      let expected = try await query.getDocuments().documents.map(\.reference.path)
      let context = "seed \(seed): \(plain.stages)"
      for pipeline in [plain, asked] {
        let paths = try await pipeline.execute().compactMap(\.reference?.path)
        #expect(paths == expected, "\(context)")
        let few = try await pipeline.select(Field("n")).limit(3).execute()
        #expect(few.compactMap(\.reference?.path) == Array(expected.prefix(3)), "\(context)")
        let later = try await pipeline.addFields(Field("n").as("m")).offset(2).limit(3).execute()
        #expect(
          later.compactMap(\.reference?.path) == Array(expected.dropFirst(2).prefix(3)),
          "\(context)")
      }
    }
    try await database.close()
  }

  /// A limit once turned equal documents around: the query that then sorts has them by name in the
  /// direction of the last order, and the stage had them by name.
  @Test(arguments: Seeds.first(12))
  func `Documents that a sort leaves equal come as from a query, with and without a limit`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    for number in 0..<60 {
      let fields: [String: Value] = [
        "a": .integer(Int64(random.below(3))), "b": .integer(Int64(random.below(3))),
        "c": .integer(Int64(random.below(3))),
      ]
      try await collection.document("d\((number * 37) % 60)").setData(fields, durability: .memory)
    }
    if random.chance(1, in: 2) { try await collection.createIndex(on: ["a"]) }
    if random.chance(1, in: 2) { try await collection.createIndex(on: ["c", "-b"]) }
    for _ in 0..<40 {
      var (query, pipeline) = (collection.query, database.pipeline().collection("c"))
      if random.chance(1, in: 2) {
        let value = random.below(3)
        query = query.whereField("c", isEqualTo: value)
        pipeline = pipeline.where(Field("c").equal(value))
      }
      var orders: [PipelineOrdering] = []
      for name in ["a", "b"] where orders.isEmpty || random.chance(1, in: 2) {
        let isDescending = random.chance(1, in: 2)
        query = query.order(by: FieldPath(name), descending: isDescending)
        let field = Field(FieldPath(name))
        orders.append(isDescending ? field.descending() : field.ascending())
      }
      pipeline = Pipeline(
        database: database, stages: try pipeline.stages.get() + [.sort(orders)])
      let expected = try await query.getDocuments().documents.map(\.reference.path)
      let context = "seed \(seed): \(pipeline.stages)"
      let all = try await pipeline.select(Field("b")).execute().compactMap(\.reference?.path)
      #expect(all == expected, "\(context)")
      let few = try await pipeline.limit(7).execute().compactMap(\.reference?.path)
      #expect(few == Array(expected.prefix(7)), "\(context)")
      var live = pipeline.snapshots.makeAsyncIterator()
      let shown = try await live.next()?.results.compactMap(\.reference?.path)
      #expect(shown == expected, "\(context)")
    }
    try await database.close()
  }

  @Test func `A limit moves before stages that make one row of each`() async throws {
    let database = try await Database.inMemory()
    for number in 0..<5 { try await database.document("c/\(number)").setData(["n": number]) }
    let pipeline = database.pipeline().collection("c").where(Field("n").greaterThan(1))
      .select(Field("n").multiply(2).as("twice")).limit(2)
    let explanation = try await pipeline.explain(analyze: true)
    #expect(explanation.served == ["collection", "where", "limit"])
    #expect(explanation.sourceRows == 2 && explanation.order.isEmpty)
    #expect(try await pipeline.execute().map { $0.data() } == [["twice": 4], ["twice": 6]])
  }

  @Test func `A stage keeps the part of a condition that the query does not serve`() async throws {
    let database = try await Database.inMemory()
    for number in 0..<40 {
      try await database.document("c/\(number)").setData(["n": number, "t": "a\(number % 7)"])
    }
    let matches = Field("t").regexMatch("a[35]").pipelineExpression
    let odd = Field("n").mod(2).equal(1).pipelineExpression
    let condition = PipelineExpression.function(
      "and", matches, Field("n").greaterThan(5),
      PipelineExpression.function("and", odd, Field("n").lessThan(30)))
    // After the second stage, a whole condition is asked about another field.
    let pipeline = database.pipeline().collection("c").where(condition)
      .addFields(Field("n").add(15).as("n")).where(condition)
    let plan = try PipelinePlan(pipeline.stages.get())
    #expect(plan.rest.first == .filter(.function("and", matches, odd)))
    #expect(plan.rest.last == .filter(condition))
    let once = (6..<30).filter { [3, 5].contains($0 % 7) && !$0.isMultiple(of: 2) }
    let twice = once.map { $0 + 15 }.filter { $0 < 30 && !$0.isMultiple(of: 2) }
    #expect(try await pipeline.execute().compactMap { $0["n"] as Int? } == twice)
    let first = database.pipeline().collection("c").where(condition)
    #expect(try await first.execute().compactMap { $0["n"] as Int? } == once)
    try await database.close()
  }

  @Test func `Groups that see no order are not sorted for`() async throws {
    let database = try await Database.inMemory()
    let large = database.pipeline().collection("c").where(Field("n").greaterThan(1))
    #expect(try await large.explain().order == ["n", "__name__"])
    let count = large.aggregate(.count().as("count"))
    #expect(try await count.explain().order.isEmpty)
    let all = large.aggregate(PipelineAggregate.function("array_agg", Field("n")).as("all"))
    #expect(try await all.explain().order == ["n", "__name__"])
    #expect(try await large.sort(Field("m").ascending()).explain().order.isEmpty)
  }
}
