// Who has an address. Each account has a key that addresses are compared by, under a unique index.
//
// Earlier versions told addresses apart by case, so two accounts may have what is one address
// today. The older has its key then. The younger has a key of its own, made of the shared one and
// of what it was called by before, and is found by exactly that spelling, so that everybody signs
// in as they always did. When the older lets go of the address the next one has it.

internal import Foundation
internal import Ondol

/// An account whose address an older account has, too, in another spelling.
///
/// Both sign in: the younger by its own spelling, all others lead to the older. Once the older has
/// another address, or is deleted, the younger is found by all of them.
public struct AddressConflict: Sendable, Hashable {
  /// The younger account.
  public let uid: String
  /// Its address, as it was typed.
  public let email: String
  /// The account that has the address; nil when there is none any more, because a version deleted
  /// it that did not know of conflicts.
  public let holder: String?
  /// That account's address, as it was typed.
  public let holderEmail: String?
}

extension AccountRecord {
  /// What stands between the key of an address and the spelling that leads to a younger account.
  /// No address has it.
  private static let separator: Character = "\n"

  /// What the address is compared by, shared or not; nil where there is none.
  var addressKey: String? { emailKey.map { String($0.prefix { $0 != Self.separator }) } }

  /// What keys of younger accounts with the address begin with.
  static func sharedPrefix(_ key: String) -> String { "\(key)\(separator)" }

  /// The key of an account that an older one's address leads past.
  static func sharedKey(_ address: EmailAddress) -> String {
    sharedPrefix(address.key) + address.exactKey
  }

  /// Gives the account the address that no other has.
  mutating func take(_ key: String) {
    emailKey = key
    sharesAddress = nil
  }

  /// Whether it has an address rather than the other account.
  func isOlder(than other: AccountRecord, _ uid: String, _ otherUID: String) -> Bool {
    (createdAt.microsecondsSince1970, uid) < (other.createdAt.microsecondsSince1970, otherUID)
  }
}

extension Accounts {
  typealias FoundAccount = (uid: String, record: AccountRecord)

  /// Accounts with an address that an older account has, too, because they were made when case
  /// told addresses apart.
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

  /// Of two that have the address the one that was called so before.
  private func choose(
    _ found: QuerySnapshot, _ address: EmailAddress
  ) throws -> FoundAccount? {
    let records = try found.documents.map { document in
      (document.documentID, try document.data(as: AccountRecord.self))
    }
    return records.first { $0.1.emailKey != address.key } ?? records.first
  }

  /// Gives an account an address, of which nobody knows yet whether it is the owner's; throws
  /// `.emailAlreadyInUse` where another account has it.
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

  /// Takes an account's address away.
  func takeAddress(from record: inout AccountRecord, in transaction: Transaction) throws {
    try passOn(addressOf: record, in: transaction)
    record.email = nil
    record.emailKey = nil
    record.sharesAddress = nil
    record.isEmailVerified = nil
  }

  /// Gives the address of an account that goes, or is about to have another, to the oldest of those
  /// who share it.
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

  /// Gives all accounts the keys of today. What a crash leaves undone the next call does.
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
  /// The address, where the account has a key of an earlier version; nil where it has not.
  fileprivate var outdatedAddress: EmailAddress? {
    guard let email, let address = try? EmailAddress(email), emailKey != address.key,
      emailKey != Self.sharedKey(address)
    else { return nil }
    return address
  }
}
