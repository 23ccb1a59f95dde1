// Stories of Firebase's clients for accounts, call by call, without a socket.

#if Server
  import Foundation
  import OndolAccounts
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AccountsStoryTests {
    @Test func `Who signs up by one door signs in by the other`() async throws {
      let stage = try await AuthStage()
      let there = try await stage.signUp()
      #expect(there.status == 200 && there["isNewUser"] == true)
      #expect(there["expiresIn"] == "3600" && there["email"] == "ann@example.com")
      let accounts = try await stage.admission.accounts(of: stage.served)
      let here = try await accounts.signIn(
        withEmail: "ANN@example.com", password: AuthStage.password)
      #expect(here.account.uid == there.text("localId"))
      _ = try await accounts.createUser(withEmail: "bob@example.com", password: "123456")
      let bob = try await stage.client(
        "signInWithPassword", ["email": "bob@example.com", "password": "123456"])
      #expect(bob.status == 200 && bob["registered"] == true)
      // A refresh token is a session's, and so is a session's token a refresh token.
      #expect(try await stage.refresh(here.token)["user_id"] == .string(here.account.uid))
      let session = try await accounts.session(forToken: there.text("refreshToken"))
      #expect(session.account.uid == here.account.uid)
    }

    @Test func `A refresh token lasts, and its ID tokens have the claims of now`() async throws {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      let uid = signedUp["localId"] ?? .null
      await stage.clock.advance(by: .seconds(86_400))
      let lookup: Value = ["idToken": signedUp["idToken"] ?? .null]
      #expect(try await stage.client("lookup", lookup).error == "TOKEN_EXPIRED")
      let changed = try await stage.admin(
        "update", ["localId": uid, "customAttributes": "{\"admin\":true}"])
      #expect(changed.status == 200)
      let refreshed = try await stage.refresh(signedUp.text("refreshToken"))
      #expect(refreshed["token_type"] == "Bearer" && refreshed["user_id"] == uid)
      #expect(refreshed["project_id"] == "app")
      #expect(refreshed["id_token"] == refreshed["access_token"])
      let token = try await stage.identity.verify(refreshed.text("id_token"), as: .id)
      #expect(token.claims["admin"] == true)
      #expect(token.authenticationTime == stage.identity.now - 86_400)
      // As a form, too, which is what Firebase's clients send.
      let body = "grant_type=refresh_token&refresh_token=\(signedUp.text("refreshToken"))"
      let form = try #require(
        HTTPCall(
          "POST", "/securetoken.googleapis.com/v1/token?key=app",
          headers: ["content-type": "application/x-www-form-urlencoded"], body: Array(body.utf8)))
      #expect(await stage.face.answer(form).status == 200)
    }

    @Test func `Ended sessions end at once where it is asked, and by the hour elsewhere`()
      async throws
    {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      let (text, uid) = (signedUp.text("idToken"), signedUp["localId"] ?? .null)
      let accounts = try await stage.admission.accounts(of: stage.served)
      let token = try await stage.identity.verify(text, as: .id)
      // In the second of the sign-in, the token is not older than the end: seconds are whole.
      await stage.clock.advance(by: .milliseconds(400))
      _ = try await stage.admin("update", ["localId": uid, "validSince": "1"])
      try await stage.identity.checkAccount(of: token, in: accounts)
      await stage.clock.advance(by: .seconds(1))
      _ = try await stage.admin("update", ["localId": uid, "validSince": "1"])
      _ = try await stage.identity.verify(text, as: .id)
      let found = await problem {
        try await stage.identity.checkAccount(of: token, in: accounts)
      }
      #expect(found == .revoked)
      #expect(try await stage.refresh(signedUp.text("refreshToken")).error == "TOKEN_EXPIRED")
      #expect(
        try await stage.client("lookup", ["idToken": .string(text)]).error == "TOKEN_EXPIRED")
      let again = try await stage.client(
        "signInWithPassword",
        ["email": "ann@example.com", "password": .string(AuthStage.password)])
      let fresh = try await stage.identity.verify(again.text("idToken"), as: .id)
      try await stage.identity.checkAccount(of: fresh, in: accounts)
      _ = try await stage.admin("update", ["localId": uid, "disableUser": true])
      let disabled = await problem {
        try await stage.identity.checkAccount(of: fresh, in: accounts)
      }
      #expect(disabled == .disabled)
      #expect(try await stage.refresh(again.text("refreshToken")).error == "USER_DISABLED")
      _ = try await stage.admin("delete", ["localId": uid])
      let gone = await problem { try await stage.identity.checkAccount(of: fresh, in: accounts) }
      #expect(gone == .unknownAccount)
    }

    @Test func `A guest who gets an address keeps the uid`() async throws {
      let stage = try await AuthStage()
      let guest = try await stage.client("signUp", ["returnSecureToken": true])
      let token = try await stage.identity.verify(guest.text("idToken"), as: .id)
      #expect(token.signInProvider == "anonymous" && token.email == nil)
      _ = try await stage.signUp()
      let own: Value = ["idToken": guest["idToken"] ?? .null]
      func link(_ email: Value) async throws -> AuthStage.Answer {
        try await stage.client(
          "signUp", .map((own.map ?? [:]).merging(["email": email, "password": "654321"]) { $1 }))
      }
      #expect(try await link("ann@example.com").error == "EMAIL_EXISTS")
      let linked = try await link("guest@example.com")
      #expect(linked["localId"] == guest["localId"] && linked.status == 200)
      let account = try await stage.client("lookup", ["idToken": linked["idToken"] ?? .null])
      let user = account["users"]?.array?.first
      #expect(user?["email"] == "guest@example.com")
      #expect(user?["providerUserInfo"]?.array?.first?["providerId"] == "password")
      #expect(user?["passwordHash"] == nil)
    }

    @Test func `What gives an account away needs a sign-in of the last minutes`() async throws {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      await stage.clock.advance(by: .seconds(301))
      let id = signedUp["idToken"] ?? .null
      let old = "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"
      #expect(try await stage.client("update", ["idToken": id, "email": "b@c.de"]).error == old)
      #expect(try await stage.client("update", ["idToken": id, "password": "654321"]).error == old)
      #expect(try await stage.client("delete", ["idToken": id]).error == old)
      let named = try await stage.client("update", ["idToken": id, "displayName": "Ann"])
      #expect(named["displayName"] == "Ann" && named["idToken"] == nil)
      let again = try await stage.client(
        "signInWithPassword",
        ["email": "ann@example.com", "password": .string(AuthStage.password)])
      #expect(again["displayName"] == "Ann")
      let fresh = again["idToken"] ?? .null
      let changed = try await stage.client("update", ["idToken": fresh, "password": "654321"])
      #expect(changed.status == 200 && changed["refreshToken"] != again["refreshToken"])
      #expect(try await stage.refresh(again.text("refreshToken")).error == "TOKEN_EXPIRED")
      #expect(try await stage.refresh(changed.text("refreshToken")).status == 200)
      let deleted = try await stage.client("delete", ["idToken": changed["idToken"] ?? .null])
      #expect(deleted.status == 200)
      #expect(
        try await stage.client(
          "signInWithPassword", ["email": "ann@example.com", "password": "654321"]
        ).error == "INVALID_LOGIN_CREDENTIALS")
    }

    @Test func `A program's own token signs a person in, with its claims`() async throws {
      let stage = try await AuthStage()
      let server = Server(stage.directory, options: Server.Options())
      let text = try await server.customToken(
        for: "user-1", claims: try CustomClaims(["premium": true]))
      let signedIn = try await stage.client("signInWithCustomToken", ["token": .string(text)])
      #expect(signedIn["localId"] == "user-1" && signedIn["isNewUser"] == true)
      let token = try await server.verify(signedIn.text("idToken"))
      #expect(token.uid == "user-1" && token.claims["premium"] == true)
      #expect(token.signInProvider == "custom")
      let refreshed = try await stage.refresh(signedIn.text("refreshToken"))
      #expect(try await server.verify(refreshed.text("id_token")).claims["premium"] == true)
      await #expect(throws: DatabaseError.self) { _ = try await server.verify(text) }
      await #expect(throws: DatabaseError.self) { _ = try await server.customToken(for: "") }
    }

    @Test func `A token that nobody signed signs nobody in, unless a test says so`() async throws {
      let header = Base64URL.encode("{\"alg\":\"none\",\"typ\":\"JWT\"}".utf8)
      let claims = Base64URL.encode("{\"uid\":\"user-1\",\"claims\":{\"a\":1}}".utf8)
      let body: Value = ["token": .string("\(header).\(claims).")]
      let strict = try await AuthStage()
      let refused = try await strict.client("signInWithCustomToken", body)
      #expect(refused.error?.hasPrefix("INVALID_CUSTOM_TOKEN : ") == true)
      let loose = try await AuthStage { $0.acceptsUnsignedTokens = true }
      #expect(try await loose.client("signInWithCustomToken", body)["localId"] == "user-1")
    }

    @Test func `A session cookie lasts for as long as it was asked for`() async throws {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      func cookie(_ seconds: Value) async throws -> AuthStage.Answer {
        try await stage.call(
          "/identitytoolkit.googleapis.com/v1/projects/app:createSessionCookie",
          ["idToken": signedUp["idToken"] ?? .null, "validDuration": seconds],
          headers: AuthStage.owner)
      }
      for seconds: Value in [299, 1_209_601, 0, -1] {
        #expect(try await cookie(seconds).error == "INVALID_DURATION")
      }
      let text = try await cookie("86400").text("sessionCookie")
      let server = Server(stage.directory, options: Server.Options())
      await stage.clock.advance(by: .seconds(86_400 + 299))
      let token = try await server.verify(sessionCookie: text, checkingAccount: true)
      #expect(token.claims["iss"] == "https://session.firebase.google.com/app")
      await stage.clock.advance(by: .seconds(2))
      await #expect(throws: DatabaseError.self) {
        _ = try await server.verify(sessionCookie: text)
      }
    }
  }
#endif
