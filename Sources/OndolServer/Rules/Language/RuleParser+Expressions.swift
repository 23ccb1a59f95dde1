// Expressions, by precedence: ?: then || then && then == != then in is then < <= > >= then + - then
// * / % then ! - and last members, calls and indexes. A chain of && or || is one expression with
// many parts, so a long condition is not a deep one.

#if Server
  extension RuleParser {
    /// Reads an expression, as far as it goes.
    mutating func expression() throws(RuleError) -> RuleSyntax {
      try enter()
      defer { depth -= 1 }
      let start = scanner.start
      let condition = try disjunction()
      guard try take("?") else { return condition }
      let first = try expression()
      try expect(":")
      let second = try expression()
      return try syntax(
        .choice(condition, first, second), span(start, scanner.previousEnd),
        [condition, first, second])
    }

    private mutating func disjunction() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      var parts = [try conjunction()]
      while try take("||") { parts.append(try conjunction()) }
      guard parts.count > 1 else { return parts[0] }
      return try syntax(.any(parts), span(start, scanner.previousEnd), parts)
    }

    private mutating func conjunction() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      var parts = [try comparison(0)]
      while try take("&&") { parts.append(try comparison(0)) }
      guard parts.count > 1 else { return parts[0] }
      return try syntax(.all(parts), span(start, scanner.previousEnd), parts)
    }

    /// Binary operators, the weakest first. `in` and `is` have the second level.
    private static let levels: [[String: RuleOperator]] = [
      ["==": .equal, "!=": .notEqual], ["in": .contained],
      ["<": .less, "<=": .lessOrEqual, ">": .greater, ">=": .greaterOrEqual],
      ["+": .add, "-": .subtract], ["*": .multiply, "/": .divide, "%": .remainder],
    ]
    private static let levelOfIs = 1

    /// Reads operators of this level and of stronger ones.
    private mutating func comparison(_ level: Int) throws(RuleError) -> RuleSyntax {
      guard level < Self.levels.count else { return try unary() }
      let start = scanner.start
      var left = try comparison(level + 1)
      while true {
        if level == Self.levelOfIs, try takeName("is") {
          let type = try type()
          left = try syntax(.isType(left, type), span(start, scanner.previousEnd), [left])
        } else if let word = operatorWord, let next = Self.levels[level][word] {
          try scanner.advance()
          let right = try comparison(level + 1)
          left = try syntax(
            .binary(next, left, right), span(start, scanner.previousEnd), [left, right])
        } else {
          return left
        }
      }
    }

    private var operatorWord: String? {
      switch scanner.token {
      case .mark(let mark): mark
      case .name(let name): name == "in" ? name : nil
      default: nil
      }
    }

    private mutating func type() throws(RuleError) -> RuleType {
      guard case .name(let name) = scanner.token, let type = RuleType(rawValue: name) else {
        let names = RuleType.allCases.map(\.rawValue).joined(separator: ", ")
        throw scanner.error("is is followed by one of \(names)")
      }
      try scanner.advance()
      return type
    }

    private mutating func unary() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      guard scanner.token == .mark("!") || scanner.token == .mark("-") else {
        return try postfix()
      }
      try enter()
      defer { depth -= 1 }
      let isNot = try take("!")
      if !isNot { try scanner.advance() }
      let operand = try unary()
      return try syntax(
        isNot ? .not(operand) : .negated(operand), span(start, scanner.previousEnd), [operand])
    }

    private mutating func postfix() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      var value = try primary()
      while true {
        if try take(".") {
          guard case .name(let name) = scanner.token else {
            throw scanner.error("a name is expected after .")
          }
          try scanner.advance()
          guard scanner.token == .mark("(") else {
            value = try syntax(.member(value, name), span(start, scanner.previousEnd), [value])
            continue
          }
          let arguments = try arguments()
          value = try syntax(
            .method(value, name, arguments), span(start, scanner.previousEnd), [value] + arguments)
        } else if try take("[") {
          value = try subscripted(value, from: start)
        } else {
          return value
        }
      }
    }

    /// Reads `[i]` or `[i:j]`, after the bracket.
    private mutating func subscripted(
      _ value: RuleSyntax, from start: Int
    ) throws(RuleError) -> RuleSyntax {
      let first = try expression()
      if try take("]") {
        return try syntax(.index(value, first), span(start, scanner.previousEnd), [value, first])
      }
      try expect(":")
      let last = try expression()
      try expect("]")
      return try syntax(
        .range(value, from: first, to: last), span(start, scanner.previousEnd),
        [value, first, last])
    }

    private mutating func arguments() throws(RuleError) -> [RuleSyntax] {
      try expect("(")
      var arguments: [RuleSyntax] = []
      while try !take(")") {
        if !arguments.isEmpty { try expect(",") }
        arguments.append(try expression())
      }
      return arguments
    }

    private mutating func primary() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      switch scanner.token {
      case .name(let name): return try named(name)
      case .int(let value): return try literal(.int(value))
      case .float(let value): return try literal(.float(value))
      case .string(let value): return try literal(.string(value))
      case .bytes(let value): return try literal(.bytes(value))
      case .mark("("):
        try scanner.advance()
        let inner = try expression()
        try expect(")")
        return inner
      case .mark("["):
        try scanner.advance()
        var elements: [RuleSyntax] = []
        while try !take("]") {
          if !elements.isEmpty { try expect(",") }
          // A comma may follow the last element.
          if try take("]") { break }
          elements.append(try expression())
        }
        return try syntax(.list(elements), span(start, scanner.previousEnd), elements)
      case .mark("{"): return try map()
      case .mark("/"): return try path()
      default: throw scanner.error("a value is expected, and here is \(scanner.token.text)")
      }
    }

    private mutating func named(_ name: String) throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      switch name {
      case "true": return try literal(.bool(true))
      case "false": return try literal(.bool(false))
      case "null": return try literal(.null)
      default: break
      }
      try scanner.advance()
      guard scanner.token == .mark("(") else {
        return try syntax(.name(name), span(start, scanner.previousEnd), [])
      }
      let arguments = try arguments()
      return try syntax(.call(name, arguments), span(start, scanner.previousEnd), arguments)
    }

    private mutating func map() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      try expect("{")
      var entries: [(key: RuleSyntax, value: RuleSyntax)] = []
      while try !take("}") {
        if !entries.isEmpty { try expect(",") }
        if try take("}") { break }
        let key = try expression()
        try expect(":")
        entries.append((key, try expression()))
      }
      return try syntax(
        .map(entries), span(start, scanner.previousEnd), entries.flatMap { [$0.key, $0.value] })
    }

    /// Reads `/databases/$(database)/documents/…`, byte by byte between the values.
    private mutating func path() throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      var position = start
      var parts: [RulePathPart<RuleSyntax>] = []
      var values: [RuleSyntax] = []
      while scanner.byte(at: position) == UInt8(ascii: "/") {
        position += 1
        if scanner.byte(at: position) == UInt8(ascii: "$"),
          scanner.byte(at: position + 1) == UInt8(ascii: "(")
        {
          try scanner.resume(at: position + 2)
          let value = try expression()
          guard scanner.token == .mark(")") else { throw scanner.error("a $( has no )") }
          position = scanner.position
          values.append(value)
          parts.append(.value(value))
        } else {
          parts.append(.segment(try segment(at: &position)))
        }
        try limit(parts.count, at: position)
      }
      try scanner.resume(at: position)
      return try syntax(.path(parts), span(start, position), values)
    }

    private mutating func literal(_ value: RuleValue) throws(RuleError) -> RuleSyntax {
      let start = scanner.start
      try scanner.advance()
      return try syntax(.literal(value), span(start, scanner.previousEnd), [])
    }

    /// Makes an expression over others. Its height is limited, because its evaluation recurses.
    private func syntax(
      _ form: RuleSyntax.Form, _ span: RuleSpan, _ parts: [RuleSyntax]
    ) throws(RuleError) -> RuleSyntax {
      let height = (parts.map(\.height).max() ?? 0) + 1
      guard height <= RuleLimits.nesting else {
        throw scanner.error(
          "an expression has more than \(RuleLimits.nesting) operators within each other",
          at: Int(span.start))
      }
      return RuleSyntax(form: form, span: span, height: height)
    }
  }
#endif
