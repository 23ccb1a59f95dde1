// The expressions of tree rules: a part of JavaScript, with === for == and patterns between
// slashes. A slash begins a pattern where a value is expected, and divides elsewhere.

#if Server
  import Ondol

  struct TreeRuleParser {
    private enum Token: Equatable {
      case name(String)
      case number(Double)
      case string(String)
      case mark(String)
      case end
    }

    private let text: TreeRuleText
    private let source: RuleSource
    private let kind: TreeRuleKind
    private let wildcards: [String]
    private var token = Token.end
    private var start = 0
    private var position = 0
    private var previousEnd = 0
    private var depth = 0

    init(
      _ text: TreeRuleText, kind: TreeRuleKind, wildcards: [String], source: RuleSource
    ) throws(RuleError) {
      self.text = text
      self.kind = kind
      self.wildcards = wildcards
      self.source = source
      try advance()
    }

    private func error(_ message: String, at index: Int? = nil) -> RuleError {
      RuleError(place: source.place(at: text.offset(index ?? start)), message: message)
    }

    /// Reads the whole text.
    mutating func condition() throws(RuleError) -> TreeRuleExpression {
      let condition = try expression()
      guard token == .end else { throw error("the end of the expression is expected") }
      return condition
    }

    // MARK: - Operators

    private mutating func expression() throws(RuleError) -> TreeRuleExpression {
      depth += 1
      defer { depth -= 1 }
      guard depth <= RuleLimits.nesting else {
        throw error("brackets are nested more than \(RuleLimits.nesting) deep")
      }
      let begin = start
      let condition = try chain("||")
      guard try take("?") else { return condition }
      let first = try expression()
      try expect(":")
      let second = try expression()
      return try node(.choice(condition, first, second), from: begin, [condition, first, second])
    }

    /// Reads parts between || or, below it, between &&.
    private mutating func chain(_ mark: String) throws(RuleError) -> TreeRuleExpression {
      let begin = start
      let isAny = mark == "||"
      var parts = [isAny ? try chain("&&") : try binary(0)]
      while try take(mark) { parts.append(isAny ? try chain("&&") : try binary(0)) }
      return parts.count == 1
        ? parts[0] : try node(isAny ? .any(parts) : .all(parts), from: begin, parts)
    }

    private static let levels: [[String: RuleOperator]] = [
      ["==": .equal, "===": .equal, "!=": .notEqual, "!==": .notEqual],
      ["<": .less, "<=": .lessOrEqual, ">": .greater, ">=": .greaterOrEqual],
      ["+": .add, "-": .subtract], ["*": .multiply, "/": .divide, "%": .remainder],
    ]

    private mutating func binary(_ level: Int) throws(RuleError) -> TreeRuleExpression {
      guard level < Self.levels.count else { return try unary() }
      let begin = start
      var left = try binary(level + 1)
      while case .mark(let mark) = token, let name = Self.levels[level][mark] {
        try advance()
        let right = try binary(level + 1)
        left = try node(.binary(name, left, right), from: begin, [left, right])
      }
      return left
    }

    private mutating func unary() throws(RuleError) -> TreeRuleExpression {
      let begin = start
      guard token == .mark("!") || token == .mark("-") else { return try postfix() }
      depth += 1
      defer { depth -= 1 }
      guard depth <= RuleLimits.nesting else {
        throw error("operators are nested more than \(RuleLimits.nesting) deep")
      }
      let isNot = try take("!")
      if !isNot { try advance() }
      let operand = try unary()
      return try node(isNot ? .not(operand) : .negated(operand), from: begin, [operand])
    }

    private mutating func postfix() throws(RuleError) -> TreeRuleExpression {
      let begin = start
      var value = try primary()
      while true {
        if try take(".") {
          let name = try name()
          if token == .mark("(") {
            value = try call(name, of: value, from: begin)
          } else {
            value = try node(.member(value, name), from: begin, [value])
          }
        } else if try take("[") {
          let index = try expression()
          try expect("]")
          value = try node(.index(value, index), from: begin, [value, index])
        } else {
          return value
        }
      }
    }

    private mutating func call(
      _ name: String, of value: TreeRuleExpression, from begin: Int
    ) throws(RuleError) -> TreeRuleExpression {
      guard let method = TreeRuleMethod(rawValue: name) else {
        throw error("no value has a method \(name)", at: begin)
      }
      try expect("(", beforePattern: method == .matches)
      if method == .matches {
        let pattern = try pattern()
        try expect(")")
        return try node(.matches(value, pattern), from: begin, [value])
      }
      if method == .hasChildren, try take("[") {
        let names = try expressions(until: "]")
        guard !names.isEmpty else { throw error("hasChildren has a list of names", at: begin) }
        try expect(")")
        return try node(.hasChildren(value, names), from: begin, [value] + names)
      }
      let arguments = try expressions(until: ")")
      guard method.argumentCounts.contains(arguments.count),
        method != .hasChildren || arguments.isEmpty
      else {
        throw error("\(name) has other parameters than \(arguments.count) values", at: begin)
      }
      return try node(.call(method, value, arguments), from: begin, [value] + arguments)
    }

    private mutating func expressions(
      until mark: String
    ) throws(RuleError) -> [TreeRuleExpression] {
      var expressions: [TreeRuleExpression] = []
      while try !take(mark) {
        if !expressions.isEmpty { try expect(",") }
        expressions.append(try expression())
      }
      return expressions
    }

    private mutating func primary() throws(RuleError) -> TreeRuleExpression {
      let begin = start
      let value: RuleValue
      switch token {
      case .number(let number): value = .float(number)
      case .string(let text): value = .string(text)
      case .name("true"): value = .bool(true)
      case .name("false"): value = .bool(false)
      case .name("null"): value = .null
      case .name(let name):
        let form = try variable(name)
        try advance()
        return try node(form, from: begin, [])
      case .mark("("):
        try advance()
        let inner = try expression()
        try expect(")")
        return inner
      default: throw error("a value is expected")
      }
      try advance()
      return try node(.constant(value), from: begin, [])
    }

    private func variable(_ name: String) throws(RuleError) -> TreeRuleExpression.Form {
      if let slot = wildcards.firstIndex(of: name) { return .capture(slot) }
      guard let variable = TreeRuleVariable(rawValue: name) else {
        throw error("there is no variable \(name) here")
      }
      guard kind.has(variable) else { throw error("\(kind.rawValue) has no \(name)") }
      return .variable(variable)
    }

    private func node(
      _ form: TreeRuleExpression.Form, from begin: Int, _ parts: [TreeRuleExpression]
    ) throws(RuleError) -> TreeRuleExpression {
      let height = (parts.map(\.height).max() ?? 0) + 1
      guard height <= RuleLimits.nesting else {
        throw error("an expression has more than \(RuleLimits.nesting) operators within each other")
      }
      let span = RuleSpan(
        start: Int32(clamping: text.offset(begin)), end: Int32(clamping: text.offset(previousEnd)))
      return TreeRuleExpression(form, span, height: height)
    }

    // MARK: - Words

    private mutating func take(_ mark: String) throws(RuleError) -> Bool {
      guard token == .mark(mark) else { return false }
      try advance()
      return true
    }

    /// - Parameter beforePattern: whether a pattern follows, which is not a sequence of tokens.
    private mutating func expect(
      _ mark: String, beforePattern: Bool = false
    ) throws(RuleError) {
      guard token == .mark(mark) else { throw error("\"\(mark)\" is expected") }
      if !beforePattern { try advance() }
    }

    private mutating func name() throws(RuleError) -> String {
      guard case .name(let name) = token else { throw error("a name is expected") }
      try advance()
      return name
    }

    private func byte(_ index: Int) -> UInt8? {
      index < text.bytes.count ? text.bytes[index] : nil
    }

    private mutating func skipSpace() {
      while let next = byte(position), next == 0x20 || (0x09...0x0D).contains(next) {
        position += 1
      }
    }

    private mutating func advance() throws(RuleError) {
      previousEnd = position
      skipSpace()
      start = position
      token = try next()
    }

    private mutating func next() throws(RuleError) -> Token {
      guard let first = byte(position) else { return .end }
      func isNamePart(_ byte: UInt8?) -> Bool {
        guard let byte else { return false }
        return byte.isNameStart || byte.isDigit || byte == UInt8(ascii: "$")
      }
      if first.isDigit { return try number() }
      if isNamePart(first) {
        while isNamePart(byte(position)) { position += 1 }
        return .name(piece(from: start))
      }
      if first.isQuote { return .string(try quoted()) }
      for mark in ["===", "!==", "&&", "||", "==", "!=", "<=", ">="]
      where text.bytes[position...].starts(with: mark.utf8) {
        position += mark.utf8.count
        return .mark(mark)
      }
      guard "<>!=+-*/%?:()[].,".utf8.contains(first) else {
        throw error("the character here is not of the language")
      }
      position += 1
      return .mark(piece(from: start))
    }

    private func piece(from begin: Int) -> String {
      String(decoding: text.bytes[begin..<position], as: UTF8.self)
    }

    private mutating func number() throws(RuleError) -> Token {
      while let next = byte(position), next.isDigit || next == UInt8(ascii: ".") { position += 1 }
      guard let value = Double(piece(from: start)) else { throw error("this is no number") }
      return .number(value)
    }

    private mutating func quoted() throws(RuleError) -> String {
      let quote = byte(position)
      position += 1
      var content: [UInt8] = []
      while let next = byte(position) {
        position += 1
        if next == quote { return String(decoding: content, as: UTF8.self) }
        if next == UInt8(ascii: "\\"), let escaped = byte(position) {
          position += 1
          switch escaped {
          case UInt8(ascii: "n"): content.append(0x0A)
          case UInt8(ascii: "t"): content.append(0x09)
          case UInt8(ascii: "r"): content.append(0x0D)
          default: content.append(escaped)
          }
        } else {
          content.append(next)
        }
      }
      throw error("a text has no end")
    }

    /// Reads `/pattern/` or `/pattern/i`, after an opening bracket that is the current token.
    private mutating func pattern() throws(RuleError) -> RegularExpression {
      skipSpace()
      start = position
      guard byte(position) == UInt8(ascii: "/") else {
        throw error("matches has a pattern between slashes")
      }
      position += 1
      let begin = position
      var isInClass = false
      while let next = byte(position), next != UInt8(ascii: "/") || isInClass {
        if next == UInt8(ascii: "[") { isInClass = true }
        if next == UInt8(ascii: "]") { isInClass = false }
        position += next == UInt8(ascii: "\\") ? 2 : 1
      }
      guard byte(position) == UInt8(ascii: "/") else { throw error("a pattern has no end") }
      let pattern = piece(from: begin)
      position += 1
      let foldsCase = byte(position) == UInt8(ascii: "i")
      if foldsCase { position += 1 }
      let compiled = try compiled(pattern, foldsCase)
      try advance()
      return compiled
    }

    private func compiled(_ text: String, _ foldsCase: Bool) throws(RuleError) -> RegularExpression
    {
      do throws(RegularExpressionError) {
        return try RegularExpression(text, foldsCase: foldsCase)
      } catch {
        throw self.error("the pattern is wrong: \(error.message)")
      }
    }
  }
#endif
