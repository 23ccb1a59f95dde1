// Sessions for people whom the program itself has recognised: by a token that it signed, by another
// service, by a code that it sent to a phone. The library checks nothing. It stores the program's
// claims with the session, so that every later token of the session can carry them.

internal import Foundation
internal import Ondol

extension Accounts {
  /// Starts a session for a person whom the program has recognised, and creates the account if
  /// there is none.
  ///
  /// Firebase does this after it has checked a custom token:
  /// https://firebase.google.com/docs/auth/admin/create-custom-tokens. The library checks nothing,
  /// so never pass a uid that only a client claims to have.
  ///
  /// - Parameters:
  ///   - uid: the account's uid, 1 to 128 characters without `/`.
  ///   - provider: how the program recognised the person.
  ///   - claims: claims of this session only, in addition to the account's own.
  /// - Returns: a new session.
  /// - Throws: `.invalidUID`, `.userDisabled`, `.internalError`.
  /// - Complexity: one commit.
  public func signIn(
    withUID uid: String, provider: SignInProvider = .custom, claims: CustomClaims = .none
  ) async throws(AuthError) -> Session {
    try AccountProperties.check(uid: uid)
    return try await authenticating {
      try await database.runTransaction { transaction in
        let stored = try account(uid, in: transaction)
        var record = try stored ?? AccountRecord(createdAt: now())
        record.lastSignInAt = try now()
        try transaction.setData(from: record, forDocument: places.accounts.document(uid))
        return try startSession(
          of: uid, record, by: provider, claims: claims, isNew: stored == nil, in: transaction)
      }
    }
  }
}
