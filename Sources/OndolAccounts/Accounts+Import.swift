// Import of another system's accounts, with their uids and the hashes of their passwords. Each
// hundred accounts is one commit. A crash leaves whole hundreds, and importing all accounts again
// completes them. An account that cannot be imported does not stop the others.

internal import Foundation
public import Ondol
internal import OndolEngine

/// An account of another system, to import.
public struct ImportedAccount: Sendable, Hashable, CustomReflectable {
  /// The uid, 1 to 128 characters without `/`. The import replaces an account that has it.
  public var uid: String
  /// The address.
  public var email: String?
  /// Whether the address is known to be its owner's.
  public var isEmailVerified = false
  /// The phone number, with its country's code.
  public var phoneNumber: String?
  /// The name that others see.
  public var displayName: String?
  /// Where a picture is.
  public var photoURL: String?
  /// Who the person is at other services. Of two at one service, the account gets the last.
  public var identities: [LinkedIdentity] = []
  /// Whether the account is disabled.
  public var isDisabled = false
  /// The custom claims.
  public var customClaims = CustomClaims.none
  /// When it was created; nil stands for the time of the import.
  public var creationTime: Timestamp?
  /// The last sign-in; nil if there was none.
  public var lastSignInTime: Timestamp?
  /// The hash of the password; nil if the account has none.
  public var passwordHash: [UInt8]?
  /// The account's own salt, without the separator of `PasswordHashFormat`.
  public var passwordSalt: [UInt8] = []
  /// The password itself, from a system that keeps it in clear, as Firebase's emulator does. The
  /// import hashes it with `Accounts.Options.hashing`, and ignores a hash beside it.
  package var password: String?

  /// An account with a uid and no other properties.
  ///
  /// - Parameter uid: the uid.
  public init(uid: String) { self.uid = uid }

  /// All but the password: what `dump` shows.
  public var customMirror: Mirror {
    Mirror(self, children: ["uid": uid, "email": email as Any])
  }
}

extension Accounts {
  /// The number of accounts in one commit.
  private static let stepLength = 100

  /// Imports accounts of another system, with their uids and the hashes of their passwords.
  ///
  /// People sign in with the passwords they have. The first sign-in of each stores the password
  /// with `Options.hashing`. If an account has the uid, the import replaces it: its sessions and
  /// recovery codes end, and its profile and its data stay. The call is Firebase's `importUsers`
  /// (https://firebase.google.com/docs/auth/admin/import-users), except that it refuses an address,
  /// a phone number or an identity that another account has.
  ///
  /// The library compares hashes of the password's UTF-8 in composed form, as keyboards type it.
  ///
  /// - Parameters:
  ///   - accounts: at most 1,000 accounts.
  ///   - format: how the other system hashed the passwords; nil if no account has a hash.
  /// - Returns: the number of successes, and the failures: `.invalidUID`, `.invalidEmail`,
  ///   `.invalidPhoneNumber`, `.invalidDisplayName`, `.invalidPhotoURL`, `.invalidIdentity`,
  ///   `.invalidPasswordHash`,
  ///   `.emailAlreadyInUse`, `.credentialAlreadyInUse`, and `.uidAlreadyInUse` for the second
  ///   account with a uid.
  /// - Throws: `.invalidCount` for more accounts; `.internalError` when the database fails. The
  ///   hundreds before the failure are stored then; import all accounts again.
  /// - Complexity: O(accounts), and one commit for each hundred. The call hashes no password.
  public func importAccounts(
    _ accounts: [ImportedAccount], passwords format: PasswordHashFormat? = nil
  ) async throws(AuthError) -> AccountBatchResult {
    try Self.check(count: accounts.count, most: Self.mostOfPage)
    var result = AccountBatchResult()
    var checked: [CheckedImport] = []
    var seen: Set<String> = []
    for (index, account) in accounts.enumerated() {
      do throws(AuthError) {
        var imported = try CheckedImport(index, account, format, &seen)
        if let password = account.password { imported.password = try await hashed(password) }
        checked.append(imported)
      } catch {
        result.failures.append(AccountBatchResult.Failure(index: index, error: error))
      }
    }
    if let format { try await expect(format.hashing) }
    for first in stride(from: 0, to: checked.count, by: Self.stepLength) {
      let step = checked[first..<min(first + Self.stepLength, checked.count)]
      let failures = try await take(step)
      result.failures += failures
      result.successCount += step.count - failures.count
    }
    result.failures.sort { $0.index < $1.index }
    return result
  }

