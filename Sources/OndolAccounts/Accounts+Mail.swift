// Codes by mail: they verify an address and reset a forgotten password. The library writes no mail;
// the app provides a call that does. The calls do not reveal whether an account exists: for an
// unknown address they also make and store a code, but do not send it. A real code goes out after
// the answer, because a mail server's time would reveal it.

internal import Foundation
internal import Ondol
internal import OndolEngine

extension Accounts {
  /// Sends a code to the account's address, for `applyActionCode(_:origin:)`. Without effect when
  /// the address is verified.
  ///
  /// - Parameter token: the session's token.
  /// - Throws: `.operationNotAllowed` without `Options.sendCode`; `.tooManyRequests` above
  ///   `Options.maximumCodes`; `.missingEmail` for an account without an address; `.internalError`,
  ///   also when the mail could not be sent; `.userTokenExpired`, `.userDisabled`,
  ///   `.invalidUserToken`.
  /// - Complexity: one commit, and the time of `sendCode`.
  public func sendEmailVerification(token: String) async throws(AuthError) {
    try await sendEmailVerification { transaction in
      let (session, record) = try session(token, in: transaction)
      return (session.uid, record)
    }
  }

  /// Does the same for an account whose owner the program has recognised by a token of its own.
  package func sendEmailVerification(to uid: String) async throws(AuthError) {
    try await sendEmailVerification { transaction in try owner(uid, in: transaction) }
  }

  private func sendEmailVerification(
    _ owner: (Transaction) throws -> FoundAccount
  ) async throws(AuthError) {
    let send = try sender
    let code = TypedCode(database.environment.random)
    let address = try await authenticating {
      try await database.runTransaction { transaction -> String? in
        let (uid, record) = try owner(transaction)
        guard let email = record.email else { throw AuthError.missingEmail }
        guard record.isEmailVerified != true else { return nil }
        _ = try note(
          triesLimits("verification", of: uid, nil, most: options.maximumCodes),
          in: transaction)
        try keep(code, .verifyEmail, (uid, record), email, in: transaction)
        return email
      }
    }
    guard let address else { return }
    do {
      try await send(.verifyEmail, address, code.text)
    } catch {
      throw AuthError(.internalError, "the mail could not be sent; try again in a while")
    }
  }

  /// Sends a code to another address, for `applyActionCode(_:origin:)`. The account gets the
  /// address only then, and the address is verified at once.
  ///
  /// - Parameters:
  ///   - token: the token of a session that began, or gave the password again, within
  ///     `Options.recentSignIn`.
  ///   - email: the new address.
  /// - Throws: `.operationNotAllowed` without `Options.sendCode`; `.invalidEmail`,
  ///   `.emailAlreadyInUse`; `.missingEmail` for an account without an address;
  ///   `.requiresRecentLogin`; `.tooManyRequests` above `Options.maximumCodes`; `.internalError`,
  ///   also when the mail could not be sent; `.userTokenExpired`, `.userDisabled`,
  ///   `.invalidUserToken`.
  /// - Complexity: one commit, and the time of `sendCode`.
  public func sendEmailVerification(
    token: String, beforeUpdatingEmailTo email: String
  ) async throws(AuthError) {
    try await sendEmailVerification(beforeUpdatingEmailTo: email) { transaction in
      let (session, record) = try recentOwner(token, in: transaction)
      return (session.uid, record)
    }
  }

  /// Does the same for an account whose owner the program has recognised by a token of its own, and
  /// a moment ago.
  package func sendEmailVerification(
    to uid: String, beforeUpdatingEmailTo email: String
  ) async throws(AuthError) {
    try await sendEmailVerification(beforeUpdatingEmailTo: email) { transaction in
      try owner(uid, in: transaction)
    }
  }

  private func sendEmailVerification(
    beforeUpdatingEmailTo email: String, _ owner: (Transaction) throws -> FoundAccount
  ) async throws(AuthError) {
    let send = try sender
    let address = try EmailAddress(email)
    let code = TypedCode(database.environment.random)
    try await authenticating {
      try await database.runTransaction { transaction in
        let (uid, record) = try owner(transaction)
        guard let current = record.email else { throw AuthError.missingEmail }
        let holder = try find(address, in: transaction)
        guard holder == nil || holder?.uid == uid else { throw AuthError.emailAlreadyInUse }
        _ = try note(
          triesLimits("verification", of: uid, nil, most: options.maximumCodes),
          in: transaction)
        try keep(
          code, .verifyAndChangeEmail, (uid, record), current, newEmail: address.text,
          in: transaction)
      }
    }
    do {
      try await send(.verifyAndChangeEmail, address.text, code.text)
    } catch {
      throw AuthError(.internalError, "the mail could not be sent; try again in a while")
    }
  }

