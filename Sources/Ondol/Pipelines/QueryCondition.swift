// Conditions of pipelines that a query can have: comparisons of a field with a constant, and what
// `and` and `or` make of them. A query may find more documents than the expression is true for.

/// A condition of a query that holds at least wherever an expression is true.
struct QueryCondition {
  var tree: FilterTree
  /// Whether it holds only there.
  var isExact: Bool

  init?(_ expression: PipelineExpression) {
    guard case .function(let name, let arguments) = expression.form else { return nil }
    switch name {
    case "and": self.init(all: arguments)
    case "or": self.init(any: arguments)
    default: self.init(comparison: name, arguments)
    }
  }

  private init?(all arguments: [PipelineExpression]) {
    let conditions = arguments.map { QueryCondition($0) }
    let known = conditions.compactMap(\.self)
    guard !known.isEmpty else { return nil }
    tree = .all(known.map(\.tree))
    // What meets a condition on a field has the field. Clients say so again.
    let present = tree.conjuncts.compactMap { tree -> QueryField? in
      if case .field(let filter) = tree { filter.field } else { nil }
    }
    isExact =
      known.allSatisfy(\.isExact)
      && zip(conditions, arguments).allSatisfy { condition, argument in
        condition != nil || Self.existence(argument).map { present.contains(.field($0)) } ?? false
      }
  }

  /// The field of which the expression says that it exists.
  private static func existence(_ expression: PipelineExpression) -> FieldNames? {
    guard case .function("exists", let arguments) = expression.form, arguments.count == 1 else {
      return nil
    }
    return names(arguments[0])
  }

  /// The fields that a condition compares with a constant, other than for equality.
  static func inequalities(in expression: PipelineExpression) -> [FieldNames] {
    guard case .function(let name, let arguments) = expression.form else { return [] }
    switch name {
    case "and", "or": return arguments.flatMap { inequalities(in: $0) }
    case "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal", "not_equal",
      "not_equal_any", "starts_with":
      guard arguments.count == 2, let field = sides(name, arguments)?.field else { return [] }
      return [field]
    default: return []
    }
  }

  private init?(any arguments: [PipelineExpression]) {
    let conditions = arguments.compactMap { QueryCondition($0) }
    guard !conditions.isEmpty, conditions.count == arguments.count else { return nil }
    tree = .any(conditions.map(\.tree))
    isExact = conditions.allSatisfy(\.isExact)
  }

  private init?(comparison name: String, _ arguments: [PipelineExpression]) {
    guard arguments.count == 2, let sides = Self.sides(name, arguments),
      let found = Self.condition(sides.name, sides.operand)
    else { return nil }
    tree = .field(FieldFilter(field: .field(sides.field), condition: found.condition))
    isExact = found.isExact
  }

  /// The field and the constant, in this order; the comparison is turned around when they are not.
  private static func sides(
    _ name: String, _ arguments: [PipelineExpression]
  ) -> (name: String, field: FieldNames, operand: Value)? {
    if let field = names(arguments[0]), let operand = constant(arguments[1]) {
      return (name, field, operand)
    }
    let turned = [
      "equal": "equal", "not_equal": "not_equal", "less_than": "greater_than",
      "greater_than": "less_than",
      "less_than_or_equal": "greater_than_or_equal",
      "greater_than_or_equal": "less_than_or_equal",
    ]
    guard let name = turned[name], let field = names(arguments[1]),
      let operand = constant(arguments[0])
    else { return nil }
    return (name, field, operand)
  }

  private static func names(_ expression: PipelineExpression) -> FieldNames? {
    guard case .field(let field) = expression.form, field.problem == nil,
      case .names(let names) = field.form
    else { return nil }
    return names
  }

  /// A constant, or an array of constants.
  private static func constant(_ expression: PipelineExpression) -> Value? {
    switch expression.form {
    case .constant(let value): return value
    case .function("array", let elements):
      let values = elements.compactMap { constant($0) }
      return values.count == elements.count ? .array(values) : nil
    default: return nil
    }
  }

  private static func condition(
    _ name: String, _ operand: Value
  ) -> (condition: FieldFilter.Condition, isExact: Bool)? {
    // Nothing is less or greater than null or NaN.
    let isOrdered = !operand.isNull && !operand.isNotANumber
    switch name {
    case "equal": return (.equal(operand), true)
    case "greater_than": return isOrdered ? (.greater(operand), true) : nil
    case "greater_than_or_equal": return isOrdered ? (.greaterOrEqual(operand), true) : nil
    // Queries take NaN for the least number, and pipelines for none.
    case "less_than": return isOrdered ? (.less(operand), false) : nil
    case "less_than_or_equal": return isOrdered ? (.lessOrEqual(operand), false) : nil
    case "equal_any":
      return operand.array.map { (.isIn($0.sortedWithoutDuplicates), true) }
    case "array_contains": return (.arrayContains(operand), true)
    case "array_contains_any":
      return operand.array.map { (.arrayContainsAny($0.sortedWithoutDuplicates), true) }
    case "starts_with":
      return operand.string.map { (.hasPrefix(ExactText($0)), true) }
    default: return nil
    }
  }
}
