// Codes by mail: what the server's program gets to send, and what following a link does.

#if Server
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AccountsCodeTests {
    /// The last mail. The one that resets a password goes out after the answer.
    private func mail(_ stage: AuthStage, _ count: Int) async throws -> AccountMail {
      for _ in 0..<100_000 where stage.mails.withLock(\.count) < count { await Task.yield() }
      return try #require(stage.mails.withLock { $0.count == count ? $0.last : nil })
    }

    @Test func `A forgotten password is replaced with a mailed code`() async throws {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      let asked: Value = [
        "requestType": "PASSWORD_RESET", "email": "ANN@example.com",
        "continueUrl": "https://example.com/in?a=1&b=5#f=1",
      ]
      let sent = try await stage.client("sendOobCode", asked)
      #expect(sent.status == 200 && sent["oobCode"] == nil && sent["oobLink"] == nil)
      let mail = try await mail(stage, 1)
      #expect(mail.operation == .passwordReset && mail.address == "ann@example.com")
      let link = try #require(URLComponents(string: mail.link))
      let parameters = Dictionary(
        uniqueKeysWithValues: (link.queryItems ?? []).map { ($0.name, $0.value) })
      #expect(parameters["oobCode"] == mail.code && parameters["mode"] == "resetPassword")
      #expect(parameters["continueUrl"] == "https://example.com/in?a=1&b=5#f=1")
      let code: Value = .string(mail.code)
      let info = try await stage.client("resetPassword", ["oobCode": code])
      #expect(info["email"] == "ann@example.com" && info["requestType"] == "PASSWORD_RESET")
      let weak = try await stage.client(
        "resetPassword", ["oobCode": code, "newPassword": "12345"])
      #expect(weak.error?.hasPrefix("WEAK_PASSWORD : ") == true)
      let reset = try await stage.client(
        "resetPassword", ["oobCode": code, "newPassword": "654321"])
      #expect(reset["email"] == "ann@example.com")
      #expect(try await stage.refresh(signedUp.text("refreshToken")).error == "TOKEN_EXPIRED")
      let again = try await stage.client(
        "resetPassword", ["oobCode": code, "newPassword": "654321"])
      #expect(again.error == "INVALID_OOB_CODE")
      // The session that the library starts with the new password is nobody's.
      let sessions = try await stage.database.collection("accountSessions").getDocuments()
      #expect(sessions.documents.isEmpty)
    }

    @Test func `Nobody learns who has an account`() async throws {
      let stage = try await AuthStage()
      _ = try await stage.signUp()
      let types: [Value] = ["PASSWORD_RESET", "EMAIL_SIGNIN"]
      for type in types {
        for email: Value in ["ann@example.com", "nobody@example.com"] {
          let answer = try await stage.client("sendOobCode", ["requestType": type, "email": email])
          #expect(answer.status == 200 && answer["email"] == email)
        }
      }
      let methods = try await stage.client(
        "createAuthUri", ["identifier": "ann@example.com", "continueUri": "http://localhost"])
      let others = try await stage.client(
        "createAuthUri", ["identifier": "bob@example.com", "continueUri": "http://localhost"])
      #expect(methods.body == others.body)
      for email: Value in ["ann@example.com", "bob@example.com"] {
        let answer = try await stage.client(
          "signInWithPassword", ["email": email, "password": "wrong!"])
        #expect(answer.error == "INVALID_LOGIN_CREDENTIALS")
      }
    }

    @Test func `An address is verified with a mailed code, and changed with another`() async throws
    {
      let stage = try await AuthStage()
      let id = try await stage.signUp()["idToken"] ?? .null
      _ = try await stage.client("sendOobCode", ["requestType": "VERIFY_EMAIL", "idToken": id])
      let code = try await mail(stage, 1).code
      let verified = try await stage.client("update", ["oobCode": .string(code)])
      #expect(verified["email"] == "ann@example.com" && verified["emailVerified"] == true)
      let sent = try await stage.client(
        "sendOobCode",
        ["requestType": "VERIFY_AND_CHANGE_EMAIL", "idToken": id, "newEmail": "new@example.com"])
      #expect(sent.status == 200)
      let second = try await mail(stage, 2)
      #expect(second.address == "new@example.com")
      let info = try await stage.client("resetPassword", ["oobCode": .string(second.code)])
      #expect(info["email"] == "ann@example.com" && info["newEmail"] == "new@example.com")
      let followed = try await stage.call(
        try #require(
          second.link.range(of: "/emulator").map { String(second.link[$0.lowerBound...]) }),
        method: "GET")
      #expect(followed.status == 200 && followed["done"] == true)
      let account = try await stage.client("lookup", ["idToken": id])
      #expect(account["users"]?.array?.first?["email"] == "new@example.com")
    }

    @Test func `The link of a sign-in goes on to the app, and its code signs in`() async throws {
      let stage = try await AuthStage()
      _ = try await stage.client(
        "sendOobCode",
        [
          "requestType": "EMAIL_SIGNIN", "email": "eve@example.com",
          "continueUrl": "https://example.com/in?a=1",
        ])
      let mail = try await mail(stage, 1)
      let target = try #require(mail.link.range(of: "/emulator"))
      let followed = try await stage.call(String(mail.link[target.lowerBound...]), method: "GET")
      #expect(followed.status == 302)
      let place = try #require(followed.headers.first { $0.name == "location" }?.value)
      #expect(
        place.hasPrefix("https://example.com/in?a=1&mode=signIn&lang=en&oobCode=\(mail.code)"))
      let signedIn = try await stage.client(
        "signInWithEmailLink", ["email": "eve@example.com", "oobCode": .string(mail.code)])
      #expect(signedIn.status == 200 && signedIn["isNewUser"] == true)
      let token = try await stage.identity.verify(signedIn.text("idToken"), as: .id)
      #expect(token.isEmailVerified)
    }

    @Test func `A link goes on to pages alone`() async throws {
      let stage = try await AuthStage()
      for url in ["javascript:alert(1)", "file:///etc/passwd", "//example.com", "x", ""] {
        let link =
          "/emulator/action?key=app&mode=signIn&oobCode=x&continueUrl=\(MailContext.encode(url))"
        let answer = try await stage.call(link, method: "GET")
        #expect(answer.error == "INVALID_CONTINUE_URI", "\(url)")
      }
    }

    @Test func `Without a way to send mail, none is promised`() async throws {
      let stage = try await AuthStage { $0.sendMail = nil }
      let answer = try await stage.client(
        "sendOobCode", ["requestType": "PASSWORD_RESET", "email": "ann@example.com"])
      #expect(answer.error == "OPERATION_NOT_ALLOWED")
    }
  }
#endif
