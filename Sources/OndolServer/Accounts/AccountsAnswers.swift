// Accounts and sessions as Firebase's clients read them.

#if Server
  import Ondol
  import OndolAccounts
  import OndolJSON

  extension Account {
    /// The account as a user of the protocol. It has no hash of the password: nobody outside needs
    /// one, and no other system could check it.
    var user: Value {
      var user: [String: Value] = [
        "localId": .string(uid), "emailVerified": .boolean(isEmailVerified),
        "disabled": .boolean(isDisabled), "createdAt": .string("\(creationTime.milliseconds)"),
        "validSince": .string("\(tokensValidAfterTime.seconds)"),
        "providerUserInfo": .array(providers),
      ]
      user["email"] = email.map(Value.string)
      user["displayName"] = displayName.map(Value.string)
      user["photoUrl"] = photoURL.map(Value.string)
      user["phoneNumber"] = phoneNumber.map(Value.string)
      if !customClaims.isEmpty { user["customAttributes"] = .string(customClaims.json) }
      if let lastSignInTime {
        user["lastLoginAt"] = .string("\(lastSignInTime.milliseconds)")
        user["lastRefreshAt"] = .string(JSONWriter.dateText(lastSignInTime))
      }
      return .map(user)
    }

    /// The ways to sign in to the account.
    var providers: [Value] {
      var providers: [Value] = []
      if hasPassword, let email {
        var provider: [String: Value] = [
          "providerId": "password", "email": .string(email), "federatedId": .string(email),
          "rawId": .string(email),
        ]
        provider["displayName"] = displayName.map(Value.string)
        provider["photoUrl"] = photoURL.map(Value.string)
        providers.append(.map(provider))
      }
      if let phoneNumber {
        providers.append([
          "providerId": "phone", "phoneNumber": .string(phoneNumber),
          "rawId": .string(phoneNumber),
        ])
      }
      return providers + identities.map(\.provided)
    }
  }

  extension LinkedIdentity {
    fileprivate var provided: Value {
      var provider: [String: Value] = [
        "providerId": .string(self.provider), "rawId": .string(uid), "federatedId": .string(uid),
      ]
      provider["email"] = email.map(Value.string)
      provider["displayName"] = displayName.map(Value.string)
      provider["photoUrl"] = photoURL.map(Value.string)
      return .map(provider)
    }
  }

  extension Timestamp {
    /// Whole milliseconds since 1970.
    fileprivate var milliseconds: Int64 { microsecondsSince1970 / 1_000 }
  }

  extension AccountsFace.Request {
    /// A session as the answer of a call that began it.
    func signedIn(
      _ session: Session, _ kind: String, _ more: [String: Value] = [:]
    ) async throws(AccountsFailure) -> Value {
      var answer: [String: Value] = [
        "kind": .string("identitytoolkit#\(kind)"), "localId": .string(session.account.uid),
        "idToken": .string(try await idToken(for: session)),
        "refreshToken": .string(session.token),
        "expiresIn": .string("\(TokenKind.lifetimeSeconds)"),
        "isNewUser": .boolean(session.isNewUser),
      ]
      answer["email"] = session.account.email.map(Value.string)
      answer["displayName"] = session.account.displayName.map(Value.string)
      return .map(answer.merging(more) { _, more in more })
    }

    func idToken(for session: Session) async throws(AccountsFailure) -> String {
      do throws(TokenProblem) {
        return try await identity.idToken(for: session, project: project)
      } catch {
        throw AccountsFailure(error, named: "INTERNAL_ERROR")
      }
    }

    /// The account that the request's ID token names, whose session lasts.
    func owner() async throws(AccountsFailure) -> (token: VerifiedToken, account: Account) {
      guard let text = try fields.text("idToken") else { throw .missing("ID_TOKEN") }
      do throws(TokenProblem) {
        let token = try await identity.verify(text, as: .id)
        return (token, try await identity.checkAccount(of: token, in: accounts))
      } catch {
        throw AccountsFailure(error, named: "INVALID_ID_TOKEN")
      }
    }

    /// The same, for a change that needs a recent sign-in. A guest has nothing to sign in with
    /// again.
    func recentOwner() async throws(AccountsFailure) -> (token: VerifiedToken, account: Account) {
      let owner = try await owner()
      let age = identity.now.subtractingReportingOverflow(owner.token.authenticationTime)
      let most = accounts.options.recentSignIn.components.seconds
      guard owner.account.isAnonymous || !age.overflow && age.partialValue < most else {
        throw AccountsFailure(AuthErrorCode.requiresRecentLogin, reason: "")
      }
      return owner
    }
  }
#endif
