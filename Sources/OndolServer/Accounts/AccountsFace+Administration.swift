// What administrators do: create accounts, change them, delete them. The caller is admitted before
// any of this runs. Finding and importing accounts are in the files beside this one.

#if Server
  import Ondol
  import OndolAccounts

  extension AccountsFace {
    func create(_ request: Request) async throws(AccountsFailure) -> Value {
      let fields = request.fields
      var account = NewAccount(uid: try fields.text("localId"))
      account.email = try fields.text("email")
      account.isEmailVerified = try fields.flag("emailVerified") ?? false
      account.password = try fields.text("password")
      account.phoneNumber = try fields.text("phoneNumber")
      account.displayName = try fields.text("displayName")
      account.photoURL = try fields.text("photoUrl")
      account.isDisabled = try fields.flag("disabled") ?? false
      account.customClaims = try Self.claims(fields) ?? .none
      let new = account
      let made = try await named(fields) { () async throws(AuthError) in
        try await request.accounts.createAccount(new)
      }
      var answer: [String: Value] = [
        "kind": "identitytoolkit#SignupNewUserResponse", "localId": .string(made.uid),
      ]
      answer["email"] = made.email.map(Value.string)
      return .map(answer)
    }

    func change(_ request: Request) async throws(AccountsFailure) -> Value {
      let fields = request.fields
      let uid = try fields.text("localId", orMissing: "LOCAL_ID")
      let changes = try Self.changes(fields)
      // A time in the past or in the future ends the same sessions: those that there are.
      let endsSessions = fields.has("validSince")
      let account = try await named(fields) { () async throws(AuthError) in
        let account = try await request.accounts.updateAccount(uid, changes)
        return endsSessions ? try await request.accounts.revokeSessions(of: uid) : account
      }
      return Self.changed(account)
    }

    /// The changes that a request asks for.
    private static func changes(
      _ fields: AccountsFields
    ) throws(AccountsFailure) -> AccountChanges {
      var changes = AccountChanges()
      if let email = try fields.text("email") { changes.email = .set(email) }
      changes.isEmailVerified = try fields.flag("emailVerified")
      if let password = try fields.text("password") { changes.password = .set(password) }
      if let number = try fields.text("phoneNumber") { changes.phoneNumber = .set(number) }
      if let name = try fields.text("displayName") { changes.displayName = .set(name) }
      if let url = try fields.text("photoUrl") { changes.photoURL = .set(url) }
      changes.isDisabled = try fields.flag("disableUser")
      if let claims = try claims(fields) { changes.customClaims = .set(claims) }
      if let identity = try fields.object("linkProviderUserInfo") {
        changes.linkedIdentities = [try self.identity(identity)]
      }
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

    func deleteAccount(_ request: Request) async throws(AccountsFailure) -> Value {
      let uid = try request.fields.text("localId", orMissing: "LOCAL_ID")
      try await reporting { () async throws(AuthError) in
        try await request.accounts.deleteAccount(uid)
      }
      return ["kind": "identitytoolkit#DeleteAccountResponse"]
    }

    /// Deletes accounts. Without `force`, only those that are disabled.
    func deleteAccounts(_ request: Request) async throws(AccountsFailure) -> Value {
      let uids = try request.fields.texts("localIds")
      let isForced = try request.fields.flag("force") ?? false
      guard (1...Self.mostDeleted).contains(uids.count) else {
        throw AccountsFailure("LOCAL_ID_LIST_EXCEEDS_LIMIT")
      }
      var errors: [(index: Int, message: String)] = []
      var deleted: [(index: Int, uid: String)] = []
      for (index, uid) in uids.enumerated() {
        let account = isForced ? nil : try await find(.uid(uid), request)
        if let account, !account.isDisabled {
          errors.append((index, "NOT_DISABLED : Disable the account before batch deletion."))
        } else {
          deleted.append((index, uid))
        }
      }
      let chosen = deleted
      let result = try await reporting { () async throws(AuthError) in
        try await request.accounts.deleteAccounts(chosen.map(\.uid))
      }
      errors += result.failures.map { failure in
        (chosen[failure.index].index, AccountsFailure(failure.error).message)
      }
      return [
        "errors": .array(
          errors.sorted { $0.index < $1.index }.map { error in
            [
              "index": .integer(Int64(error.index)), "localId": .string(uids[error.index]),
              "message": .string(error.message),
            ]
          })
      ]
    }

    /// Accounts of one call to delete, as with Firebase.
    private static let mostDeleted = 1_000

    // MARK: - Steps

    /// Runs a call of the library. The library has one error for a phone number and for an identity
    /// that another account has; Firebase has two.
    func named<Result>(
      _ fields: AccountsFields, _ body: () async throws(AuthError) -> Result
    ) async throws(AccountsFailure) -> Result {
      do throws(AuthError) {
        return try await body()
      } catch {
        guard error.code == .credentialAlreadyInUse, fields.has("phoneNumber") else {
          throw AccountsFailure(error)
        }
        throw AccountsFailure("PHONE_NUMBER_EXISTS")
      }
    }

    static func claims(_ fields: AccountsFields) throws(AccountsFailure) -> CustomClaims? {
      guard let json = try fields.text("customAttributes") else { return nil }
      do throws(AuthError) { return try CustomClaims(json: json) } catch {
        throw AccountsFailure(error)
      }
    }

    /// An identity at another service.
    static func identity(_ fields: AccountsFields) throws(AccountsFailure) -> LinkedIdentity {
      let provider = try fields.text("providerId", orMissing: "PROVIDER_ID")
      let (rawID, federatedID) = (try fields.text("rawId"), try fields.text("federatedId"))
      guard let uid = rawID ?? federatedID else { throw .missing("RAW_ID") }
      var identity = LinkedIdentity(provider: provider, uid: uid)
      identity.email = try fields.text("email")
      identity.displayName = try fields.text("displayName")
      identity.photoURL = try fields.text("photoUrl")
      return identity
    }

    func find(
      _ identifier: AccountIdentifier, _ request: Request
    ) async throws(AccountsFailure) -> Account? {
      do throws(AuthError) {
        return try await request.accounts.findAccount(identifier)
      } catch {
        // What can be no account's uid or address is none's.
        let impossible: Set<AuthErrorCode> = [
          .invalidUID, .invalidEmail, .invalidPhoneNumber, .invalidIdentity,
        ]
        if impossible.contains(error.code) { return nil }
        throw AccountsFailure(error)
      }
    }
  }
#endif
