// What strangers try with accounts: to learn who has one, to take one that somebody else makes, and
// to go on with a session that its owner has ended.

#if Server
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AccountAttackTests {
    /// What a call costs, in units that do not depend on the machine.
    private func work(
      _ stage: AuthStage, _ body: () async throws -> AuthStage.Answer
    ) async throws -> (runs: Int, tries: Int, answer: AuthStage.Answer) {
      func tries() async throws -> Int {
        try await stage.database.collection("accountTries").getDocuments().documents.count
      }
      let (runs, before) = (stage.runs.withLock { $0 }, try await tries())
      let answer = try await body()
      return (stage.runs.withLock { $0 } - runs, try await tries() - before, answer)
    }

    @Test func `An unknown address costs what a known one costs`() async throws {
      let stage = try await AuthStage()
      _ = try await stage.signUp()
      let calls: [(String, [String: Value])] = [
        ("signInWithPassword", ["password": "wrong-password"]),
        ("sendOobCode", ["requestType": "PASSWORD_RESET"]),
        ("createAuthUri", ["continueUri": "http://localhost"]),
      ]
      for (name, fields) in calls {
        var found: [(runs: Int, tries: Int, answer: AuthStage.Answer)] = []
        for email in ["ann@example.com", "nobody@example.com"] {
          var body = fields
          body["email"] = .string(email)
          body["identifier"] = .string(email)
          let value = Value.map(body)
          found.append(try await work(stage) { try await stage.client(name, value) })
        }
        #expect(found[0].runs == found[1].runs && found[0].tries == found[1].tries, "\(name)")
        #expect(found[0].answer.status == found[1].answer.status, "\(name)")
        #expect(found[0].answer.error == found[1].answer.error, "\(name)")
      }
    }

    @Test func `Sign-ups, links and administrators race for an address, and one gets it`()
      async throws
    {
      let stage = try await AuthStage()
      var guests: [String] = []
      for _ in 0..<4 { guests.append(try await stage.client("signUp", [:]).text("idToken")) }
      let results = try await withThrowingTaskGroup(of: (Int, String).self) { group in
        for guest in guests {
          group.addTask {
            let answer = try await stage.client(
              "signUp",
              ["idToken": .string(guest), "email": "ann@example.com", "password": "secret"])
            return (answer.status, answer.text("localId"))
          }
          group.addTask {
            let answer = try await stage.signUp()
            return (answer.status, answer.text("localId"))
          }
          group.addTask {
            let answer = try await stage.admin("create", ["email": "ann@example.com"])
            return (answer.status, answer.text("localId"))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let winners = results.filter { $0.0 == 200 }
      #expect(winners.count == 1)
      let found = try await stage.admin("lookup", ["email": ["ann@example.com"]])
      #expect(found["users"]?.array?.count == 1)
      #expect(found["users"]?.array?.first?["localId"]?.string == winners.first?.1)
    }

    @Test func `A deleted account signs in nobody, whatever was under way`() async throws {
      let stage = try await AuthStage()
      for _ in 0..<10 {
        let ann = try await stage.signUp()
        let uid = ann.text("localId")
        async let signedIn = stage.client(
          "signInWithPassword",
          ["email": "ann@example.com", "password": .string(AuthStage.password)])
        async let deleted = stage.admin("delete", ["localId": .string(uid)])
        let (session, deletion) = (try await signedIn, try await deleted)
        #expect(deletion.status == 200)
        for token in [ann.text("refreshToken"), session.text("refreshToken")] where !token.isEmpty {
          #expect(try await stage.refresh(token).status == 400)
        }
        for token in [ann.text("idToken"), session.text("idToken")] where !token.isEmpty {
          let answer = try await stage.client("lookup", ["idToken": .string(token)])
          #expect(answer.error == "USER_NOT_FOUND")
        }
      }
    }

    @Test func `After a password changed, no session from before goes on`() async throws {
      let stage = try await AuthStage()
      let first = try await stage.signUp()
      let second = try await stage.client(
        "signInWithPassword", ["email": "ann@example.com", "password": .string(AuthStage.password)])
      #expect(try await stage.refresh(second.text("refreshToken")).status == 200)
      // Tokens have whole seconds.
      await stage.clock.advance(by: .seconds(2))
      let changed = try await stage.client(
        "update", ["idToken": .string(first.text("idToken")), "password": "another-secret"])
      #expect(changed.status == 200)
      for answer in [first, second] {
        #expect(try await stage.refresh(answer.text("refreshToken")).error == "TOKEN_EXPIRED")
        let token = Value.string(answer.text("idToken"))
        for (name, fields) in [
          ("lookup", ["idToken": token]), ("delete", ["idToken": token]),
          ("update", ["idToken": token, "password": "mine-now"]),
          ("update", ["idToken": token, "email": "eve@example.com"]),
        ] as [(String, [String: Value])] {
          #expect(try await stage.client(name, .map(fields)).error == "TOKEN_EXPIRED", "\(name)")
        }
        let cookie = try await stage.call(
          "/identitytoolkit.googleapis.com/v1/projects/app:createSessionCookie",
          ["idToken": token, "validDuration": "3600"], headers: AuthStage.owner)
        #expect(cookie.status == 400)
      }
      #expect(try await stage.refresh(changed.text("refreshToken")).status == 200)
      let old = try await stage.client(
        "signInWithPassword", ["email": "ann@example.com", "password": .string(AuthStage.password)])
      #expect(old.error == "INVALID_LOGIN_CREDENTIALS")
    }

    @Test func `A code of one account does nothing to another`() async throws {
      let stage = try await AuthStage()
      _ = try await stage.signUp()
      _ = try await stage.signUp("eve@example.com")
      _ = try await stage.client(
        "sendOobCode", ["requestType": "PASSWORD_RESET", "email": "eve@example.com"])
      // It is sent after the answer.
      for _ in 0..<100_000 where stage.mails.withLock({ $0.isEmpty }) { await Task.yield() }
      let code = try #require(stage.mails.withLock { $0.last?.code })
      let answer = try await stage.client(
        "resetPassword",
        ["oobCode": .string(code), "newPassword": "stolen", "email": "ann@example.com"])
      #expect(answer["email"]?.string != "ann@example.com")
      let ann = try await stage.client(
        "signInWithPassword", ["email": "ann@example.com", "password": "stolen"])
      #expect(ann.error == "INVALID_LOGIN_CREDENTIALS")
      let again = try await stage.client(
        "resetPassword", ["oobCode": .string(code), "newPassword": "again"])
      #expect(again.error == "INVALID_OOB_CODE")
    }
  }
#endif
