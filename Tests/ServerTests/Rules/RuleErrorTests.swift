// Refused files, with the place and the reason, and the texts of a verdict.

#if Server
  import Testing

  @testable import OndolServer

  @Suite struct RuleErrorTests {
    /// A condition, and its error.
    @Test(arguments: [
      ("user != null", "there is no variable user here"),
      ("f()", "there is no function f"),
      ("'a'.reverse()", "no value has a method reverse"),
      ("'a'.size(1)", "size has 0 parameters, and here are 1"),
      ("get(/a/b, 1)", "get has 1 parameters, and here are 2"),
      ("math.sin(1)", "there is no function math.sin"),
      ("request.user", "request has auth, method, path, query, resource, time, and no user"),
      ("firestore.get(/a/b)", "firestore.get is no function of cloud.firestore"),
      ("'a' is text", "is is followed by one of"),
      ("'a'.matches('(')", "the pattern is wrong: a ( has no )"),
      ("'a'.matches('a**')", "a repetition is repeated"),
      ("'a'.matches('(?=a)')", "(?= is not of the syntax"),
      ("'a'.matches('\\\\1')", "\\1 is not of the syntax"),
      ("'a'.matches('(?:a{1000}){1000}')", "instructions"),
      ("'\\d'", "an escape is unknown"),
      ("'a", "a text has no end"),
      ("1 +", "a value is expected"),
      ("(1", "\")\" is expected"),
      ("[1 2]", "\",\" is expected"),
      ("a ? b", "\":\" is expected"),
      ("99999999999999999999", "beyond the integers"),
      ("a # b", "not of the language"),
      ("/a//b", "a segment of a path is empty"),
      ("a.1", "a name is expected"),
    ])
    func `A wrong condition is refused with its reason`(condition: String, reason: String) throws {
      let error = try #require(throws: RuleError.self) {
        try RuleSet(parsing: RuleStage.file(condition))
      }
      #expect(error.message.contains(reason), "\(error)")
      #expect(error.place.line >= 5)
    }

    @Test(arguments: [
      ("", "a rules file has a service"),
      ("rules_version = '3';", "rules_version is '1' or '2'"),
      ("service cloud.tasks { }", "not for cloud.tasks"),
      ("service cloud.firestore { } service cloud.firestore { }", "is here twice"),
      ("service cloud.firestore {", "match or function is expected"),
      ("service cloud.firestore { allow read; }", "match or function is expected"),
      ("service cloud.firestore { match items { } }", "begins with /"),
      ("service cloud.firestore { match /{a=*} { } }", "\"**\" is expected"),
      ("service cloud.firestore { match /{a=**}/{b=**} { } }", "one {…=**} at most"),
      ("service cloud.firestore { match /{a=**}/b { } }", "is last in its path"),
      ("service cloud.firestore { match /a/b { allow fly; } }", "allow is followed by"),
      ("service cloud.firestore { match /a/b { allow read: true; } }", "begins with if"),
      ("service cloud.firestore { match /a/b { allow read allow write; } }", "ends with ;"),
      ("service cloud.firestore { function f() { } }", "a function returns a value"),
      ("service cloud.firestore { function f() { return f(); } }", "calls itself"),
      (
        "service cloud.firestore { function f() { return g(); } function g() { return f(); } }",
        "calls itself"
      ),
      (
        "service cloud.firestore { function get(x) { return x; } }", "is a function of the language"
      ),
      ("service cloud.firestore { function f(a, a) { return a; } }", "is here twice"),
      ("service cloud.firestore { function f() { let a = 1; let a = 2; return a; } }", "twice"),
      (
        "service cloud.firestore { function f(a) { return 1; } function f() { return 1; } }",
        "twice"
      ),
      ("service cloud.firestore { function f(true) { return 1; } }", "a word of the language"),
      ("service cloud.firestore { } /* ", "a comment has no end"),
    ])
    func `A wrong file is refused with its reason`(text: String, reason: String) throws {
      let error = try #require(throws: RuleError.self) { try RuleSet(parsing: text) }
      #expect(error.message.contains(reason), "\(error)")
    }

    @Test func `An error has the line and the column of the mistake`() throws {
      let text = "service cloud.firestore {\n  match /a/b {\n    allow read: if 'é' == usr;\n  }\n}"
      let error = try #require(throws: RuleError.self) { try RuleSet(parsing: text) }
      #expect(error.place == RulePlace(line: 3, column: 27))
      #expect("\(error)" == "3:27: there is no variable usr here")
    }

    @Test func `A verdict names the allow that decided, and why others did not`() throws {
      let text = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents/items/{item} {
            allow write: if false;
            allow update: if resource.data.missing == 1;
            allow update: if request.auth.uid == 'anna';
            allow update: if true;
          }
        }
        """
      let rules = try RuleSet(parsing: text)
      let verdict = rules.verdict(try RuleStage.request(), documents: NoRuleDocuments())
      #expect(verdict.isAllowed)
      #expect(verdict.decidedAt == RulePlace(line: 6, column: 5))
      #expect(
        verdict.considered.map(\.outcome)
          == [.didNotHold, .failed(.noMember("missing")), .held])
      #expect(verdict.steps.isEmpty)
    }

    @Test func `An explanation shows the values that were seen`() throws {
      let verdict = try RuleStage.verdict("request.auth.uid == resource.data.title", explain: true)
      let steps = verdict.steps.map { "\($0.expression) → \($0.result)" }
      #expect(steps.contains("request.auth.uid → \"anna\""))
      #expect(steps.contains("resource.data.title → \"Lamp\""))
      #expect(steps.last == "request.auth.uid == resource.data.title → false")
      #expect("\(verdict)".hasPrefix("denied\n"))
    }

    @Test func `An explanation shows expressions with their brackets`() throws {
      let condition = "!((1 == 2) || (2)[0] in [1]) && (/a/$('b')) is path"
      let verdict = try RuleStage.verdict(condition, explain: true)
      let steps = verdict.steps.map(\.expression)
      #expect(
        steps == [
          "1 == 2", "(2)[0]", "(2)[0] in [1]", "(1 == 2) || (2)[0] in [1]",
          "!((1 == 2) || (2)[0] in [1])", "/a/$('b')", "(/a/$('b')) is path", condition,
        ])
    }

    @Test func `A path that nothing matches is denied without an allow`() throws {
      let rules = try RuleSet(parsing: RuleStage.file("true"))
      let verdict = rules.verdict(
        try RuleStage.request(path: ["others", "a"]), documents: NoRuleDocuments())
      #expect(!verdict.isAllowed)
      #expect(verdict.considered.isEmpty)
    }
  }
#endif
