// What each comparison means for all pairs of some values, by rules that share nothing with the
// code under test: for conditions on decoded values and on encoded rows, and for functions of
// pipelines with a constant, with a computed operand and as a condition on encoded rows.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Values that are equal, and their type, in the order of values.
private let groups: [(type: String, values: [Value])] = [
  ("null", [.null]), ("boolean", [false]), ("boolean", [true]), ("number", [.double(.nan)]),
  ("number", [-1, -1.0]), ("number", [0, 0.0, -0.0]), ("number", [1, 1.0]), ("number", [1.5]),
  ("time", [.timestamp(Timestamp(unchecked: 1))]), ("text", [""]), ("text", ["a"]),
  ("text", ["ab"]), ("text", ["b"]), ("array", [[]]), ("array", [[nil, 1]]),
  ("array", [[1.0, "a"]]), ("map", [["a": 1]]),
]

/// One of the values, with its place in the order.
private struct Sample {
  let value: Value
  let place: Int

  var type: String { groups[place].type }
  var isNaN: Bool { place == 3 }
  /// The elements of an array.
  var elements: [Sample] { value.array?.compactMap { Sample(of: $0) } ?? [] }

  init(value: Value, place: Int) {
    (self.value, self.place) = (value, place)
  }

  init?(of value: Value) {
    let place = groups.firstIndex { $0.values.contains { $0.isIdentical(to: value) } }
    guard let place else { return nil }
    self.init(value: value, place: place)
  }

  static let all = groups.indices.flatMap { place in
    groups[place].values.map { Sample(value: $0, place: place) }
  }

  func equals(_ other: Sample) -> Bool { place == other.place }

  /// By the order of values, in which NaN is the least number.
  func isLess(_ other: Sample) -> Bool { type == other.type && place < other.place }

  func begins(_ prefix: String) -> Bool {
    let texts = ["": ["", "a", "ab", "b"], "a": ["a", "ab"], "ab": ["ab"], "b": ["b"]]
    return value.string.map { texts[prefix]?.contains($0) ?? false } ?? false
  }
}

/// A second value of lists.
private let one = Sample(value: 1, place: 6)

/// The conditions of queries with an operand, and which values meet them.
private func conditions(
  _ operand: Sample
) -> [(condition: FieldFilter.Condition, rule: (Sample) -> Bool)] {
  let list = [operand.value, one.value].sortedWithoutDuplicates
  func isListed(_ value: Sample) -> Bool { value.equals(operand) || value.equals(one) }
  return [
    (.equal(operand.value), { $0.equals(operand) }),
    (.notEqual(operand.value), { $0.type != "null" && !$0.equals(operand) }),
    (.less(operand.value), { $0.isLess(operand) }),
    (.lessOrEqual(operand.value), { $0.isLess(operand) || $0.equals(operand) }),
    (.greater(operand.value), { operand.isLess($0) }),
    (.greaterOrEqual(operand.value), { operand.isLess($0) || $0.equals(operand) }),
    (.isIn(list), isListed),
    (.notIn(list), { operand.type != "null" && $0.type != "null" && !isListed($0) }),
    (.arrayContains(operand.value), { $0.elements.contains { $0.equals(operand) } }),
    (.arrayContainsAny(list), { $0.elements.contains(where: isListed) }),
    (
      .hasPrefix(ExactText(operand.value.string ?? "a")), { $0.begins(operand.value.string ?? "a") }
    ),
  ]
}

