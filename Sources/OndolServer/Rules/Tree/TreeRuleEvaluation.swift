// The evaluation of expressions over a tree. As in Firebase, a place without data has the value
// null, and a member of null is null. Every other type mismatch fails, and a rule that fails does
// not hold.

#if Server
  import Ondol

  /// The value of an expression during its evaluation.
  enum TreeRuleValue {
    case value(RuleValue)
    /// A place in the tree before or after the write.
    case place(path: [String], isAfter: Bool)
    /// The value of a place with children. It can only be compared with null.
    case branch
  }

  struct TreeRuleEvaluation {
    let before: any RuleTree
    /// Nil for a read.
    let after: (any RuleTree)?
    let auth: RuleValue
    let now: RuleTimestamp
    let query: RuleValue
    /// The names of the children that match wildcards, the outermost first.
    var captures: [String] = []
    var recorder: RuleRecorder?
    var workLeft = RuleEvaluation.mostWork
    /// The place of the rule under evaluation.
    private var path: [String] = []

    init(
      before: any RuleTree, after: (any RuleTree)?, auth: RuleValue, now: RuleTimestamp,
      query: RuleValue, recorder: RuleRecorder?
    ) {
      self.before = before
      self.after = after
      self.auth = auth
      self.now = now
      self.query = query
      self.recorder = recorder
    }

    /// Whether the condition of a rule at a path holds.
    mutating func holds(
      _ condition: TreeRuleExpression, at path: [String]
    ) throws(RuleFailure) -> Bool {
      self.path = path
      guard case .value(.bool(let holds)) = try value(of: condition) else {
        throw .wrongType("a condition")
      }
      return holds
    }

    private mutating func value(
      of expression: TreeRuleExpression
    ) throws(RuleFailure) -> TreeRuleValue {
      try charge(1)
      guard recorder != nil else { return try compute(expression) }
      do throws(RuleFailure) {
        let value = try compute(expression)
        if case .constant = expression.form { return value }
        recorder?.note(expression.span, value.description)
        return value
      } catch {
        recorder?.note(expression.span, "failed: \(error)")
        throw error
      }
    }

    private mutating func compute(
      _ expression: TreeRuleExpression
    ) throws(RuleFailure) -> TreeRuleValue {
      switch expression.form {
      case .constant(let value): return .value(value)
      case .variable(let variable): return self.variable(variable)
      case .capture(let slot):
        guard slot < captures.count else { throw .outOfRange }
        return .value(.string(captures[slot]))
      case .member(let value, let name): return try member(name, of: self.value(of: value))
      case .index(let value, let index):
        return try element(of: self.value(of: value), at: plain(index))
      case .not(let operand): return .value(.bool(!(try truth(operand, "!"))))
      case .negated(let operand):
        guard let number = try plain(operand).double else { throw .wrongType("-") }
        return .value(.float(-number))
      case .all(let parts):
        for part in parts where try !truth(part, "&&") { return .value(.bool(false)) }
        return .value(.bool(true))
      case .any(let parts):
        for part in parts where try truth(part, "||") { return .value(.bool(true)) }
        return .value(.bool(false))
      case .choice(let condition, let first, let second):
        return try truth(condition, "?:") ? value(of: first) : value(of: second)
      case .binary(let name, let left, let right): return try binary(name, left, right)
      default: return try call(expression)
      }
    }

    private func variable(_ variable: TreeRuleVariable) -> TreeRuleValue {
      switch variable {
      case .auth: .value(auth)
      case .query: .value(query)
      case .now: .value(.int(now.milliseconds))
      case .root: .place(path: [], isAfter: false)
      case .data: .place(path: path, isAfter: false)
      case .newData: .place(path: path, isAfter: true)
      }
    }

    private mutating func truth(
      _ expression: TreeRuleExpression, _ operation: String
    ) throws(RuleFailure) -> Bool {
      guard case .value(.bool(let truth)) = try value(of: expression) else {
        throw .wrongType(operation)
      }
      return truth
    }

    /// Returns a value that is neither a place nor a branch.
    private mutating func plain(
      _ expression: TreeRuleExpression
    ) throws(RuleFailure) -> RuleValue {
      guard case .value(let value) = try value(of: expression) else {
        throw .wrongType("the operation")
      }
      return value
    }

    // MARK: - Operators

    private mutating func binary(
      _ name: RuleOperator, _ left: TreeRuleExpression, _ right: TreeRuleExpression
    ) throws(RuleFailure) -> TreeRuleValue {
      let first = try value(of: left)
      let second = try value(of: right)
      if name == .equal || name == .notEqual {
        return .value(.bool(try isEqual(first, second) == (name == .equal)))
      }
      guard case (.value(let a), .value(let b)) = (first, second) else {
        throw .wrongType("the operator")
      }
      switch name {
      case .less: return .value(.bool(try order(a, b) < 0))
      case .lessOrEqual: return .value(.bool(try order(a, b) <= 0))
      case .greater: return .value(.bool(try order(a, b) > 0))
      case .greaterOrEqual: return .value(.bool(try order(a, b) >= 0))
      default: return .value(try arithmetic(name, a, b))
      }
    }

    private mutating func isEqual(
      _ one: TreeRuleValue, _ other: TreeRuleValue
    ) throws(RuleFailure) -> Bool {
      switch (one, other) {
      case (.value(let a), .value(let b)):
        guard !a.isComposed, !b.isComposed || a.isNull else { return try isNull(a, b) }
        if case .string(let text) = a { try charge(text.utf8.count / 16) }
        return a == b
      case (.branch, .value(.null)), (.value(.null), .branch): return false
      default: throw .wrongType("==")
      }
    }

    /// A map can only be compared with null.
    private func isNull(_ one: RuleValue, _ other: RuleValue) throws(RuleFailure) -> Bool {
      guard one.isNull || other.isNull else { throw .wrongType("==") }
      return false
    }

    private func order(_ one: RuleValue, _ other: RuleValue) throws(RuleFailure) -> Int {
      guard let order = one.order(to: other) else { throw .wrongType("a comparison") }
      return order
    }

    private mutating func arithmetic(
      _ name: RuleOperator, _ one: RuleValue, _ other: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      if name == .add, one.isText || other.isText {
        let first = try text(one)
        let second = try text(other)
        try charge(first.utf8.count + second.utf8.count)
        return .string(first + second)
      }
      guard let a = one.double, let b = other.double else { throw .wrongType("the operator") }
      switch name {
      case .add: return .float(a + b)
      case .subtract: return .float(a - b)
      case .multiply: return .float(a * b)
      case .divide: return .float(a / b)
      default: return .float(a.truncatingRemainder(dividingBy: b))
      }
    }

    /// Returns a part of a joined text. A whole number has no fraction there.
    private func text(_ value: RuleValue) throws(RuleFailure) -> String {
      switch value {
      case .string(let text): text
      case .bool(let value): value ? "true" : "false"
      case .int(let value): String(value)
      case .float(let value): Int64(exactly: value).map { String($0) } ?? String(value)
      default: throw .wrongType("+")
      }
    }

    // MARK: - Members

    private func member(
      _ name: String, of value: TreeRuleValue
    ) throws(RuleFailure) -> TreeRuleValue {
      switch value {
      case .value(.null): return .value(.null)
      case .value(.map(let fields)): return .value(fields.field(name) ?? .null)
      case .value(.string(let text)):
        guard name == "length" else { throw .noMember(name) }
        return .value(.int(Int64(text.utf16.count)))
      default: throw .noMember(name)
      }
    }

    private func element(
      of value: TreeRuleValue, at index: RuleValue
    ) throws(RuleFailure) -> TreeRuleValue {
      if case .string(let name) = index, !name.isEmpty { return try member(name, of: value) }
      guard let number = index.double, let position = Int(exactly: number),
        case .value(let value) = value
      else { throw .wrongType("[]") }
      switch value {
      case .null: return .value(.null)
      case .list(let elements):
        return .value(elements.indices.contains(position) ? elements[position] : .null)
      default: throw .wrongType("[]")
      }
    }

    // MARK: - Calls

    private mutating func call(
      _ expression: TreeRuleExpression
    ) throws(RuleFailure) -> TreeRuleValue {
      switch expression.form {
      case .call(let method, let receiver, let arguments):
        let value = try self.value(of: receiver)
        var plainArguments: [RuleValue] = []
        for argument in arguments { plainArguments.append(try plain(argument)) }
        switch value {
        case .place(let path, let isAfter):
          return try self.place(method, path, isAfter, plainArguments)
        case .value(.string(let text)):
          return .value(try string(method, text, plainArguments))
        default: throw .wrongType(method.rawValue)
        }
      case .hasChildren(let receiver, let names):
        guard case .place(let path, let isAfter) = try value(of: receiver) else {
          throw .wrongType("hasChildren")
        }
        var hasAll = true
        for name in names {
          let child = try child(plain(name), of: path)
          if try content(at: child, isAfter) == nil { hasAll = false }
        }
        return .value(.bool(hasAll))
      case .matches(let receiver, let pattern):
        guard case .string(let text) = try plain(receiver) else { throw .wrongType("matches") }
        let matches = pattern.matchesPart(of: text, work: &workLeft)
        try charge(0)
        return .value(.bool(matches))
      default: throw .wrongType("this")
      }
    }

    private func place(
      _ method: TreeRuleMethod, _ path: [String], _ isAfter: Bool, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> TreeRuleValue {
      switch method {
      case .child: return .place(path: try child(arguments[0], of: path), isAfter: isAfter)
      case .parent:
        guard !path.isEmpty else { throw .invalid("the root has no parent") }
        return .place(path: Array(path.dropLast()), isAfter: isAfter)
      case .hasChild:
        let child = try child(arguments[0], of: path)
        return .value(.bool(try content(at: child, isAfter) != nil))
      case .getPriority: return .value(try priority(at: path, isAfter))
      default: break
      }
      let content = try content(at: path, isAfter)
      switch (method, content) {
      case (.exists, _): return .value(.bool(content != nil))
      case (.hasChildren, .branch?): return .value(.bool(true))
      case (.hasChildren, _): return .value(.bool(false))
      case (.val, .leaf(let value)?): return .value(value)
      case (.val, .branch?): return .branch
      case (.val, nil): return .value(.null)
      case (.isString, .leaf(let value)?): return .value(.bool(value.isOf(.string)))
      case (.isNumber, .leaf(let value)?): return .value(.bool(value.isOf(.number)))
      case (.isBoolean, .leaf(let value)?): return .value(.bool(value.isOf(.bool)))
      case (.isString, _), (.isNumber, _), (.isBoolean, _): return .value(.bool(false))
      default: throw .wrongType(method.rawValue)
      }
    }

    private mutating func string(
      _ method: TreeRuleMethod, _ text: String, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      var texts: [String] = []
      for argument in arguments {
        guard case .string(let other) = argument else { throw .wrongType(method.rawValue) }
        texts.append(other)
      }
      try charge(text.utf8.count)
      let bytes = Array(text.utf8)
      let other = Array((texts.first ?? "").utf8)
      switch method {
      case .contains: return .bool(!(try places(of: other, in: bytes, onlyFirst: true)).isEmpty)
      case .beginsWith: return .bool(bytes.starts(with: other))
      case .endsWith: return .bool(bytes.reversed().starts(with: other.reversed()))
      case .toLowerCase: return .string(text.lowercased())
      case .toUpperCase: return .string(text.uppercased())
      case .replace: return .string(try replaced(bytes, other, by: texts[1]))
      default: throw .wrongType(method.rawValue)
      }
    }

    private mutating func replaced(
      _ bytes: [UInt8], _ part: [UInt8], by replacement: String
    ) throws(RuleFailure) -> String {
      guard !part.isEmpty else { return String(decoding: bytes, as: UTF8.self) }
      let places = try places(of: part, in: bytes, onlyFirst: false)
      try charge(places.count * (replacement.utf8.count + 1))
      var result: [UInt8] = []
      var start = 0
      for place in places {
        result += bytes[start..<place]
        result += replacement.utf8
        start = place + part.count
      }
      result += bytes[start...]
      return String(decoding: result, as: UTF8.self)
    }

    /// Returns the places of one text in another, without overlaps.
    private mutating func places(
      of part: [UInt8], in bytes: [UInt8], onlyFirst: Bool
    ) throws(RuleFailure) -> [Int] {
      var places: [Int] = []
      var start = 0
      while start + part.count <= bytes.count {
        let isHere = bytes[start...].starts(with: part)
        try charge(1)
        if !isHere {
          // A comparison that nearly succeeds everywhere costs the product of both lengths.
          if bytes[start] == part.first { try charge(part.count / 8) }
          start += 1
          continue
        }
        places.append(start)
        if onlyFirst || part.isEmpty { break }
        start += part.count
      }
      return places
    }

    // MARK: - The tree

    func hasContent(at path: [String]) throws(RuleFailure) -> Bool {
      try content(at: path, true) != nil
    }

    mutating func childNames(at path: [String]) throws(RuleFailure) -> [String] {
      let names = try reading { () throws in try after?.childNames(at: path) ?? [] }
      try charge(names.count)
      return names
    }

    private func child(_ name: RuleValue, of path: [String]) throws(RuleFailure) -> [String] {
      guard case .string(let name) = name else { throw .wrongType("child") }
      let below = name.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
      guard path.count + below.count <= TreeRules.mostDepth else { throw .tooDeep }
      return path + below
    }

    private func content(
      at path: [String], _ isAfter: Bool
    ) throws(RuleFailure) -> RuleTreeContent? {
      try reading { () throws in
        isAfter ? try after?.content(at: path) : try before.content(at: path)
      }
    }

    private func priority(
      at path: [String], _ isAfter: Bool
    ) throws(RuleFailure) -> RuleValue {
      try reading { () throws in
        isAfter ? try after?.priority(at: path) ?? .null : try before.priority(at: path)
      }
    }

    private func reading<Result>(_ body: () throws -> Result) throws(RuleFailure) -> Result {
      do {
        return try body()
      } catch {
        throw .unreadable("\(error)")
      }
    }

    private mutating func charge(_ work: Int) throws(RuleFailure) {
      workLeft -= max(0, work)
      if workLeft < 0 { throw .tooMuchWork }
    }
  }

  extension TreeRuleValue: CustomStringConvertible {
    var description: String {
      switch self {
      case .value(let value): value.text(limit: 120)
      case .place(let path, let isAfter): (isAfter ? "new " : "") + RuleValue.path(path).description
      case .branch: "children"
      }
    }
  }

  extension RuleValue {
    var isNull: Bool { if case .null = self { true } else { false } }

    fileprivate var isText: Bool { if case .string = self { true } else { false } }

    /// Whether it contains other values.
    fileprivate var isComposed: Bool {
      switch self {
      case .list, .map, .set, .document, .difference, .unknown: true
      default: false
      }
    }
  }
#endif
