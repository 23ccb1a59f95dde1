// Blocks of a rules file: which of them match a path, which requests their allows cover, and which
// names functions see.

#if Server
  import Testing

  @testable import OndolServer

  /// A file, a request, and whether it is allowed.
  struct RuleFileRow: Sendable, CustomTestStringConvertible {
    let body: String
    let method: RuleMethods
    let path: String
    let isAllowed: Bool

    init(_ body: String, _ method: RuleMethods, _ path: String, _ isAllowed: Bool) {
      self.body = body
      self.method = method
      self.path = path
      self.isAllowed = isAllowed
    }

    var testDescription: String { "\(path): \(body)" }
  }

  @Suite struct RuleFileTests {
    private func firestore(_ body: String, version: String = "2") -> String {
      """
      rules_version = '\(version)';
      service cloud.firestore {
        match /databases/{database}/documents { \(body) }
      }
      """
    }

    private func isAllowed(
      _ text: String, _ method: RuleMethods, _ path: [String], as auth: RuleValue = RuleStage.anna
    ) throws -> Bool {
      let request = try RuleStage.request(method, as: auth, path: path)
      return try RuleSet(parsing: text).verdict(request, documents: RuleStage.documents).isAllowed
    }

    static let methods: [RuleMethods] = [.get, .list, .create, .update, .delete]

    static let words: [(String, RuleMethods)] = [
      ("get", .get), ("list", .list), ("read", .read), ("create", .create),
      ("update", .update), ("delete", .delete), ("write", .write),
      ("read, write", [.read, .write]),
      ("get, delete", [.get, .delete]),
    ]

    @Test(arguments: words)
    func `An allow is for its methods and no others`(words: String, allowed: RuleMethods) throws {
      for method in Self.methods {
        let text = firestore("match /items/{id} { allow \(words); }")
        #expect(try isAllowed(text, method, ["items", "a"]) == allowed.isSuperset(of: method))
      }
    }

    static let rows = [
      RuleFileRow("match /items/{id} { allow read; }", .get, "items/a", true),
      RuleFileRow("match /items/{id} { allow read; }", .get, "items/a/parts/b", false),
      RuleFileRow("match /items/{id} { allow read; }", .get, "Items/a", false),
      RuleFileRow("match /items/a { allow read; }", .get, "items/a", true),
      RuleFileRow("match /items/a { allow read; }", .get, "items/b", false),
      RuleFileRow("match /items/{id}/parts/{part} { allow read; }", .get, "items/a/parts/b", true),
      RuleFileRow("match /items/{id}/parts/{part} { allow read; }", .get, "items/a/other/b", false),
      RuleFileRow(
        "match /items/{id} { match /parts/{part} { allow read: if id == 'a'; } }", .get,
        "items/a/parts/b", true),
      RuleFileRow(
        "match /items/{id} { match /parts/{part} { allow read: if id == 'a'; } }", .get,
        "items/c/parts/b", false),
      RuleFileRow("match /{all=**} { allow read; }", .get, "items/a/parts/b", true),
      RuleFileRow("match /items/{rest=**} { allow read; }", .get, "items/a/parts/b", true),
      RuleFileRow("match /items/{rest=**} { allow read; }", .get, "others/a", false),
      RuleFileRow("match /items/a/{rest=**} { allow read; }", .get, "items/a", true),
      RuleFileRow("match /{path=**}/parts/{part} { allow read; }", .get, "items/a/parts/b", true),
      RuleFileRow("match /{path=**}/parts/{part} { allow read; }", .get, "parts/b", true),
      RuleFileRow("match /{path=**}/parts/{part} { allow read; }", .get, "items/a/others/b", false),
      RuleFileRow(
        "match /{path=**}/parts/{part} { allow read: if path == /items/a; }", .get,
        "items/a/parts/b", true),
      RuleFileRow(
        "match /{path=**}/parts/{part} { allow read: if path[1] == 'c'; }", .get, "items/a/parts/b",
        false),
      RuleFileRow(
        "match /{a=**}/x/{b} { match /{c=**} { allow read: if c == /y/1; } }", .get, "x/1/y/1", true
      ),
      RuleFileRow(
        "match /items/{id} { allow read: if false; } match /items/{other} { allow read; }", .get,
        "items/a", true),
      RuleFileRow(
        "match /items/{id} { allow read: if 1 / 0 == 1; allow get: if true; }", .get, "items/a",
        true),
      RuleFileRow("match /items/{id} { allow write: if true; }", .get, "items/a", false),
      RuleFileRow("match /item-s/{id} { allow read }", .get, "item-s/a", true),
      RuleFileRow("/* none */ match /items/{id} { // some\n allow read; }", .get, "items/a", true),
      RuleFileRow("match /items/{id} { ; allow read;; }", .get, "items/a", true),
      RuleFileRow(
        "function f() { return true; } match /items/{id} { allow read: if f(); }", .get, "items/a",
        true),
      RuleFileRow(
        "match /items/{id} { allow read: if f(id, 'a'); function f(x, y) { return x == y; } }",
        .get,
        "items/a", true),
      RuleFileRow(
        "match /items/{id} { allow read: if f(id, 'a'); function f(x, y) { return x == y; } }",
        .get,
        "items/b", false),
      RuleFileRow(
        "function f() { return g() && h(); } function g() { return true; } "
          + "function h() { return !g(); } match /items/{id} { allow read: if f(); }", .get,
        "items/a", false),
      RuleFileRow(
        "match /items/{id} { function f() { return id; } match /parts/{part} "
          + "{ allow read: if f() == 'a' && part == 'b'; } }", .get, "items/a/parts/b", true),
      // The innermost of two equal names counts, for wildcards and for functions.
      RuleFileRow(
        "match /{id} { match /{x} { match /{y}/{id} { allow read: if id == 'b'; } } }", .get,
        "items/a/parts/b", true),
      RuleFileRow(
        "function f() { return false; } match /items/{id} "
          + "{ function f() { return true; } allow read: if f(); }", .get, "items/a", true),
      // A function sees the names of its own block.
      RuleFileRow(
        "match /items/{id} { function f(id) { return id == 'p'; } allow read: if f('p'); }", .get,
        "items/a", true),
      RuleFileRow(
        "function f() { let a = 1; let b = a + 1; let c = b * b; return c == 4; } "
          + "match /items/{id} { allow read: if f(); }", .get, "items/a", true),
      RuleFileRow(
        "function f() { let a = resource.data.x; return true || a; } "
          + "match /items/{id} { allow read: if f(); }", .get, "items/a", true),
      RuleFileRow(
        "function f(a) { return a || false; } match /items/{id} { allow read: if f(1 / 0); }", .get,
        "items/a", false),
      RuleFileRow(
        "function f(a) { return a || true; } match /items/{id} { allow read: if f(1 / 0); }", .get,
        "items/a", true),
    ]

    @Test(arguments: rows)
    func `Blocks match paths, and functions see their names`(row: RuleFileRow) throws {
      let path = row.path.split(separator: "/").map(String.init)
      #expect(try isAllowed(firestore(row.body), row.method, path) == row.isAllowed)
    }

    @Test func `In version 1 a recursive wildcard needs a segment`() throws {
      let body = "match /items/a/{rest=**} { allow read; }"
      #expect(try isAllowed(firestore(body, version: "1"), .get, ["items", "a", "b", "c"]))
      #expect(try !isAllowed(firestore(body, version: "1"), .get, ["items", "a"]))
      #expect(try isAllowed(firestore(body), .get, ["items", "a"]))
    }

    @Test func `A file without a version is of version 1`() throws {
      let rules = try RuleSet(parsing: "service cloud.firestore { }")
      #expect(rules.version == 1)
      #expect(rules.has(.firestore) && !rules.has(.storage))
    }

    @Test func `A function of the file is seen by its services, and may be hidden`() throws {
      let text = """
        function f() { return true; }
        function g() { return false; }
        service cloud.firestore {
          function g() { return f(); }
          match /databases/{database}/documents/items/{item} { allow get: if g(); }
        }
        """
      #expect(try isAllowed(text, .get, ["items", "a"]))
      #expect(throws: RuleError.self) { try RuleSet(parsing: text + "function f() { return 1; }") }
    }

    @Test func `A service that has no rules is denied`() throws {
      let storage = "service firebase.storage { match /b/{bucket}/o { match /{all=**} "
      let text = storage + "{ allow read, write; } } }"
      #expect(try !isAllowed(text, .get, ["items", "a"]))
    }

    @Test func `Storage has its own paths, and reads Firestore's documents`() throws {
      let text = """
        rules_version = '2';
        service firebase.storage {
          match /b/{bucket}/o {
            match /users/{uid}/{file} {
              allow read: if request.auth.uid == uid && bucket == 'photos';
              allow write: if request.resource.size < 5 * 1024 * 1024
                           && request.resource.contentType.matches('image/.*')
                           && resource == null
                           && firestore.get(/databases/(default)/documents/users/$(uid))
                                .data.role == 'admin'
                           && firestore.exists(/databases/(default)/documents/users/ben);
            }
          }
        }
        """
      let rules = try RuleSet(parsing: text)
      var request = try RuleStage.request(.get)
      request.service = .storage
      request.path = RuleRequest.storage(["users", "anna", "a.png"], bucket: "photos")
      request.resource = .null
      #expect(rules.verdict(request, documents: RuleStage.documents).isAllowed)
      request.path = RuleRequest.storage(["users", "ben", "a.png"], bucket: "photos")
      #expect(!rules.verdict(request, documents: RuleStage.documents).isAllowed)
      request.path = RuleRequest.storage(["users", "anna", "a.png"], bucket: "photos")
      request.method = .create
      request.newResource = .map(["size": .int(100), "contentType": .string("image/png")])
      #expect(rules.verdict(request, documents: RuleStage.documents).isAllowed)
      request.newResource = .map(["size": .int(100), "contentType": .string("text/html")])
      #expect(!rules.verdict(request, documents: RuleStage.documents).isAllowed)
      request.newResource = .map(["size": .int(9_999_999), "contentType": .string("image/png")])
      #expect(!rules.verdict(request, documents: RuleStage.documents).isAllowed)
    }

    @Test func `A document is read once, however often a rule asks for it`() throws {
      let read = "get(/databases/$(database)/documents/users/anna).data.role == 'admin'"
      let rules = try RuleSet(parsing: RuleStage.file("\(read) && \(read) && \(read)"))
      let documents = RuleStage.documents
      #expect(rules.verdict(try RuleStage.request(), documents: documents).isAllowed)
      #expect(documents.readCount == 1)
    }

    @Test func `A let that nothing uses reads nothing`() throws {
      let function = """
        function f() {
          let user = get(/databases/$(database)/documents/users/anna);
          return true || user.data.role == 'x';
        }
        """
      let text = RuleStage.file("f()", functions: function)
      let documents = RuleStage.documents
      #expect(
        try RuleSet(parsing: text).verdict(try RuleStage.request(), documents: documents).isAllowed)
      #expect(documents.readCount == 0)
    }
  }
#endif
