// The pipelines of a trial of live pipelines: few fields and values, so that most commits change
// most answers.

internal import Ondol

/// Draws pipelines.
struct LivePipelineDraw {
  private var random: SeededRandom
  private let database: Database

  init(seed: UInt64, _ database: Database) {
    random = SeededRandom(seed: SeededRandom.derive(seed, 7))
    self.database = database
  }

  mutating func pipeline() -> DrawnPipeline {
    var (pipeline, text) = source()
    for _ in 0..<random.below(3) {
      let condition = condition()
      pipeline = pipeline.where(condition)
      text += " | where \(condition)"
    }
    let isOrdered: Bool
    switch random.below(9) {
    case 0:
      columns(&pipeline, &text)
      isOrdered = true
    case 1, 2:
      if random.chance(1, in: 3) { columns(&pipeline, &text) }
      sorted(&pipeline, &text)
      if random.chance(1, in: 3) { columns(&pipeline, &text) }
      isOrdered = true
    case 3:
      isOrdered = others(&pipeline, &text)
    default:
      isOrdered = grouped(&pipeline, &text)
    }
    return DrawnPipeline(pipeline: pipeline, isOrdered: isOrdered, description: text)
  }

  private mutating func source() -> (Pipeline, String) {
    let source = database.pipeline()
    switch random.below(12) {
    case 0: return (source.collectionGroup("c"), "group c")
    case 1: return (source.collection("d"), "d")
    case 2: return (source.collection("e"), "e")
    case 3:
      let documents = (0..<4).map { database.document("c/d\($0)") }
      return (source.documents(documents), "documents")
    default: return (source.collection("c"), "c")
    }
  }

  private mutating func field() -> Field { Field(FieldPath([random.pick(["a", "a", "b", "g"])])) }

  private mutating func condition() -> PipelineExpression {
    let number = random.below(4)
    switch random.below(10) {
    case 0: return field().equal(number)
    case 1: return Field("g").equal("x")
    case 2: return Field("a").lessThan(number)
    case 3: return Field("b").notEqual(number)
    case 4: return Field("t").arrayContains(number)
    case 5: return Field("b").multiply(2).lessThan(5)
    case 6: return Field("a").exists()
    case 7: return Field("b").greaterThan(0) || Field("g").equal("y")
    case 8: return Field("b").greaterThanOrEqual(1) && Field("a").lessThanOrEqual(number)
    default: return Field("a").greaterThan(number - 1)
    }
  }

  private mutating func columns(_ pipeline: inout Pipeline, _ text: inout String) {
    switch random.below(5) {
    case 0:
      pipeline = pipeline.select(Field("g"), Field("b").multiply(10).as("ten"))
      text += " | select g, ten"
    case 1:
      // Texts cannot be added, which fails the pipeline.
      pipeline = pipeline.addFields(Field("a").add(1).ifError("none").as("more"))
      text += " | add more"
    case 2:
      pipeline = pipeline.removeFields("t", "g")
      text += " | remove t, g"
    case 3:
      pipeline = pipeline.select(Field("a"), Field("__update_time__").as("at"))
      text += " | select a, at"
    default:
      pipeline = pipeline.select(Field("a").add(1).as("risky"))
      text += " | select risky"
    }
  }

  private mutating func sorted(_ pipeline: inout Pipeline, _ text: inout String) {
    let field = field()
    let descending = random.chance(1, in: 2)
    if random.chance(1, in: 3) {
      let length = field.ifAbsent(0).type().charLength()
      pipeline = pipeline.sort(descending ? length.descending() : length.ascending())
    } else if random.chance(1, in: 2) {
      pipeline = pipeline.sort(descending ? field.descending() : field.ascending())
    } else {
      pipeline = pipeline.sort(
        Field("b").ascending(), descending ? field.descending() : field.ascending())
    }
    text += " | sort \(field) \(descending)"
    part(&pipeline, &text)
  }

  private mutating func part(_ pipeline: inout Pipeline, _ text: inout String) {
    if random.chance(1, in: 4) {
      let count = random.below(3)
      pipeline = pipeline.offset(count)
      text += " | offset \(count)"
    }
    if random.chance(1, in: 2) {
      let count = random.below(6)
      pipeline = pipeline.limit(count)
      text += " | limit \(count)"
    }
  }

  /// Returns whether the groups are sorted.
  private mutating func grouped(_ pipeline: inout Pipeline, _ text: inout String) -> Bool {
    var aggregates: [AliasedAggregate] = [PipelineAggregate.count().as("n")]
    for number in 0..<random.below(4) {
      let field = field()
      let name = random.pick([
        "count", "sum", "average", "minimum", "maximum", "count_if", "count_distinct",
      ])
      let operand: PipelineExpression =
        name == "count_if" ? field.greaterThan(1) : field.pipelineExpression
      // A count of different values makes the pipeline run again.
      if name == "count_distinct", random.chance(2, in: 3) { continue }
      aggregates.append(PipelineAggregate.function(name, operand).as("r\(number)"))
    }
    let groups: [any PipelineSelectable] = random.pick([
      [], [Field("g")], [Field("g")], [Field("g"), Field("b")], [Field("b").mod(2).as("odd")],
    ])
    if random.chance(1, in: 5) { columns(&pipeline, &text) }
    pipeline = pipeline.aggregate(aggregates, groups: groups)
    text += " | aggregate \(aggregates) by \(groups)"
    if random.chance(1, in: 3) {
      pipeline = pipeline.where(Field("n").greaterThan(1))
      text += " | where n > 1"
    }
    if random.chance(1, in: 3) {
      pipeline = pipeline.addFields(Field("n").multiply(2).as("twice"))
      text += " | add twice"
    }
    guard random.chance(1, in: 2) else { return false }
    let descending = random.chance(1, in: 2)
    let key = Field(random.pick(["n", "r0", "g"]))
    pipeline = pipeline.sort(descending ? key.descending() : key.ascending())
    text += " | sort \(key) \(descending)"
    part(&pipeline, &text)
    if random.chance(1, in: 4) {
      pipeline = pipeline.select(Field("n"))
      text += " | select n"
    }
    return true
  }

  /// Stages that make a pipeline run again. Returns whether its rows have an order.
  private mutating func others(_ pipeline: inout Pipeline, _ text: inout String) -> Bool {
    switch random.below(6) {
    case 0:
      pipeline = pipeline.unnest(Field("t").as("e"), indexField: "i")
        .aggregate(.count().as("n"), groups: [Field("e")])
      text += " | unnest t as e | aggregate n by e"
      return false
    case 1:
      pipeline = pipeline.union(database.pipeline().collection("c").where(Field("b").equal(1)))
      text += " | union (c | where b = 1)"
      return true
    case 2:
      pipeline = pipeline.lookup(in: "d", where: "b", equals: Field("b"), as: "others")
      text += " | lookup in d"
      return true
    case 3:
      pipeline = pipeline.lookup(Field("r"), as: "referred")
      text += " | lookup r"
      return true
    case 4:
      pipeline = database.pipeline().allDocuments().aggregate(.count().as("n"))
      text = "* | aggregate n"
      return true
    default:
      pipeline = pipeline.distinct(Field("g"), Field("b"))
      text += " | distinct g, b"
      return false
    }
  }
}
