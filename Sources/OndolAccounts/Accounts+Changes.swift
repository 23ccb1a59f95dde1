// Changes that owners make to their account. A token alone does not allow them: the owner must have
// given the password within the last minutes. So a person who finds an unlocked device or a token
// cannot take over the account. A change that ends sessions ends them in the same commit.

internal import Crypto
internal import Foundation
internal import Ondol
internal import OndolEngine

extension Accounts {
  /// Records that the owner of a session gave the password again.
  ///
  /// The account counts failed tries here separately from failed sign-ins, so guesses at one do not
  /// block the other.
  ///
  /// - Parameters:
  ///   - token: the session's token.
  ///   - password: the password.
  /// - Throws: `.invalidCredential` when the password is wrong, `.operationNotAllowed` when the
  ///   account has none, `.tooManyRequests`, `.userTokenExpired`, `.userDisabled`,
  ///   `.invalidUserToken`, `.internalError`.
  /// - Complexity: one run of scrypt, and two commits.
  public func reauthenticate(token: String, password: String) async throws(AuthError) {
    let session = try await session(forToken: token)
    try await counting(triesLimits("reauthentication", of: session.account.uid, nil)) {
      (tries) throws(AuthError) in
      try await reauthenticate(session, password, tries)
    }
  }

  /// Records a repeated password, for a try that is already recorded.
  private func reauthenticate(
    _ session: Session, _ password: String, _ tries: NotedTries
  ) async throws(AuthError) {
    let token = session.token
    let bytes = PasswordRules.bytes(of: password)
    let record = try await authenticating {
      try await places.accounts.document(session.account.uid).getDocument()
        .data(as: AccountRecord?.self)
    }
    guard let record else { throw .userTokenExpired }
    guard let stored = record.password else {
      throw AuthError(.operationNotAllowed, "the account has no password to give again")
    }
    guard PasswordRules.isPossible(bytes), try await hasher.matches(bytes, stored) else {
      throw .invalidCredential
    }
    try await authenticating {
      try await database.runTransaction { transaction in
        var (record, account) = try self.session(token, in: transaction)
        guard account.password == stored else { throw AuthError.invalidCredential }
        record.authenticatedAt = try now()
        let document = places.sessions.document(try SessionToken(token).digest)
        try transaction.setData(from: record, forDocument: document)
        try takeBack(tries, forgetting: true, in: transaction)
      }
    }
  }

  /// Changes the account's address. The new address is not verified: `Account.isEmailVerified` is
  /// false. Sessions continue.
  ///
  /// - Parameters:
  ///   - token: the token of a session that began, or gave the password again, within
  ///     `Options.recentSignIn`.
  ///   - email: the new address.
  /// - Returns: the session, with the new address.
  /// - Throws: `.invalidEmail`, `.emailAlreadyInUse`, `.requiresRecentLogin`, `.userTokenExpired`,
  ///   `.invalidUserToken`, `.internalError`.
  /// - Complexity: one commit.
  public func updateEmail(
    token: String, to email: String
  ) async throws(AuthError) -> Session {
    let address = try EmailAddress(email)
    return try await authenticating {
      try await database.runTransaction { transaction in
        var (session, record) = try recentOwner(token, in: transaction)
        try give(address, to: &record, session.uid, in: transaction)
        try transaction.setData(
          from: record, forDocument: places.accounts.document(session.uid))
        return Session(session, record, token: token)
      }
    }
  }

