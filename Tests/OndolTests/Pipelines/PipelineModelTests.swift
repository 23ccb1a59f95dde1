// Random pipelines over random documents: what the stages, the planner and the scan make of one,
// with whatever indexes there are, is what the naive evaluator makes of it.

import OndolTestKit
import Testing

@testable import Ondol

/// Draws documents and pipelines over few fields and values, so that much of it meets.
private struct PipelineDraw {
  var random: SeededRandom

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  mutating func value() -> Value {
    switch random.below(14) {
    case 0: .null
    case 1: .boolean(random.chance(1, in: 2))
    case 2...5: .integer(Int64(random.below(5)) - 2)
    case 6, 7: .double(Double(random.below(7)) / 2 - 1)
    case 8: .double(.nan)
    case 9, 10: .string(random.pick(["", "a", "ab", "é", "b"]))
    case 11, 12: .array((0..<random.below(4)).map { _ in .integer(Int64(random.below(3))) })
    default: .map(["x": .integer(Int64(random.below(3)))])
    }
  }

  mutating func document(_ number: Int) -> [String: Value] {
    var fields: [String: Value] = ["id": .integer(Int64(number))]
    for name in ["a", "b", "c", "m"] where random.below(5) > 0 { fields[name] = value() }
    return fields
  }

  mutating func field() -> ModelExpression {
    .field(random.pick([["a"], ["b"], ["c"], ["m", "x"], ["m"], ["id"]]))
  }

  mutating func operand(_ depth: Int) -> ModelExpression {
    if depth > 0, random.chance(1, in: 3) { return expression(depth - 1) }
    return random.chance(1, in: 2) ? field() : .constant(value())
  }

  mutating func expression(_ depth: Int) -> ModelExpression {
    let (name, count) = random.pick([
      ("add", 2), ("subtract", 2), ("multiply", 2), ("divide", 2), ("array_length", 1),
      ("char_length", 1), ("string_concat", 2), ("maximum", 2), ("minimum", 3), ("if_absent", 2),
      ("if_error", 2), ("conditional", 3), ("exists", 1), ("is_absent", 1), ("is_error", 1),
      ("equal", 2), ("less_than", 2), ("array_contains", 2), ("not", 1), ("and", 2),
    ])
    return .call(name, (0..<count).map { _ in operand(depth) })
  }

  mutating func condition(_ depth: Int) -> ModelExpression {
    if depth > 0, random.chance(1, in: 3) {
      let name = random.pick(["and", "or", "or", "not"])
      return .call(name, (0..<(name == "not" ? 1 : 2)).map { _ in condition(depth - 1) })
    }
    switch random.below(8) {
    case 0:
      return .call(
        "equal_any", [field(), .constant(.array((0..<3).map { _ in value() }))])
    case 1: return .call("array_contains", [field(), .constant(value())])
    case 2: return .call(random.pick(["equal", "less_than"]), [.constant(value()), field()])
    case 3: return expression(1)
    default:
      let name = random.pick([
        "equal", "not_equal", "less_than", "less_than_or_equal", "greater_than",
        "greater_than_or_equal",
      ])
      return .call(name, [field(), random.chance(4, in: 5) ? .constant(value()) : field()])
    }
  }

  mutating func stages() -> [ModelStage] {
    var stages: [ModelStage] = []
    for _ in 0..<random.below(3) { stages.append(.filter(condition(2))) }
    if random.chance(1, in: 2) { stages += part() }
    for _ in 0..<random.below(3) { stages.append(middle()) }
    switch random.below(4) {
    case 0: stages.append(aggregate())
    case 1: stages.append(.select([("p", operand(1)), ("id", .field(["id"]))]))
    case 2: stages.append(.sort([(field(), random.chance(1, in: 2))]))
    default: break
    }
    return stages
  }

  /// An order that is total as long as rows are documents, and a part of the rows.
  private mutating func part() -> [ModelStage] {
    let order = random.chance(1, in: 4) ? operand(1) : field()
    return [
      .sort([(order, random.chance(1, in: 2)), (.field(["id"]), random.chance(1, in: 2))]),
      .offset(random.below(5)), .limit(random.below(20)),
    ]
  }

  private mutating func middle() -> ModelStage {
    switch random.below(7) {
    case 0: .filter(condition(1))
    case 1: .add([("n", operand(1)), ("a", field())])
    case 2: .remove([random.pick(["a", "b"])])
    case 3: .unnest(field: random.pick(["a", "b"]), alias: random.pick(["a", "e"]), index: "i")
    case 4: .union([.filter(condition(1))])
    case 5: .lookup(field: random.pick(["a", "b"]), equals: field(), name: "others")
    default: .select([("a", field()), ("b", operand(1)), ("id", .field(["id"]))])
    }
  }

