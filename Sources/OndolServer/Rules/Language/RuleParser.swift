// Reads the blocks of a rules file: services, matches, functions and allows. The result follows the
// text, and RuleChecker resolves the names. Every recursion counts its depth.

#if Server
  struct RuleParser {
    var scanner: RuleScanner
    /// The nesting of the expressions and blocks under way.
    var depth = 0
    /// The number of path segments of the matches under way.
    private var segmentCount = 0

    init(_ text: String) throws(RuleError) {
      scanner = try RuleScanner(text)
    }

    struct File {
      /// 1 if the file states none.
      var version = 1
      /// Functions that all services see.
      var functions: [RuleFunctionSyntax] = []
      /// The services by their names, such as `cloud.firestore`.
      var services: [(name: String, block: RuleBlockSyntax)] = []
    }

    /// Reads the whole file.
    mutating func file() throws(RuleError) -> File {
      var file = File()
      if try takeName("rules_version") {
        try expect("=")
        guard case .string(let version) = scanner.token, version == "1" || version == "2" else {
          throw scanner.error("rules_version is '1' or '2'")
        }
        file.version = version == "2" ? 2 : 1
        try scanner.advance()
        _ = try take(";")
      }
      while scanner.token != .end {
        if try takeName("function") {
          file.functions.append(try function())
          continue
        }
        guard try takeName("service") else {
          throw scanner.error("a service is expected, and here is \(scanner.token.text)")
        }
        let start = scanner.start
        var name = try self.name("the name of a service")
        while try take(".") { name += "." + (try self.name("the name of a service")) }
        guard name == "cloud.firestore" || name == "firebase.storage" else {
          throw scanner.error(
            "there are rules for cloud.firestore and firebase.storage, not for \(name)", at: start)
        }
        guard !file.services.contains(where: { $0.name == name }) else {
          throw scanner.error("\(name) is here twice", at: start)
        }
        var block = RuleBlockSyntax()
        try body(of: &block, isService: true)
        file.services.append((name, block))
      }
      guard !file.services.isEmpty else { throw scanner.error("a rules file has a service") }
      return file
    }

    /// Reads `{ … }` of a service or a match.
    private mutating func body(
      of block: inout RuleBlockSyntax, isService: Bool
    ) throws(RuleError) {
      try enter()
      defer { depth -= 1 }
      try expect("{")
      while try !take("}") {
        let start = scanner.start
        if try takeName("match") {
          block.blocks.append(try match())
        } else if try takeName("function") {
          block.functions.append(try function())
        } else if !isService, try takeName("allow") {
          block.allows.append(try allow(from: start))
        } else if try !take(";") {
          let expected = isService ? "match or function" : "match, allow or function"
          throw scanner.error("\(expected) is expected, and here is \(scanner.token.text)")
        }
      }
    }

    private mutating func match() throws(RuleError) -> RuleBlockSyntax {
      var block = RuleBlockSyntax()
      guard scanner.token == .mark("/") else {
        throw scanner.error("the path of a match begins with /")
      }
      var position = scanner.start
      while scanner.byte(at: position) == UInt8(ascii: "/") {
        block.segments.append(try matchSegment(at: &position))
        try limit(segmentCount + block.segments.count, at: position)
      }
      try scanner.resume(at: position)
      let rests = block.segments.count { if case .rest = $0 { true } else { false } }
      guard rests <= 1 else {
        throw scanner.error("the path of a match has one {…=**} at most", at: position)
      }
      segmentCount += block.segments.count
      try body(of: &block, isService: false)
      segmentCount -= block.segments.count
      return block
    }

    /// Refuses a path with too many segments, because matching it recurses.
    func limit(_ segments: Int, at position: Int) throws(RuleError) {
      guard segments <= RuleLimits.segments else {
        throw scanner.error("a path has at most \(RuleLimits.segments) segments", at: position)
      }
    }

    /// Reads `/name`, `/{name}` or `/{name=**}`.
    private mutating func matchSegment(
      at position: inout Int
    ) throws(RuleError) -> RuleMatchSegment {
      position += 1
      guard scanner.byte(at: position) == UInt8(ascii: "{") else {
        return .literal(try segment(at: &position))
      }
      try scanner.resume(at: position + 1)
      let name = try self.name("the name of a wildcard")
      var isRest = false
      if try take("=") {
        try expect("**")
        isRest = true
      }
      guard scanner.token == .mark("}") else {
        throw scanner.error("a wildcard is {name} or {name=**}")
      }
      position = scanner.position
      return isRest ? .rest(name) : .single(name)
    }

    /// Reads a literal segment of a path, such as `items` or `(default)`.
    mutating func segment(at position: inout Int) throws(RuleError) -> String {
      let begin = position
      let isBracketed = scanner.byte(at: position) == UInt8(ascii: "(")
      if isBracketed { position += 1 }
      while let next = scanner.byte(at: position), next.isPathCharacter { position += 1 }
      if isBracketed, scanner.byte(at: position) == UInt8(ascii: ")") { position += 1 }
      guard position > begin + (isBracketed ? 2 : 0),
        let text = String(validating: scanner.source.bytes[begin..<position], as: UTF8.self)
      else { throw scanner.error("a segment of a path is empty", at: begin) }
      return text
    }

    private mutating func allow(from start: Int) throws(RuleError) -> RuleAllowSyntax {
      var methods: RuleMethods = []
      repeat {
        guard case .name(let name) = scanner.token, let method = RuleMethods.byName[name] else {
          throw scanner.error(
            "allow is followed by get, list, read, create, update, delete or write")
        }
        methods.formUnion(method)
        try scanner.advance()
      } while try take(",")
      var condition: RuleSyntax?
      if try take(":") {
        guard try takeName("if") else { throw scanner.error("a condition begins with if") }
        condition = try expression()
      }
      let end = scanner.previousEnd
      // Firebase requires the semicolon only if something follows on the same level.
      if try !take(";"), scanner.token != .mark("}") {
        throw scanner.error("an allow ends with ;")
      }
      return RuleAllowSyntax(methods: methods, condition: condition, span: span(start, end))
    }

    private mutating func function() throws(RuleError) -> RuleFunctionSyntax {
      let start = scanner.start
      let name = try self.name("the name of a function")
      try expect("(")
      var parameters: [String] = []
      while try !take(")") {
        if !parameters.isEmpty { try expect(",") }
        parameters.append(try self.name("the name of a parameter"))
      }
      guard parameters.count <= RuleLimits.parameters else {
        throw scanner.error("a function has at most \(RuleLimits.parameters) parameters", at: start)
      }
      try expect("{")
      var lets: [(name: String, value: RuleSyntax)] = []
      while try takeName("let") {
        let variable = try self.name("the name of a variable")
        try expect("=")
        lets.append((variable, try expression()))
        try expect(";")
      }
      guard lets.count <= RuleLimits.lets else {
        throw scanner.error("a function has at most \(RuleLimits.lets) lets", at: start)
      }
      guard try takeName("return") else { throw scanner.error("a function returns a value") }
      let result = try expression()
      _ = try take(";")
      try expect("}")
      return RuleFunctionSyntax(
        name: name, parameters: parameters, lets: lets, result: result,
        span: span(start, scanner.previousEnd))
    }

    // MARK: - Words

    func span(_ start: Int, _ end: Int) -> RuleSpan {
      RuleSpan(start: Int32(clamping: start), end: Int32(clamping: end))
    }

    mutating func enter() throws(RuleError) {
      depth += 1
      guard depth <= RuleLimits.nesting else {
        throw scanner.error("brackets and blocks are nested more than \(RuleLimits.nesting) deep")
      }
    }

    /// Skips a word if it is next.
    mutating func takeName(_ word: String) throws(RuleError) -> Bool {
      guard case .name(let next) = scanner.token, next == word else { return false }
      try scanner.advance()
      return true
    }

    /// Reads a name.
    mutating func name(_ meaning: String) throws(RuleError) -> String {
      guard case .name(let name) = scanner.token else {
        throw scanner.error("\(meaning) is expected, and here is \(scanner.token.text)")
      }
      guard !Self.reserved.contains(name) else {
        throw scanner.error("\"\(name)\" is a word of the language and no name")
      }
      try scanner.advance()
      return name
    }

    private static let reserved: Set<String> = [
      "true", "false", "null", "in", "is", "if", "return",
    ]

    /// Skips a mark if it is next.
    mutating func take(_ mark: String) throws(RuleError) -> Bool {
      guard case .mark(let next) = scanner.token, next == mark else { return false }
      try scanner.advance()
      return true
    }

    mutating func expect(_ mark: String) throws(RuleError) {
      guard try take(mark) else {
        throw scanner.error("\"\(mark)\" is expected, and here is \(scanner.token.text)")
      }
    }
  }
#endif
