// Signing up and in. Each call starts a session of OndolAccounts, whose limits on guesses and equal
// times for known and unknown addresses hold here also.

#if Server
  import Ondol
  import OndolAccounts
  import OndolJSON

  extension AccountsFace {
    /// Creates an account with an address, or a guest's; or gives a guest an address, when the
    /// request has an ID token.
    func signUp(_ request: Request) async throws(AccountsFailure) -> Value {
      let (fields, accounts) = (request.fields, request.accounts)
      let kind = "SignupNewUserResponse"
      if fields.has("idToken") { return try await linkPassword(request, kind) }
      guard fields.has("email") || fields.has("password") else {
        let session = try await reporting { () async throws(AuthError) in
          try await accounts.signInAnonymously(origin: request.origin)
        }
        return try await request.signedIn(session, kind)
      }
      let email = try fields.text("email", orMissing: "EMAIL")
      let password = try fields.text("password", orMissing: "PASSWORD")
      let session = try await reporting { () async throws(AuthError) in
        try await accounts.createUser(withEmail: email, password: password)
      }
      return try await request.signedIn(session, kind)
    }

    /// Gives the owner's account an address and a password. The uid stays.
    private func linkPassword(
      _ request: Request, _ kind: String
    ) async throws(AccountsFailure) -> Value {
      let email = try request.fields.text("email", orMissing: "EMAIL")
      let password = try request.fields.text("password", orMissing: "PASSWORD")
      let owner = try await request.recentOwner()
      var changes = AccountChanges()
      changes.email = .set(email)
      changes.password = .set(password)
      let session = try await changePassword(changes, of: owner.account.uid, request)
      return try await request.signedIn(session, kind)
    }

    /// Makes changes that set a password, which ends all sessions, and starts one.
    func changePassword(
      _ changes: AccountChanges, of uid: String, _ request: Request
    ) async throws(AccountsFailure) -> Session {
      try await reporting { () async throws(AuthError) in
        try await request.accounts.updateAccount(uid, changes)
        return try await request.accounts.signIn(withUID: uid, provider: .password)
      }
    }

    func signInWithPassword(_ request: Request) async throws(AccountsFailure) -> Value {
      let email = try request.fields.text("email", orMissing: "EMAIL")
      let password = try request.fields.text("password", orMissing: "PASSWORD")
      let session = try await reporting { () async throws(AuthError) in
        try await request.accounts.signIn(
          withEmail: email, password: password, origin: request.origin)
      }
      return try await request.signedIn(
        session, "VerifyPasswordResponse", ["registered": true])
    }

    /// Signs in by a token that a program of the app's signed with `Server.customToken(for:)`.
    func signInWithCustomToken(_ request: Request) async throws(AccountsFailure) -> Value {
      let text = try request.fields.text("token", orMissing: "CUSTOM_TOKEN")
      let token: VerifiedToken
      do throws(TokenProblem) {
        token = try await request.identity.verify(
          text, as: .custom, acceptsUnsigned: admission.takesUnsignedTokens)
      } catch .failed(let error) {
        throw AccountsFailure(error)
      } catch {
        throw AccountsFailure("INVALID_CUSTOM_TOKEN : \(error.reason)")
      }
      let session = try await reporting { () async throws(AuthError) in
        var claims = CustomClaims.none
        if let given = token.claims["claims"] {
          claims = try CustomClaims(json: JSONWriter.line(given, .plain))
        }
        return try await request.accounts.signIn(withUID: token.uid, claims: claims)
      }
      return try await request.signedIn(session, "VerifyCustomTokenResponse")
    }

    /// Signs in by the code of a mail, and creates the account if there is none.
    func signInWithEmailLink(_ request: Request) async throws(AccountsFailure) -> Value {
      let email = try request.fields.text("email", orMissing: "EMAIL")
      let code = try request.fields.text("oobCode", orMissing: "OOB_CODE")
      let session = try await reporting { () async throws(AuthError) in
        try await request.accounts.signIn(withEmail: email, code: code, origin: request.origin)
      }
      return try await request.signedIn(session, "EmailLinkSigninResponse")
    }

    /// Does not say who has an account. Firebase answers so when a project protects addresses.
    func createAuthUri(_ request: Request) throws(AccountsFailure) -> Value {
      _ = try request.fields.text("identifier", orMissing: "IDENTIFIER")
      _ = try request.fields.text("continueUri", orMissing: "CONTINUE_URI")
      return ["kind": "identitytoolkit#CreateAuthUriResponse"]
    }
  }
#endif
