// What the audit has of what happens, and what it must never have.

#if Server
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolJSON
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AuditTests {
    @Test func `Sign-ins and failed ones are recorded with account and address`() async throws {
      let stage = try await AuthStage()
      let ann = try await stage.signUp()
      let uid = ann.text("localId")
      for password in ["secret", "hunter2-wrong"] {
        _ = try await stage.client(
          "signInWithPassword", ["email": "ann@example.com", "password": .string(password)],
          peer: "203.0.113.7")
      }
      let events = stage.events.withLock { $0 }
      #expect(events.map(\.kind) == [.signIn, .signIn, .failedSignIn])
      #expect(events.map(\.account) == [uid, uid, nil])
      #expect(events.map(\.caller) == [.user, .user, .nobody])
      #expect(events.map(\.address) == ["127.0.0.1", "203.0.113.7", "203.0.113.7"])
      #expect(events.last?.call == "accounts:signInWithPassword")
      #expect(events.last?.reason == "INVALID_LOGIN_CREDENTIALS")
      #expect(events.allSatisfy { $0.database == "app" })
    }

    @Test func `Refused tokens, denials and administrators' changes are recorded`() async throws {
      let stage = try await AuthStage()
      let path = "/identitytoolkit.googleapis.com/v1/projects/app/accounts:query"
      _ = try await stage.call(path, [:])
      _ = try await stage.call(path, [:], headers: ["authorization": "nonsense"])
      #expect(stage.kinds == [.denial, .refusedToken])
      stage.events.withLock { $0 = [] }
      let made = try await stage.admin("create", ["localId": "ann", "email": "ann@example.com"])
      #expect(made.status == 200)
      _ = try await stage.admin("update", ["localId": "ann", "displayName": "Ann"])
      _ = try await stage.admin("update", ["localId": "nobody-has-it", "displayName": "Ann"])
      _ = try await stage.admin("create", ["localId": "ben"])
      _ = try await stage.admin("batchDelete", ["localIds": ["ben", "ann"], "force": true])
      _ = try await stage.admin("query", [:])
      let events = stage.events.withLock { $0 }
      #expect(events.map(\.account) == ["ann", "ann", "ben", "ben", "ann"])
      #expect(events.allSatisfy { $0.kind == .accountChange && $0.caller == .admin })
    }

    @Test func `A token that is not valid is recorded, and none is not`() async throws {
      let stage = try await AuthStage()
      for bearer in [nil, "Bearer owner", "Bearer a.b.c"] {
        _ = try? await stage.admission.principal(
          ofBearer: bearer, project: "app", in: stage.directory)
      }
      #expect(stage.kinds == [.refusedToken])
    }

    /// What people type, and what proves who they are.
    @Test func `No secret is in it`() async throws {
      let stage = try await AuthStage()
      let ann = try await stage.signUp("ann@example.com")
      let mail = "PasswordInTheWrongField"
      for (email, password) in [(mail, "hunter2"), ("\(mail)@x.org", "hunter2"), ("", "hunter2")] {
        _ = try await stage.client(
          "signInWithPassword", ["email": .string(email), "password": .string(password)])
        _ = try await stage.client(
          "signUp", ["email": .string(email), "password": "hunter2hunter2"])
      }
      _ = try await stage.client("signInWithCustomToken", ["token": "hunter2.hunter2.hunter2"])
      _ = try await stage.client(
        "signInWithEmailLink", ["email": "ann@example.com", "oobCode": "hunter2"])
      _ = try await stage.client("resetPassword", ["oobCode": "hunter2", "newPassword": "hunter2"])
      _ = try await stage.client(
        "update", ["idToken": .string(ann.text("idToken")), "password": "hunter2hunter2"])
      _ = try? await stage.admission.principal(
        ofBearer: "Bearer hunter2.hunter2.hunter2", project: "app", in: stage.directory)
      _ = try await stage.admin(
        "create", ["email": "hunter2@example.com", "password": "hunter2hunter2"])
      _ = try await stage.refresh("hunter2")
      let lines = stage.events.withLock { $0.map(\.line) }.joined(separator: "\n")
      #expect(stage.kinds.count > 8)
      for secret in [
        "hunter2", mail, "example.com", AuthStage.password, ann.text("idToken"),
        ann.text("refreshToken"),
      ] {
        #expect(!lines.contains(secret), "\(secret)")
      }
    }

    @Test func `A line is JSON whatever is in it, and one line`() throws {
      let event = AuditEvent(
        time: try Timestamp(microsecondsSince1970: 1_700_000_000_000_000), kind: .denial,
        call: "a\"b", caller: .user, account: "uid\n{\u{1B}[2J", database: "p\r", address: nil,
        reason: "\u{0}\u{2028}")
      #expect(event.line.unicodeScalars.allSatisfy { $0.value >= 0x20 })
      let read = try JSONReader.read(Array(event.line.utf8), .plain)
      #expect(read["account"] == "uid\n{\u{1B}[2J" && read["call"] == "a\"b")
      #expect(read["kind"] == "denial" && read["caller"] == "user" && read["address"] == nil)
      #expect(read["time"] == "2023-11-14T22:13:20.000000Z" || read["time"]?.string != nil)
    }

    @Test func `The file is appended to, and begun again after a rotation`() async throws {
      let folder = FileManager.default.temporaryDirectory.appending(path: "audit-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let path = folder.appending(path: "audit.jsonl").path(percentEncoded: false)
      try Data("before\n".utf8).write(to: URL(filePath: path))
      func event(_ call: String) throws -> AuditEvent {
        AuditEvent(
          time: try Timestamp(microsecondsSince1970: 0), kind: .signIn, call: call,
          caller: .user, database: "")
      }
      let file = try AuditFile(path)
      try file.record(event("one"))
      try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<100 {
          let event = try event("\(number)")
          group.addTask { file.record(event) }
        }
        try await group.waitForAll()
      }
      let old = try String(contentsOfFile: path + ".1", encoding: .utf8)
      #expect(old == "before\n\(try event("one").line)\n")
      let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
      #expect(Set(lines.map(String.init)) == Set(try (0..<100).map { try event("\($0)").line }))
      #expect(lines.count == 100)
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      #expect(throws: DatabaseError.self) { try AuditFile(path + "/below") }
    }

    @Test func `Deployments and changes of accounts through Firestore are recorded`() async throws {
      let stage = try await RuledStage(RuledStage.owners)
      let events = Guarded<[AuditEvent]>([])
      var service = stage.service
      service.policy.audit = AuditTrail { event in events.withLock { $0.append(event) } }
      func commit(_ writes: [WireWrite]) async throws {
        try await stage.with("admin") {
          _ = try await service.commit(
            request: .with {
              $0.database = RuledStage.name
              $0.writes = writes
            }, context: RuledStage.context)
        }
      }
      try await commit([try RuledStage.set("items/a", ["owner": "ann"])])
      #expect(events.withLock { $0.isEmpty })
      try await commit([
        try RuledStage.set("serverRules/000000000002", ["firestore": "service cloud.firestore {}"]),
        RuledStage.delete("serverRules/000000000001"),
      ])
      try await commit([try RuledStage.set("accounts/ann", ["x": 1])])
      #expect(events.withLock { $0.map(\.kind) } == [.rulesChange, .accountChange])
      #expect(events.withLock { $0.last?.account } == "ann")
    }
  }
#endif
