// Guests: accounts that only a session leads to, so that an app can keep the data of people before
// they sign up. Linking gives such an account an address and a password in one commit. The uid
// stays, and with it all data that is stored under it.

internal import Foundation
internal import Ondol

extension Accounts {
  /// Creates an account without an address or a password, and signs in to it.
  ///
  /// Only the session leads to the account: a guest who signs out or loses the token cannot come
  /// back. The rule is Firebase's: https://firebase.google.com/docs/auth/web/anonymous-auth. Each
  /// call creates an account, so a service passes the client as `origin`.
  ///
  /// - Parameter origin: as in `signIn(withEmail:password:origin:)`. One origin gets
  ///   `Options.maximumGuestsOfOrigin` guests within `Options.triesWindow`; nil, the default, any
  ///   number.
  /// - Returns: a session, whose account `isAnonymous`.
  /// - Throws: `.tooManyRequests`, `.internalError`.
  /// - Complexity: one commit.
  public func signInAnonymously(origin: String? = nil) async throws(AuthError) -> Session {
    let limits = origin.map {
      triesLimits("guests", of: $0, nil, most: options.maximumGuestsOfOrigin)
    }
    return try await authenticating {
      try await database.runTransaction { transaction in
        if let limits { _ = try note(limits, in: transaction) }
        let document = places.accounts.document()
        var record = AccountRecord(createdAt: try now())
        record.lastSignInAt = record.createdAt
        record.isAnonymous = true
        try transaction.create(from: record, forDocument: document)
        return try startSession(
          of: document.documentID, record, by: .anonymous, isNew: true, in: transaction)
      }
    }
  }

  /// Gives an account without a password an address and a password. The uid and all data stay. The
  /// account is not anonymous afterwards.
  ///
  /// The session continues, as a session by password. If two accounts link the same address at the
  /// same time, one of them gets `.emailAlreadyInUse` and stays as it was. The call is Firebase's
  /// `link(with:)`: https://firebase.google.com/docs/auth/web/account-linking.
  ///
  /// - Parameters:
  ///   - token: a session's. That of an account that is not anonymous must have begun within
  ///     `Options.recentSignIn`.
  ///   - email: the address. No other account may have it.
  ///   - password: the password.
  /// - Returns: the session, with the account as it is now.
  /// - Throws: `.providerAlreadyLinked` when the account has a password; `.invalidEmail`,
  ///   `.weakPassword`, `.emailAlreadyInUse`, `.requiresRecentLogin`, `.userTokenExpired`,
  ///   `.userDisabled`, `.invalidUserToken`; `.tooManyRequests` when too many passwords wait to be
  ///   hashed; `.internalError`.
  /// - Complexity: one run of scrypt, and one commit.
  public func link(
    token: String, withEmail email: String, password: String
  ) async throws(AuthError) -> Session {
    let address = try EmailAddress(email)
    let known = try await session(forToken: token).account
    guard !known.hasPassword else { throw .providerAlreadyLinked }
    try await check(password, for: address)
    let holder = try await find(address)
    guard holder == nil || holder?.uid == known.uid else { throw .emailAlreadyInUse }
    let stored = try await hasher.hash(PasswordRules.bytes(of: password), options.hashing)
    return try await authenticating {
      try await database.runTransaction { transaction in
        var (session, record) = try recentOwner(token, in: transaction)
        guard record.password == nil else { throw AuthError.providerAlreadyLinked }
        // The account's own address stays unchanged, with its verification.
        if record.addressKey != address.key {
          try give(address, to: &record, session.uid, in: transaction)
        }
        record.password = stored
        record.isAnonymous = nil
        record.lastSignInAt = try now()
        session.provider = nil
        session.authenticatedAt = try now()
        try transaction.setData(
          from: record, forDocument: places.accounts.document(session.uid))
        try transaction.setData(
          from: session, forDocument: places.sessions.document(SessionToken(token).digest))
        return Session(session, record, token: token)
      }
    }
  }

  /// Changes the display name and the picture's URL.
  ///
  /// - Parameters:
  ///   - token: a session's.
  ///   - displayName: the name: 1 to 1,024 bytes in one line.
  ///   - photoURL: where a picture is: a URL of http or https, of 2,048 bytes at most.
  /// - Returns: the session, with the account as it is now.
  /// - Throws: `.invalidDisplayName`, `.invalidPhotoURL`, `.userTokenExpired`, `.userDisabled`,
  ///   `.invalidUserToken`, `.internalError`.
  /// - Complexity: one commit.
  public func updateProfile(
    token: String, displayName: PropertyChange<String> = .keep,
    photoURL: PropertyChange<String> = .keep
  ) async throws(AuthError) -> Session {
    let displayName = try displayName.map(AccountProperties.displayName)
    let photoURL = try photoURL.map(AccountProperties.photoURL)
    return try await authenticating {
      try await database.runTransaction { transaction in
        var (session, record) = try session(token, in: transaction)
        displayName.apply(to: &record.displayName)
        photoURL.apply(to: &record.photoURL)
        try transaction.setData(
          from: record, forDocument: places.accounts.document(session.uid))
        return Session(session, record, token: token)
      }
    }
  }
}

extension AuthError {
  fileprivate static var providerAlreadyLinked: AuthError {
    AuthError(.providerAlreadyLinked, "the account has a password; change that instead")
  }
}
