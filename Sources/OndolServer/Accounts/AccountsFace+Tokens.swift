// Exchanges of tokens: a refresh token for an ID token, and an ID token for a session cookie.

#if Server
  import Ondol
  import OndolAccounts

  extension AccountsFace {
    /// Makes an ID token for a session, with the account's claims as they are now.
    func refresh(_ request: Request) async throws(AccountsFailure) -> Value {
      guard try request.fields.text("grant_type") == "refresh_token" else {
        throw AccountsFailure("INVALID_GRANT_TYPE")
      }
      let text = try request.fields.text("refresh_token", orMissing: "REFRESH_TOKEN")
      let session = try await reporting { () async throws(AuthError) in
        try await request.accounts.session(forToken: text)
      }
      let token: Value = .string(try await request.idToken(for: session))
      return [
        "access_token": token, "id_token": token, "token_type": "Bearer",
        "expires_in": .string("\(TokenKind.lifetimeSeconds)"),
        "refresh_token": .string(session.token), "user_id": .string(session.account.uid),
        "project_id": .string(request.project),
      ]
    }

    /// Makes a cookie for a browser from an ID token whose session lasts.
    func createSessionCookie(_ request: Request) async throws(AccountsFailure) -> Value {
      let seconds = try request.fields.integer("validDuration") ?? 0
      guard TokenKind.cookieLifetimes.contains(Int64(seconds)) else {
        throw AccountsFailure("INVALID_DURATION")
      }
      let token = try await request.owner().token
      let claims = TokenKind.cookieClaims(
        of: token, project: request.project, lifetimeSeconds: Int64(seconds),
        now: request.identity.now)
      do throws(TokenProblem) {
        return ["sessionCookie": .string(try await request.identity.sign(claims))]
      } catch {
        throw AccountsFailure(error, named: "INTERNAL_ERROR")
      }
    }
  }
#endif
