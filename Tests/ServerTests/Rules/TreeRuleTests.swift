// Rules of a tree: those above a place that grant, those below it that must hold, and each
// construct of the expressions once where it allows and once where it denies.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  /// A tree of values: a map is a branch.
  struct StagedTree: RuleTree {
    let root: RuleValue
    var priorities: [String: RuleValue] = [:]

    private func value(at path: [String]) -> RuleValue? {
      path.reduce(root) { value, name in
        if case .map(let fields)? = value { fields[name] } else { nil }
      }
    }

    func content(at path: [String]) throws -> RuleTreeContent? {
      switch value(at: path) {
      case nil, .null?: nil
      case .map?: .branch
      case let leaf?: .leaf(leaf)
      }
    }

    func priority(at path: [String]) throws -> RuleValue {
      priorities[path.joined(separator: "/")] ?? .null
    }

    func childNames(at path: [String]) throws -> [String] {
      if case .map(let fields)? = value(at: path) { fields.keys.sorted() } else { [] }
    }

    /// The tree with another value at a path.
    func with(_ value: RuleValue?, at path: [String]) -> StagedTree {
      func put(_ old: RuleValue?, _ path: ArraySlice<String>) -> RuleValue? {
        guard let name = path.first else { return value }
        var fields: [String: RuleValue] = [:]
        if case .map(let old)? = old { fields = old }
        fields[name] = put(fields[name], path.dropFirst())
        return fields.isEmpty ? nil : .map(fields)
      }
      return StagedTree(root: put(root, path[...]) ?? .null, priorities: priorities)
    }
  }

  @Suite struct TreeRuleTests {
    private let tree = StagedTree(
      root: .map([
        "users": .map([
          "anna": .map(["name": .string("Anna"), "age": .int(30), "isAdmin": .bool(true)]),
          "ben": .map(["name": .string("Ben"), "age": .float(17.5)]),
        ]),
        "rooms": .map(["r1": .map(["owner": .string("anna"), "open": .bool(true)])]),
      ]), priorities: ["users/anna": .int(7)])

    private func path(_ text: String) -> [String] { text.split(separator: "/").map(String.init) }

    private func reads(
      _ rules: String, _ place: String, as auth: RuleValue = RuleStage.anna,
      query: RuleValue = .null
    ) throws -> Bool {
      try TreeRules(parsing: "{\"rules\": \(rules)}")
        .read(
          at: path(place), of: tree, auth: auth, now: try #require(RuleStage.now), query: query
        ).isAllowed
    }

    private func writes(
      _ rules: String, _ value: RuleValue?, at place: String, as auth: RuleValue = RuleStage.anna
    ) throws -> Bool {
      try TreeRules(parsing: "{\"rules\": \(rules)}")
        .write(
          at: path(place), before: tree, after: tree.with(value, at: path(place)), auth: auth,
          now: try #require(RuleStage.now)
        ).isAllowed
    }

    // MARK: - Scope of rules

    @Test func `Without a rule that holds everything is denied`() throws {
      #expect(try !reads("{}", "users"))
      #expect(try !reads("{\".read\": false}", "users"))
      #expect(try !reads("{\".write\": true}", "users"))
      #expect(try !writes("{\".read\": true}", .int(1), at: "x"))
    }

    @Test func `A grant holds for everything below`() throws {
      let rules = "{\"users\": {\".read\": true, \"anna\": {\".read\": false}}}"
      #expect(try reads(rules, "users"))
      #expect(try reads(rules, "users/anna/name"))
      #expect(try !reads(rules, ""))
      #expect(try !reads(rules, "rooms"))
    }

    @Test func `A wildcard is for children without rules of their own`() throws {
      let rules = """
        {"users": {"anna": {".read": false}, "$user": {".read": "$user === 'ben'",
         "$field": {".read": "$user == 'carl' && $field == 'name'"}}}}
        """
      #expect(try reads(rules, "users/ben"))
      #expect(try !reads(rules, "users/carl"))
      #expect(try reads(rules, "users/carl/name"))
      #expect(try !reads(rules, "users/carl/age"))
      #expect(try !reads(rules, "users/anna"))
      #expect(try !reads(rules, "users/anna/name"))
    }

    @Test func `A validated place must hold if the write leaves data there`() throws {
      let rules = """
        {"users": {".write": true, "$user": {
          ".validate": "newData.hasChildren(['name', 'age'])",
          "name": {".validate": "newData.isString()"},
          "age": {".validate": "newData.isNumber() && newData.val() > 0"},
          "$other": {".validate": false}}}}
        """
      let good = RuleValue.map(["name": .string("C"), "age": .int(1)])
      #expect(try writes(rules, good, at: "users/c"))
      #expect(try writes(rules, .map(["c": good, "d": good]), at: "users"))
      #expect(try !writes(rules, .map(["name": .string("C")]), at: "users/c"))
      #expect(try !writes(rules, .map(["name": .int(1), "age": .int(1)]), at: "users/c"))
      #expect(
        try !writes(
          rules, .map(["name": .string("C"), "age": .int(1), "x": .int(1)]), at: "users/c"))
      // Also above the written place, and not where no data is left.
      #expect(try writes(rules, .string("New"), at: "users/ben/name"))
      #expect(try !writes(rules, .string("New"), at: "users/new/name"))
      #expect(try writes(rules, nil, at: "users/ben"))
      #expect(try writes(rules, nil, at: "users"))
      #expect(try !writes(rules, .int(0), at: "users/ben/age"))
    }

    @Test func `A rule of a place looks at its own place`() throws {
      let rules = """
        {"rooms": {"$room": {".write": "data.child('owner').val() === auth.uid",
          "open": {".validate": "newData.parent().child('owner').val() == auth.uid"}}}}
        """
      #expect(try writes(rules, .bool(false), at: "rooms/r1/open"))
      #expect(try !writes(rules, .bool(false), at: "rooms/r2/open"))
      #expect(try !writes(rules, .bool(false), at: "rooms/r1/open", as: .null))
    }

    @Test func `A verdict names the rule that decided`() throws {
      let text = """
        {"rules": {
          ".write": "auth.uid == 'ben'",
          "x": {".write": true, ".validate": "newData.val() > 1"}
        }}
        """
      let rules = try TreeRules(parsing: text)
      let now = try #require(RuleStage.now)
      func verdict(_ value: Int64) -> RuleVerdict {
        rules.write(
          at: ["x"], before: tree, after: tree.with(.int(value), at: ["x"]), auth: RuleStage.anna,
          now: now, explain: true)
      }
      #expect(verdict(2).isAllowed)
      #expect(verdict(2).decidedAt == RulePlace(line: 3, column: 19))
      #expect(verdict(1).decidedAt == RulePlace(line: 3, column: 38))
      #expect(verdict(1).considered.map(\.outcome) == [.didNotHold, .held, .didNotHold])
      #expect(verdict(1).steps.map(\.expression).contains("newData.val() > 1"))
    }

    @Test func `Indexes are named for a place`() throws {
      let rules = try TreeRules(
        parsing: """
          {"rules": {"a": {".indexOn": ["x", "y/z"]}, "$b": {"c": {".indexOn": ".value"}}}}
          """)
      #expect(rules.indexes(at: ["a"]) == ["x", "y/z"])
      #expect(rules.indexes(at: ["q", "c"]) == [".value"])
      #expect(rules.indexes(at: ["a", "c"]) == [])
    }

    @Test func `A query can be asked for`() throws {
      let rules =
        "{\"users\": {\".read\": \"query.orderByChild == 'age' && query.limitToFirst <= 9\"}}"
      let query = RuleValue.map(["orderByChild": .string("age"), "limitToFirst": .int(5)])
      #expect(try reads(rules, "users", query: query))
      #expect(try !reads(rules, "users", query: .map(["orderByChild": .string("age")])))
      #expect(try !reads(rules, "users"))
    }

    // MARK: - Expressions

    static let rows = [
      RuleRow("true", "false"),
      RuleRow("auth != null", "auth == null"),
      RuleRow("auth.uid === 'anna'", "auth.uid !== 'anna'"),
      RuleRow("auth.token.admin === true", "auth.token.banned === true"),
      RuleRow("auth.token.missing.deeper == null", "auth.token.missing.deeper == true"),
      RuleRow("auth['uid'] == 'anna'", "auth['name'] == 'anna'"),
      RuleRow("!false", "!null"),
      RuleRow("true && true", "true && false"),
      RuleRow("false || true", "false || false"),
      // Nothing is forgiven here: a failure of one side fails the whole.
      RuleRow("true || 'a' < 1", "'a' < 1 || true"),
      RuleRow("1 < 2 && 2 <= 2", "2 < 2"),
      RuleRow("3 > 2 && 2 >= 2", "2 > 2"),
      RuleRow("'a' < 'b'", "'a' < 1"),
      RuleRow("1 + 2 * 3 == 7", "(1 + 2) * 3 == 7"),
      RuleRow("7 / 2 == 3.5", "7 / 2 == 3"),
      RuleRow("7 % 4 == 3", "7 % 4 == 1"),
      RuleRow("-1 < 0", "-'a' < 0"),
      RuleRow("5 - 2 - 1 == 2", "5 - 2 - 1 == 4"),
      RuleRow("'a' + 1 + true == 'a1true'", "'a' + null == 'anull'"),
      RuleRow("true ? true : false", "false ? true : false"),
      RuleRow("now > 1770000000000", "now > 1780000000000"),
      RuleRow("root.child('users/anna').exists()", "root.child('users/carl').exists()"),
      RuleRow(
        "root.child('users').child(auth.uid).child('isAdmin').val() === true",
        "root.child('users/ben/isAdmin').val() === true"),
      RuleRow("data.child('name').val() == 'Anna'", "data.child('name').val() == 'Ben'"),
      RuleRow("newData.child('name').val() == 'Ann'", "newData.child('name').val() == 'Anna'"),
      RuleRow("data.hasChild('age')", "data.hasChild('size')"),
      RuleRow("data.hasChildren()", "data.child('age').hasChildren()"),
      RuleRow("data.hasChildren(['name', 'age'])", "data.hasChildren(['name', 'size'])"),
      RuleRow("data.parent().child('ben').exists()", "root.parent().exists()"),
      RuleRow("data.child('name').isString()", "data.child('age').isString()"),
      RuleRow("data.child('age').isNumber()", "data.child('name').isNumber()"),
      RuleRow("data.child('isAdmin').isBoolean()", "data.child('age').isBoolean()"),
      RuleRow("data.getPriority() == 7", "root.getPriority() == 7"),
      RuleRow("data.val() != null", "data.val() == null"),
      RuleRow("root.child('nothing').val() == null", "data.val() == 1"),
      RuleRow("newData.child('age').val() == data.child('age').val()", "newData == data"),
      RuleRow("auth.uid.length == 4", "auth.uid.length == 5"),
      RuleRow("auth.uid.contains('nn')", "auth.uid.contains('mm')"),
      RuleRow("auth.uid.beginsWith('an')", "auth.uid.beginsWith('na')"),
      RuleRow("auth.uid.endsWith('na')", "auth.uid.endsWith('an')"),
      RuleRow("auth.uid.replace('n', 'm') == 'amma'", "auth.uid.replace('n', 'm') == 'amna'"),
      RuleRow("auth.uid.toUpperCase() == 'ANNA'", "auth.uid.toUpperCase() == 'anna'"),
      RuleRow("'AnNa'.toLowerCase() == 'anna'", "'AnNa'.toLowerCase() == 'AnNa'"),
      RuleRow("auth.uid.matches(/^an+a$/)", "auth.uid.matches(/^an$/)"),
      RuleRow("auth.uid.matches(/N+/i)", "auth.uid.matches(/N+/)"),
      RuleRow("'2026-01-31'.matches(/^20[0-9]{2}-(0[1-9]|1[012])/)", "'x'.matches(/[0-9/]/)"),
      RuleRow("$user == 'anna'", "$user == 'ben'"),
      RuleRow("$user === auth.uid && $user.length > 2", "$user.size > 2"),
    ]

    @Test(arguments: rows)
    func `A construct of a tree's rules allows and denies`(row: RuleRow) throws {
      let value = RuleValue.map(["name": .string("Ann"), "age": .int(30)])
      func rules(_ condition: String) -> String {
        "{\"users\": {\"$user\": {\".write\": \"\(condition)\"}}}"
      }
      #expect(try writes(rules(row.allows), value, at: "users/anna"))
      #expect(try !writes(rules(row.denies), value, at: "users/anna"))
    }

    @Test(arguments: [
      ("{\".reed\": true}", "is no rule"), ("{\"a/b\": {}}", "is no rule"),
      ("{\".read\": 1}", "a rule is true, false or a text"),
      ("{\".read\": \"newData.exists()\"}", ".read has no newData"),
      ("{\".write\": \"query.limitToFirst\"}", ".write has no query"),
      ("{\".read\": \"$x == 1\"}", "there is no variable $x"),
      ("{\"$x\": {\"$x\": {}}}", "$x is above already"),
      ("{\"$x\": {}, \"$y\": {}}", "one name with $ at most"),
      ("{\"a\": {}, \"a\": {}}", "is here twice"),
      ("{\".read\": \"auth.uid.sub()\"}", "no value has a method sub"),
      ("{\".read\": \"data.child()\"}", "child has other parameters"),
      ("{\".read\": \"auth.uid.matches('a')\"}", "a pattern between slashes"),
      ("{\".read\": \"auth.uid.matches(/(/)\"}", "the pattern is wrong"),
      ("{\".read\": \"auth != \"}", "a value is expected"),
      ("{\".read\": \"auth auth\"}", "the end of the expression"),
      ("{\".read\": \"a # b\"}", "there is no variable a"),
      ("{\".read\": \"'a\"}", "a text has no end"), ("{\".read\": tru}", "a rule is true"),
      ("{\".read\": true", "\",\" is expected"), ("{/* ", "a comment has no end"), ("[]", "\"{\""),
    ])
    func `A wrong file is refused with its reason`(rules: String, reason: String) throws {
      let error = try #require(throws: RuleError.self) {
        try TreeRules(parsing: "{\"rules\": \(rules)}")
      }
      #expect(error.message.contains(reason), "\(error)")
    }

    @Test func `Comments and line breaks are allowed, and places are the file's`() throws {
      let text = "{ // one\n \"rules\": { /* two */ \".read\": \"true ||\n  \\u0061uth.x = 1\" } }"
      let error = try #require(throws: RuleError.self) { try TreeRules(parsing: text) }
      #expect(error.place == RulePlace(line: 3, column: 15))
    }

    @Test(arguments: Seeds.first(20))
    func `A damaged file never traps`(seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      let now = try #require(RuleStage.now)
      let file = """
        {"rules": {".read": "auth != null && (data.child('a/b').val() === 'x' || now > 1.5)", // one
        "users": {"$user": {".write": "$user == auth.uid ? true : !data.exists()",
        ".validate": "newData.hasChildren(['name']) && newData.val().matches(/^[a-z]+$/i)",
        ".indexOn": ["a", "b"]}}}}
        """
      let snippets = [
        "{", "}", "\"", "[", "(", ")", "'", "\\", "\\u", "/", "$", ".", "!", "-", "é",
      ]
      for _ in 0..<300 {
        var bytes = Array(file.utf8)
        for _ in 0..<(1 + random.below(4)) {
          let place = random.below(bytes.count + 1)
          switch random.below(3) {
          case 0: bytes.removeSubrange(place..<min(bytes.count, place + random.below(9)))
          case 1: bytes.insert(UInt8(random.below(256)), at: place)
          default: bytes.insert(contentsOf: Array(random.pick(snippets).utf8), at: place)
          }
        }
        guard let rules = try? TreeRules(parsing: String(decoding: bytes, as: UTF8.self)) else {
          continue
        }
        _ = rules.read(at: ["users", "anna"], of: tree, auth: RuleStage.anna, now: now)
        _ = rules.write(
          at: ["users", "anna"], before: tree, after: tree, auth: RuleStage.anna, now: now)
      }
    }

    @Test(arguments: [
      String(repeating: "(", count: 50_000), String(repeating: "!", count: 50_000),
      "1" + String(repeating: "+1", count: 50_000) + " == 1",
      "data" + String(repeating: ".parent()", count: 20_000),
      String(repeating: "true ? ", count: 30_000),
    ])
    func `Nesting without end is refused with an error`(condition: String) {
      #expect(throws: RuleError.self) {
        try TreeRules(parsing: "{\"rules\": {\".read\": \"\(condition)\"}}")
      }
    }

    @Test func `Places without end are refused, and deep paths denied`() throws {
      let open = String(repeating: "{\"a\": ", count: 10_000)
      #expect(throws: RuleError.self) { try TreeRules(parsing: "{\"rules\": " + open) }
      #expect(
        try !reads("{\".read\": true}", Array(repeating: "a", count: 33).joined(separator: "/")))
      #expect(
        try reads("{\".read\": true}", Array(repeating: "a", count: 32).joined(separator: "/")))
    }

    @Test func `Texts that double are stopped`() throws {
      let parts = Array(repeating: "auth.x", count: 90).joined(separator: " + ")
      let auth = RuleValue.map(["x": .string(String(repeating: "a", count: 1_000_000))])
      #expect(try !reads("{\".read\": \"(\(parts)).length > 0\"}", "a", as: auth))
    }
  }
#endif
