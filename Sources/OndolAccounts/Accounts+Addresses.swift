// Ownership of addresses. Each account has a key for its address, under a unique index.
//
// Earlier versions distinguished addresses by case, so two accounts may have the same address
// today. The older account has the address's key. The younger one's key combines the shared key
// with its former key. Only its exact spelling finds it, so everybody signs in as before. When the
// older account releases the address, the next oldest gets it.

internal import Foundation
internal import Ondol

/// An account whose address an older account also has, in another spelling.
///
/// Both sign in: the younger by its own spelling, and all other spellings lead to the older. Once
/// the older account changes its address or is deleted, all spellings lead to the younger.
public struct AddressConflict: Sendable, Hashable {
  /// The younger account.
  public let uid: String
  /// Its address as it was typed.
  public let email: String
  /// The account that has the address; nil if a version that did not know of conflicts deleted it.
  public let holder: String?
  /// That account's address as it was typed.
  public let holderEmail: String?
}

extension AccountRecord {
  /// Separates an address's key from the spelling that leads to a younger account. No address
  /// contains it.
  private static let separator: Character = "\n"

  /// The key of the address, shared or not; nil if there is none.
  var addressKey: String? { emailKey.map { String($0.prefix { $0 != Self.separator }) } }

  /// The prefix of the keys of younger accounts with the address.
  static func sharedPrefix(_ key: String) -> String { "\(key)\(separator)" }

  /// The key of an account whose address an older account also has.
  static func sharedKey(_ address: EmailAddress) -> String {
    sharedPrefix(address.key) + address.exactKey
  }

  /// Gives the account an address that no other account has.
  mutating func take(_ key: String) {
    emailKey = key
    sharesAddress = nil
  }

  /// Whether this account, not the other, has the address.
  func isOlder(than other: AccountRecord, _ uid: String, _ otherUID: String) -> Bool {
    (createdAt.microsecondsSince1970, uid) < (other.createdAt.microsecondsSince1970, otherUID)
  }
}

extension Accounts {
  typealias FoundAccount = (uid: String, record: AccountRecord)

  /// Accounts whose address an older account also has, because they are from versions that
  /// distinguished addresses by case.
  ///
  /// - Throws: `.internalError`.
  /// - Complexity: O(conflicts), a lookup each.
  public func addressConflicts() async throws(AuthError) -> [AddressConflict] {
    try await authenticating {
      let field = FieldPath(AccountRecord.sharesAddress)
      let younger = try await places.accounts.whereField(field, isEqualTo: true).getDocuments()
      var conflicts: [AddressConflict] = []
      for document in younger.documents {
        let record = try document.data(as: AccountRecord.self)
        guard let email = record.email, let key = record.addressKey else { continue }
        let holder = try await places.keyed([key]).getDocuments().documents.first
        conflicts.append(
          AddressConflict(
            uid: document.documentID, email: email, holder: holder?.documentID,
            holderEmail: holder?["email"] as String?))
      }
      return conflicts
    }
  }

  /// The account that an address leads to.
  func find(_ address: EmailAddress) async throws(AuthError) -> FoundAccount? {
    try await authenticating {
      let query = places.keyed([address.key, AccountRecord.sharedKey(address)])
      return try choose(await query.getDocuments(), address)
    }
  }

  func find(_ address: EmailAddress, in transaction: Transaction) throws -> FoundAccount? {
    let query = places.keyed([address.key, AccountRecord.sharedKey(address)])
    return try choose(transaction.getDocuments(query), address)
  }

  /// Of two accounts with the address, prefers the one whose former key matches.
  private func choose(
    _ found: QuerySnapshot, _ address: EmailAddress
  ) throws -> FoundAccount? {
    let records = try found.documents.map { document in
      (document.documentID, try document.data(as: AccountRecord.self))
    }
    return records.first { $0.1.emailKey != address.key } ?? records.first
  }

