// Stored records of accounts: documents of root collections, which tools show like any others. They
// never contain secrets. Passwords are scrypt's keys, and tokens and codes are digests. The subject
// of a sign-in try is also a digest, because people type others' addresses.

internal import Crypto
internal import Foundation
internal import Ondol

/// The root collections that only accounts themselves read and write.
package enum AccountCollection {
  package static let accounts = "accounts"
  static let sessions = "accountSessions"
  static let tries = "accountTries"
  static let codes = "accountCodes"
  static let settings = "accountSettings"

  package static let all = [accounts, sessions, tries, codes, settings]
}

/// The paths of the documents.
struct AccountPlaces: Sendable {
  let database: Database

  var accounts: CollectionReference { database.collection(AccountCollection.accounts) }
  var sessions: CollectionReference { database.collection(AccountCollection.sessions) }
  var tries: CollectionReference { database.collection(AccountCollection.tries) }
  var codes: CollectionReference { database.collection(AccountCollection.codes) }
  var settings: DocumentReference {
    database.collection(AccountCollection.settings).document("current")
  }

  /// One person's recent puts, by digest.
  func puts(of uid: String) -> CollectionReference { accounts.document(uid).collection("puts") }

  /// The root of one person's private data.
  func privateRoot(_ uid: String) -> DocumentReference {
    database.collection("privateData").document(uid)
  }

  /// The root of the public data.
  var publicRoot: DocumentReference { database.document("publicData/all") }
}

/// A document of `accounts`, under the person's uid.
struct AccountRecord: Codable, Sendable {
  static let emailKey = "emailKey"
  static let sharesAddress = "sharesAddress"
  static let phoneNumber = "phoneNumber"
  static let identityKeys = "identityKeys"

  /// As it was typed; nil if the account has none. Versions before anonymous accounts always wrote
  /// it.
  var email: String?
  /// The field of the unique index; see Accounts+Addresses. Nil without an address.
  var emailKey: String?
  /// Nil if the account has no password.
  var password: StoredPassword?
  /// Increases with each change of the password. Sessions of another version are over.
  var passwordVersion = 1
  /// Digests of the unused codes.
  var recoveryCodes: [Data] = []
  /// True if an older account also has the address; nil otherwise.
  var sharesAddress: Bool?
  /// True once the address is verified; nil otherwise.
  var isEmailVerified: Bool?
  /// The path of the person's profile, if there is one.
  var profile: String?
  var createdAt: Timestamp
  /// Nil if an administrator created the account and nobody has signed in to it since.
  var lastSignInAt: Timestamp?

  // Later versions added the following fields, so each is nil in earlier records.

  /// True while only a session leads to the account.
  var isAnonymous: Bool?
  var isDisabled: Bool?
  var displayName: String?
  var photoURL: String?
  /// In the form of E.164; the field of the other unique index.
  var phoneNumber: String?
  /// Who the person is at other services, one of each.
  var identities: [LinkedIdentity]?
  /// The keys of its identities at other services; see LinkedIdentity.
  var identityKeys: [String]?
  /// A JSON object; see CustomClaims.
  var customClaims: String?
  /// Increases when sessions are revoked. Sessions of another number are over. Nil is zero.
  var revocation: Int?
  /// The program's own tokens that were signed before this time are invalid. Nil is `createdAt`.
  var tokensValidAfter: Timestamp?

  /// A new account.
  init(createdAt: Timestamp) {
    self.createdAt = createdAt
  }
}

/// A document of `accountSessions`, under the digest of its token.
struct SessionRecord: Codable, Sendable {
  static let uid = "uid"
  static let expiresAt = "expiresAt"
  static let isSuspended = "isSuspended"

  var uid: String
  var passwordVersion: Int
  var createdAt: Timestamp
  /// The last time the password was given.
  var authenticatedAt: Timestamp
  /// The field by which documents expire.
  var expiresAt: Timestamp?
  /// How the person signed in; nil for a password.
  var provider: String?
  /// The program's claims for this session, as a JSON object.
  var claims: String?
  /// The account's number of revocations when the session began; nil is zero.
  var revocation: Int?
  /// True once the account was disabled: the session does not come back with the account.
  var isSuspended: Bool?
}

/// A document of `puts` below an account's, under the digest of the bytes.
struct PutRecord: Codable, Sendable {
  /// The field by which documents expire.
  var expiresAt: Timestamp
}

/// A document of `accountTries`, under a digest of what is counted.
struct TriesRecord: Codable, Sendable {
  /// The number of tries and the first one, for versions that have one time for all.
  var count: Int
  var since: Timestamp
  /// The time of each; nil in records of those versions.
  var times: [Timestamp]?
  /// The field by which documents expire.
  var expiresAt: Timestamp
}

/// The one document of `accountSettings`.
struct SettingsRecord: Codable, Sendable, Equatable {
  /// Makes digests that nobody outside can guess.
  var secret: Data
  /// All parameters that stored passwords may have.
  var hashings: [PasswordHashing]
  /// The form of the keys that all accounts have; nil of version 1.
  var addressForm: Int?

  /// A digest of a text that only this database can make.
  func digest(_ label: String, _ text: String) -> Data {
    let code = HMAC<SHA256>.authenticationCode(
      for: Data("\(label)\0\(text)".utf8), using: SymmetricKey(data: secret))
    return Data(code)
  }

  /// The hash to compare with when no account has the address, so that the call takes as long.
  /// After the parameters were raised, some unknown addresses look like people who have not signed
  /// in since.
  ///
  /// - Parameters:
  ///   - hashings: all parameters that stored passwords may have.
  ///   - hashing: today's.
  func decoy(
    for address: EmailAddress, among hashings: [PasswordHashing], _ hashing: PasswordHashing
  ) -> StoredPassword {
    let draw = digest("decoy parameters", address.key).first.map(Int.init) ?? 0
    let hashing = hashings.isEmpty ? hashing : hashings[draw % hashings.count]
    return StoredPassword(
      hashing: hashing,
      salt: digest("decoy salt", address.key).prefix(StoredPassword.saltLength),
      key: digest("decoy key", address.key))
  }
}
