// Administration: calls for a program that has the database, or for a server's clients that have
// its key. They ask for no session and no password, so they are never for the person who owns the
// account. Each change is one commit. A change that ends sessions ends them in the same commit.

internal import Foundation
internal import Ondol

extension Accounts {
  /// Accounts of one page, lookup or batch at most: Firebase's numbers.
  static let mostOfPage = 1_000
  static let mostOfLookup = 100

  // MARK: - Finding

  /// Finds an account by its uid, its address, its phone number or an identity at another service;
  /// nil if there is none.
  ///
  /// - Parameter identifier: the account's identifier.
  /// - Throws: `.invalidUID`, `.invalidEmail`, `.invalidPhoneNumber`, `.invalidIdentity`,
  ///   `.internalError`.
  /// - Complexity: one get or one lookup.
  public func findAccount(
    _ identifier: AccountIdentifier
  ) async throws(AuthError) -> Account? {
    switch identifier {
    case .uid(let uid):
      try AccountProperties.check(uid: uid)
      return try await authenticating {
        try await places.accounts.document(uid).getDocument().data(as: AccountRecord?.self)
          .map { Account(uid, $0) }
      }
    case .email(let email):
      return try await find(try EmailAddress(email)).map { Account($0.uid, $0.record) }
    case .phoneNumber(let typed):
      return try await first(places.calledBy(try AccountProperties.phoneNumber(typed)))
    case .identity(let provider, let uid):
      try LinkedIdentity.check(provider, uid)
      return try await first(places.identified(by: LinkedIdentity.key(provider, uid)))
    }
  }

  private func first(_ query: Query) async throws(AuthError) -> Account? {
    try await authenticating {
      let found = try await query.getDocuments().documents.first
      return try found.map { Account($0.documentID, try $0.data(as: AccountRecord.self)) }
    }
  }

  /// Finds several accounts. The result has each account once, in the order of the identifiers, and
  /// leaves out those that do not exist.
  ///
  /// - Parameter identifiers: at most 100, Firebase's limit:
  ///   https://firebase.google.com/docs/auth/admin/manage-users.
  /// - Throws: `.invalidCount` for more; as `findAccount(_:)`.
  /// - Complexity: a get or a lookup each.
  public func findAccounts(
    _ identifiers: [AccountIdentifier]
  ) async throws(AuthError) -> [Account] {
    try Self.check(count: identifiers.count, most: Self.mostOfLookup)
    var found: [Account] = []
    var seen: Set<String> = []
    for identifier in identifiers {
      guard let account = try await findAccount(identifier) else { continue }
      if seen.insert(account.uid).inserted { found.append(account) }
    }
    return found
  }

  /// Lists accounts in pages, in the order of their uids' bytes.
  ///
  /// Each page shows the accounts as of its own call. No account is in two pages. An account that
  /// is created between two calls may be in none.
  ///
  /// - Parameters:
  ///   - limit: the number of accounts in the page, 1 to 1,000, Firebase's limit:
  ///     https://firebase.google.com/docs/auth/admin/manage-users.
  ///   - pageToken: `AccountPage.nextPageToken` of the previous page; nil for the first page.
  /// - Throws: `.invalidCount`, `.invalidPageToken`, `.internalError`.
  /// - Complexity: O(limit).
  public func listAccounts(
    limit: Int = 1_000, pageToken: String? = nil
  ) async throws(AuthError) -> AccountPage {
    try Self.check(count: limit, least: 1, most: Self.mostOfPage)
    var query = places.accounts.query.limit(to: limit + 1)
    if let pageToken {
      guard let cursor = QueryCursor(pageToken) else { throw .invalidPageToken }
      query = query.start(after: cursor)
    }
    let asked = query
    return try await authenticating {
      let documents: [DocumentSnapshot]
      do throws(DatabaseError) {
        documents = try await asked.getDocuments().documents
      } catch {
        throw pageToken != nil && error.code == .invalidArgument
          ? AuthError.invalidPageToken : AuthError(error)
      }
      let shown = documents.prefix(limit)
      let next = documents.count > limit ? shown.last : nil
      return AccountPage(
        accounts: try shown.map { Account($0.documentID, try $0.data(as: AccountRecord.self)) },
        nextPageToken: try next.map { try asked.cursor(at: $0).description })
    }
  }

