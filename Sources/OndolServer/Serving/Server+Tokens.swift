// Tokens for the app's own services: what a client's token says, and tokens for people whom the app
// itself has recognised.

#if Server
  import Ondol
  public import OndolAccounts
  import OndolMapping

  extension Admission {
    init(_ options: Server.Options) {
      var accounts = options.accounts
      if let send = options.sendMail {
        accounts.sendCode = { operation, address, code in
          let link = MailContext.current?.link(operation, code) ?? ""
          try await send(
            AccountMail(operation: operation, address: address, code: code, link: link))
        }
      }
      self.init(accounts: accounts)
      adminToken = options.adminToken
      isLoopback = options.isLocal
      acceptsUnsignedTokens = options.acceptsUnsignedTokens
      scheme = options.certificate != nil || options.isBehindProxy ? "https" : "http"
      limiter = CallLimiter(options.limitsInForce)
      audit = AuditTrail(options.audit)
    }
  }

  extension Server {
    /// Checks an ID token, which a client got by signing in.
    ///
    /// ```swift
    /// let token = try await server.verify(bearer)
    /// if token.claims["admin"]?.boolean == true { … }
    /// ```
    ///
    /// - Parameters:
    ///   - token: the token.
    ///   - project: the project of the accounts. A server of one database has the same accounts for
    ///     all projects.
    ///   - checkingAccount: whether the account must exist, be enabled, and have kept the sessions
    ///     of the token's sign-in. Without it, a token is valid until its hour is over.
    /// - Throws: `DatabaseError` with `.unauthenticated` for a token that is not valid; otherwise
    ///   as a read of the database.
    /// - Complexity: one check of a signature, and one get for `checkingAccount`.
    public func verify(
      _ token: String, project: String = "default", checkingAccount: Bool = false
    ) async throws -> VerifiedToken {
      try await verify(token, as: .id, project, checkingAccount)
    }

    /// Checks a session cookie, which an administrator made from an ID token; as `verify(_:)`.
    public func verify(
      sessionCookie: String, project: String = "default", checkingAccount: Bool = false
    ) async throws -> VerifiedToken {
      try await verify(sessionCookie, as: .sessionCookie, project, checkingAccount)
    }

    /// Makes a token with which a client signs in to an account: `signInWithCustomToken`. The
    /// account is created at the first sign-in.
    ///
    /// - Parameters:
    ///   - uid: the account's uid, 1 to 128 characters without `/`.
    ///   - claims: claims of the session, in addition to the account's own.
    ///   - project: as in `verify(_:)`.
    /// - Returns: a token that lives for an hour.
    /// - Throws: `DatabaseError` with `.invalidArgument` for an empty uid or one that is too long;
    ///   otherwise as a write to the database.
    /// - Complexity: one commit the first time, to make the key.
    public func customToken(
      for uid: String, claims: CustomClaims = .none, project: String = "default"
    ) async throws -> String {
      guard (1...128).contains(uid.count) else {
        throw DatabaseError(.invalidArgument, "a uid has 1 to 128 characters")
      }
      let identity = try await served(project).identity
      do throws(TokenProblem) {
        return try await identity.sign(TokenKind.customClaims(for: uid, claims, now: identity.now))
      } catch {
        throw error.databaseError
      }
    }

    private func verify(
      _ text: String, as kind: TokenKind, _ project: String, _ checksAccount: Bool
    ) async throws -> VerifiedToken {
      let served = try await served(project)
      do throws(TokenProblem) {
        let token = try await served.identity.verify(text, as: kind)
        guard checksAccount else { return token }
        let accounts: Accounts
        do throws(AuthError) { accounts = try await admission.accounts(of: served) } catch {
          throw .failed(error.databaseError ?? DatabaseError(.internal, error.message))
        }
        try await served.identity.checkAccount(of: token, in: accounts)
        return token
      } catch {
        throw error.databaseError
      }
    }

    private func served(_ project: String) async throws(DatabaseError) -> ServedDatabase {
      try await directory.database(project: project, id: DatabaseName.usual)
    }
  }
#endif
