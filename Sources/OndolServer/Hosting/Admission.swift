// Who a caller is, by the proof that a request carries. Each service asks once, before it does
// anything:
//
//   let principal = try await admission.principal(
//     ofBearer: metadata["authorization"], project: name.project, in: directory)
//
// A request without a proof is one of nobody. A request with a proof that cannot be checked ends
// with `.unauthenticated`: it never goes on as one of nobody, who may do what a rule allows to all.

#if Server
  import Crypto
  import Foundation
  package import Ondol
  package import OndolAccounts
  import OndolMapping

  /// What proofs a server takes.
  package struct Admission: Sendable {
    /// The token of administrators; nil if there is none.
    package var adminToken: String?
    /// Whether only this machine reaches the server. Then `owner`, the administrator's token of
    /// Firebase's emulators, is taken.
    package var isLoopback = true
    /// Whether tokens are taken that nobody has signed, as Firebase's clients make them for
    /// emulators.
    package var acceptsUnsignedTokens = false
    /// What accounts are opened with.
    package var accounts: Accounts.Options
    /// The scheme of the URLs by which callers reach the server: `http` or `https`.
    package var scheme = "http"
    /// How keys of passwords are derived.
    package var derivation = KeyDerivation.scrypt
    /// Counts what callers use.
    package var limiter = CallLimiter(.none)
    /// Where sign-ins and refusals are recorded.
    package var audit = AuditTrail(nil)

    /// The token of administrators that Firebase's libraries send to emulators.
    private static let owner = "owner"

    package init(accounts: Accounts.Options = Accounts.Options()) { self.accounts = accounts }

    /// The caller of a request about a project.
    ///
    /// - Parameters:
    ///   - bearer: the value of the request's header `authorization`, such as `Bearer eyJ…`; nil if
    ///     it has none.
    ///   - project: the project. The accounts of all its databases are those of its `(default)`
    ///     one.
    ///   - directory: finds that database.
    /// The call of the present task then knows its caller.
    ///
    /// - Throws: `.unauthenticated` for a proof that is wrong, expired or cannot be read;
    ///   `.resourceExhausted` when the account has reached a limit; as
    ///   `DatabaseDirectory.database(project:id:)`.
    /// - Complexity: one check of a signature, for a token that was not checked lately.
    package func principal(
      ofBearer bearer: String?, project: String, in directory: any DatabaseDirectory
    ) async throws(DatabaseError) -> Principal {
      let principal: Principal
      do throws(DatabaseError) {
        principal = try await identified(bearer, project, directory)
      } catch {
        if error.code == .unauthenticated {
          audit.note(.refusedToken, database: project, reason: error.message)
        }
        throw error
      }
      let caller = OpenCall.Caller(principal, in: project)
      OpenCall.current?.note(caller)
      if let account = caller.account { try admit(account) }
      return principal
    }

    private func identified(
      _ bearer: String?, _ project: String, _ directory: any DatabaseDirectory
    ) async throws(DatabaseError) -> Principal {
      guard let bearer else { return .nobody }
      let token = try Self.token(of: bearer)
      if isAdministrators(token) { return .admin }
      let served = try await directory.database(project: project, id: DatabaseName.usual)
      do throws(TokenProblem) {
        return .user(
          try await served.identity.verify(
            token, as: .id, acceptsUnsigned: takesUnsignedTokens))
      } catch {
        throw error.databaseError
      }
    }

    /// Counts a call for its account.
    func admit(_ account: CallerAccount) throws(DatabaseError) {
      do throws(LimitReached) {
        try limiter.admit(account)
      } catch {
        note(error, of: OpenCall.current)
        throw error.error
      }
    }

    /// Records that a limit refused a call: in the audit and in the log only the first time, so
    /// that a flood of calls does not flood them also.
    func note(_ limit: LimitReached, of call: OpenCall?) {
      guard limit.isFirst else {
        call?.silence()
        return
      }
      audit.note(.limit, in: call, reason: limit.subject)
    }

    /// Whether a header has the token of administrators.
    func isAdministrator(bearer: String) -> Bool {
      (try? Self.token(of: bearer)).map(isAdministrators) ?? false
    }

    /// Whether tokens are taken that nobody has signed.
    var takesUnsignedTokens: Bool { acceptsUnsignedTokens && isLoopback }

    /// Whether a request is an administrator's.
    ///
    /// Everybody knows `owner`, also the pages that a browser on this machine shows. So the request
    /// must not come from another site's page, nor be to another name that leads here.
    ///
    /// - Throws: `.unauthenticated` for a header that has no token.
    func isAdministrator(_ call: HTTPCall) throws(DatabaseError) -> Bool {
      guard let bearer = call.headers["authorization"] else { return false }
      let token = try Self.token(of: bearer)
      guard isAdministrators(token) else { return false }
      guard token == Self.owner, token != adminToken else { return true }
      return Self.isLocal(call)
    }

    /// Whether a request is to this machine by one of its own names, and from no page of another
    /// site.
    static func isLocal(_ call: HTTPCall) -> Bool {
      [call.headers["host"], call.headers["origin"]].compactMap(\.self).allSatisfy(isLocal)
    }

    /// Whether a host, an address or an origin is this machine.
    static func isLocal(_ text: String) -> Bool {
      var name = text[...]
      if let scheme = name.range(of: "://") { name = name[scheme.upperBound...] }
      if name.hasPrefix("[") {
        name = name.dropFirst().prefix { $0 != "]" }
      } else if name.count(where: { $0 == ":" }) == 1 {
        name = name.prefix { $0 != ":" }
      }
      return ["localhost", "127.0.0.1", "::1"].contains(name.lowercased())
    }

    /// The accounts of a database.
    func accounts(of served: ServedDatabase) async throws(AuthError) -> Accounts {
      try await served.identity.accounts(accounts, derivation: derivation)
    }

    /// Compares digests, so the time does not show how much of a guess is right.
    private func isAdministrators(_ token: String) -> Bool {
      var known = [adminToken].compactMap(\.self)
      if isLoopback { known.append(Self.owner) }
      let digest = SHA256.hash(data: Data(token.utf8))
      return known.reduce(false) { found, one in
        let isSame = SHA256.hash(data: Data(one.utf8)) == digest
        return found || isSame
      }
    }

    /// The token in a header. Firebase's clients for Storage call the scheme after Firebase.
    private static func token(of bearer: String) throws(DatabaseError) -> String {
      let parts = bearer.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, ["bearer", "firebase"].contains(parts[0].lowercased()),
        !parts[1].contains(" ")
      else {
        throw DatabaseError(
          .unauthenticated, "the header authorization is none of the form `Bearer TOKEN`")
      }
      return String(parts[1])
    }
  }
#endif
