// Expressions of pipelines in text form: or, and, not, comparisons, sums, products, functions.

import Ondol

extension PipelineText {
  mutating func expression() throws(PipelineTextError) -> PipelineExpression {
    try enter()
    defer { depth -= 1 }
    var operands = [try conjunction()]
    while take(word: "or") { operands.append(try conjunction()) }
    return operands.count == 1 ? operands[0] : .function("or", arguments: operands)
  }

  private mutating func conjunction() throws(PipelineTextError) -> PipelineExpression {
    var operands = [try negation()]
    while take(word: "and") { operands.append(try negation()) }
    return operands.count == 1 ? operands[0] : .function("and", arguments: operands)
  }

  private mutating func negation() throws(PipelineTextError) -> PipelineExpression {
    guard take(word: "not") else { return try comparison() }
    try enter()
    defer { depth -= 1 }
    return .function("not", try negation())
  }

  private mutating func comparison() throws(PipelineTextError) -> PipelineExpression {
    let left = try sum()
    let functions = [
      "=": "equal", "==": "equal", "!=": "not_equal", "<": "less_than",
      "<=": "less_than_or_equal", ">": "greater_than", ">=": "greater_than_or_equal",
    ]
    if case .sign(let sign)? = peek, let function = functions[sign] {
      _ = next()
      return .function(function, left, try sum())
    }
    if take(word: "in") { return .function("equal_any", left, try sum()) }
    if take(word: "has") { return .function("array_contains", left, try sum()) }
    if take(word: "like") { return .function("like", left, try sum()) }
    return left
  }

  private mutating func sum() throws(PipelineTextError) -> PipelineExpression {
    var left = try product()
    while true {
      if take(sign: "+") {
        left = .function("add", left, try product())
      } else if take(sign: "-") {
        left = .function("subtract", left, try product())
      } else {
        return left
      }
    }
  }

  private mutating func product() throws(PipelineTextError) -> PipelineExpression {
    var left = try unary()
    while true {
      if take(sign: "*") {
        left = .function("multiply", left, try unary())
      } else if take(sign: "/") {
        left = .function("divide", left, try unary())
      } else if take(sign: "%") {
        left = .function("mod", left, try unary())
      } else {
        return left
      }
    }
  }

  private mutating func unary() throws(PipelineTextError) -> PipelineExpression {
    guard take(sign: "-") else { return try primary() }
    switch peek {
    case .integer(let number)?:
      _ = next()
      return PipelineExpression(.integer(-Int64(number)))
    case .double(let number)?:
      _ = next()
      return PipelineExpression(.double(-number))
    default: return .function("subtract", 0, try primary())
    }
  }

  private mutating func primary() throws(PipelineTextError) -> PipelineExpression {
    guard let token = peek else { throw error("here an expression is needed") }
    switch token {
    case .integer(let number):
      _ = next()
      return PipelineExpression(.integer(Int64(number)))
    case .double(let number):
      _ = next()
      return PipelineExpression(.double(number))
    case .text(let text):
      _ = next()
      return PipelineExpression(.string(text))
    case .sign("("):
      _ = next()
      let inner = try expression()
      try need(sign: ")")
      return inner
    case .sign("["):
      _ = next()
      return .function("array", arguments: try arguments(until: "]"))
    case .name(let name): return try named(name)
    case .sign: throw error("here an expression is needed")
    }
  }

  private mutating func named(_ name: String) throws(PipelineTextError) -> PipelineExpression {
    let isCall = isFollowed(by: "(")
    _ = next()
    if isCall {
      try need(sign: "(")
      return .function(name, arguments: try arguments(until: ")"))
    }
    switch name {
    case "true": return PipelineExpression(.boolean(true))
    case "false": return PipelineExpression(.boolean(false))
    case "null": return PipelineExpression(.null)
    default: return Field(FieldPath(name)).pipelineExpression
    }
  }

  private mutating func arguments(
    until end: String
  ) throws(PipelineTextError) -> [any PipelineOperand] {
    var arguments: [any PipelineOperand] = []
    if take(sign: end) { return arguments }
    repeat { arguments.append(try expression()) } while take(sign: ",")
    try need(sign: end)
    return arguments
  }
}
