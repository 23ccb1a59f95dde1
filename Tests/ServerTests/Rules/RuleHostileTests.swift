// Files and documents that try to crash the engine or to keep it busy. Each is refused with an
// error, or denied, in bounded work.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct RuleHostileTests {
    /// Files with most of the language in them.
    private static let files = [
      RuleStage.file(
        "request.auth != null && (resource.data.tags[0:1].hasAny(['red']) || "
          + "get(/databases/$(database)/documents/users/$(request.auth.uid)).data.role "
          + "in ['a', 'b'])"
      ),
      RuleStage.file(
        "f(item, {'a': [1, 2.5, null], 'b': b'\\x00'}) ? 'a'.matches('[a-z]+') : -1 is int",
        functions: "function f(x, y) { let a = y.a[0] % 2; return x == string(a) || !(1 < a); }"),
      """
      rules_version = '2'; // version
      service firebase.storage { match /b/{bucket}/o { match /{all=**} {
        allow read, write: if request.time < timestamp.date(2030, 1, 1) /* soon */; } } }
      """,
    ]

    private func finishes(_ text: String, within limit: Duration = .seconds(2)) {
      let start = ContinuousClock.now
      if let rules = try? RuleSet(parsing: text), let request = try? RuleStage.request() {
        _ = rules.verdict(request, documents: RuleStage.documents)
        let query = RuleQuery(collection: "items", time: request.time)
        _ = rules.proof(of: query, documents: RuleStage.documents)
      }
      #expect(ContinuousClock.now - start < limit, "\(text.prefix(200))")
    }

    @Test(arguments: Seeds.first(20))
    func `A damaged file never traps`(seed: UInt64) {
      var random = SeededRandom(seed: seed)
      let snippets = [
        "(", ")", "{", "}", "[", "]", "/", "$(", "'", "\"", "\\", "if", "match", "&&", "||", "!",
        "?",
        ":", ".", ",", ";", "allow", "in", "is", "-", "9223372036854775807", "1e999", "**", "=",
        "\n",
        "//", "/*", "é", "\u{0}", "b'", ".size()", "[0:1]", "return", "let", "function f() {",
      ]
      for _ in 0..<300 {
        var bytes = Array(random.pick(Self.files).utf8)
        for _ in 0..<(1 + random.below(4)) {
          let place = random.below(bytes.count + 1)
          switch random.below(4) {
          case 0: bytes.removeSubrange(place..<min(bytes.count, place + random.below(9)))
          case 1: bytes.insert(UInt8(random.below(256)), at: place)
          case 2: bytes.insert(contentsOf: Array(random.pick(snippets).utf8), at: place)
          default:
            let other = random.below(bytes.count + 1)
            let piece = Array(bytes[min(place, other)..<min(bytes.count, min(place, other) + 40)])
            bytes.insert(contentsOf: piece, at: max(place, other))
          }
        }
        finishes(String(decoding: bytes, as: UTF8.self))
      }
    }

    @Test(arguments: [
      String(repeating: "(", count: 50_000) + "1" + String(repeating: ")", count: 50_000),
      String(repeating: "!", count: 50_000) + "true",
      String(repeating: "- ", count: 50_000) + "1",
      String(repeating: "[", count: 50_000),
      String(repeating: "{'a':", count: 30_000),
      String(repeating: "f(", count: 50_000),
      String(repeating: "true ? ", count: 30_000),
      String(repeating: "true ? true : ", count: 10_000) + "true",
      "1" + String(repeating: " + 1", count: 30_000) + " == 1",
      "1" + String(repeating: " == 1", count: 30_000),
      "resource" + String(repeating: ".a", count: 50_000),
      "resource" + String(repeating: "[0]", count: 50_000),
      "resource" + String(repeating: ".f()", count: 30_000),
      "'a'" + String(repeating: " in ['a']", count: 20_000),
      "/" + String(repeating: "$(/", count: 50_000),
    ])
    func `Nesting without end is refused with an error`(condition: String) {
      let start = ContinuousClock.now
      #expect(throws: RuleError.self) { try RuleSet(parsing: RuleStage.file(condition)) }
      #expect(ContinuousClock.now - start < .seconds(2))
    }

    @Test func `Blocks and comments without end are refused`() {
      for text in [
        "service cloud.firestore {" + String(repeating: "match /a {", count: 20_000),
        "service cloud.firestore { match " + String(repeating: "/a", count: 100_000) + " { } }",
        String(repeating: " ", count: RuleLimits.sourceBytes + 1),
        "/*" + String(repeating: "/*", count: 100_000),
      ] {
        #expect(throws: RuleError.self) { try RuleSet(parsing: text) }
      }
    }

    @Test func `A long condition is no deep one`() throws {
      let condition = Array(repeating: "request.auth != null", count: 900).joined(separator: " && ")
      #expect(try RuleStage.verdict(condition).isAllowed)
    }

    @Test func `Calls may be 20 deep, and no deeper`() throws {
      func functions(_ count: Int) -> String {
        (0..<count).map { index in
          "function f\(index)() { return \(index == 0 ? "true" : "f\(index - 1)()"); }"
        }.reversed().joined(separator: "\n")
      }
      #expect(try RuleStage.verdict("f19()", functions: functions(20)).isAllowed)
      #expect(throws: RuleError.self) {
        try RuleSet(parsing: RuleStage.file("f20()", functions: functions(21)))
      }
      #expect(throws: RuleError.self) {
        try RuleSet(parsing: RuleStage.file("true", functions: functions(900)))
      }
    }

    @Test func `Deep expressions in deep calls are refused or denied`() throws {
      for height in [10, 16, 40, 95] {
        let functions = (0..<20).map { index in
          let below = index == 0 ? "true" : "f\(index - 1)()"
          return "function f\(index)() { return \(String(repeating: "!", count: height))\(below); }"
        }
        for functions in [functions, functions.reversed()] {
          let text = RuleStage.file("f19()", functions: functions.joined(separator: "\n"))
          guard let rules = try? RuleSet(parsing: text) else { continue }
          let verdict = rules.verdict(try RuleStage.request(), documents: NoRuleDocuments())
          #expect(verdict.isAllowed == (height < 16))
        }
      }
    }

    @Test func `A request evaluates at most 1,000 expressions`() throws {
      func condition(_ count: Int) -> String {
        Array(repeating: "1 == 1", count: count).joined(separator: " && ")
      }
      #expect(try RuleStage.verdict(condition(999)).isAllowed)
      let verdict = try RuleStage.verdict(condition(1_000))
      #expect(verdict.considered.map(\.outcome) == [.failed(.tooManyExpressions)])
      // A failure from a limit is not one that || forgives.
      #expect(try !RuleStage.verdict("(\(condition(1_000))) || true").isAllowed)
    }

    @Test func `Functions that double the work at each level are stopped`() throws {
      let functions = (0..<20).map { index in
        let below = "f\(index - 1)()"
        return "function f\(index)() { return \(index == 0 ? "true" : "\(below) && \(below)"); }"
      }
      let verdict = try RuleStage.verdict("f19()", functions: functions.joined(separator: "\n"))
      #expect(verdict.considered.map(\.outcome) == [.failed(.tooManyExpressions)])
    }

    @Test func `Texts and lists that double at each step are stopped`() throws {
      for (start, double) in [("'ab'", "x + x"), ("[1]", "x.concat(x)"), ("[1]", "[x, x]")] {
        let functions = (0..<19).map { index in
          let names = (0...9).map { "v\($0)" }
          let lets = zip(names.dropFirst(), names).map { name, previous in
            "let \(name) = \(double.replacingX(previous));"
          }
          let last = index == 0 ? "v9" : "f\(index - 1)(v9)"
          return "function f\(index)(x) { let v0 = x; \(lets.joined()) return \(last); }"
        }
        let verdict = try RuleStage.verdict(
          "f18(\(start)) == f18(\(start))", functions: functions.joined(separator: "\n"))
        #expect(verdict.considered.map(\.outcome) == [.failed(.tooMuchWork)])
      }
    }

    @Test func `A request reads at most ten documents`() throws {
      func condition(_ count: Int) -> String {
        (0..<count).map { "!exists(/databases/$(database)/documents/none/d\($0))" }
          .joined(separator: " && ")
      }
      #expect(try RuleStage.verdict(condition(10)).isAllowed)
      let verdict = try RuleStage.verdict(condition(11))
      #expect(verdict.considered.map(\.outcome) == [.failed(.tooManyDocuments)])
    }

    @Test func `A document that cannot be read denies`() throws {
      struct Broken: RuleDocuments {
        struct Cause: Error {}
        func document(at path: [String], afterWrites: Bool) throws -> RuleValue? { throw Cause() }
      }
      let condition = "exists(/databases/$(database)/documents/a/b) || true"
      let rules = try RuleSet(parsing: RuleStage.file(condition))
      #expect(!rules.verdict(try RuleStage.request(), documents: Broken()).isAllowed)
    }

    @Test func `Many recursive wildcards and a long path are stopped`() throws {
      let depth = 12
      let text =
        "rules_version = '2'; service cloud.firestore {"
        + (0..<depth).map { "match /{x\($0)=**} {" }.joined() + " match /z { allow read; }"
        + String(repeating: "}", count: depth) + "}"
      let rules = try RuleSet(parsing: text)
      let path = Array(repeating: "a", count: 200)
      let start = ContinuousClock.now
      #expect(
        !rules.verdict(try RuleStage.request(.get, path: path), documents: NoRuleDocuments())
          .isAllowed)
      #expect(ContinuousClock.now - start < .seconds(2))
    }

    @Test func `Large documents are compared in bounded time`() throws {
      let large = RuleValue.list((0..<50_000).map { .string("element \($0)") })
      var request = try RuleStage.request()
      request.resource = .document(RuleDocument(path: request.path, data: .map(["a": large])))
      request.newResource = .document(
        RuleDocument(path: request.path, data: .map(["a": large, "b": .int(1)])))
      let condition =
        "resource.data.a.hasAll(request.resource.data.a)"
        + " && resource.data.a.hasOnly(resource.data.a)"
        + " && request.resource.data.a.removeAll(resource.data.a).size() == 0"
      let rules = try RuleSet(parsing: RuleStage.file(condition))
      let start = ContinuousClock.now
      #expect(rules.verdict(request, documents: NoRuleDocuments()).isAllowed)
      #expect(ContinuousClock.now - start < .seconds(5))
    }
  }

  extension String {
    /// The expression with another name for x.
    fileprivate func replacingX(_ name: String) -> String {
      split(separator: "x", omittingEmptySubsequences: false).joined(separator: name)
    }
  }
#endif