  private mutating func aggregate() -> ModelStage {
    let functions = [
      "count", "count_if", "count_distinct", "sum", "average", "minimum", "maximum",
    ]
    let aggregates = (0..<(1 + random.below(3))).map { place in
      (name: "r\(place)", function: random.pick(functions), argument: Optional(operand(1)))
    }
    let groups = (0..<random.below(3)).map { (name: "g\($0)", expression: operand(1)) }
    return .aggregate([("n", "count", nil)] + aggregates, groups: groups)
  }
}

extension ModelExpression {
  /// The expression as the app writes it.
  fileprivate var made: PipelineExpression {
    switch self {
    case .constant(let value): PipelineExpression(value)
    case .field(let names): Field(FieldPath(names)).pipelineExpression
    case .call(let name, let arguments): .function(name, arguments: arguments.map(\.made))
    }
  }
}

extension ModelStage {
  /// The stage as the app makes it.
  fileprivate func made(_ collection: CollectionPath) -> PipelineStage {
    func columns(
      _ columns: [(name: String, expression: ModelExpression)]
    ) -> [AliasedExpression] {
      columns.map { AliasedExpression(name: $0.name, expression: $0.expression.made) }
    }
    switch self {
    case .filter(let condition): return .filter(condition.made)
    case .select(let all): return .select(columns(all))
    case .add(let all): return .addFields(columns(all))
    case .remove(let names): return .removeFields(names.map { PipelineField(FieldPath($0)) })
    case .sort(let orders):
      return .sort(
        orders.map { PipelineOrdering($0.expression.made, descending: $0.descending) })
    case .offset(let count): return .offset(count)
    case .limit(let count): return .limit(count)
    case .aggregate(let aggregates, let groups):
      let made = aggregates.map { aggregate in
        PipelineAggregate.function(aggregate.function, aggregate.argument?.made)
          .as(aggregate.name)
      }
      return .aggregate(made, groups: columns(groups))
    case .unnest(let field, let alias, let index):
      return .unnest(
        AliasedExpression(name: alias, expression: ModelExpression.field([field]).made),
        indexField: index)
    case .union(let stages):
      return .union([.collection(collection)] + stages.map { $0.made(collection) })
    case .lookup(let field, let value, let name):
      return .lookup(
        PipelineLookup(
          match: .equal(collection, PipelineField(FieldPath(field)), value.made), name: name))
    }
  }
}

@Suite struct PipelineModelTests {
  /// A row in a form in which sums of doubles may differ in their last bits.
  private func form(_ value: Value) -> String {
    switch value {
    case .integer(let number): "\(Double(number))"
    case .double(let number): number.isNaN ? "nan" : "\((number * 1e6).rounded() / 1e6 + 0)"
    case .array(let elements): "[\(elements.map(form).sorted().joined(separator: ","))]"
    case .map(let fields): form(fields)
    default: "\(value)"
    }
  }

  private func form(_ row: [String: Value]) -> String {
    let fields = row.sorted { $0.key < $1.key }.map { "\($0.key):\(form($0.value))" }
    return "{\(fields.joined(separator: ","))}"
  }

  @Test(arguments: Seeds.first(24))
  func `Pipelines answer what reading every document and every stage plainly gives`(
    seed: UInt64
  ) async throws {
    var draw = PipelineDraw(seed: seed)
    let database = try await Database.inMemory()
    let collection = database.collection("c")
    var documents: [[String: Value]] = []
    for number in 0..<(20 + draw.random.below(40)) {
      documents.append(draw.document(number))
      try await collection.document("d\(number)").setData(documents[number], durability: .memory)
    }
    for field in ["a", "b", "m.x"] where draw.random.chance(1, in: 2) {
      try await collection.createIndex(on: [field])
    }
    if draw.random.chance(1, in: 2) { try await collection.createIndex(on: ["a", "-b"]) }
    let naive = NaivePipeline(documents)
    let path = try CollectionPath("c")
    for _ in 0..<60 {
      let model = draw.stages()
      let stages = [.collection(path)] + model.map { $0.made(path) }
      let pipeline = Pipeline(database: database, stages: stages)
      let expected = try? naive.rows(model)
      do {
        let found = try await pipeline.execute().map { $0.data() }
        let context = "seed \(seed): \(stages)"
        #expect(found.map(form).sorted() == expected?.map(form).sorted(), "\(context)")
        if case .sort(let orders)? = model.last, let expected {
          let keys = try found.map { try naive.value(orders[0].expression, $0).map(form) }
          let sorted = try expected.map { try naive.value(orders[0].expression, $0).map(form) }
          #expect(keys == sorted, "\(context)")
        }
      } catch let error as DatabaseError {
        #expect(error.code == .invalidArgument)
        #expect(expected == nil, "seed \(seed): \(error) of \(stages)")
      }
    }
    try await database.close()
  }
}
