// The tokens of a rules file. The parser requests one after another, because a "/" begins a path in
// one place and divides in another, and only the parser knows which.

#if Server
  enum RuleToken: Sendable, Equatable {
    case name(String)
    case int(Int64)
    case float(Double)
    case string(String)
    case bytes([UInt8])
    /// An operator or a bracket.
    case mark(String)
    case end

    /// The token's name in an error message.
    var text: String {
      switch self {
      case .name(let name): "\"\(name)\""
      case .int(let value): "\"\(value)\""
      case .float(let value): "\"\(value)\""
      case .string: "a text"
      case .bytes: "bytes"
      case .mark(let mark): "\"\(mark)\""
      case .end: "the end"
      }
    }
  }

  struct RuleScanner {
    let source: RuleSource
    private(set) var token = RuleToken.end
    /// The beginning of the token, and its end.
    private(set) var start = 0
    private(set) var position = 0
    /// The end of the token before it.
    private(set) var previousEnd = 0

    private static let longMarks: Set<String> = ["&&", "||", "==", "!=", "<=", ">=", "**"]
    private static let marks: Set<UInt8> = Set("(){}[]<>!=+-*/%?:;,.$".utf8)

    init(_ text: String) throws(RuleError) {
      source = RuleSource(text)
      guard source.bytes.count <= RuleLimits.sourceBytes else {
        throw RuleError(
          place: RulePlace(line: 1, column: 1),
          message: "a rules file has at most \(RuleLimits.sourceBytes) bytes")
      }
      try advance()
    }

    func error(_ message: String, at offset: Int? = nil) -> RuleError {
      RuleError(place: source.place(at: offset ?? start), message: message)
    }

    /// Reads the next token.
    mutating func advance() throws(RuleError) {
      previousEnd = position
      try skipSpace()
      start = position
      token = try next()
    }

    /// Continues from an offset, after text that is not a sequence of tokens.
    mutating func resume(at offset: Int) throws(RuleError) {
      position = offset
      try advance()
      previousEnd = offset
    }

    func byte(at offset: Int) -> UInt8? {
      offset < source.bytes.count ? source.bytes[offset] : nil
    }

    private mutating func skipSpace() throws(RuleError) {
      while let next = byte(at: position) {
        if next == UInt8(ascii: "/"), byte(at: position + 1) == UInt8(ascii: "/") {
          while let next = byte(at: position), next != UInt8(ascii: "\n") { position += 1 }
        } else if next == UInt8(ascii: "/"), byte(at: position + 1) == UInt8(ascii: "*") {
          let begin = position
          position += 2
          while byte(at: position) != UInt8(ascii: "*")
            || byte(at: position + 1) != UInt8(ascii: "/")
          {
            guard position < source.bytes.count else {
              throw error("a comment has no end", at: begin)
            }
            position += 1
          }
          position += 2
        } else if next == 0x20 || (0x09...0x0D).contains(next) {
          position += 1
        } else {
          return
        }
      }
    }

    private mutating func next() throws(RuleError) -> RuleToken {
      guard let first = byte(at: position) else { return .end }
      if first.isNameStart {
        if first == UInt8(ascii: "b"), let quote = byte(at: position + 1), quote.isQuote {
          position += 1
          return .bytes(try quoted(isBytes: true))
        }
        return .name(name())
      }
      if first.isDigit { return try number() }
      if first.isQuote {
        guard let text = String(validating: try quoted(isBytes: false), as: UTF8.self) else {
          throw error("a text is not valid UTF-8")
        }
        return .string(text)
      }
      guard Self.marks.contains(first) || first == UInt8(ascii: "&") || first == UInt8(ascii: "|")
      else { throw error("the character here is not of the language") }
      if let second = byte(at: position + 1) {
        let long = String(decoding: [first, second], as: UTF8.self)
        if Self.longMarks.contains(long) {
          position += 2
          return .mark(long)
        }
      }
      position += 1
      return .mark(String(decoding: [first], as: UTF8.self))
    }

    private mutating func name() -> String {
      let begin = position
      while let next = byte(at: position), next.isNameStart || next.isDigit { position += 1 }
      return String(decoding: source.bytes[begin..<position], as: UTF8.self)
    }

    private mutating func number() throws(RuleError) -> RuleToken {
      let begin = position
      var isFloat = false
      func isDigit(at offset: Int) -> Bool { byte(at: offset)?.isDigit ?? false }
      while isDigit(at: position) { position += 1 }
      if byte(at: position) == UInt8(ascii: "."), isDigit(at: position + 1) {
        isFloat = true
        position += 1
        while isDigit(at: position) { position += 1 }
      }
      if let next = byte(at: position), next | 0x20 == UInt8(ascii: "e") {
        let sign = byte(at: position + 1)
        let isSigned = sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+")
        let digits = position + (isSigned ? 2 : 1)
        if isDigit(at: digits) {
          isFloat = true
          position = digits
          while isDigit(at: position) { position += 1 }
        }
      }
      let text = String(decoding: source.bytes[begin..<position], as: UTF8.self)
      if !isFloat, let value = Int64(text) { return .int(value) }
      guard let value = Double(text), isFloat else {
        throw error("\(text) is beyond the integers of 64 bits")
      }
      return .float(value)
    }

    /// Returns the text between quotes, with its escapes resolved.
    private mutating func quoted(isBytes: Bool) throws(RuleError) -> [UInt8] {
      let quote = byte(at: position)
      position += 1
      var content: [UInt8] = []
      while let next = byte(at: position), next != UInt8(ascii: "\n") {
        position += 1
        if next == quote { return content }
        if next == UInt8(ascii: "\\") {
          try escape(into: &content, isBytes: isBytes)
        } else {
          content.append(next)
        }
      }
      throw error("a text has no end in its line")
    }

    private mutating func escape(
      into content: inout [UInt8], isBytes: Bool
    ) throws(RuleError) {
      guard let next = byte(at: position) else { throw error("a text has no end in its line") }
      position += 1
      switch next {
      case UInt8(ascii: "n"): content.append(0x0A)
      case UInt8(ascii: "t"): content.append(0x09)
      case UInt8(ascii: "r"): content.append(0x0D)
      case UInt8(ascii: "b"): content.append(0x08)
      case UInt8(ascii: "f"): content.append(0x0C)
      case UInt8(ascii: "v"): content.append(0x0B)
      case UInt8(ascii: "a"): content.append(0x07)
      case UInt8(ascii: "\\"), UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"),
        UInt8(ascii: "?"), UInt8(ascii: "/"):
        content.append(next)
      case UInt8(ascii: "x") where isBytes:
        content.append(UInt8(truncatingIfNeeded: try hexadecimal(2)))
      case UInt8(ascii: "x"), UInt8(ascii: "u"), UInt8(ascii: "U"):
        let digits = next == UInt8(ascii: "x") ? 2 : next == UInt8(ascii: "u") ? 4 : 8
        guard let scalar = Unicode.Scalar(try hexadecimal(digits)) else {
          throw error("an escape is no character of Unicode", at: position)
        }
        content.append(contentsOf: String(Character(scalar)).utf8)
      default:
        throw error("an escape is unknown: a backslash is written \\\\", at: position - 2)
      }
    }

    private mutating func hexadecimal(_ count: Int) throws(RuleError) -> UInt32 {
      var value: UInt32 = 0
      for _ in 0..<count {
        guard let next = byte(at: position),
          let digit = Character(Unicode.Scalar(next)).hexDigitValue
        else { throw error("an escape has \(count) hexadecimal digits", at: position) }
        value = value << 4 | UInt32(digit)
        position += 1
      }
      return value
    }
  }

  extension UInt8 {
    var isDigit: Bool { (0x30...0x39).contains(self) }
    var isNameStart: Bool {
      (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) || self == 0x5F
    }
    var isQuote: Bool { self == UInt8(ascii: "'") || self == UInt8(ascii: "\"") }

    /// Whether the character belongs to a segment of a written path, outside `$(…)` and `{…}`.
    var isPathCharacter: Bool {
      isNameStart || isDigit || self == UInt8(ascii: "-") || self == UInt8(ascii: ".")
        || self == UInt8(ascii: "~") || self == UInt8(ascii: "@") || self == UInt8(ascii: "+")
        || self >= 0x80
    }
  }
#endif
