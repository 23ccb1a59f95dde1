// The evaluation of one request: its wildcards, the variables of the running functions, and the
// rest of the limits. This file has everything on a condition's path. The extensions have the
// operators, methods and functions.
//
// `a && b` is false when either side is false, whatever the other is, and `a || b` is true when
// either side is true. Otherwise a failure of one side fails the whole. While a list is proven,
// values may be unknown. An operation on an unknown value is unknown, and the same rule holds for
// && and ||.

#if Server
  struct RuleEvaluation {
    /// The largest number of operators, calls and methods that a request evaluates. Names, members
    /// and constants are free.
    static let mostExpressions = 1_000
    /// The largest number of documents that a request reads. Reading one again is free.
    static let mostDocuments = 10
    /// The deepest nesting of expressions, through calls. It limits the stack.
    static let mostNesting = 300
    /// The largest number of characters, elements and pattern steps that a request processes.
    static let mostWork = 10_000_000

    /// A parameter or a `let` of a running function.
    enum Local {
      case pending
      case value(RuleValue)
      case failed(RuleFailure)
    }

    let request: RuleRequest
    let documents: any RuleDocuments
    let digests: RuleDigests
    /// The proof's knowledge of a list's documents; nil for a request of one document.
    let conditions: RuleConditions?

    var captures: [RuleValue] = []
    private var locals: [Local] = []
    /// The beginning of the running function's locals.
    private var base = 0
    private var depth = 0
    private var expressionsLeft = mostExpressions
    var workLeft = mostWork
    var readDocuments: [RuleRead: RuleValue] = [:]
    var recorder: RuleRecorder?

    init(
      request: RuleRequest, documents: any RuleDocuments, digests: RuleDigests,
      conditions: RuleConditions? = nil, recorder: RuleRecorder? = nil
    ) {
      self.request = request
      self.documents = documents
      self.digests = digests
      self.conditions = conditions
      self.recorder = recorder
    }

    /// Whether a condition holds; nil if a proof cannot decide.
    mutating func holds(_ condition: RuleNode) throws(RuleFailure) -> Bool? {
      base = 0
      depth = 0
      locals.removeAll(keepingCapacity: true)
      switch try value(of: condition) {
      case .bool(let holds): return holds
      case .unknown: return nil
      default: throw .wrongType("a condition")
      }
    }

    /// Returns the value of an expression.
    mutating func value(of node: RuleNode) throws(RuleFailure) -> RuleValue {
      guard recorder != nil else { return try compute(node) }
      do throws(RuleFailure) {
        let value = try compute(node)
        recorder?.note(node, value)
        return value
      } catch {
        recorder?.note(node, error)
        throw error
      }
    }

    private mutating func compute(_ node: RuleNode) throws(RuleFailure) -> RuleValue {
      switch node.form {
      case .constant(let value): return value
      case .resource: return request.resource
      case .requestField(let field): return self.field(field)
      case .capture(let slot): return slot < captures.count ? captures[slot] : .null
      case .parameter(let slot): return try local(slot)
      case .variable(let slot, let definition): return try variable(slot, definition)
      case .member(let value, let name):
        return try nested { evaluation throws(RuleFailure) in
          try evaluation.member(name, of: evaluation.value(of: value))
        }
      default:
        guard expressionsLeft > 0 else { throw .tooManyExpressions }
        expressionsLeft -= 1
        return try nested { evaluation throws(RuleFailure) in try evaluation.operation(node) }
      }
    }

    private mutating func nested(
      _ body: (inout RuleEvaluation) throws(RuleFailure) -> RuleValue
    ) throws(RuleFailure) -> RuleValue {
      guard depth < Self.mostNesting else { throw .tooDeep }
      depth += 1
      defer { depth -= 1 }
      return try body(&self)
    }

    private mutating func operation(_ node: RuleNode) throws(RuleFailure) -> RuleValue {
      switch node.form {
      case .all(let parts): return try all(parts)
      case .any(let parts): return try any(parts)
      case .not(let operand): return try not(value(of: operand))
      case .binary(let name, let left, let right):
        return try binary(name, value(of: left), value(of: right))
      case .call(let function, let arguments): return try call(function, arguments)
      case .method(let method, let receiver, let arguments):
        return try self.method(method, of: value(of: receiver), values(of: arguments))
      case .matches(let text, let pattern): return try matches(value(of: text), pattern)
      case .builtin(let builtin, let arguments):
        return try self.builtin(builtin, values(of: arguments))
      case .isType(let operand, let type): return try isOf(type, value(of: operand))
      case .choice(let condition, let first, let second):
        return try choice(condition, first, second)
      default: return try construction(node)
      }
    }

    private mutating func construction(_ node: RuleNode) throws(RuleFailure) -> RuleValue {
      switch node.form {
      case .index(let value, let index):
        return try element(of: self.value(of: value), at: self.value(of: index))
      case .range(let value, let first, let last):
        return try part(of: self.value(of: value), self.value(of: first), self.value(of: last))
      case .negated(let operand): return try negated(value(of: operand))
      case .list(let elements):
        let values = try values(of: elements)
        return values.contains(where: \.isUnknown) ? .unknown(.anything) : .list(values)
      case .map(let entries): return try map(entries)
      case .path(let parts): return try path(parts)
      case .request: return wholeRequest
      default: throw .wrongType("this")
      }
    }

    // MARK: - Logic

    private mutating func all(_ parts: [RuleNode]) throws(RuleFailure) -> RuleValue {
      try decided(parts, by: false)
    }

    private mutating func any(_ parts: [RuleNode]) throws(RuleFailure) -> RuleValue {
      try decided(parts, by: true)
    }

    /// Returns `decisive` if a part has that value. Otherwise it returns the result of the parts: a
    /// failure, unless it is unknown whether another part would have decided.
    private mutating func decided(
      _ parts: [RuleNode], by decisive: Bool
    ) throws(RuleFailure) -> RuleValue {
      var failure: RuleFailure?
      var isUnknown = false
      for part in parts {
        do throws(RuleFailure) {
          switch try value(of: part) {
          case .bool(let value): if value == decisive { return .bool(decisive) }
          case .unknown: isUnknown = true
          default: throw .wrongType(decisive ? "||" : "&&")
          }
        } catch {
          if error.isFinal { throw error }
          failure = failure ?? error
        }
      }
      if isUnknown { return .unknown(.anything) }
      if let failure { throw failure }
      return .bool(!decisive)
    }

    private mutating func choice(
      _ condition: RuleNode, _ first: RuleNode, _ second: RuleNode
    ) throws(RuleFailure) -> RuleValue {
      switch try value(of: condition) {
      case .bool(true): return try value(of: first)
      case .bool(false): return try value(of: second)
      case .unknown: return .unknown(.anything)
      default: throw .wrongType("?:")
      }
    }

    // MARK: - Functions

    /// A parameter that failed fails only where it is used, so that && and || can do without it.
    private mutating func call(
      _ function: RuleFunction, _ arguments: [RuleNode]
    ) throws(RuleFailure) -> RuleValue {
      let outer = base
      let own = locals.count
      defer {
        base = outer
        locals.removeLast(locals.count - own)
      }
      for _ in 0..<(function.parameterCount + function.letCount) { locals.append(.pending) }
      for (index, argument) in arguments.enumerated() {
        locals[own + index] = try settled(argument)
      }
      base = own
      return try value(of: function.result)
    }

    private mutating func settled(_ node: RuleNode) throws(RuleFailure) -> Local {
      do throws(RuleFailure) {
        return .value(try value(of: node))
      } catch {
        if error.isFinal { throw error }
        return .failed(error)
      }
    }

    private func local(_ slot: Int) throws(RuleFailure) -> RuleValue {
      switch locals[base + slot] {
      case .value(let value): return value
      case .failed(let failure): throw failure
      case .pending: throw .tooDeep
      }
    }

    /// Returns a `let`, which is evaluated once, at its first use.
    private mutating func variable(
      _ slot: Int, _ definition: RuleNode
    ) throws(RuleFailure) -> RuleValue {
      if case .pending = locals[base + slot] {
        let settled = try settled(definition)
        locals[base + slot] = settled
      }
      return try local(slot)
    }

    mutating func values(of nodes: [RuleNode]) throws(RuleFailure) -> [RuleValue] {
      if nodes.isEmpty { return [] }
      var values: [RuleValue] = []
      values.reserveCapacity(nodes.count)
      for node in nodes { values.append(try value(of: node)) }
      return values
    }

    // MARK: - Limits

    /// Charges for work that grows with the size of values.
    mutating func charge(_ work: Int) throws(RuleFailure) {
      workLeft -= max(0, work)
      if workLeft < 0 { throw .tooMuchWork }
    }

    /// Charges for a walk through a whole value, before the walk.
    mutating func charge(_ value: RuleValue) throws(RuleFailure) {
      switch value {
      case .string(let text): try charge(text.utf8.count / 16 + 1)
      case .bytes(let bytes): try charge(bytes.count / 16 + 1)
      case .list(let elements):
        try charge(1)
        for element in elements { try charge(element) }
      case .set(let elements):
        try charge(1)
        for element in elements { try charge(element) }
      case .map(let fields):
        try charge(1)
        for (name, field) in fields {
          try charge(name.utf8.count / 16 + 1)
          try charge(field)
        }
      case .path(let segments): try charge(segments.count + 1)
      case .document(let document): try charge(document.data)
      case .difference(let difference):
        try charge(
          difference.added.count + difference.removed.count + difference.changed.count
            + difference.unchanged.count + 1)
      default: try charge(1)
      }
    }
  }

  /// Records values for an explanation.
  struct RuleRecorder {
    /// The largest number of recorded steps. The recorder drops the steps after it.
    static let mostSteps = 500

    let source: RuleSource
    private(set) var steps: [RuleVerdict.Step] = []

    init(source: RuleSource) { self.source = source }

    mutating func note(_ node: RuleNode, _ value: RuleValue) {
      if case .constant = node.form { return }
      note(node.span, value.text(limit: 120))
    }

    mutating func note(_ node: RuleNode, _ failure: RuleFailure) {
      note(node.span, "failed: \(failure)")
    }

    mutating func note(_ span: RuleSpan, _ result: String) {
      guard steps.count < Self.mostSteps else { return }
      let expression = source.text(of: span)
      steps.append(
        RuleVerdict.Step(
          place: source.place(of: span), expression: String(expression.prefix(200)),
          result: result))
    }
  }
#endif