  /// Verifies an address, and gives it to the account if the account has another one.
  ///
  /// - Parameters:
  ///   - code: one that `sendEmailVerification(token:)` or
  ///     `sendEmailVerification(token:beforeUpdatingEmailTo:)` sent; its case, spaces and hyphens
  ///     do not count.
  ///   - origin: as in `signIn(withEmail:password:origin:)`.
  /// - Returns: the account.
  /// - Throws: `.invalidActionCode` for a code that is wrong, used, expired, or went to an address
  ///   that the account no longer has; `.userDisabled`; `.emailAlreadyInUse` when another account
  ///   now has the new address. These two leave the code valid. Also `.tooManyRequests`,
  ///   `.internalError`.
  /// - Complexity: two commits.
  @discardableResult
  public func applyActionCode(
    _ code: String, origin: String? = nil
  ) async throws(AuthError) -> Account {
    try await trying(code, origin) { code, stored, transaction in
      guard [.verifyEmail, .verifyAndChangeEmail].contains(stored.operation) else {
        throw AuthError.invalidActionCode
      }
      var (uid, record) = try use(code, stored.operation, in: transaction)
      if let email = stored.newEmail {
        try give(try EmailAddress(email), to: &record, uid, in: transaction)
      }
      record.isEmailVerified = true
      try transaction.setData(from: record, forDocument: places.accounts.document(uid))
      return Account(uid, record)
    }
  }

  /// Sends a code that resets a password to the address of an account, if there is one. Neither the
  /// answer nor its time reveals whether there is. The mail goes out after the answer, and an error
  /// of `Options.sendCode` is lost.
  ///
  /// - Parameters:
  ///   - email: the address, in any spelling. The code goes to the account's own.
  ///   - origin: as in `signIn(withEmail:password:origin:)`; each code counts as a failed try.
  /// - Throws: `.operationNotAllowed` without `Options.sendCode`; `.invalidEmail` for a text that
  ///   is not an address; `.tooManyRequests` above `Options.maximumCodes`; `.internalError`.
  /// - Complexity: one commit.
  public func sendPasswordReset(
    withEmail email: String, origin: String? = nil
  ) async throws(AuthError) {
    let send = try sender
    let address = try EmailAddress(email)
    let code = TypedCode(database.environment.random)
    let limits = triesLimits("reset", of: address.key, origin, most: options.maximumCodes)
    let owner = try await authenticating {
      try await database.runTransaction { transaction in
        let found = try find(address, in: transaction)
        _ = try note(limits, in: transaction)
        let email = found?.record.email ?? address.text
        try keep(code, .passwordReset, found, email, in: transaction)
        return found?.record.email
      }
    }
    guard let owner else { return }
    Task { try? await send(.passwordReset, owner, code.text) }
  }

  /// Resets an account's password with a mailed code, and ends all its sessions and its recovery
  /// codes. The call also verifies the address.
  ///
  /// - Parameters:
  ///   - code: one that `sendPasswordReset(withEmail:origin:)` sent; its case, spaces and hyphens
  ///     do not count.
  ///   - newPassword: the new password.
  ///   - origin: as in `signIn(withEmail:password:origin:)`.
  /// - Returns: a new session.
  /// - Throws: `.invalidActionCode` for a code that is wrong, used, expired, or older than the last
  ///   change of the address or the password; `.weakPassword` and `.userDisabled`, which leave the
  ///   code valid; `.tooManyRequests`, `.internalError`.
  /// - Complexity: one run of scrypt if the code is right, and two commits, in O(sessions).
  public func confirmPasswordReset(
    withCode code: String, newPassword: String, origin: String? = nil
  ) async throws(AuthError) -> Session {
    guard let code = TypedCode(typed: code) else { throw .invalidActionCode }
    return try await counting(triesLimits("code", of: code.name, origin)) {
      (tries) throws(AuthError) in
      try await confirmPasswordReset(code, newPassword, tries)
    }
  }

