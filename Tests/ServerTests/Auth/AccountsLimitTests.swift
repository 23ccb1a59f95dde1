// What a stranger can cost, and what a request may be.

#if Server
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AccountsLimitTests {
    @Test func `Ten thousand guesses run scrypt ten times`() async throws {
      let stage = try await AuthStage()
      _ = try await stage.signUp()
      stage.runs.withLock { $0 = 0 }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for part in 0..<100 {
          group.addTask {
            for number in 0..<100 {
              let answer = try await stage.client(
                "signInWithPassword",
                ["email": "ann@example.com", "password": .string("guess \(part * 100 + number)")])
              let name = answer.error?.prefix { $0 != " " } ?? ""
              #expect(["INVALID_LOGIN_CREDENTIALS", "TOO_MANY_ATTEMPTS_TRY_LATER"].contains(name))
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(stage.runs.withLock { $0 } == 10)
    }

    @Test func `Of two who sign up with one address at once, one gets it`() async throws {
      let stage = try await AuthStage()
      let answers = try await withThrowingTaskGroup(of: AuthStage.Answer.self) { group in
        for _ in 0..<8 { group.addTask { try await stage.signUp() } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers.count { $0.status == 200 } == 1)
      #expect(answers.count { $0.error == "EMAIL_EXISTS" } == 7)
    }

    @Test func `Strangers get a hundred guests, and this machine any number`() async throws {
      let stage = try await AuthStage { $0.accounts.maximumGuestsOfOrigin = 3 }
      for _ in 0..<5 {
        #expect(try await stage.client("signUp", [:]).status == 200)
      }
      for number in 0..<5 {
        let answer = try await stage.client("signUp", [:], peer: "203.0.113.7")
        #expect((answer.status == 200) == (number < 3))
      }
    }

    @Test func `A request that is none has an answer, and never a fault of the server`()
      async throws
    {
      let stage = try await AuthStage()
      let path = "/identitytoolkit.googleapis.com/v1/accounts:"
      let cases: [(String, String, Int, String)] = [
        ("GET", "/", 404, "NOT_FOUND"), ("POST", "/", 404, "NOT_FOUND"),
        ("GET", path + "signUp?key=app", 404, "NOT_FOUND"),
        ("POST", path + "nothing?key=app", 404, "NOT_FOUND"),
        ("POST", path + "signUp", 403, "The request is missing a valid API key."),
        ("POST", "/identitytoolkit.googleapis.com/v1/projects/p/accounts:create", 404, "NOT_FOUND"),
      ]
      for (method, target, status, error) in cases {
        let answer = try await stage.call(target, [:], method: method)
        #expect(answer.status == status && answer.error == error, "\(method) \(target)")
      }
      for name in AccountsRoute.Administrator.allCases.map(\.rawValue) where name != "create" {
        let method = name == "batchGet" ? "GET" : "POST"
        let target =
          name == "createSessionCookie"
          ? "/identitytoolkit.googleapis.com/v1/projects/app:\(name)"
          : "/identitytoolkit.googleapis.com/v1/projects/app/accounts:\(name)"
        #expect(try await stage.call(target, [:], method: method).status == 401, "\(name)")
        let wrong = try await stage.call(
          target, [:], method: method, headers: ["authorization": "Bearer x"])
        #expect(wrong.status == 401, "\(name)")
      }
    }

    @Test func `Bodies that are wrong are refused`() async throws {
      let stage = try await AuthStage()
      let deep = String(repeating: "{\"a\":", count: 5_000)
      let bodies = [
        "[]", "{", "1", "\u{FEFF}{}", deep, "{\"email\":1,\"password\":\"secret\"}",
        "{\"email\":\"a@b.cd\",\"email\":\"c@d.ef\",\"password\":\"secret\"}",
        "{\"email\":[\"a@b.cd\"],\"password\":\"secret\"}", "{\"idToken\":{}}",
      ]
      for body in bodies {
        let call = try #require(
          HTTPCall(
            "POST", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=app",
            body: Array(body.utf8)))
        #expect(await stage.face.answer(call).status == 400, "\(body.prefix(40))")
      }
      let documents = try await stage.database.collection("accounts").getDocuments()
      #expect(documents.documents.isEmpty)
    }

    @Test func `A browser may ask from any page`() async throws {
      let stage = try await AuthStage()
      let answer = try await stage.call(
        "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=app", method: "OPTIONS",
        headers: [
          "origin": "https://app.example", "access-control-request-method": "POST",
          "access-control-request-headers": "content-type,x-client-version,x-firebase-gmpid",
        ])
      let headers = Dictionary(answer.headers.map { ($0.name, $0.value) }) { $1 }
      #expect(answer.status == 204 && headers["access-control-allow-origin"] == "*")
      #expect(
        headers["access-control-allow-headers"]
          == "content-type, x-client-version, x-firebase-gmpid")
      let split = try await stage.call(
        "/x", method: "OPTIONS", headers: ["access-control-request-headers": "a\r\nset-cookie: b"])
      #expect(!split.headers.contains { $0.name == "access-control-allow-headers" })
      let failed = try await stage.client("lookup", [:])
      #expect(failed.headers.contains { $0.name == "access-control-allow-origin" })
    }

    @Test func `Targets and forms are decoded once, and as they must be`() throws {
      let call = try #require(HTTPCall("GET", "/a%2Fb//c%20d?x=1+2&y=%26%3D&z&x=3"))
      #expect(call.path == ["a/b", "c d"])
      #expect(call.query == ["x": "3", "y": "&=", "z": ""])
      for target in ["", "a", "http://x/", "/%zz", "/a?b=%f", "/%ff"] {
        #expect(HTTPCall("GET", target) == nil, "\(target)")
      }
    }
  }
#endif
