// Administrators' calls, as Firebase's libraries for servers make them.

#if Server
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolServer

  @Suite struct AccountsAdministrationTests {
    private func user(_ stage: AuthStage, _ uid: Value) async throws -> Value? {
      try await stage.admin("lookup", ["localId": [uid]])["users"]?.array?.first
    }

    @Test func `An account is created, changed and deleted`() async throws {
      let stage = try await AuthStage()
      let made = try await stage.admin(
        "create",
        [
          "localId": "u1", "email": "u1@example.com", "password": "secret",
          "phoneNumber": "+15550100", "displayName": "One", "photoUrl": "https://example.com/1",
          "emailVerified": true,
        ])
      #expect(made["localId"] == "u1")
      let created = try await user(stage, "u1")
      #expect(created?["lastLoginAt"] == nil && created?["lastRefreshAt"] == nil)
      #expect(created?["customAttributes"] == nil && created?["disabled"] == false)
      let seconds = stage.identity.now
      #expect(created?["createdAt"] == .string("\(seconds * 1_000)"))
      #expect(created?["validSince"] == .string("\(seconds)"))
      #expect(
        created?["providerUserInfo"]?.array?.map { $0["providerId"] } == ["password", "phone"])
      #expect(try await stage.admin("create", ["localId": "u1"]).error == "DUPLICATE_LOCAL_ID")
      #expect(
        try await stage.admin("create", ["email": "U1@example.com"]).error == "EMAIL_EXISTS")
      #expect(
        try await stage.admin("create", ["phoneNumber": "+1 555 0100"]).error
          == "PHONE_NUMBER_EXISTS")
      _ = try await stage.client(
        "signInWithPassword", ["email": "u1@example.com", "password": "secret"])
      #expect(try await user(stage, "u1")?["lastLoginAt"] == .string("\(seconds * 1_000)"))
      let changed = try await stage.admin(
        "update",
        [
          "localId": "u1", "deleteAttribute": ["DISPLAY_NAME", "PHOTO_URL"],
          "deleteProvider": ["phone"], "disableUser": true, "customAttributes": "{\"a\": 1}",
          "linkProviderUserInfo": ["providerId": "google.com", "rawId": "g1"],
        ])
      #expect(changed["displayName"] == nil && changed["photoUrl"] == nil)
      #expect(changed["phoneNumber"] == nil && changed["disabled"] == true)
      #expect(changed["customAttributes"] == "{\"a\":1}")
      #expect(
        changed["providerUserInfo"]?.array?.map { $0["providerId"] } == ["password", "google.com"])
      #expect(
        try await stage.admin(
          "create", ["localId": "u2"]
        ).status == 200)
      let taken = try await stage.admin(
        "update",
        ["localId": "u2", "linkProviderUserInfo": ["providerId": "google.com", "rawId": "g1"]])
      #expect(taken.error == "FEDERATED_USER_ID_ALREADY_LINKED")
      let claims = try await stage.admin(
        "update", ["localId": "u2", "customAttributes": "{\"sub\": \"u1\"}"])
      #expect(claims.error == "FORBIDDEN_CLAIM")
      #expect(try await stage.admin("delete", ["localId": "u1"]).status == 200)
      #expect(try await stage.admin("delete", ["localId": "u1"]).error == "USER_NOT_FOUND")
      #expect(try await stage.admin("update", ["localId": "u1"]).error == "USER_NOT_FOUND")
      #expect(try await user(stage, "u1") == nil)
    }

    @Test func `Accounts are found by whatever names them, each once`() async throws {
      let stage = try await AuthStage()
      for number in 1...3 {
        _ = try await stage.admin(
          "create",
          [
            "localId": .string("u\(number)"), "email": .string("u\(number)@example.com"),
            "phoneNumber": .string("+1555010\(number)"),
          ])
      }
      _ = try await stage.admin(
        "update",
        ["localId": "u3", "linkProviderUserInfo": ["providerId": "google.com", "rawId": "g"]])
      let found = try await stage.admin(
        "lookup",
        [
          "localId": ["u1", "none", "u1", "not/one"], "email": ["U2@EXAMPLE.com", "no address"],
          "phoneNumber": ["+15550101", "1"],
          "federatedUserId": [["providerId": "google.com", "rawId": "g"]],
        ])
      let uids = found["users"]?.array?.compactMap { $0["localId"]?.string }
      #expect(uids == ["u1", "u2", "u3"])
      let none = try await stage.admin("lookup", ["localId": ["none"]])
      #expect(none.status == 200 && none["users"] == nil)
      let many = (0...100).map { Value.string("u\($0)") }
      #expect(try await stage.admin("lookup", ["localId": .array(many)]).status == 400)
      let byName = try await stage.admin(
        "query", ["expression": [["email": "u2@example.com"], ["userId": "u3"]]])
      #expect(byName["userInfo"]?.array?.compactMap { $0["localId"]?.string } == ["u2", "u3"])
    }

    @Test func `Pages show each account once, and a query skips and counts`() async throws {
      let stage = try await AuthStage()
      let all = (0..<25).map { "u\(String(format: "%02d", $0))" }
      for uid in all { _ = try await stage.admin("create", ["localId": .string(uid)]) }
      var (seen, token): ([String], String?) = ([], nil)
      repeat {
        let next = token.map { "&nextPageToken=\(MailContext.encode($0))" } ?? ""
        let page = try await stage.call(
          "/identitytoolkit.googleapis.com/v1/projects/app/accounts:batchGet?maxResults=7\(next)",
          method: "GET", headers: AuthStage.owner)
        seen += page["users"]?.array?.compactMap { $0["localId"]?.string } ?? []
        token = page["nextPageToken"]?.string
      } while token != nil
      #expect(seen == all)
      for (offset, limit) in [(0, 10), (20, 10), (24, 1), (25, 5), (3, 500)] {
        let found = try await stage.admin(
          "query", ["offset": .string("\(offset)"), "limit": .integer(Int64(limit))])
        let uids = found["userInfo"]?.array?.compactMap { $0["localId"]?.string } ?? []
        #expect(uids == Array(all.dropFirst(offset).prefix(limit)), "\(offset) \(limit)")
      }
      #expect(try await stage.admin("query", ["returnUserInfo": false])["recordsCount"] == "25")
      let wrong = try await stage.call(
        "/identitytoolkit.googleapis.com/v1/projects/app/accounts:batchGet?nextPageToken=x",
        method: "GET", headers: AuthStage.owner)
      #expect(wrong.error == "INVALID_PAGE_SELECTION")
    }

    @Test func `Only disabled accounts are deleted without force`() async throws {
      let stage = try await AuthStage()
      for (uid, disabled) in [("u1", true), ("u2", false), ("u3", true)] {
        _ = try await stage.admin(
          "create", ["localId": .string(uid), "disabled": .boolean(disabled)])
      }
      let uids: Value = ["u1", "u2", "u3", "none", "not/one"]
      let first = try await stage.admin("batchDelete", ["localIds": uids])
      let errors = first["errors"]?.array ?? []
      #expect(errors.map { $0["index"] } == [1, 4])
      #expect(errors.first?["message"]?.string?.hasPrefix("NOT_DISABLED : ") == true)
      #expect(errors.last?["message"] == "INVALID_LOCAL_ID")
      #expect(try await user(stage, "u2") != nil)
      let second = try await stage.admin("batchDelete", ["localIds": ["u2"], "force": true])
      #expect(second["errors"] == [])
      #expect(try await user(stage, "u2") == nil)
    }

    /// The hash is Firebase's own example: its parameters, and the password `user1password`.
    @Test func `Passwords that Firebase hashed sign in`() async throws {
      let stage = try await AuthStage()
      let answer = try await stage.admin(
        "batchCreate",
        [
          "hashAlgorithm": "SCRYPT",
          "signerKey": .string(
            "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZ"
              + "JzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="),
          "saltSeparator": "Bw==", "rounds": 8, "memoryCost": 14,
          "users": [
            [
              "localId": "u1", "email": "u1@example.com", "salt": "42xEC+ixf3L2lw==",
              "passwordHash": .string(
                "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn"
                  + "3aoItz+VHjoZilo78198JAdRuid5lQ=="),
              "createdAt": "1500000000000",
              "providerUserInfo": [
                ["providerId": "password", "email": "u1@example.com", "rawId": "u1@example.com"],
                ["providerId": "google.com", "rawId": "g1"],
              ],
            ],
            ["email": "u2@example.com"], ["localId": "u3", "email": "none"],
            ["localId": "u4", "email": "U1@example.com"],
          ],
        ])
      let errors = answer["error"]?.array ?? []
      #expect(errors.map { $0["index"] } == [1, 2, 3])
      #expect(
        errors.map { $0["message"] } == ["MISSING_LOCAL_ID", "INVALID_EMAIL", "EMAIL_EXISTS"])
      let wrong = try await stage.client(
        "signInWithPassword", ["email": "u1@example.com", "password": "user2password"])
      #expect(wrong.error == "INVALID_LOGIN_CREDENTIALS")
      let right = try await stage.client(
        "signInWithPassword", ["email": "u1@example.com", "password": "user1password"])
      #expect(right["localId"] == "u1")
      let known = try await user(stage, "u1")
      #expect(known?["createdAt"] == "1500000000000")
      #expect(
        known?["providerUserInfo"]?.array?.map { $0["providerId"] } == ["password", "google.com"])
      let other = try await stage.admin(
        "batchCreate", ["hashAlgorithm": "MD5", "users": [["localId": "u5"]]])
      #expect(other.error == "INVALID_HASH_ALGORITHM")
    }

    @Test func `An administrator delivers links without mail`() async throws {
      let stage = try await AuthStage()
      let signedUp = try await stage.signUp()
      for type: Value in ["PASSWORD_RESET", "VERIFY_EMAIL", "EMAIL_SIGNIN"] {
        let answer = try await stage.admin(
          "sendOobCode",
          ["requestType": type, "email": "ann@example.com", "returnOobLink": true])
        #expect(answer.text("oobLink").contains(answer.text("oobCode")))
        let info = try await stage.client("resetPassword", ["oobCode": answer["oobCode"] ?? .null])
        #expect(info["requestType"] == type)
      }
      #expect(stage.mails.withLock(\.isEmpty))
      let unknown = try await stage.admin(
        "sendOobCode",
        ["requestType": "PASSWORD_RESET", "email": "x@example.com", "returnOobLink": true])
      #expect(unknown.error == "EMAIL_NOT_FOUND")
      let domain = try await stage.admin(
        "sendOobCode",
        [
          "requestType": "PASSWORD_RESET", "email": "ann@example.com", "returnOobLink": true,
          "linkDomain": "cool.link",
        ])
      #expect(domain.error?.hasPrefix("INVALID_HOSTING_LINK_DOMAIN : ") == true)
      #expect(signedUp.status == 200)
    }
  }
#endif