/// What a function of pipelines gives; nil for an error.
private func expected(_ name: String, _ value: Sample?, _ operand: Sample) -> Value? {
  let isEqual = value?.equals(operand) ?? false
  func isListed(_ value: Sample) -> Bool { value.equals(operand) || value.equals(one) }
  func isLess(_ left: Sample?, _ right: Sample?) -> Bool {
    guard let left, let right else { return false }
    return !left.isNaN && !right.isNaN && left.isLess(right)
  }
  switch name {
  case "equal": return .boolean(isEqual)
  case "not_equal": return .boolean(!isEqual)
  case "less_than": return .boolean(isLess(value, operand))
  case "less_than_or_equal": return .boolean(isEqual || isLess(value, operand))
  case "greater_than": return .boolean(isLess(operand, value))
  case "greater_than_or_equal": return .boolean(isEqual || isLess(operand, value))
  case "equal_any": return .boolean(value.map(isListed) ?? false)
  case "not_equal_any": return .boolean(!(value.map(isListed) ?? false))
  default: break
  }
  guard let value, value.type != "null" else { return .null }
  if name == "starts_with" {
    if operand.type == "null" { return .null }
    guard value.type == "text", let prefix = operand.value.string else { return nil }
    return .boolean(value.begins(prefix))
  }
  guard value.type == "array" else { return nil }
  let elements = value.elements
  return .boolean(
    name == "array_contains"
      ? elements.contains { $0.equals(operand) } : elements.contains(where: isListed))
}

@Suite struct ComparisonTests {
  private let naming: DocumentNaming
  private let rows: [[UInt8]]
  private let symbols: SymbolTable

  /// Rows of all samples, and one without the field.
  init() throws {
    let path = try CollectionPath("items")
    naming = DocumentNaming(CollectionPattern(path), Keyspace(rawValue: 40), collection: path)
    var symbols = SymbolTable()
    var rows: [[UInt8]] = []
    for fields in Sample.all.map({ ["f": $0.value] }) + [[:]] {
      rows.append(
        try ValueEncoder.document(
          fields, createTime: Timestamp(unchecked: 1), symbols: &symbols
        ).bytes)
    }
    (self.rows, self.symbols) = (rows, symbols)
  }

  /// Which rows meet the condition.
  private func accepted(_ tree: FilterTree) throws -> [Bool] {
    let program = RowProgram([tree], required: [], nil, endingAfter: 0, naming, symbols)
    var accepted: [Bool] = []
    for row in rows {
      accepted.append(try program.accepts(DocumentView(row.bytes), [UInt8]().bytes))
    }
    return accepted
  }

  @Test func `A condition means the same on values and on rows`() throws {
    for (condition, rule) in Sample.all.flatMap(conditions) {
      let wanted = Sample.all.map(rule)
      #expect(Sample.all.map { condition.matches($0.value) } == wanted, "\(condition)")
      let tree = FilterTree.field(FieldFilter(field: .field(["f"]), condition: condition))
      #expect(try accepted(tree) == wanted + [false], "\(condition) on rows")
    }
  }

  @Test(
    arguments: [
      "equal", "not_equal", "less_than", "less_than_or_equal", "greater_than",
      "greater_than_or_equal", "equal_any", "not_equal_any", "array_contains",
      "array_contains_any", "starts_with",
    ])
  func `A function means the same with a constant, with a field and on rows`(name: String) throws {
    let values = Sample.all.map(Optional.some) + [nil]
    let (field, other) = (Field("f").pipelineExpression, Field("o").pipelineExpression)
    for operand in Sample.all {
      let right: Value =
        name.hasSuffix("_any") ? .array([operand.value, one.value]) : operand.value
      let wanted = values.map { expected(name, $0, operand) }
      let constant = PipelineExpression.function(name, field, right)
      #expect(try results(constant, values, right) == wanted, "\(name) \(right)")
      let computed = PipelineExpression.function(name, arguments: [field, other])
      #expect(try results(computed, values, right) == wanted, "\(name) \(right), computed")
      if let condition = QueryCondition(constant) {
        #expect(condition.isExact)
        #expect(
          try accepted(condition.tree) == wanted.map { $0 == .boolean(true) },
          "\(name) \(right) on rows")
      }
    }
  }

  /// The expression's values where `f` is each of the values and `o` the operand.
  private func results(
    _ expression: PipelineExpression, _ values: [Sample?], _ operand: Value
  ) throws -> [Value?] {
    var compiler = ExpressionCompiler(of: "test")
    let compiled = try compiler.compile(expression)
    let frame = EvaluationFrame(now: .minimum, random: { 0 })
    return values.map { value in
      frame.slots = compiler.slots.fields.map { $0.description == "f" ? value?.value : operand }
      do throws(ExpressionFailure) {
        return try compiled.value(in: frame)
      } catch {
        return nil
      }
    }
  }
}