  /// The stored form of a password that no rule for new passwords applies to.
  private func hashed(_ password: String) async throws(AuthError) -> StoredPassword {
    let bytes = PasswordRules.bytes(of: password)
    guard PasswordRules.isPossible(bytes) else {
      throw AuthError(.invalidPasswordHash, "no account can have such a password")
    }
    return try await hasher.hash(bytes, options.hashing)
  }

  /// Imports some accounts in one commit.
  private func take(
    _ accounts: ArraySlice<CheckedImport>
  ) async throws(AuthError) -> [AccountBatchResult.Failure] {
    try await authenticating {
      try await database.runTransaction { transaction in
        var failures: [AccountBatchResult.Failure] = []
        for account in accounts {
          do {
            try take(account, in: transaction)
          } catch let error as AuthError where error.code != .internalError {
            failures.append(AccountBatchResult.Failure(index: account.index, error: error))
          }
        }
        return failures
      }
    }
  }

  private func take(_ imported: CheckedImport, in transaction: Transaction) throws {
    let (uid, account) = (imported.account.uid, imported.account)
    let stored = try self.account(uid, in: transaction)
    // Checked before the first write, because a transaction cannot take back a part of itself.
    if let address = imported.changes.address {
      let holder = try find(address, in: transaction)
      guard holder == nil || holder?.uid == uid else { throw AuthError.emailAlreadyInUse }
    }
    if case .set(let number) = imported.changes.phoneNumber {
      let found = try transaction.getDocuments(places.calledBy(number)).documents.first
      guard found == nil || found?.documentID == uid else {
        throw AuthError.credentialAlreadyInUse
      }
    }
    for identity in imported.changes.linkedIdentities {
      try checkHolder(of: identity, isNotBeside: uid, in: transaction)
    }
    var record = AccountRecord(createdAt: try account.creationTime ?? now())
    if let stored {
      // What the address is looked up by, and what ends all that was made for the account before.
      record.email = stored.email
      record.emailKey = stored.emailKey
      record.sharesAddress = stored.sharesAddress
      record.passwordVersion = stored.passwordVersion
      record.revocation = stored.revocation
      record.profile = stored.profile
      try replacePassword(of: &record, uid, with: imported.password, in: transaction)
      try revoke(&record, uid, in: transaction)
    }
    try apply(imported.changes, to: &record, uid, in: transaction)
    record.password = imported.password
    record.isDisabled = account.isDisabled ? true : nil
    record.lastSignInAt = account.lastSignInTime
    record.tokensValidAfter = try now()
    try transaction.setData(from: record, forDocument: places.accounts.document(uid))
  }

  /// Makes a sign-in with an unknown address cost what one with an imported password may cost.
  /// Other processes with the same database learn it when they open the accounts.
  private func expect(_ hashing: PasswordHashing) async throws(AuthError) {
    guard hashings.withLock({ !$0.contains(hashing) }) else { return }
    let known = try await authenticating {
      try await Self.settle(places, hashing).hashings
    }
    hashings.withLock { $0 = known }
  }
}

/// An account to import, checked except for what other accounts have.
private struct CheckedImport: Sendable {
  let index: Int
  let account: ImportedAccount
  let changes: CheckedChanges
  var password: StoredPassword?

  /// Throws when a property is wrong, and for a uid that was seen before.
  init(
    _ index: Int, _ account: ImportedAccount, _ format: PasswordHashFormat?,
    _ seen: inout Set<String>
  ) throws(AuthError) {
    try AccountProperties.check(uid: account.uid)
    guard seen.insert(account.uid).inserted else { throw .uidAlreadyInUse }
    self.index = index
    self.account = account
    self.changes = try CheckedChanges(AccountChanges(to: account))
    guard let hash = account.passwordHash, account.password == nil else {
      password = nil
      return
    }
    guard let format else {
      throw AuthError(.invalidPasswordHash, "state how the passwords were hashed")
    }
    password = try format.stored(hash, salt: account.passwordSalt)
  }
}
