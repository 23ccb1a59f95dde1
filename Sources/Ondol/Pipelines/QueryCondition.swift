// Conditions of pipelines that a query can have: comparisons of a field with a constant, and what
// `and` and `or` make of them. They run on documents' bytes (RowProgram), and indexes serve them.
// When an `and` has other conditions, the query may find more documents than it is true for.

/// A condition of a query that holds at least wherever an expression is true.
struct QueryCondition {
  var tree: FilterTree
  /// What must also be true for the expression to be; nil when the condition holds only there.
  var residual: PipelineExpression?

  /// Whether it holds only where the expression is true.
  var isExact: Bool { residual == nil }

  init?(_ expression: PipelineExpression) {
    guard case .function(let name, let arguments) = expression.form else { return nil }
    switch name {
    case "and": self.init(all: arguments)
    case "or": self.init(any: arguments, of: expression)
    default:
      guard let function = ScalarFunction(rawValue: name) else { return nil }
      self.init(comparison: function, arguments)
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
    let others = zip(conditions, arguments).compactMap { condition, argument in
      if let condition { return condition.residual }
      let isKnown = Self.existence(argument).map { present.contains(.field($0)) } ?? false
      return isKnown ? nil : argument
    }
    residual = others.count > 1 ? .function("and", arguments: others) : others.first
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
    guard case .function(let name, let arguments) = expression.form,
      let function = ScalarFunction(rawValue: name)
    else { return [] }
    switch function {
    case .and, .or: return arguments.flatMap { inequalities(in: $0) }
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notEqualAny,
      .startsWith:
      guard arguments.count == 2, let field = sides(function, arguments)?.field else { return [] }
      return [field]
    default: return []
    }
  }

  private init?(any arguments: [PipelineExpression], of expression: PipelineExpression) {
    let conditions = arguments.compactMap { QueryCondition($0) }
    guard !conditions.isEmpty, conditions.count == arguments.count else { return nil }
    tree = .any(conditions.map(\.tree))
    residual = conditions.allSatisfy(\.isExact) ? nil : expression
  }

  private init?(comparison function: ScalarFunction, _ arguments: [PipelineExpression]) {
    guard arguments.count == 2, let (function, field, operand) = Self.sides(function, arguments),
      !function.isNegated, let condition = function.condition(operand)
    else { return nil }
    // Nothing is less or greater than null or NaN, but they equal themselves.
    if function.isOrdering, operand.isNull || operand.isNotANumber { return nil }
    tree = .field(FieldFilter(field: .field(field), condition: condition))
    residual = nil
    // For queries, NaN is less than all numbers.
    if function == .lessThan || function == .lessThanOrEqual, operand.isNumber {
      let number = FieldFilter(field: .field(field), condition: .greater(.double(.nan)))
      tree = .all([.field(number), tree])
    }
  }

  /// The field and the constant, in this order; the comparison is turned around when they are not.
  private static func sides(
    _ function: ScalarFunction, _ arguments: [PipelineExpression]
  ) -> (function: ScalarFunction, field: FieldNames, operand: Value)? {
    if let field = names(arguments[0]), let operand = constant(arguments[1]) {
      return (function, field, operand)
    }
    guard let turned = function.turned, let field = names(arguments[1]),
      let operand = constant(arguments[0])
    else { return nil }
    return (turned, field, operand)
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
}