  /// Changes the account's password. The same commit ends all its sessions, on every device, and
  /// its recovery codes.
  ///
  /// - Parameters:
  ///   - token: the token of a session that began, or gave the password again, within
  ///     `Options.recentSignIn`.
  ///   - password: the new password.
  /// - Returns: a new session, which replaces the calling one.
  /// - Throws: `.weakPassword`; `.missingEmail` for an account without an address, which cannot
  ///   sign in by a password; `.requiresRecentLogin`, `.userTokenExpired`, `.userDisabled`,
  ///   `.invalidUserToken`; `.tooManyRequests` when too many passwords wait to be hashed;
  ///   `.internalError`.
  /// - Complexity: one run of scrypt, and one commit, in O(sessions).
  public func updatePassword(
    token: String, to password: String
  ) async throws(AuthError) -> Session {
    let session = try await session(forToken: token)
    guard let email = session.account.email else { throw .missingEmail }
    try await check(password, for: try EmailAddress(email))
    let stored = try await hasher.hash(PasswordRules.bytes(of: password), options.hashing)
    return try await authenticating {
      try await database.runTransaction { transaction in
        let (session, record) = try recentOwner(token, in: transaction)
        return try change(record, of: session.uid, to: stored, in: transaction)
      }
    }
  }

  /// Deletes the account, its sessions, its profile with the picture, and all documents below its
  /// private root, in one commit. Its documents below the public root stay.
  ///
  /// - Parameter token: the token of a session that began, or gave the password again, within
  ///   `Options.recentSignIn`.
  /// - Throws: `.requiresRecentLogin`, `.userTokenExpired`, `.invalidUserToken`, `.internalError`.
  /// - Complexity: O(deleted documents).
  public func delete(token: String) async throws(AuthError) {
    try await authenticating {
      try await database.runTransaction { transaction in
        let (session, record) = try recentOwner(token, in: transaction)
        try remove(record, session.uid, in: transaction)
      }
    }
  }

  // MARK: - Recovery codes

  /// Creates codes, each of which can replace a forgotten password. Earlier codes become invalid.
  /// All codes end when the password changes, with or without a code.
  ///
  /// They restore access without mail: the owner writes them down. Show them at once, because the
  /// database keeps only digests.
  ///
  /// - Parameters:
  ///   - token: the token of a session that began, or gave the password again, within
  ///     `Options.recentSignIn`.
  ///   - count: the number of codes, 1 to 32.
  /// - Returns: codes of 16 letters and digits in four groups, 80 random bits each.
  /// - Throws: `.requiresRecentLogin`, `.userTokenExpired`, `.invalidUserToken`, `.internalError`.
  /// - Complexity: one commit.
  public func generateRecoveryCodes(
    token: String, count: Int = 8
  ) async throws(AuthError) -> [String] {
    try await authenticating {
      try await database.runTransaction { transaction in
        var (session, record) = try recentOwner(token, in: transaction)
        let uid = session.uid
        let codes = (0..<min(max(count, 1), 32)).map { _ in
          TypedCode(database.environment.random)
        }
        record.recoveryCodes = codes.map { $0.recoveryDigest(settings, uid) }
        try transaction.setData(from: record, forDocument: places.accounts.document(uid))
        return codes.map(\.text)
      }
    }
  }

  /// Resets an account's password with one of its recovery codes, and ends all its sessions. The
  /// call uses up all its codes, so generate new ones.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - recoveryCode: one of the codes. Case, spaces and hyphens do not matter.
  ///   - newPassword: the new password.
  ///   - origin: as in `signIn(withEmail:password:origin:)`.
  /// - Returns: a new session.
  /// - Throws: `.invalidEmail`, `.weakPassword`; `.invalidCredential` for a wrong address or a
  ///   wrong code, without a difference; `.tooManyRequests`, `.internalError`.
  /// - Complexity: one run of scrypt, and two commits, in O(sessions).
  public func resetPassword(
    withEmail email: String, recoveryCode: String, newPassword: String, origin: String? = nil
  ) async throws(AuthError) -> Session {
    let address = try EmailAddress(email)
    try await check(newPassword, for: address)
    return try await counting(triesLimits("recovery", of: address.key, origin)) {
      (tries) throws(AuthError) in
      try await resetPassword(address, recoveryCode, newPassword, tries)
    }
  }

