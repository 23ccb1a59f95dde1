// Queries of the tests' model, from an input's bytes: everything that the model can express, with
// so few fields and values that many documents match.

import Ondol
import OndolTestKit

/// Builds queries from bytes.
struct ModelBuilder {
  var input: FuzzInput

  static let fields = [["a"], ["b"], ["c"], ["m", "x"], ["m"], ["t"]]
  static let ids = ["", "é", "z\0"]
  private static let long = String(repeating: "x", count: 1_100)

  mutating func value(depth: Int = 2) -> Value {
    switch input.below(19) {
    case 18: return .decimal(DecimalValue("\(input.below(3)).\(input.below(3) * 25)") ?? .zero)
    case 0: return .null
    case 1: return .boolean(input.flag())
    case 2...6: return .integer(Int64(input.below(4)))
    case 7: return .double(Double(input.below(6)) / 2)
    case 8: return .double(input.pick([.nan, .infinity, -.infinity, -0.0, 0x1p60]))
    case 9...11: return .string(input.pick(["", "a", "ab", "b", "é", "e\u{301}", "\0", "😀"]))
    case 12: return .string(Self.long + input.pick(["", "a"]))
    case 13:
      return (try? Timestamp(microsecondsSince1970: Int64(input.below(3)))).map {
        .timestamp($0)
      } ?? .null
    case 14: return reference()
    case 15 where depth > 0, 16 where depth > 0:
      return .array(
        (0..<input.below(4)).map { _ in
          let element = value(depth: 0)
          return element
        })
    default: return depth > 0 ? .map(["x": value(depth: depth - 1)]) : .integer(1)
    }
  }

  private mutating func reference() -> Value {
    let path = try? DocumentPath(
      segments: ["users", input.pick(["a", "b"]), "posts", id()])
    return path.map { .reference($0) } ?? .null
  }

  mutating func id() -> String { input.pick(Self.ids) + "d\(input.below(30))" }

  mutating func fields() -> [String: Value] {
    var fields: [String: Value] = [:]
    for name in ["a", "b", "c"] where !input.oneIn(6) { fields[name] = value() }
    if input.flag() { fields["m"] = .map(["x": value(depth: 1)]) }
    if input.flag() {
      fields["t"] = .array((0..<input.below(4)).map { _ in .integer(Int64(input.below(4))) })
    }
    return fields
  }

  // MARK: - Queries

  mutating func query() -> ModelQuery {
    var query = ModelQuery()
    if input.oneIn(5) {
      query.group = "posts"
    } else {
      query.collection = input.pick(QueryWorld.collections)
    }
    for _ in 0..<input.below(4) { query.filters.append(filter(3, query)) }
    for _ in 0..<input.below(3) {
      let field = input.oneIn(8) ? ModelQuery.name : input.pick(Self.fields)
      let missing: MissingPlacement =
        field == ModelQuery.name ? .excluded : input.pick([.excluded, .excluded, .first, .last])
      query.orders.append((field, input.flag(), missing))
    }
    if input.oneIn(4) { query.start = place(query) }
    if input.oneIn(6) { query.end = place(query) }
    if input.oneIn(3) {
      query.limit = input.below(12)
      query.isLast = input.oneIn(3)
    }
    if input.oneIn(6) { query.offset = input.below(5) }
    return query
  }

  private mutating func place(_ query: ModelQuery) -> (values: [Value], isIncluded: Bool)? {
    var fields: [[String]] = []
    for order in query.orders where !fields.contains(order.field) { fields.append(order.field) }
    guard !fields.isEmpty, fields.count == query.orders.count else { return nil }
    let values = fields.prefix(input.below(fields.count) + 1).map { field in
      field == ModelQuery.name ? name(query) : value()
    }
    return (values, input.flag())
  }

  private mutating func name(_ query: ModelQuery) -> Value {
    query.group == nil ? .string(id()) : reference()
  }

  private mutating func filter(_ depth: Int, _ query: ModelQuery) -> ModelFilter {
    if depth > 0, input.oneIn(4) {
      let filters = (0..<input.below(4)).map { _ in filter(depth - 1, query) }
      return input.flag() ? .all(filters) : .any(filters)
    }
    let field = input.oneIn(8) ? ModelQuery.name : input.pick(Self.fields)
    let isName = field == ModelQuery.name
    if input.oneIn(4) {
      let operands = (0...input.below(5)).map { _ in isName ? name(query) : value() }
      let signs = isName ? ["in"] : ["in", "not in", "any"]
      return .list(field: field, sign: input.pick(signs), operands: operands)
    }
    if input.oneIn(10), !isName {
      return .compare(
        field: field, sign: "prefix", operand: .string(input.pick(["", "a", "x", Self.long])))
    }
    let signs =
      isName
      ? ["==", "<", "<=", ">", ">=", "!="]
      : [
        "==", "==", "!=", "<", "<=", ">", ">=", "contains",
      ]
    return .compare(
      field: field, sign: input.pick(signs), operand: isName ? name(query) : value())
  }
}