  /// Counts all accounts.
  ///
  /// - Throws: `.internalError`.
  /// - Complexity: as `Query.count` of the collection of accounts, which skips whole blocks.
  public func countAccounts() async throws(AuthError) -> Int {
    try await authenticating {
      try await places.accounts.query.count.getAggregation().count
    }
  }

  // MARK: - Making and changing

  /// Creates an account, without a session.
  ///
  /// - Parameter account: its properties, all of them optional.
  /// - Returns: the account.
  /// - Throws: `.uidAlreadyInUse`, `.emailAlreadyInUse`, `.credentialAlreadyInUse` when another
  ///   account has the uid, the address, the phone number or an identity; `.invalidUID`,
  ///   `.invalidEmail`, `.invalidIdentity`,
  ///   `.invalidPhoneNumber`, `.invalidDisplayName`, `.invalidPhotoURL`, `.weakPassword`;
  ///   `.tooManyRequests` when too many passwords wait to be hashed; `.internalError`.
  /// - Complexity: one run of scrypt if there is a password, and one commit.
  public func createAccount(_ account: NewAccount) async throws(AuthError) -> Account {
    if let uid = account.uid { try AccountProperties.check(uid: uid) }
    let checked = try CheckedChanges(AccountChanges(to: account))
    let password = try await hashed(account.password, for: checked.address)
    return try await authenticating {
      try await database.runTransaction { transaction in
        let document = account.uid.map(places.accounts.document) ?? places.accounts.document()
        let uid = document.documentID
        guard try self.account(uid, in: transaction) == nil else {
          throw AuthError.uidAlreadyInUse
        }
        var record = AccountRecord(createdAt: try now())
        try apply(checked, to: &record, uid, in: transaction)
        record.password = password
        record.isDisabled = account.isDisabled ? true : nil
        try transaction.create(from: record, forDocument: document)
        return Account(uid, record)
      }
    }
  }

  /// Changes properties of an account in one commit: all of them, or none when the call throws.
  ///
  /// - Parameters:
  ///   - uid: the account's uid.
  ///   - changes: the changes.
  /// - Returns: the account after the changes.
  /// - Throws: `.userNotFound`; otherwise as `createAccount(_:)`.
  /// - Complexity: one run of scrypt if the password is set, and one commit, in O(sessions) if it
  ///   ends them.
  @discardableResult
  public func updateAccount(
    _ uid: String, _ changes: AccountChanges
  ) async throws(AuthError) -> Account {
    try AccountProperties.check(uid: uid)
    let checked = try CheckedChanges(changes)
    var password: StoredPassword?
    if case .set(let text) = changes.password {
      var address = checked.address
      if checked.email.isKept {
        address = try await findAccount(.uid(uid))?.email.map(EmailAddress.init)
      }
      password = try await hashed(text, for: address)
    }
    let stored = password
    return try await authenticating {
      try await database.runTransaction { transaction in
        guard var record = try account(uid, in: transaction) else { throw AuthError.userNotFound }
        try apply(checked, to: &record, uid, in: transaction)
        if !changes.password.isKept {
          try replacePassword(of: &record, uid, with: stored, in: transaction)
          if stored != nil { record.isAnonymous = nil }
        }
        if let isDisabled = changes.isDisabled {
          try disable(isDisabled, &record, uid, in: transaction)
        }
        try transaction.setData(from: record, forDocument: places.accounts.document(uid))
        return Account(uid, record)
      }
    }
  }

  /// Sets the custom claims of an account. Tokens that a program signed before keep the old ones:
  /// https://firebase.google.com/docs/auth/admin/custom-claims.
  ///
  /// - Parameters:
  ///   - claims: the claims; `.none` removes them.
  ///   - uid: the account's uid.
  /// - Returns: the account with the claims.
  /// - Throws: `.userNotFound`, `.invalidUID`, `.internalError`.
  /// - Complexity: one commit.
  @discardableResult
  public func setCustomClaims(
    _ claims: CustomClaims, of uid: String
  ) async throws(AuthError) -> Account {
    var changes = AccountChanges()
    changes.customClaims = .set(claims)
    return try await updateAccount(uid, changes)
  }