  /// Resets the password, for a try that is already recorded.
  private func resetPassword(
    _ address: EmailAddress, _ recoveryCode: String, _ newPassword: String, _ tries: NotedTries
  ) async throws(AuthError) -> Session {
    // Runs before any lookup, so the call takes as long whatever the lookups find.
    let stored = try await hasher.hash(PasswordRules.bytes(of: newPassword), options.hashing)
    let code = TypedCode(typed: recoveryCode)
    return try await authenticating {
      try await database.runTransaction { transaction in
        guard let code, let (uid, record) = try find(address, in: transaction) else {
          throw AuthError.invalidCredential
        }
        let digest = SymmetricKey(data: code.recoveryDigest(settings, uid))
        guard record.recoveryCodes.contains(where: { SymmetricKey(data: $0) == digest }) else {
          throw AuthError.invalidCredential
        }
        try takeBack(tries, forgetting: true, in: transaction)
        return try change(record, of: uid, to: stored, in: transaction)
      }
    }
  }

  // MARK: - Steps

  /// Returns a session and its account. Throws `.requiresRecentLogin` when the password was given
  /// too long ago. An anonymous account has no password, so its token is enough.
  func recentOwner(
    _ token: String, in transaction: Transaction
  ) throws -> (session: SessionRecord, record: AccountRecord) {
    let (session, record) = try session(token, in: transaction)
    let end = try moment(options.recentSignIn, after: session.authenticatedAt)
    let isRecent = try now().microsecondsSince1970 < end.microsecondsSince1970
    guard isRecent || record.isAnonymous == true else {
      throw AuthError(
        .requiresRecentLogin, "give the password again: that was too long ago for this")
    }
    return (session, record)
  }

  /// Replaces the password, ends all sessions and starts a new one.
  func change(
    _ record: AccountRecord, of uid: String, to password: StoredPassword,
    in transaction: Transaction
  ) throws -> Session {
    var record = record
    record.lastSignInAt = try now()
    try replacePassword(of: &record, uid, with: password, in: transaction)
    try transaction.setData(from: record, forDocument: places.accounts.document(uid))
    return try startSession(of: uid, record, in: transaction)
  }

  /// Replaces or removes the password, and ends all sessions and codes made under the old one.
  func replacePassword(
    of record: inout AccountRecord, _ uid: String, with password: StoredPassword?,
    in transaction: Transaction
  ) throws {
    record.password = password
    let (version, overflow) = record.passwordVersion.addingReportingOverflow(1)
    guard !overflow else { throw AuthError(.internalError, "the account's record is damaged") }
    record.passwordVersion = version
    // An owner who fears that another person knows the password must also fear for the written
    // codes.
    record.recoveryCodes = []
    if let key = record.addressKey {
      for kind in ["password", "recovery"] {
        try forget(triesLimits(kind, of: key, nil), in: transaction)
      }
    }
    try forget(triesLimits("reauthentication", of: uid, nil), in: transaction)
    record.tokensValidAfter = try now()
    try endSessions(of: uid, in: transaction)
  }

  /// Deletes an account with all private data of its owner.
  func remove(_ record: AccountRecord, _ uid: String, in transaction: Transaction) throws {
    try passOn(addressOf: record, in: transaction)
    try endSessions(of: uid, in: transaction)
    if let profile = record.profile {
      try transaction.deleteDocument(database.document(profile), recursive: true)
    }
    try transaction.deleteDocument(places.privateRoot(uid), recursive: true)
    try transaction.deleteDocument(places.accounts.document(uid), recursive: true)
  }

  /// Ends all sessions of an account.
  func endSessions(of uid: String, in transaction: Transaction) throws {
    for session in try sessions(of: uid, in: transaction) {
      try transaction.deleteDocument(session.reference)
    }
  }

  /// Returns all sessions of an account.
  func sessions(of uid: String, in transaction: Transaction) throws -> [DocumentSnapshot] {
    let sessions = places.sessions.whereField(FieldPath(SessionRecord.uid), isEqualTo: uid)
    return try transaction.getDocuments(sessions).documents
  }
}
