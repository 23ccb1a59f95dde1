// The three kinds of tokens, with the claims that Firebase's have. Each names its issuer and its
// purpose, so that none is taken for another although one key signs all:
// https://firebase.google.com/docs/auth/admin/verify-id-tokens,
// https://firebase.google.com/docs/auth/admin/create-custom-tokens.

#if Server
  import Ondol
  import OndolAccounts
  import OndolJSON

  /// What a token is for.
  enum TokenKind: Sendable, CaseIterable {
    /// Names a signed-in person to a service, for an hour.
    case id
    /// The same in a browser's cookie, for up to two weeks.
    case sessionCookie
    /// A program's word for a person, to be exchanged for a session.
    case custom

    /// The life of an ID token and of a custom token.
    static let lifetimeSeconds: Int64 = 3_600
    /// The lives that a session cookie may have: five minutes to two weeks.
    static let cookieLifetimes: ClosedRange<Int64> = 300...(14 * 86_400)
    /// The difference between clocks that is borne.
    static let skewSeconds: Int64 = 300
    /// The audience of custom tokens.
    static let customAudience =
      "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
    /// The issuer of the custom tokens that this server signs.
    static let customIssuer = "ondol"

    private func issuer(for audience: String) -> String {
      switch self {
      case .id: "https://securetoken.google.com/\(audience)"
      case .sessionCookie: "https://session.firebase.google.com/\(audience)"
      case .custom: Self.customIssuer
      }
    }

    /// Reads the claims of a token of this kind whose signature is checked.
    ///
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - isSigned: whether a key has signed it. The emulator's clients make tokens without times.
    func verified(
      _ claims: [String: Value], now: Int64, isSigned: Bool
    ) throws(TokenProblem) -> VerifiedToken {
      let names = self == .custom ? ["uid"] : ["sub", "user_id"]
      let uids = names.compactMap { claims[$0] }
      guard let uid = uids.first?.string, (1...128).contains(uid.count),
        uids.allSatisfy({ $0 == .string(uid) })
      else { throw .malformed("it names no account") }
      guard isSigned else { return VerifiedToken(uid: uid, claims: claims) }
      guard let audience = claims["aud"]?.string, !audience.isEmpty,
        self != .custom || audience == Self.customAudience,
        claims["iss"] == .string(issuer(for: audience))
      else { throw .wrongPurpose }
      guard let issued = claims["iat"]?.integer, let end = claims["exp"]?.integer,
        let signedIn = self == .custom ? issued : claims["auth_time"]?.integer
      else { throw .malformed("it has no times") }
      let latest = now.addingReportingOverflow(Self.skewSeconds).partialValue
      guard issued <= latest, signedIn <= latest else { throw .early }
      guard end > now.subtractingReportingOverflow(Self.skewSeconds).partialValue else {
        throw .expired
      }
      return VerifiedToken(uid: uid, claims: claims)
    }

    /// The claims of an ID token for a session.
    ///
    /// - Parameter now: seconds since 1970.
    static func idClaims(
      of session: Session, project: String, now: Int64
    ) -> [String: Value] {
      let account = session.account
      var claims = members(of: account.customClaims)
      claims.merge(members(of: session.claims)) { _, ofSession in ofSession }
      var own: [String: Value] = [
        "iss": .string(TokenKind.id.issuer(for: project)), "aud": .string(project),
        "sub": .string(account.uid), "user_id": .string(account.uid),
        "auth_time": .integer(session.authenticationTime.seconds), "iat": .integer(now),
        "exp": .integer(now + lifetimeSeconds),
        "firebase": [
          "sign_in_provider": .string(session.provider.rawValue),
          "identities": .map(identities(of: account)),
        ],
      ]
      own["name"] = account.displayName.map(Value.string)
      own["picture"] = account.photoURL.map(Value.string)
      own["phone_number"] = account.phoneNumber.map(Value.string)
      if let email = account.email {
        own["email"] = .string(email)
        own["email_verified"] = .boolean(account.isEmailVerified)
      }
      if account.isAnonymous { own["provider_id"] = "anonymous" }
      return claims.merging(own) { _, own in own }
    }

    /// The claims of a session cookie that an ID token is exchanged for.
    static func cookieClaims(
      of token: VerifiedToken, project: String, lifetimeSeconds: Int64, now: Int64
    ) -> [String: Value] {
      var claims = token.claims.map ?? [:]
      claims["iss"] = .string(TokenKind.sessionCookie.issuer(for: project))
      claims["aud"] = .string(project)
      claims["iat"] = .integer(now)
      claims["exp"] = .integer(now + lifetimeSeconds)
      return claims
    }

    /// The claims of a custom token.
    static func customClaims(
      for uid: String, _ claims: CustomClaims, now: Int64
    ) -> [String: Value] {
      var own: [String: Value] = [
        "iss": .string(customIssuer), "sub": .string(customIssuer),
        "aud": .string(customAudience), "uid": .string(uid), "iat": .integer(now),
        "exp": .integer(now + lifetimeSeconds),
      ]
      if !claims.isEmpty { own["claims"] = .map(members(of: claims)) }
      return own
    }

    private static func identities(of account: Account) -> [String: Value] {
      var identities: [String: Value] = [:]
      if let email = account.email { identities["email"] = [.string(email)] }
      if let phone = account.phoneNumber { identities["phone"] = [.string(phone)] }
      for identity in account.identities { identities[identity.provider] = [.string(identity.uid)] }
      return identities
    }

    private static func members(of claims: CustomClaims) -> [String: Value] {
      guard !claims.isEmpty else { return [:] }
      let value = try? JSONReader.read(Array(claims.json.utf8), .plain, numbers: .double)
      return value?.map ?? [:]
    }
  }

  extension Timestamp {
    /// Whole seconds since 1970, rounded down, as tokens have them.
    var seconds: Int64 {
      let (quotient, remainder) = microsecondsSince1970.quotientAndRemainder(dividingBy: 1_000_000)
      return remainder < 0 ? quotient - 1 : quotient
    }
  }
#endif