  /// Ends all sessions of an account in one commit, and sets `Account.tokensValidAfterTime` to now.
  ///
  /// Firebase calls this revoking refresh tokens:
  /// https://firebase.google.com/docs/auth/admin/manage-sessions.
  ///
  /// - Parameter uid: the account's uid.
  /// - Returns: the account after the commit.
  /// - Throws: `.userNotFound`, `.invalidUID`, `.internalError`.
  /// - Complexity: one commit, in O(sessions).
  @discardableResult
  public func revokeSessions(of uid: String) async throws(AuthError) -> Account {
    try AccountProperties.check(uid: uid)
    return try await authenticating {
      try await database.runTransaction { transaction in
        guard var record = try account(uid, in: transaction) else { throw AuthError.userNotFound }
        try revoke(&record, uid, in: transaction)
        try transaction.setData(from: record, forDocument: places.accounts.document(uid))
        return Account(uid, record)
      }
    }
  }

  // MARK: - Deleting

  /// Deletes an account with its sessions, its profile and all documents below its private root, in
  /// one commit. Its documents below the public root stay.
  ///
  /// - Parameter uid: the account's uid.
  /// - Throws: `.userNotFound`, `.invalidUID`, `.internalError`.
  /// - Complexity: O(deleted documents).
  public func deleteAccount(_ uid: String) async throws(AuthError) {
    guard try await removeAccount(uid) else { throw .userNotFound }
  }

  /// Deletes several accounts as `deleteAccount(_:)` does, each in its own commit. An account that
  /// does not exist counts as a success, as with Firebase:
  /// https://firebase.google.com/docs/auth/admin/manage-users.
  ///
  /// - Parameter uids: at most 1,000 uids.
  /// - Returns: the number of successes, and the failures.
  /// - Throws: `.invalidCount` for more uids.
  /// - Complexity: O(deleted documents), and one commit for each account.
  public func deleteAccounts(
    _ uids: [String]
  ) async throws(AuthError) -> AccountBatchResult {
    try Self.check(count: uids.count, most: Self.mostOfPage)
    var result = AccountBatchResult()
    for (index, uid) in uids.enumerated() {
      do throws(AuthError) {
        _ = try await removeAccount(uid)
        result.successCount += 1
      } catch {
        result.failures.append(AccountBatchResult.Failure(index: index, error: error))
      }
    }
    return result
  }

  /// Deletes an account; false if there is none.
  private func removeAccount(_ uid: String) async throws(AuthError) -> Bool {
    try AccountProperties.check(uid: uid)
    return try await authenticating {
      try await database.runTransaction { transaction in
        guard let record = try account(uid, in: transaction) else { return false }
        try remove(record, uid, in: transaction)
        return true
      }
    }
  }

  // MARK: - Steps

  static func check(count: Int, least: Int = 0, most: Int) throws(AuthError) {
    guard (least...most).contains(count) else {
      throw AuthError(.invalidCount, "a call must have \(least) to \(most) accounts, not \(count)")
    }
  }

  /// The stored form of a password; nil for none.
  private func hashed(
    _ password: String?, for address: EmailAddress?
  ) async throws(AuthError) -> StoredPassword? {
    guard let password else { return nil }
    try await check(password, for: address)
    return try await hasher.hash(PasswordRules.bytes(of: password), options.hashing)
  }

