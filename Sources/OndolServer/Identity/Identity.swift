// Who is who in one database: its accounts, and the tokens that name them. Everything here is of
// the database and lasts as long as it is open. Hosting/Admission asks it about a call's caller,
// and the faces of accounts issue tokens with it.

#if Server
  import Crypto
  package import Ondol
  package import OndolAccounts
  import Synchronization

  /// The accounts and the tokens of a database.
  package final class Identity: Sendable {
    private typealias Opening = Task<Result<Accounts, AuthError>, Never>

    private let database: Database
    let keys: TokenKeys
    let checked = CheckedTokens()
    private let opening = Mutex<Opening?>(nil)

    package init(_ database: Database) {
      self.database = database
      keys = TokenKeys(database)
    }

    /// The accounts. The first call opens them.
    ///
    /// - Parameters:
    ///   - options: what the first call opens them with.
    ///   - derivation: how keys of passwords are derived.
    /// - Throws: as `Accounts.open(in:options:)`; the next call then tries again.
    package func accounts(
      _ options: Accounts.Options, derivation: KeyDerivation = .scrypt
    ) async throws(AuthError) -> Accounts {
      let task = opening.withLock { opening -> Opening in
        if let opening { return opening }
        let task = Opening { [database] in
          do throws(AuthError) {
            return .success(
              try await Accounts.open(in: database, options: options, derivation: derivation))
          } catch {
            return .failure(error)
          }
        }
        opening = task
        return task
      }
      let result = await task.value
      if case .failure = result { opening.withLock { if $0 == task { $0 = nil } } }
      return try result.get()
    }

    /// The database's clock, in seconds since 1970.
    var now: Int64 {
      let (quotient, remainder) = database.now().quotientAndRemainder(dividingBy: 1_000_000)
      return remainder < 0 ? quotient - 1 : quotient
    }

    // MARK: - Issuing

    /// Signs claims with the newest key.
    func sign(_ claims: [String: Value]) async throws(TokenProblem) -> String {
      let key: TokenKey
      do throws(DatabaseError) { key = try await keys.signing() } catch { throw .failed(error) }
      return try WebToken(claims: claims, signedWith: key).text
    }

    /// An ID token for a session, which lives for an hour.
    func idToken(for session: Session, project: String) async throws(TokenProblem) -> String {
      try await sign(TokenKind.idClaims(of: session, project: project, now: now))
    }

    // MARK: - Checking

    /// Checks a token.
    ///
    /// - Parameters:
    ///   - kind: what it must be for.
    ///   - acceptsUnsigned: whether a token is taken that says that nobody has signed it.
    /// - Complexity: one check of a signature, for a token that was not checked lately, and one get
    ///   for a key that is not known here.
    func verify(
      _ text: String, as kind: TokenKind, acceptsUnsigned: Bool = false
    ) async throws(TokenProblem) -> VerifiedToken {
      // Digests of long texts cost time, and no token is long.
      guard text.utf8.count <= WebToken.mostBytes else {
        throw .malformed("a token has \(WebToken.mostBytes) bytes at most")
      }
      let digest = CheckedTokens.digest(text)
      if let known = checked.find(digest) {
        if try await key(known.keyID)?.published.rawRepresentation == known.key {
          return try kind.verified(known.claims, now: now, isSigned: true)
        }
        checked.forget(digest)
      }
      let token = try WebToken(text)
      if token.isUnsigned, acceptsUnsigned {
        return try kind.verified(token.claims, now: now, isSigned: false)
      }
      let id = try token.keyID
      guard let key = try await key(id) else { throw .wrongKey }
      try token.check(signedWith: key)
      let verified = try kind.verified(token.claims, now: now, isSigned: true)
      checked.note(
        CheckedTokens.Checked(
          claims: token.claims, keyID: id, key: key.published.rawRepresentation), digest)
      return verified
    }

    private func key(_ id: String) async throws(TokenProblem) -> TokenKey? {
      do throws(DatabaseError) { return try await keys.key(id) } catch { throw .failed(error) }
    }

    /// Checks that a token's account exists, is enabled, and has kept the session of the token.
    /// Compares whole seconds, as tokens have them.
    ///
    /// - Returns: the account as it is now.
    /// - Complexity: one get.
    @discardableResult
    func checkAccount(
      of token: VerifiedToken, in accounts: Accounts
    ) async throws(TokenProblem) -> Account {
      let found: Account?
      do throws(AuthError) {
        found = try await accounts.findAccount(.uid(token.uid))
      } catch {
        if let failure = error.databaseError { throw .failed(failure) }
        throw .unknownAccount
      }
      guard let found else { throw .unknownAccount }
      guard !found.isDisabled else { throw .disabled }
      guard token.authenticationTime >= found.tokensValidAfterTime.seconds else { throw .revoked }
      return found
    }
  }
#endif
