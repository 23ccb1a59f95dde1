// `ondol rules`: the results of a rules file and a file of cases, by their exit status and words.

#if Server
  import Foundation
  import OndolTestKit
  import Testing

  @Suite struct RulesToolTests {
    private let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    private static let rules = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{db}/documents {
          function isAdmin() {
            return get(/databases/$(db)/documents/users/$(request.auth.uid)).data.admin;
          }
          match /items/{id} {
            allow get: if resource.data.owner == request.auth.uid || isAdmin();
            allow update: if request.resource.data.diff(resource.data)
              .affectedKeys().hasOnly(['price']);
          }
        }
      }
      """

    private func file(_ name: String, _ text: String) throws -> String {
      let path = scratch.path(name)
      try Data(text.utf8).write(to: URL(filePath: path))
      return path
    }

    @Test func `A whole file is summed up, another one refused with its place`() async throws {
      let whole = try await scratch.ondol(
        "rules", "check", try file("firestore.rules", Self.rules))
      #expect(whole.status == 0)
      #expect(whole.messages.contains("version 2, for cloud.firestore"))
      let broken = try file(
        "broken.rules", "service cloud.firestore {\n  match /a/{b} { allow get: if ; }\n}")
      let refused = try await scratch.ondol("rules", "check", broken)
      #expect(refused.status == 1)
      #expect(refused.messages.contains("broken.rules:2:"))
      let tree = try file("database.rules.json", #"{"rules": {".read": "auth != null"}}"#)
      #expect(try await scratch.ondol("rules", "check", tree).status == 0)
      let missing = try await scratch.ondol("rules", "check", scratch.path("nothing"))
      #expect(missing.status == 3)
    }

    @Test func `Cases are tried, and those that come out otherwise explained`() async throws {
      let rules = try file("firestore.rules", Self.rules)
      let right = """
        {"as": "ann", "method": "get", "path": "items/lamp", "resource": {"owner": "ann"}, \
        "allow": true}

        {"method": "get", "path": "items/lamp", "resource": {"owner": "ann"}, "allow": false}
        {"as": {"uid": "bob", "token": {}}, "method": "get", "path": "/items/lamp", \
        "resource": {"owner": "ann"}, "documents": {"users/bob": {"admin": true}}, "allow": true}
        {"as": "ann", "method": "update", "path": "items/lamp", "resource": {"price": 1, "n": 1}, \
        "new": {"price": 2, "n": 1}, "time": {"$time": "2026-01-01T00:00:00Z"}, "allow": true}
        """
      let passed = try await scratch.ondol("rules", "test", rules, try file("right", right))
      #expect(passed.status == 0)
      #expect(passed.messages.contains("4 cases, 0 not as expected"))

      let wrong = try file(
        "wrong",
        #"{"as": "ann", "method": "update", "path": "items/lamp", "resource": {"n": 1}, "#
          + #""new": {"n": 2}, "allow": true}"#)
      let failed = try await scratch.ondol("rules", "test", rules, wrong)
      #expect(failed.status == 1)
      #expect(failed.messages.contains("wrong:1: not as expected"))
      #expect(failed.messages.contains("9:"))

      for line in [
        #"{"method": "read", "path": "a/b", "allow": true}"#, #"{"path": "a/b"}"#, "[]", "{",
        #"{"method": "get", "path": "a/b", "allow": true, "other": 1}"#,
        #"{"method": "get", "path": "a/b", "allow": true, "time": {"$time": "soon"}}"#,
      ] {
        let refused = try await scratch.ondol("rules", "test", rules, try file("bad", line))
        #expect(refused.status == 1, "\(line)")
        #expect(refused.messages.contains("bad:1: "), "\(line)")
      }
    }
  }
#endif
