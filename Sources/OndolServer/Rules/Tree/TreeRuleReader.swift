// Reads database.rules.json: JSON with comments. Its texts under .read, .write and .validate are
// expressions. The reader refuses unknown members, because a misspelt rule would leave its place
// open or closed by chance.

#if Server
  struct TreeRuleReader {
    let source: RuleSource
    private var position = 0
    private var depth = 0
    /// The names of the wildcards above the current place.
    private var wildcards: [String] = []

    init(_ text: String) throws(RuleError) {
      source = RuleSource(text)
      guard source.bytes.count <= RuleLimits.sourceBytes else {
        throw error("a rules file has at most \(RuleLimits.sourceBytes) bytes")
      }
    }

    func error(_ message: String, at offset: Int? = nil) -> RuleError {
      RuleError(place: source.place(at: offset ?? position), message: message)
    }

    /// Reads `{"rules": {…}}`.
    mutating func rules() throws(RuleError) -> TreeRuleNode {
      var root: TreeRuleNode?
      try object { reader, key, offset throws(RuleError) in
        guard key == "rules" else {
          throw reader.error("only \"rules\" is expected here", at: offset)
        }
        root = try reader.node()
      }
      try skipSpace()
      guard position == source.bytes.count else { throw error("the end is expected") }
      guard let root else { throw error("there are no \"rules\"") }
      return root
    }

    private mutating func node() throws(RuleError) -> TreeRuleNode {
      depth += 1
      defer { depth -= 1 }
      guard depth <= RuleLimits.nesting else {
        throw error("rules are nested more than \(RuleLimits.nesting) deep")
      }
      var node = TreeRuleNode()
      try object { reader, key, offset throws(RuleError) in
        switch key {
        case ".read": node.read = try reader.rule(.read)
        case ".write": node.write = try reader.rule(.write)
        case ".validate": node.validate = try reader.rule(.validate)
        case ".indexOn": node.indexes = try reader.indexes()
        default: try reader.child(key, of: &node, at: offset)
        }
      }
      node.hasValidation =
        node.validate != nil || node.wildcard?.node.hasValidation ?? false
        || node.children.values.contains(where: \.hasValidation)
      return node
    }

    private mutating func child(
      _ key: String, of node: inout TreeRuleNode, at offset: Int
    ) throws(RuleError) {
      guard key.hasPrefix("$") else {
        let isName = !key.isEmpty && !key.utf8.contains { ".#$[]/".utf8.contains($0) }
        guard isName else {
          throw error("\"\(key)\" is no rule and no name of a child", at: offset)
        }
        node.children[key] = try self.node()
        return
      }
      guard node.wildcard == nil else {
        throw error("a place has one name with $ at most", at: offset)
      }
      guard key.utf8.count > 1, key.utf8.dropFirst().allSatisfy({ $0.isNameStart || $0.isDigit })
      else { throw error("\"\(key)\" is no name of a variable", at: offset) }
      guard !wildcards.contains(key) else { throw error("\(key) is above already", at: offset) }
      wildcards.append(key)
      let inner = try self.node()
      wildcards.removeLast()
      node.wildcard = TreeRuleWildcard(name: key, slot: wildcards.count, node: inner)
    }

    /// Reads a truth value, or the text of an expression.
    private mutating func rule(_ kind: TreeRuleKind) throws(RuleError) -> TreeRule {
      try skipSpace()
      let start = position
      let condition: TreeRuleExpression
      if byte == UInt8(ascii: "\"") {
        let text = try string()
        var parser = try TreeRuleParser(text, kind: kind, wildcards: wildcards, source: source)
        condition = try parser.condition()
      } else if let value = word() {
        let span = RuleSpan(start: Int32(clamping: start), end: Int32(clamping: position))
        condition = TreeRuleExpression(.constant(.bool(value)), span, height: 1)
      } else {
        throw error("a rule is true, false or a text with an expression")
      }
      return TreeRule(
        condition: condition,
        span: RuleSpan(start: Int32(clamping: start), end: Int32(clamping: position)))
    }

    private mutating func word() -> Bool? {
      for (text, value) in [("true", true), ("false", false)]
      where source.bytes[position...].starts(with: text.utf8) {
        position += text.utf8.count
        return value
      }
      return nil
    }

    /// Reads a name, or a list of names.
    private mutating func indexes() throws(RuleError) -> [String] {
      try skipSpace()
      if byte == UInt8(ascii: "\"") { return [try string().text] }
      try expect("[")
      var names: [String] = []
      while try !take("]") {
        if !names.isEmpty { try expect(",") }
        try skipSpace()
        names.append(try string().text)
      }
      return names
    }

    // MARK: - JSON

    /// Reads an object. `body` reads the value of each key, and no key may occur twice.
    private mutating func object(
      _ body: (inout TreeRuleReader, _ key: String, _ offset: Int) throws(RuleError) -> Void
    ) throws(RuleError) {
      try expect("{")
      var keys: Set<String> = []
      while try !take("}") {
        if !keys.isEmpty { try expect(",") }
        try skipSpace()
        let offset = position
        let key = try string().text
        guard keys.insert(key).inserted else { throw error("\"\(key)\" is here twice", at: offset) }
        try expect(":")
        try body(&self, key, offset)
      }
    }

    private var byte: UInt8? { position < source.bytes.count ? source.bytes[position] : nil }

    private func hasNext(_ text: String) -> Bool {
      source.bytes[position...].starts(with: text.utf8)
    }

    private mutating func skipSpace() throws(RuleError) {
      while let next = byte {
        if next == 0x20 || (0x09...0x0D).contains(next) {
          position += 1
        } else if hasNext("//") {
          while let next = byte, next != UInt8(ascii: "\n") { position += 1 }
        } else if hasNext("/*") {
          let start = position
          position += 2
          while !hasNext("*/") {
            guard byte != nil else { throw error("a comment has no end", at: start) }
            position += 1
          }
          position += 2
        } else {
          return
        }
      }
    }

    private mutating func take(_ mark: Character) throws(RuleError) -> Bool {
      try skipSpace()
      guard byte == mark.asciiValue, byte != nil else { return false }
      position += 1
      return true
    }

    private mutating func expect(_ mark: Character) throws(RuleError) {
      guard try take(mark) else { throw error("\"\(mark)\" is expected") }
    }

    private mutating func string() throws(RuleError) -> TreeRuleText {
      guard byte == UInt8(ascii: "\"") else { throw error("a text in quotes is expected") }
      let start = position
      position += 1
      var text = TreeRuleText()
      while let next = byte {
        let offset = position
        position += 1
        switch next {
        case UInt8(ascii: "\""):
          text.end = offset
          guard String(validating: text.bytes, as: UTF8.self) != nil else {
            throw error("a text is not valid UTF-8", at: start)
          }
          return text
        case UInt8(ascii: "\\"): text.append(try escaped(), at: offset)
        // Rules may span several lines, which plain JSON does not permit.
        default: text.append([next], at: offset)
        }
      }
      throw error("a text has no end", at: start)
    }

    private mutating func escaped() throws(RuleError) -> [UInt8] {
      guard let next = byte else { throw error("a text has no end") }
      position += 1
      switch next {
      case UInt8(ascii: "n"): return [0x0A]
      case UInt8(ascii: "t"): return [0x09]
      case UInt8(ascii: "r"): return [0x0D]
      case UInt8(ascii: "b"): return [0x08]
      case UInt8(ascii: "f"): return [0x0C]
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [next]
      case UInt8(ascii: "u"):
        var unit = try unit()
        // Two halves of one character must follow each other.
        if (0xD800...0xDBFF).contains(unit), hasNext("\\u") {
          position += 2
          let low = try self.unit()
          guard (0xDC00...0xDFFF).contains(low) else { throw error("half a character") }
          unit = 0x1_0000 + (unit - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(unit) else { throw error("half a character") }
        return Array(String(Character(scalar)).utf8)
      default: throw error("an escape is unknown", at: position - 2)
      }
    }

    private mutating func unit() throws(RuleError) -> UInt32 {
      var value: UInt32 = 0
      for _ in 0..<4 {
        guard let next = byte, let digit = Character(Unicode.Scalar(next)).hexDigitValue else {
          throw error("an escape has four hexadecimal digits")
        }
        value = value << 4 | UInt32(digit)
        position += 1
      }
      return value
    }
  }

  /// The text of an expression, with the place of each of its bytes in the file.
  struct TreeRuleText {
    private(set) var bytes: [UInt8] = []
    private var offsets: [Int32] = []
    /// The end of the text in the file.
    var end = 0

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func append(_ piece: [UInt8], at offset: Int) {
      bytes += piece
      offsets += Array(repeating: Int32(clamping: offset), count: piece.count)
    }

    /// Returns the place in the file of the byte at `index`, which may be the one after the end.
    func offset(_ index: Int) -> Int {
      index < offsets.count ? Int(offsets[index]) : end
    }
  }
#endif
