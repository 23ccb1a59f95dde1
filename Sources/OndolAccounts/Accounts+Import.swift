// Accounts of another system, with their uids and the hashes of their passwords. They come in
// hundreds, each hundred one commit: a crash leaves whole hundreds, and who imports all of them
// again gets the same as without it. One that cannot be taken does not stop the others.

internal import Foundation
public import Ondol
internal import OndolEngine

/// An account of another system.
public struct ImportedAccount: Sendable, Hashable, CustomReflectable {
  /// The uid, 1 to 128 characters without `/`. An account that has it is replaced.
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
  /// Whether nobody may sign in.
  public var isDisabled = false
  /// What is said of the account in tokens.
  public var customClaims = CustomClaims.none
  /// When it was made; nil for now.
  public var creationTime: Timestamp?
  /// When somebody signed in to it last.
  public var lastSignInTime: Timestamp?
  /// What the other system stored of the password; nil where there is none.
  public var passwordHash: [UInt8]?
  /// The account's own salt, without a separator that all accounts have.
  public var passwordSalt: [UInt8] = []

  /// An account with nothing but its uid.
  ///
  /// - Parameter uid: the uid.
  public init(uid: String) { self.uid = uid }

  /// All but the password: what `dump` shows.
  public var customMirror: Mirror {
    Mirror(self, children: ["uid": uid, "email": email as Any])
  }
}

extension Accounts {
  /// Accounts that become one commit.
  private static let stepLength = 100

  /// Takes accounts over from another system, with their uids and the hashes of their passwords.
  ///
  /// Their owners sign in with the passwords they have. The first sign-in of each hashes the
  /// password as those of this store; see `Options.hashing`. An account that has the uid is
  /// replaced: its sessions and recovery codes end, while its profile and its data stay. As
  /// Firebase's import, see https://firebase.google.com/docs/auth/admin/import-users; but an
  /// address or a phone number that another account has is refused here.
  ///
  /// Hashes are of the password's UTF-8 in composed form, which is what keyboards give.
  ///
  /// - Parameters:
  ///   - accounts: 1,000 at most.
  ///   - format: how the passwords were hashed; nil where none has a hash.
  /// - Returns: how many were taken, and why others were not: `.invalidUID`, `.invalidEmail`,
  ///   `.invalidPhoneNumber`, `.invalidDisplayName`, `.invalidPhotoURL`, `.invalidPasswordHash`,
  ///   `.emailAlreadyInUse`, `.credentialAlreadyInUse`, and `.uidAlreadyInUse` for a uid that comes
  ///   twice.
  /// - Throws: `.invalidCount`; `.internalError` when the database fails, and then the hundreds
  ///   before are taken. Import all again.
  /// - Complexity: O(accounts), and a commit for each hundred. No password is hashed.
  public func importAccounts(
    _ accounts: [ImportedAccount], passwords format: PasswordHashFormat? = nil
  ) async throws(AuthError) -> AccountBatchResult {
    try Self.check(count: accounts.count, most: Self.mostOfPage)
    var result = AccountBatchResult()
    var checked: [CheckedImport] = []
    var seen: Set<String> = []
    for (index, account) in accounts.enumerated() {
      do throws(AuthError) {
        checked.append(try CheckedImport(index, account, format, &seen))
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

  /// Takes some accounts, in one commit.
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
    // Before anything is written: a transaction has no part that could be taken back.
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

  /// Has unknown addresses cost what imported passwords do, too.
  private func expect(_ hashing: PasswordHashing) async throws(AuthError) {
    guard hashings.withLock({ !$0.contains(hashing) }) else { return }
    let known = try await authenticating {
      try await Self.settle(places, hashing).hashings
    }
    hashings.withLock { $0 = known }
  }
}

/// An account that is taken over, all of it checked but what other accounts have.
private struct CheckedImport: Sendable {
  let index: Int
  let account: ImportedAccount
  let changes: CheckedChanges
  let password: StoredPassword?

  /// Throws for what is wrong with the account, and for a uid that was seen before.
  init(
    _ index: Int, _ account: ImportedAccount, _ format: PasswordHashFormat?,
    _ seen: inout Set<String>
  ) throws(AuthError) {
    try AccountProperties.check(uid: account.uid)
    guard seen.insert(account.uid).inserted else { throw .uidAlreadyInUse }
    var changes = AccountChanges()
    changes.email = account.email.map(PropertyChange.set) ?? .remove
    changes.isEmailVerified = account.isEmailVerified
    changes.phoneNumber = account.phoneNumber.map(PropertyChange.set) ?? .remove
    changes.displayName = account.displayName.map(PropertyChange.set) ?? .remove
    changes.photoURL = account.photoURL.map(PropertyChange.set) ?? .remove
    changes.customClaims = .set(account.customClaims)
    self.index = index
    self.account = account
    self.changes = try CheckedChanges(changes)
    guard let hash = account.passwordHash else {
      password = nil
      return
    }
    guard let format else {
      throw AuthError(.invalidPasswordHash, "say how the passwords were hashed")
    }
    password = try format.stored(hash, salt: account.passwordSalt)
  }
}