  /// Gives an account an unverified address; throws `.emailAlreadyInUse` if another account has it.
  func give(
    _ address: EmailAddress, to record: inout AccountRecord, _ uid: String,
    in transaction: Transaction
  ) throws {
    let holder = try find(address, in: transaction)
    guard holder == nil || holder?.uid == uid else { throw AuthError.emailAlreadyInUse }
    if holder == nil {
      try passOn(addressOf: record, in: transaction)
      record.take(address.key)
    }
    if record.email.map({ !address.text.utf8.elementsEqual($0.utf8) }) ?? true {
      record.isEmailVerified = nil
    }
    record.email = address.text
    record.isAnonymous = nil
  }

  /// Removes an account's address.
  func takeAddress(from record: inout AccountRecord, in transaction: Transaction) throws {
    try passOn(addressOf: record, in: transaction)
    record.email = nil
    record.emailKey = nil
    record.sharesAddress = nil
    record.isEmailVerified = nil
  }

  /// Passes on the address of an account that is deleted or changes its address. The oldest of the
  /// accounts that share the address gets it.
  func passOn(addressOf account: AccountRecord, in transaction: Transaction) throws {
    guard account.sharesAddress == nil, let key = account.emailKey else { return }
    let field = FieldPath(AccountRecord.emailKey)
    let prefix = AccountRecord.sharedPrefix(key)
    let sharers = try transaction.getDocuments(
      places.accounts.whereField(field, hasPrefix: prefix)
    ).documents.map { ($0.documentID, try $0.data(as: AccountRecord.self)) }
    let oldest = sharers.min { left, right in left.1.isOlder(than: right.1, left.0, right.0) }
    guard let (uid, record) = oldest else { return }
    var heir = record
    heir.take(key)
    try transaction.setData(from: heir, forDocument: places.accounts.document(uid))
  }
}

extension AccountPlaces {
  /// Accounts with one of these keys.
  fileprivate func keyed(_ keys: [String]) -> Query {
    accounts.whereField(FieldPath(AccountRecord.emailKey), in: keys)
  }
}

// MARK: - Keys of earlier versions

extension AccountPlaces {
  /// Accounts looked at in one step.
  private static let stepLength = 100

  /// Gives all accounts today's keys. After a crash, the next call completes the work.
  ///
  /// - Complexity: O(accounts), and one commit for each hundred that get another key.
  func renewAddressKeys() async throws {
    var cursor: QueryCursor?
    while true {
      let page = try await accounts.query.limit(to: Self.stepLength).start(after: cursor)
        .getDocuments()
      let outdated = try page.documents.compactMap { document in
        let record = try document.data(as: AccountRecord.self)
        return record.outdatedAddress.map { _ in document.documentID }
      }
      if !outdated.isEmpty {
        try await database.runTransaction { transaction in
          for uid in outdated { try renewKey(of: uid, in: transaction) }
        }
      }
      guard page.documents.count == Self.stepLength, let next = page.cursor else { break }
      cursor = next
    }
  }

  private func renewKey(of uid: String, in transaction: Transaction) throws {
    let document = accounts.document(uid)
    let stored = try transaction.getDocument(document).data(as: AccountRecord?.self)
    guard var record = stored, let address = record.outdatedAddress else { return }
    let found = try transaction.getDocuments(keyed([address.key])).documents.first
    if let found {
      var holder = try found.data(as: AccountRecord.self)
      if record.isOlder(than: holder, uid, found.documentID) {
        holder.emailKey = AccountRecord.sharedKey(try EmailAddress(holder.email ?? ""))
        holder.sharesAddress = true
        try transaction.setData(from: holder, forDocument: found.reference)
        record.take(address.key)
      } else {
        record.emailKey = AccountRecord.sharedKey(address)
        record.sharesAddress = true
      }
    } else {
      record.take(address.key)
    }
    try transaction.setData(from: record, forDocument: document)
  }
}

extension AccountRecord {
  /// The address if the account has an earlier version's key; nil otherwise.
  fileprivate var outdatedAddress: EmailAddress? {
    guard let email, let address = try? EmailAddress(email), emailKey != address.key,
      emailKey != Self.sharedKey(address)
    else { return nil }
    return address
  }
}
