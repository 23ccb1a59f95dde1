// Comparisons and logic. Null and absent values are neither true nor false, as in SQL, except that
// null equals null. An error counts only where it decides.

extension ScalarFunction {
  /// The functions that need not compute all their arguments.
  func logic(
    _ arguments: [CompiledExpression], in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Value? {
    switch self {
    case .and: return try connected(arguments, in: frame, deciding: false)
    case .or: return try connected(arguments, in: frame, deciding: true)
    case .nor: return try connected(arguments, in: frame, deciding: true).inverted
    case .xor: return try exclusive(arguments, in: frame)
    case .not: return try truth(of: arguments[0], in: frame).map { .boolean(!$0) } ?? .null
    case .conditional:
      let holds = try truth(of: arguments[0], in: frame) == true
      return try arguments[holds ? 1 : 2].value(in: frame)
    case .switchOn: return try branch(arguments, in: frame)
    case .exists: return .boolean(try arguments[0].value(in: frame) != nil)
    case .isAbsent: return .boolean(try arguments[0].value(in: frame) == nil)
    case .ifAbsent:
      if let value = try arguments[0].value(in: frame) { return value }
      return try arguments[1].value(in: frame)
    case .isError, .ifError: return try guarded(arguments, in: frame)
    default:
      for argument in arguments {
        if let value = try argument.value(in: frame), !value.isNull { return value }
      }
      return .null
    }
  }

  private func guarded(
    _ arguments: [CompiledExpression], in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Value? {
    let value: Value?
    do throws(ExpressionFailure) {
      value = try arguments[0].value(in: frame)
    } catch {
      return self == .isError ? .boolean(true) : try arguments[1].value(in: frame)
    }
    return self == .isError ? .boolean(false) : value
  }

  /// Nil when it is null or absent.
  private func truth(
    of argument: CompiledExpression, in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Bool? {
    switch try argument.value(in: frame) {
    case .boolean(let value)?: return value
    case nil, .null?: return nil
    default: throw needs("a boolean")
    }
  }

  /// `and` is decided by a false argument and `or` by a true one, whatever the others are.
  private func connected(
    _ arguments: [CompiledExpression], in frame: EvaluationFrame, deciding: Bool
  ) throws(ExpressionFailure) -> Value {
    var isUnknown = false
    var failure: ExpressionFailure?
    for argument in arguments {
      do throws(ExpressionFailure) {
        guard let value = try truth(of: argument, in: frame) else {
          isUnknown = true
          continue
        }
        if value == deciding { return .boolean(deciding) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return isUnknown ? .null : .boolean(!deciding)
  }

  private func exclusive(
    _ arguments: [CompiledExpression], in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Value {
    var (result, isUnknown) = (false, false)
    for argument in arguments {
      if let value = try truth(of: argument, in: frame) {
        result = result != value
      } else {
        isUnknown = true
      }
    }
    return isUnknown ? .null : .boolean(result)
  }

  /// The result after the first true condition, or the last argument when it has no condition.
  private func branch(
    _ arguments: [CompiledExpression], in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Value? {
    var place = 0
    while place + 1 < arguments.count {
      if try truth(of: arguments[place], in: frame) == true {
        return try arguments[place + 1].value(in: frame)
      }
      place += 2
    }
    guard place < arguments.count else {
      throw ExpressionFailure("switch_on: no condition is true, and there is no other result")
    }
    return try arguments[place].value(in: frame)
  }

  // MARK: - Comparing

  func compared(_ values: [Value?]) throws(ExpressionFailure) -> Value? {
    switch self {
    case .cmp: return .integer(Int64(Self.completeOrder(values[0], values[1]).signum()))
    case .equalAny, .notEqualAny:
      guard let list = values[1]?.array else { throw needs("an array") }
      // The list is another one for each row, so it is not worth sorting.
      return .boolean((values[0].map(list.contains) ?? false) != isNegated)
    case .maximum, .minimum: return extreme(values)
    case .type: return values[0].map { .string(Self.typeName($0)) } ?? .null
    case .isType:
      guard let name = values[1]?.string else { throw needs("the name of a type") }
      return values[0].map { .boolean(Self.isType(name, of: $0)) } ?? .null
    case .error:
      throw ExpressionFailure(values[0]?.string ?? "an error that the pipeline asks for")
    default: return compared(values[0], with: values[1], orders ?? [])
    }
  }

  /// The value of a comparison of which these orders pass.
  func compared(_ value: Value?, with operand: Value?, _ orders: ValueOrders) -> Value {
    guard let value, let operand else { return .boolean(isNegated) }
    return .boolean(
      value.order(to: operand, ranksNaN: false).isDisjoint(with: orders) == isNegated)
  }

  // MARK: - Comparing with one value

  /// The condition on the first argument when the second one is this. Nil for a function that is no
  /// comparison, and for an operand that it does not take.
  func condition(_ operand: Value) -> FieldFilter.Condition? {
    switch self {
    case .equal, .notEqual: .equal(operand)
    case .lessThan: .less(operand)
    case .lessThanOrEqual: .lessOrEqual(operand)
    case .greaterThan: .greater(operand)
    case .greaterThanOrEqual: .greaterOrEqual(operand)
    case .equalAny, .notEqualAny: operand.array.map { .isIn($0.sortedWithoutDuplicates) }
    case .arrayContains: .arrayContains(operand)
    case .arrayContainsAny: operand.array.map { .arrayContainsAny($0.sortedWithoutDuplicates) }
    case .startsWith: operand.string.map { .hasPrefix(ExactText($0)) }
    default: nil
    }
  }

  /// Whether it is true for what does not meet the condition, and for absent values.
  var isNegated: Bool { self == .notEqual || self == .notEqualAny }

  /// Whether it asks which of two values is less.
  var isOrdering: Bool { turned.map { $0 != self } ?? false }

  /// The comparison with its arguments exchanged.
  var turned: ScalarFunction? {
    switch self {
    case .equal, .notEqual: self
    case .lessThan: .greaterThan
    case .lessThanOrEqual: .greaterThanOrEqual
    case .greaterThan: .lessThan
    case .greaterThanOrEqual: .lessThanOrEqual
    default: nil
    }
  }

  /// The orders that pass, whatever the operand is; nil for a function that needs a list, an array
  /// or a text.
  var orders: ValueOrders? { turned == nil ? nil : condition(.null)?.test.orders }

  /// The condition as pipelines ask it of a value.
  func test(_ operand: Value) -> ValueTest? {
    var test = condition(operand)?.test
    test?.ranksNaN = false
    return test
  }

  /// The function's value for a first argument, when this is its test.
  func value(of test: ValueTest, for value: Value?) throws(ExpressionFailure) -> Value {
    if test.isOfElements || test.isOfText {
      guard let value, !value.isNull else { return .null }
      guard test.isOfElements ? value.array != nil : value.string != nil else {
        throw needs(test.isOfElements ? "an array" : "a text")
      }
    }
    return .boolean((value.map(test.passes) ?? false) != isNegated)
  }

  /// The order by which rows are sorted: absent first, then by type.
  static func completeOrder(_ left: Value?, _ right: Value?) -> Int {
    switch (left, right) {
    case (nil, nil): 0
    case (nil, _): -1
    case (_, nil): 1
    case (let left?, let right?): ValueOrder.compare(left, right)
    }
  }

  /// The greatest or least value, of a single array the one of its elements.
  private func extreme(_ values: [Value?]) -> Value {
    var candidates = values.compactMap(\.self)
    if values.count == 1, let elements = candidates.first?.array { candidates = elements }
    var found: Value?
    for value in candidates where !value.isNull {
      guard let known = found else {
        found = value
        continue
      }
      let order = ValueOrder.compare(value, known)
      if self == .maximum ? order > 0 : order < 0 { found = value }
    }
    return found ?? .null
  }

  static func typeName(_ value: Value) -> String {
    switch value {
    case .null: "null"
    case .boolean: "boolean"
    case .integer: "int64"
    case .double: "float64"
    case .decimal: "decimal128"
    case .timestamp: "timestamp"
    case .string: "string"
    case .bytes: "bytes"
    case .reference: "reference"
    case .geoPoint: "geo_point"
    case .array: "array"
    case .vector: "vector"
    case .map: "map"
    case .blob: "blob"
    }
  }

  private static func isType(_ name: String, of value: Value) -> Bool {
    if name == "number" { return value.isNumber }
    return name == typeName(value)
  }
}

extension Value {
  fileprivate var inverted: Value {
    if case .boolean(let value) = self { .boolean(!value) } else { self }
  }
}
