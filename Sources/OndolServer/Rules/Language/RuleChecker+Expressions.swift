// Checks the expressions of rules and resolves each name in them, so that an evaluation looks up
// nothing but fields of documents.

#if Server
  import Ondol

  extension RuleChecker {
    mutating func check(_ syntax: RuleSyntax) throws(RuleError) -> RuleNode {
      depth += 1
      defer { depth -= 1 }
      guard depth <= RuleLimits.checkedNesting else {
        throw error("expressions and the functions that they call are nested too deep", syntax.span)
      }
      return RuleNode(try form(of: syntax), syntax.span)
    }

    private mutating func form(of syntax: RuleSyntax) throws(RuleError) -> RuleNode.Form {
      switch syntax.form {
      case .literal(let value): return .constant(value)
      case .name(let name): return try named(name, syntax.span)
      case .member(let value, let name): return try member(name, of: value, syntax.span)
      case .call(let name, let arguments): return try call(name, arguments, syntax.span)
      case .method(let value, let name, let arguments):
        return try method(name, of: value, arguments, syntax.span)
      case .index(let value, let index): return .index(try check(value), try check(index))
      case .range(let value, let first, let last):
        return .range(try check(value), from: try check(first), to: try check(last))
      case .not(let operand): return .not(try check(operand))
      case .negated(let operand): return try negated(operand)
      case .binary(let name, let left, let right):
        return .binary(name, try check(left), try check(right))
      case .all(let parts): return .all(try check(parts))
      case .any(let parts): return .any(try check(parts))
      case .choice(let condition, let first, let second):
        return .choice(try check(condition), try check(first), try check(second))
      case .isType(let value, let type): return .isType(try check(value), type)
      case .list(let elements): return try list(elements)
      case .map(let entries):
        var checked: [(key: RuleNode, value: RuleNode)] = []
        for (key, value) in entries { checked.append((try check(key), try check(value))) }
        return .map(checked)
      case .path(let parts): return .path(try check(parts, allowsUnbound: false))
      }
    }

    private mutating func check(_ parts: [RuleSyntax]) throws(RuleError) -> [RuleNode] {
      var checked: [RuleNode] = []
      for part in parts { checked.append(try check(part)) }
      return checked
    }

    private func named(_ name: String, _ span: RuleSpan) throws(RuleError) -> RuleNode.Form {
      guard let form = variable(name) else {
        throw error("there is no variable \(name) here", span)
      }
      return form
    }

    /// A negative literal is a constant, and so is a list of constants.
    private mutating func negated(_ operand: RuleSyntax) throws(RuleError) -> RuleNode.Form {
      switch operand.form {
      case .literal(.int(let value)) where value != .min: return .constant(.int(-value))
      case .literal(.float(let value)): return .constant(.float(-value))
      default: return .negated(try check(operand))
      }
    }

    private mutating func list(_ elements: [RuleSyntax]) throws(RuleError) -> RuleNode.Form {
      let nodes = try check(elements)
      let constants = nodes.compactMap { node in
        if case .constant(let value) = node.form { value } else { nil }
      }
      return constants.count == nodes.count ? .constant(.list(constants)) : .list(nodes)
    }

    private mutating func check(
      _ parts: [RulePathPart<RuleSyntax>], allowsUnbound: Bool
    ) throws(RuleError) -> [RulePathPart<RuleNode>] {
      var checked: [RulePathPart<RuleNode>] = []
      for part in parts {
        switch part {
        case .segment(let text): checked.append(.segment(text))
        case .value(let syntax):
          if allowsUnbound, case .name(let name) = syntax.form, variable(name) == nil {
            checked.append(.segment("$(\(name))"))
          } else {
            checked.append(.value(try check(syntax)))
          }
        }
      }
      return checked
    }

    private mutating func member(
      _ name: String, of value: RuleSyntax, _ span: RuleSpan
    ) throws(RuleError) -> RuleNode.Form {
      let node = try check(value)
      guard case .request = node.form else { return .member(node, name) }
      guard let field = RuleRequestField(rawValue: name) else {
        let names = RuleRequestField.allCases.map(\.rawValue).joined(separator: ", ")
        throw error("request has \(names), and no \(name)", span)
      }
      return .requestField(field)
    }

    private mutating func call(
      _ name: String, _ arguments: [RuleSyntax], _ span: RuleSpan
    ) throws(RuleError) -> RuleNode.Form {
      let nodes = try check(arguments)
      if let call = try call(name, nodes, span) { return call.form }
      guard !name.contains("."), let builtin = RuleBuiltin(rawValue: name) else {
        throw error("there is no function \(name)", span)
      }
      return try call(builtin, nodes, span)
    }

    private func call(
      _ builtin: RuleBuiltin, _ arguments: [RuleNode], _ span: RuleSpan
    ) throws(RuleError) -> RuleNode.Form {
      let name = builtin.rawValue
      guard builtin.service == nil || builtin.service == service else {
        throw error("\(name) is no function of \(service.rawValue)", span)
      }
      guard arguments.count == builtin.argumentCount else {
        throw error(
          "\(name) has \(builtin.argumentCount) parameters, and here are \(arguments.count)", span)
      }
      return .builtin(builtin, arguments)
    }

    private mutating func method(
      _ name: String, of receiver: RuleSyntax, _ arguments: [RuleSyntax], _ span: RuleSpan
    ) throws(RuleError) -> RuleNode.Form {
      if case .name(let namespace) = receiver.form, RuleBuiltin.namespaces.contains(namespace),
        variable(namespace) == nil
      {
        guard let builtin = RuleBuiltin(rawValue: "\(namespace).\(name)") else {
          throw error("there is no function \(namespace).\(name)", span)
        }
        return try call(builtin, check(arguments), span)
      }
      guard let method = RuleMethod(rawValue: name) else {
        throw error("no value has a method \(name)", span)
      }
      let counts = method.argumentCounts
      guard counts.contains(arguments.count) else {
        throw error(
          "\(name) has \(counts.upperBound) parameters, and here are \(arguments.count)", span)
      }
      if method == .bind, case .path(let parts) = receiver.form {
        let path = RuleNode(.path(try check(parts, allowsUnbound: true)), receiver.span)
        return .method(.bind, path, try check(arguments))
      }
      let value = try check(receiver)
      if method == .matches, case .literal(.string(let text)) = arguments[0].form {
        do throws(RegularExpressionError) {
          return .matches(value, try RegularExpression(text))
        } catch {
          throw self.error("the pattern is wrong: \(error.message)", arguments[0].span)
        }
      }
      return .method(method, value, try check(arguments))
    }
  }
#endif
