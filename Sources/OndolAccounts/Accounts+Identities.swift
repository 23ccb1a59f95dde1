// Signing in by another service, and linking and unlinking its identities. The program has checked
// the person's identity there. The library records which account it belongs to.

internal import Foundation
internal import Ondol

extension Accounts {
  /// Starts a session for a person whom the program has recognised by another service, and creates
  /// the account if no account has the identity.
  ///
  /// A new account gets the identity's address, name and picture. If another account has the
  /// address, the call creates nothing: sign in to that account and link the identity to it. The
  /// rule is Firebase's for one account per address:
  /// https://firebase.google.com/docs/auth/web/google-signin.
  ///
  /// - Parameters:
  ///   - identity: who the person is there. An account that has it gets its other properties.
  ///   - isEmailVerified: whether the service says that the identity's address is the person's.
  /// - Returns: a new session.
  /// - Throws: `.accountExistsWithDifferentCredential` when another account has the address;
  ///   `.invalidIdentity`, `.invalidEmail`, `.invalidDisplayName`, `.invalidPhotoURL`,
  ///   `.userDisabled`, `.internalError`.
  /// - Complexity: one commit.
  public func signIn(
    with identity: LinkedIdentity, isEmailVerified: Bool = false
  ) async throws(AuthError) -> Session {
    let identity = try identity.checked()
    return try await authenticating {
      try await database.runTransaction { transaction in
        let found = try find(identity, in: transaction)
        var record = try found?.record ?? AccountRecord(createdAt: now())
        let document = found.map { places.accounts.document($0.uid) } ?? places.accounts.document()
        let uid = document.documentID
        if found == nil {
          record.displayName = identity.displayName
          record.photoURL = identity.photoURL
          if let email = identity.email {
            let address = try EmailAddress(email)
            guard try find(address, in: transaction) == nil else {
              throw AuthError(
                .accountExistsWithDifferentCredential,
                "another account has this address; sign in to it, and link the service")
            }
            try give(address, to: &record, uid, in: transaction)
            record.isEmailVerified = isEmailVerified ? true : nil
          }
        }
        record.link(identity)
        record.lastSignInAt = try now()
        try transaction.setData(from: record, forDocument: document)
        return try startSession(
          of: uid, record, by: SignInProvider(rawValue: identity.provider), isNew: found == nil,
          in: transaction)
      }
    }
  }

  /// Links an identity at another service to an account. The account is not anonymous afterwards.
  ///
  /// - Parameters:
  ///   - token: a session's token. The session of an account that is not anonymous must have begun
  ///     within
  ///     `Options.recentSignIn`.
  ///   - identity: who the person is there.
  /// - Returns: the session, with the account as it is now.
  /// - Throws: `.credentialAlreadyInUse` when another account has the identity;
  ///   `.providerAlreadyLinked` when the account has another one at the service;
  ///   `.invalidIdentity`, `.invalidEmail`, `.invalidDisplayName`, `.invalidPhotoURL`,
  ///   `.requiresRecentLogin`, `.userTokenExpired`, `.userDisabled`, `.invalidUserToken`,
  ///   `.internalError`.
  /// - Complexity: one commit.
  public func link(
    token: String, with identity: LinkedIdentity
  ) async throws(AuthError) -> Session {
    let identity = try identity.checked()
    return try await authenticating {
      try await database.runTransaction { transaction in
        var (session, record) = try recentOwner(token, in: transaction)
        try checkHolder(of: identity, isNotBeside: session.uid, in: transaction)
        let others = (record.identities ?? []).filter { $0.provider == identity.provider }
        guard others.allSatisfy({ $0.key == identity.key }) else {
          throw AuthError(
            .providerAlreadyLinked, "the account has another identity at this service")
        }
        record.link(identity)
        try transaction.setData(
          from: record, forDocument: places.accounts.document(session.uid))
        return Session(session, record, token: token)
      }
    }
  }

  /// Removes an account's identity at a service. Sessions continue.
  ///
  /// - Parameters:
  ///   - token: the token of a session that began, or gave the password again, within
  ///     `Options.recentSignIn`.
  ///   - provider: the service.
  /// - Returns: the session, with the account as it is now.
  /// - Throws: `.noSuchProvider` when the account has no identity there; `.requiresRecentLogin`,
  ///   `.userTokenExpired`, `.userDisabled`, `.invalidUserToken`, `.internalError`.
  /// - Complexity: one commit.
  public func unlink(
    token: String, fromProvider provider: String
  ) async throws(AuthError) -> Session {
    try await authenticating {
      try await database.runTransaction { transaction in
        var (session, record) = try recentOwner(token, in: transaction)
        guard record.unlink(provider) else {
          throw AuthError(.noSuchProvider, "the account has no identity at this service")
        }
        try transaction.setData(
          from: record, forDocument: places.accounts.document(session.uid))
        return Session(session, record, token: token)
      }
    }
  }

  // MARK: - Steps

  /// The account that has an identity.
  func find(_ identity: LinkedIdentity, in transaction: Transaction) throws -> FoundAccount? {
    try transaction.getDocuments(places.identified(by: identity.key)).documents.first
      .map { ($0.documentID, try $0.data(as: AccountRecord.self)) }
  }

  /// Throws `.credentialAlreadyInUse` where another account has an identity.
  func checkHolder(
    of identity: LinkedIdentity, isNotBeside uid: String, in transaction: Transaction
  ) throws {
    let holder = try find(identity, in: transaction)
    guard holder == nil || holder?.uid == uid else {
      throw AuthError(.credentialAlreadyInUse, "another account has this identity")
    }
  }
}

extension AccountPlaces {
  /// The account with an identity.
  func identified(by key: String) -> Query {
    accounts.whereField(FieldPath(AccountRecord.identityKeys), arrayContains: key)
  }
}
