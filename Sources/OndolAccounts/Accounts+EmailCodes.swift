// Mailed codes for signing in and for checking a code, and codes that an administrator delivers.
// The codes that an account asks for are in Accounts+Mail.

internal import Foundation
internal import Ondol
internal import OndolEngine

extension Accounts {
  /// Sends a code to an address, for `signIn(withEmail:code:origin:)`. The call does the same
  /// whether or not an account has the address.
  ///
  /// Firebase calls this a sign-in link: https://firebase.google.com/docs/auth/web/email-link-auth.
  ///
  /// - Parameters:
  ///   - email: the address. The code goes to it as it is written here.
  ///   - origin: as in `signIn(withEmail:password:origin:)`; each code counts as a failed try.
  /// - Throws: `.operationNotAllowed` without `Options.sendCode`; `.invalidEmail`;
  ///   `.tooManyRequests` above `Options.maximumCodes`; `.internalError`, also when the mail could
  ///   not be sent.
  /// - Complexity: one commit, and what sending takes.
  public func sendSignInCode(
    toEmail email: String, origin: String? = nil
  ) async throws(AuthError) {
    let send = try sender
    let address = try EmailAddress(email)
    let code = TypedCode(database.environment.random)
    let limits = triesLimits("sign-in code", of: address.key, origin, most: options.maximumCodes)
    try await authenticating {
      try await database.runTransaction { transaction in
        _ = try note(limits, in: transaction)
        try keep(code, .emailSignIn, nil, address.key, in: transaction)
      }
    }
    do {
      try await send(.emailSignIn, address.text, code.text)
    } catch {
      throw AuthError(.internalError, "the mail could not be sent; try again in a while")
    }
  }

  /// Signs in with a code that went to an address, and creates the account if there is none. The
  /// address is verified afterwards.
  ///
  /// If the address was not verified before, the account loses its password, its sessions and its
  /// recovery codes: another person may have signed up with the address. The rule is Firebase's:
  /// https://firebase.google.com/docs/auth/web/email-link-auth.
  ///
  /// - Parameters:
  ///   - email: the address, in any spelling.
  ///   - code: a code that `sendSignInCode(toEmail:origin:)` sent there. Case, spaces and hyphens
  ///     do not matter.
  ///   - origin: as in `signIn(withEmail:password:origin:)`.
  /// - Returns: a new session.
  /// - Throws: `.invalidEmail`; `.invalidActionCode` for a code that is wrong, used, expired, or
  ///   went to another address; `.userDisabled`, which leaves the code valid; `.tooManyRequests`,
  ///   `.internalError`.
  /// - Complexity: two commits, and O(sessions) when the call ends them.
  public func signIn(
    withEmail email: String, code: String, origin: String? = nil
  ) async throws(AuthError) -> Session {
    let address = try EmailAddress(email)
    return try await trying(code, origin) { code, stored, transaction in
      guard stored.operation == .emailSignIn, stored.fits(code, settings),
        stored.address == settings.mailDigest(address.key)
      else { throw AuthError.invalidActionCode }
      try transaction.deleteDocument(document(of: code))
      return try signIn(verified: address, in: transaction)
    }
  }

  /// Signs in a person who has proved that they own an address.
  private func signIn(verified address: EmailAddress, in transaction: Transaction) throws -> Session
  {
    let found = try find(address, in: transaction)
    var record = try found?.record ?? AccountRecord(createdAt: now())
    let document = found.map { places.accounts.document($0.uid) } ?? places.accounts.document()
    let uid = document.documentID
    if found == nil {
      record.email = address.text
      record.emailKey = address.key
    } else if record.isEmailVerified != true, record.isDisabled != true {
      try replacePassword(of: &record, uid, with: nil, in: transaction)
    }
    record.isEmailVerified = true
    record.lastSignInAt = try now()
    try transaction.setData(from: record, forDocument: document)
    return try startSession(of: uid, record, isNew: found == nil, in: transaction)
  }

  /// Reports what a code does and to which address it went, without using it up.
  ///
  /// - Parameters:
  ///   - code: a code that was sent. Case, spaces and hyphens do not matter.
  ///   - origin: as in `signIn(withEmail:password:origin:)`.
  /// - Throws: `.invalidActionCode` for a code that is wrong, used or expired; `.userDisabled`;
  ///   `.tooManyRequests`, `.internalError`.
  /// - Complexity: two commits.
  public func checkActionCode(
    _ code: String, origin: String? = nil
  ) async throws(AuthError) -> ActionCodeInfo {
    try await trying(code, origin) { code, stored, transaction in
      guard stored.fits(code, settings) else { throw AuthError.invalidActionCode }
      var email: String?
      if stored.operation != .emailSignIn {
        email = try owner(of: code, stored.operation, in: transaction).record.email
      }
      return ActionCodeInfo(
        operation: stored.operation, email: stored.newEmail ?? email,
        previousEmail: stored.newEmail.flatMap { _ in email })
    }
  }

  /// Returns a code for an address instead of sending it. An administrator delivers it.
  ///
  /// No limit counts these codes. Firebase returns links to administrators in the same way:
  /// https://firebase.google.com/docs/auth/admin/email-action-links.
  ///
  /// - Parameters:
  ///   - operation: what the code does.
  ///   - email: the account's address, in any spelling.
  ///   - newEmail: for `.verifyAndChangeEmail`, the address that the code gives the account.
  /// - Returns: the code.
  /// - Throws: `.invalidEmail`; `.missingEmail` when `newEmail` is needed and nil;
  ///   `.emailAlreadyInUse` when another account has it; `.internalError`. Except for
  ///   `.emailSignIn`, also `.userNotFound` when no account has the address, and `.userDisabled`.
  /// - Complexity: one commit.
  public func makeActionCode(
    _ operation: ActionCodeOperation, forEmail email: String, newEmail: String? = nil
  ) async throws(AuthError) -> String {
    let address = try EmailAddress(email)
    let next = try operation == .verifyAndChangeEmail ? newEmail.map(EmailAddress.init) : nil
    if operation == .verifyAndChangeEmail, next == nil { throw .missingEmail }
    let code = TypedCode(database.environment.random)
    return try await authenticating {
      try await database.runTransaction { transaction in
        guard operation != .emailSignIn else {
          try keep(code, operation, nil, address.key, in: transaction)
          return code.text
        }
        guard let found = try find(address, in: transaction), let email = found.record.email
        else { throw AuthError.userNotFound }
        guard found.record.isDisabled != true else { throw AuthError.userDisabled }
        let holder = try next.flatMap { try find($0, in: transaction) }
        guard holder == nil || holder?.uid == found.uid else { throw AuthError.emailAlreadyInUse }
        try keep(code, operation, found, email, newEmail: next?.text, in: transaction)
        return code.text
      }
    }
  }
}
