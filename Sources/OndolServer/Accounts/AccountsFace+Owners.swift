// What the owner of an account does with an ID token: look at it, change it, delete it. A token
// that is stolen lives for an hour, so the changes that would give the account away need a sign-in
// within the last minutes, as with Firebase.

#if Server
  import Ondol
  import OndolAccounts

  extension AccountsFace {
    func lookup(_ request: Request) async throws(AccountsFailure) -> Value {
      let account = try await request.owner().account
      return [
        "kind": "identitytoolkit#GetAccountInfoResponse", "users": [account.user],
      ]
    }

    /// Changes the owner's account; or verifies an address, when the request has a mail's code.
    func update(_ request: Request) async throws(AccountsFailure) -> Value {
      let fields = request.fields
      if let code = try fields.text("oobCode") {
        let account = try await reporting { () async throws(AuthError) in
          try await request.accounts.applyActionCode(code, origin: request.origin)
        }
        return Self.changed(account)
      }
      let changes = try Self.ownChanges(fields)
      let gives = [changes.email, changes.password].contains { $0 != .keep }
      let owner =
        gives || !changes.unlinkedProviders.isEmpty
        ? try await request.recentOwner() : try await request.owner()
      if case .set = changes.password {
        let session = try await changePassword(changes, of: owner.account.uid, request)
        let answer = try await request.signedIn(session, "SetAccountInfoResponse")
        return .map((answer.map ?? [:]).merging(Self.properties(session.account)) { one, _ in one })
      }
      let account = try await reporting { () async throws(AuthError) in
        try await request.accounts.updateAccount(owner.account.uid, changes)
      }
      return Self.changed(account)
    }

    /// What an owner may change.
    private static func ownChanges(
      _ fields: AccountsFields
    ) throws(AccountsFailure) -> AccountChanges {
      var changes = AccountChanges()
      if let email = try fields.text("email") { changes.email = .set(email) }
      if let password = try fields.text("password") { changes.password = .set(password) }
      if let name = try fields.text("displayName") { changes.displayName = .set(name) }
      if let url = try fields.text("photoUrl") { changes.photoURL = .set(url) }
      for attribute in try fields.texts("deleteAttribute") {
        switch attribute {
        case "DISPLAY_NAME": changes.displayName = .remove
        case "PHOTO_URL": changes.photoURL = .remove
        case "EMAIL": changes.email = .remove
        case "PASSWORD": changes.password = .remove
        default: throw .wrongType("deleteAttribute")
        }
      }
      try remove(fields.texts("deleteProvider"), in: &changes)
      return changes
    }

    /// Removes ways to sign in.
    static func remove(
      _ providers: [String], in changes: inout AccountChanges
    ) throws(AccountsFailure) {
      for provider in providers {
        switch provider {
        case "password": changes.password = .remove
        case "phone": changes.phoneNumber = .remove
        default: changes.unlinkedProviders.append(provider)
        }
      }
    }

    func delete(_ request: Request) async throws(AccountsFailure) -> Value {
      let owner = try await request.recentOwner()
      try await reporting { () async throws(AuthError) in
        try await request.accounts.deleteAccount(owner.account.uid)
      }
      return ["kind": "identitytoolkit#DeleteAccountResponse"]
    }

    /// A changed account as the answer.
    static func changed(_ account: Account) -> Value {
      .map(properties(account))
    }

    private static func properties(_ account: Account) -> [String: Value] {
      var answer = account.user.map ?? [:]
      answer["kind"] = "identitytoolkit#SetAccountInfoResponse"
      return answer
    }
  }
#endif