  /// Changes all of an account except its password and whether it is disabled.
  func apply(
    _ changes: CheckedChanges, to record: inout AccountRecord, _ uid: String,
    in transaction: Transaction
  ) throws {
    switch changes.email {
    case .keep: break
    case .remove: try takeAddress(from: &record, in: transaction)
    case .set(let address): try give(address, to: &record, uid, in: transaction)
    }
    if let isVerified = changes.isEmailVerified, record.email != nil {
      record.isEmailVerified = isVerified ? true : nil
    }
    if case .set(let number) = changes.phoneNumber {
      let found = try transaction.getDocuments(places.calledBy(number)).documents.first
      guard found == nil || found?.documentID == uid else {
        throw AuthError.credentialAlreadyInUse
      }
      record.isAnonymous = nil
    }
    for provider in changes.unlinkedProviders { _ = record.unlink(provider) }
    for identity in changes.linkedIdentities {
      try checkHolder(of: identity, isNotBeside: uid, in: transaction)
      record.link(identity)
    }
    changes.phoneNumber.apply(to: &record.phoneNumber)
    changes.displayName.apply(to: &record.displayName)
    changes.photoURL.apply(to: &record.photoURL)
    if case .set(let claims) = changes.customClaims { record.customClaims = claims.stored }
    if case .remove = changes.customClaims { record.customClaims = nil }
  }

  /// Disables an account or enables it. The documents of its sessions stay while it is disabled, so
  /// that a call with one of their tokens can say why it fails.
  private func disable(
    _ isDisabled: Bool, _ record: inout AccountRecord, _ uid: String,
    in transaction: Transaction
  ) throws {
    guard isDisabled != (record.isDisabled ?? false) else { return }
    record.isDisabled = isDisabled ? true : nil
    guard isDisabled else {
      try endSessions(of: uid, in: transaction)
      return
    }
    record.tokensValidAfter = try now()
    for session in try sessions(of: uid, in: transaction) {
      try transaction.updateData(
        [SessionRecord.isSuspended: true], forDocument: session.reference)
    }
  }

  /// Ends all sessions, and also those that a restored copy of their documents would bring back.
  func revoke(
    _ record: inout AccountRecord, _ uid: String, in transaction: Transaction
  ) throws {
    let (number, overflow) = (record.revocation ?? 0).addingReportingOverflow(1)
    guard !overflow else { throw AuthError(.internalError, "the account's record is damaged") }
    record.revocation = number
    record.tokensValidAfter = try now()
    try endSessions(of: uid, in: transaction)
  }
}

/// Changes with checked values.
struct CheckedChanges {
  let email: PropertyChange<EmailAddress>
  let isEmailVerified: Bool?
  let phoneNumber: PropertyChange<String>
  let displayName: PropertyChange<String>
  let photoURL: PropertyChange<String>
  let unlinkedProviders: [String]
  let linkedIdentities: [LinkedIdentity]
  let customClaims: PropertyChange<CustomClaims>

  private static let mostIdentities = 100

  /// Throws when a value is invalid.
  init(_ changes: AccountChanges) throws(AuthError) {
    switch changes.email {
    case .keep: email = .keep
    case .remove: email = .remove
    case .set(let text): email = .set(try EmailAddress(text))
    }
    isEmailVerified = changes.isEmailVerified
    phoneNumber = try changes.phoneNumber.map(AccountProperties.phoneNumber)
    displayName = try changes.displayName.map(AccountProperties.displayName)
    photoURL = try changes.photoURL.map(AccountProperties.photoURL)
    unlinkedProviders = changes.unlinkedProviders
    guard changes.linkedIdentities.count <= Self.mostIdentities else {
      throw AuthError(.invalidCount, "a call links \(Self.mostIdentities) identities at most")
    }
    var identities: [LinkedIdentity] = []
    for identity in changes.linkedIdentities { identities.append(try identity.checked()) }
    linkedIdentities = identities
    customClaims = changes.customClaims
  }

  /// The address that the account gets.
  var address: EmailAddress? { if case .set(let address) = email { address } else { nil } }
}

extension AccountPlaces {
  /// The account with a phone number.
  func calledBy(_ number: String) -> Query {
    accounts.whereField(FieldPath(AccountRecord.phoneNumber), isEqualTo: number)
  }
}

extension AuthError {
  fileprivate static var invalidPageToken: AuthError {
    AuthError(.invalidPageToken, "this is not a page token; begin with the first page")
  }
}
