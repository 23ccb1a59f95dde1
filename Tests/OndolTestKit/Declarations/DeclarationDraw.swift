// The documents and queries of histories of declarations: few of both, so that many match.

internal import Ondol

struct DeclarationDraw: Sendable {
  var random: SeededRandom

  private static let fields = ["a", "b", "t", "n", "step1"]

  mutating func fields(_ clock: StandingClock) -> [String: Value] {
    var fields: [String: Value] = ["n": random.number(below: 3)]
    if random.chance(5, in: 6) { fields["a"] = .integer(Int64(random.below(5))) }
    if random.chance(5, in: 6) { fields["b"] = .string(random.pick(["p", "q", "r"])) }
    if random.chance(1, in: 3) {
      fields["t"] = .array((0..<random.below(3)).map { _ in random.element(below: 4) })
    }
    if random.chance(1, in: 6) { fields[TrialSchema.poison] = .integer(Int64(random.below(5))) }
    if random.chance(1, in: 3) {
      fields["end"] = .timestamp(clock.moment(in: random.below(8) - 1))
    }
    if random.chance(1, in: 3) { fields["u"] = random.number(below: 6) }
    return fields
  }

  mutating func path() -> String {
    let collection = random.chance(2, in: 3) ? "c" : random.pick(DeclaredCollection.all).path
    return "\(collection)/\(random.pick(DeclaredCollection.ids))"
  }

  mutating func query() -> ModelQuery {
    var query = ModelQuery()
    if random.chance(1, in: 5) {
      query.group = "c"
    } else {
      query.collection = random.pick(DeclaredCollection.all).path
        .split(separator: "/").map(String.init)
    }
    for _ in 0..<random.below(3) { query.filters.append(filter(inGroup: query.group != nil)) }
    for _ in 0..<random.below(3) {
      query.orders.append(
        (
          [random.pick(Self.fields)], random.chance(1, in: 2),
          random.pick([.excluded, .excluded, .first, .last])
        ))
    }
    if random.chance(1, in: 3) {
      query.limit = 1 + random.below(5)
      query.isLast = random.chance(1, in: 3)
    }
    if random.chance(1, in: 8) { query.offset = random.below(3) }
    return query
  }

  private mutating func filter(inGroup: Bool) -> ModelFilter {
    let number = Value.integer(Int64(random.below(5)))
    switch random.below(9) {
    case 7:
      return .compare(
        field: ["n"], sign: random.pick(["==", "<", ">="]), operand: random.number(below: 3))
    case 8: return .compare(field: ["t"], sign: "contains", operand: random.element(below: 4))
    case 0: return .compare(field: ["a"], sign: "==", operand: number)
    case 1:
      return .compare(
        field: ["a"], sign: random.pick(["<", "<=", ">", ">=", "!="]), operand: number)
    case 2: return .compare(field: ["b"], sign: "==", operand: .string(random.pick(["p", "q"])))
    case 3: return .compare(field: ["t"], sign: "contains", operand: number)
    case 4 where !inGroup:
      return .list(
        field: ModelQuery.name, sign: "in",
        operands: [.string(random.pick(DeclaredCollection.ids))])
    case 5: return .compare(field: ["step1"], sign: "==", operand: .string("new"))
    default:
      return .any([
        .compare(field: ["a"], sign: "==", operand: number),
        .compare(field: ["b"], sign: "==", operand: .string("q")),
      ])
    }
  }
}
