// Signing in whom the program itself has recognised: by a token that it signed, by another service,
// by a code that it sent to a phone. The library asks nothing, and keeps with the session what the
// program said, so that a token that is made of it later says the same.

internal import Foundation
internal import Ondol

extension Accounts {
  /// Signs in whom the program has recognised, and makes the account where there is none.
  ///
  /// What Firebase does with a custom token, after its signature was checked; see
  /// https://firebase.google.com/docs/auth/admin/create-custom-tokens. Never call it with a uid
  /// that a client only says is theirs.
  ///
  /// - Parameters:
  ///   - uid: the account's, 1 to 128 characters without `/`.
  ///   - provider: how they were recognised.
  ///   - claims: what is said of this session alone.
  /// - Returns: a new session.
  /// - Throws: `.invalidUID`, `.userDisabled`, `.internalError`.
  /// - Complexity: one commit.
  public func signIn(
    withUID uid: String, provider: SignInProvider = .custom, claims: CustomClaims = .none
  ) async throws(AuthError) -> Session {
    try AccountProperties.check(uid: uid)
    return try await authenticating {
      try await database.runTransaction { transaction in
        var record = try account(uid, in: transaction) ?? AccountRecord(createdAt: try now())
        record.lastSignInAt = try now()
        try transaction.setData(from: record, forDocument: places.accounts.document(uid))
        return try startSession(of: uid, record, by: provider, claims: claims, in: transaction)
      }
    }
  }
}
