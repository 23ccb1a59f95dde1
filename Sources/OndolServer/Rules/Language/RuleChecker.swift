// Resolves the names of a parsed file. A function may be called before its definition, and sees the
// names of its own block, not those of its callers. So the checker checks a function at its first
// call, in the scope of its block. A function that the checker meets again during its own check
// calls itself, and is refused. So the depth of calls is known before any evaluation.

#if Server
  struct RuleChecker {
    let source: RuleSource
    let service: RuleService
    let version: Int

    /// The names that a block adds.
    private struct Scope {
      var captures: [String: Int] = [:]
      /// Indexes into `functions`.
      var functions: [String: Int] = [:]
    }

    private enum Progress {
      /// Not called yet, with the names of its block.
      case waiting(RuleFunctionSyntax, [Scope])
      case running
      case done(RuleFunction)
    }

    private var scopes: [Scope] = []
    private var functions: [Progress] = []
    private var captureCount = 0
    /// The function under check: its parameters, the lets above, and the depth of its calls.
    private var locals: Locals?
    private var runningCalls = 0
    /// The depth of the expressions under check, through the functions that they call.
    var depth = 0

    private struct Locals {
      var parameters: [String: Int] = [:]
      var lets: [String: (slot: Int, node: RuleNode)] = [:]
      var callDepth = 1
    }

    init(source: RuleSource, service: RuleService, version: Int) {
      self.source = source
      self.service = service
      self.version = version
    }

    func error(_ message: String, _ span: RuleSpan) -> RuleError {
      RuleError(place: source.place(of: span), message: message)
    }

    // MARK: - Blocks

    /// Returns the service's matches.
    mutating func check(_ block: RuleBlockSyntax) throws(RuleError) -> [RuleMatch] {
      try match(block).matches
    }

    private mutating func match(_ block: RuleBlockSyntax) throws(RuleError) -> RuleMatch {
      let outerCaptures = captureCount
      var scope = Scope()
      var segments: [RuleMatch.Segment] = []
      for (index, segment) in block.segments.enumerated() {
        switch segment {
        case .literal(let text): segments.append(.literal(text))
        case .single(let name): segments.append(.single(slot: capture(name, in: &scope)))
        case .rest(let name):
          guard version == 2 || index == block.segments.count - 1 && block.blocks.isEmpty else {
            throw RuleError(
              place: RulePlace(line: 1, column: 1),
              message: "{\(name)=**} is last in its path unless rules_version is '2'")
          }
          segments.append(.rest(slot: capture(name, in: &scope)))
        }
      }
      let own = try declare(block.functions, in: &scope)
      scopes.append(scope)
      for index in own { _ = try function(index, at: block.functions[0].span) }
      var allows: [RuleAllow] = []
      for allow in block.allows {
        let condition: RuleNode? =
          if let condition = allow.condition { try check(condition) } else { nil }
        allows.append(RuleAllow(methods: allow.methods, condition: condition, span: allow.span))
      }
      var matches: [RuleMatch] = []
      for inner in block.blocks { matches.append(try match(inner)) }
      scopes.removeLast()
      captureCount = outerCaptures
      return RuleMatch(segments: segments, allows: allows, matches: matches)
    }

    private mutating func capture(_ name: String, in scope: inout Scope) -> Int {
      scope.captures[name] = captureCount
      captureCount += 1
      return captureCount - 1
    }

    // MARK: - Functions

    private mutating func declare(
      _ declared: [RuleFunctionSyntax], in scope: inout Scope
    ) throws(RuleError) -> Range<Int> {
      let first = functions.count
      for (index, function) in declared.enumerated() {
        guard scope.functions.updateValue(first + index, forKey: function.name) == nil else {
          throw error("the function \(function.name) is here twice", function.span)
        }
        guard RuleBuiltin(rawValue: function.name) == nil else {
          throw error("\(function.name) is a function of the language", function.span)
        }
        guard first + index < RuleLimits.functions else {
          throw error("a file has at most \(RuleLimits.functions) functions", function.span)
        }
      }
      // A function sees its block's names, even if an inner block calls it.
      functions += declared.map { .waiting($0, scopes + [scope]) }
      return first..<functions.count
    }

    /// Returns the checked function. `span` belongs to the call.
    private mutating func function(
      _ index: Int, at span: RuleSpan
    ) throws(RuleError) -> RuleFunction {
      switch functions[index] {
      case .done(let function): return function
      case .running: throw error("a function calls itself, directly or through others", span)
      case .waiting(let syntax, let visible):
        guard runningCalls < RuleLimits.callDepth else { throw tooDeep(span) }
        functions[index] = .running
        runningCalls += 1
        let outerScopes = scopes
        let outerLocals = locals
        scopes = visible
        let function = try check(syntax)
        scopes = outerScopes
        locals = outerLocals
        runningCalls -= 1
        functions[index] = .done(function)
        return function
      }
    }

    private func tooDeep(_ span: RuleSpan) -> RuleError {
      error("functions call each other more than \(RuleLimits.callDepth) deep", span)
    }

    private mutating func check(
      _ syntax: RuleFunctionSyntax
    ) throws(RuleError) -> RuleFunction {
      var own = Locals()
      for (slot, name) in syntax.parameters.enumerated() {
        guard own.parameters.updateValue(slot, forKey: name) == nil else {
          throw error("the parameter \(name) is here twice", syntax.span)
        }
      }
      locals = own
      for (index, variable) in syntax.lets.enumerated() {
        let node = try check(variable.value)
        let slot = syntax.parameters.count + index
        let isNew =
          own.parameters[variable.name] == nil
          && locals?.lets.updateValue((slot, node), forKey: variable.name) == nil
        guard isNew else { throw error("\(variable.name) is here twice", variable.value.span) }
      }
      let result = try check(syntax.result)
      return RuleFunction(
        name: syntax.name, parameterCount: syntax.parameters.count, letCount: syntax.lets.count,
        result: result, callDepth: locals?.callDepth ?? 1)
    }

    /// Returns a call of the file's function; nil if there is none with this name.
    mutating func call(
      _ name: String, _ arguments: [RuleNode], _ span: RuleSpan
    ) throws(RuleError) -> RuleNode? {
      guard let index = scopes.reversed().lazy.compactMap({ $0.functions[name] }).first else {
        return nil
      }
      let function = try function(index, at: span)
      guard function.parameterCount == arguments.count else {
        throw error(
          "\(name) has \(function.parameterCount) parameters, and here are \(arguments.count)", span
        )
      }
      if let depth = locals?.callDepth {
        guard function.callDepth < RuleLimits.callDepth else { throw tooDeep(span) }
        locals?.callDepth = max(depth, function.callDepth + 1)
      }
      return RuleNode(.call(function, arguments), span)
    }

    /// Returns the place of a name's value; nil if the name does not exist.
    func variable(_ name: String) -> RuleNode.Form? {
      if let local = locals?.lets[name] { return .variable(local.slot, local.node) }
      if let slot = locals?.parameters[name] { return .parameter(slot) }
      if let slot = scopes.reversed().lazy.compactMap({ $0.captures[name] }).first {
        return .capture(slot)
      }
      switch name {
      case "request": return .request
      case "resource": return .resource
      default: return nil
      }
    }
  }
#endif