  /// Resets the password, for a try that is already recorded.
  private func confirmPasswordReset(
    _ code: TypedCode, _ newPassword: String, _ tries: NotedTries
  ) async throws(AuthError) -> Session {
    let account = try await authenticating {
      try await database.runTransaction { transaction in
        let (uid, record) = try owner(of: code, .passwordReset, in: transaction)
        return Account(uid, record)
      }
    }
    try await check(newPassword, for: try account.email.map(EmailAddress.init))
    let stored = try await hasher.hash(PasswordRules.bytes(of: newPassword), options.hashing)
    return try await authenticating {
      try await database.runTransaction { transaction in
        // Reads the current state: another call may have used the code in between.
        var (uid, record) = try use(code, .passwordReset, in: transaction)
        record.isEmailVerified = true
        try takeBack(tries, forgetting: true, in: transaction)
        return try change(record, of: uid, to: stored, in: transaction)
      }
    }
  }

  // MARK: - Steps

  /// An account that may be used; throws `.userNotFound` and `.userDisabled`.
  private func owner(_ uid: String, in transaction: Transaction) throws -> FoundAccount {
    guard let record = try account(uid, in: transaction) else { throw AuthError.userNotFound }
    guard record.isDisabled != true else { throw AuthError.userDisabled }
    return (uid, record)
  }

  var sender: Options.CodeSender {
    get throws(AuthError) {
      guard let send = options.sendCode else {
        throw AuthError(.operationNotAllowed, "no way to send mail: set Options.sendCode")
      }
      return send
    }
  }

  /// Stores the record of a code.
  func keep(
    _ code: TypedCode, _ operation: ActionCodeOperation, _ owner: FoundAccount?,
    _ address: String, newEmail: String? = nil, in transaction: Transaction
  ) throws {
    let record = CodeRecord(
      operation: operation, uid: owner?.uid, address: settings.mailDigest(address),
      passwordVersion: owner?.record.passwordVersion ?? 1,
      digest: code.mailedDigest(settings, operation),
      expiresAt: try moment(options.codeLifetime, after: now()), newEmail: newEmail)
    try transaction.setData(from: record, forDocument: document(of: code))
  }

  /// Finds the account of a code; throws `.invalidActionCode` if there is none, and
  /// `.userDisabled`.
  func owner(
    of code: TypedCode, _ operation: ActionCodeOperation, in transaction: Transaction
  ) throws -> FoundAccount {
    let stored = try stored(code, in: transaction)
    guard let stored, stored.operation == operation, let uid = stored.uid,
      let record = try account(uid, in: transaction), stored.fits(code, settings, record)
    else { throw AuthError.invalidActionCode }
    guard record.isDisabled != true else { throw AuthError.userDisabled }
    return (uid, record)
  }

  /// Does the same and uses up the code.
  private func use(
    _ code: TypedCode, _ operation: ActionCodeOperation, in transaction: Transaction
  ) throws -> FoundAccount {
    let owner = try owner(of: code, operation, in: transaction)
    try transaction.deleteDocument(document(of: code))
    return owner
  }

  /// Runs a transaction with a code as somebody typed it, if one with its name is stored. The try
  /// counts, and is taken back in the same transaction when the body succeeds.
  ///
  /// - Throws: `.invalidActionCode`, `.tooManyRequests`, `.internalError`, and what `body` throws.
  func trying<Result>(
    _ typed: String, _ origin: String?,
    _ body: (TypedCode, CodeRecord, Transaction) throws -> Result
  ) async throws(AuthError) -> Result {
    guard let code = TypedCode(typed: typed) else { throw .invalidActionCode }
    return try await counting(triesLimits("code", of: code.name, origin)) {
      (tries) throws(AuthError) in
      try await authenticating {
        try await database.runTransaction { transaction in
          guard let stored = try stored(code, in: transaction) else {
            throw AuthError.invalidActionCode
          }
          let result = try body(code, stored, transaction)
          try takeBack(tries, forgetting: true, in: transaction)
          return result
        }
      }
    }
  }

  /// The record under a code's first letters.
  func stored(_ code: TypedCode, in transaction: Transaction) throws -> CodeRecord? {
    try transaction.getDocument(document(of: code)).data(as: CodeRecord?.self)
  }

  func document(of code: TypedCode) -> DocumentReference {
    places.codes.document(settings.digest("code", code.name).prefix(16).hexadecimal)
  }
}
