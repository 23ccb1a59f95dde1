// What is stored of accounts, as documents of root collections that tools show like any other.
// Secrets are never among it: passwords are scrypt's keys, tokens and codes are digests, and who
// tried to sign in is a digest, too, because people type addresses of others.

internal import Crypto
internal import Foundation
internal import Ondol

/// Where the documents are.
struct AccountPlaces: Sendable {
  let database: Database

  var accounts: CollectionReference { database.collection("accounts") }
  var sessions: CollectionReference { database.collection("accountSessions") }
  var tries: CollectionReference { database.collection("accountTries") }
  var codes: CollectionReference { database.collection("accountCodes") }
  var settings: DocumentReference { database.document("accountSettings/current") }

  /// What one person put of late, by digest.
  func puts(of uid: String) -> CollectionReference { accounts.document(uid).collection("puts") }

  /// The root of what one person alone sees.
  func privateRoot(_ uid: String) -> DocumentReference {
    database.collection("privateData").document(uid)
  }

  /// The root of what all see.
  var publicRoot: DocumentReference { database.document("publicData/all") }
}

/// A document of `accounts`, under the person's uid.
struct AccountRecord: Codable, Sendable {
  static let emailKey = "emailKey"
  static let sharesAddress = "sharesAddress"
  static let phoneNumber = "phoneNumber"
  static let identityKeys = "identityKeys"

  /// As it was typed; nil where the account has none, which no version before anonymous accounts
  /// wrote.
  var email: String?
  /// What the unique index is on; see Accounts+Addresses. Nil with the address.
  var emailKey: String?
  /// Nil where nobody signs in to the account by a password.
  var password: StoredPassword?
  /// Goes up with each change of the password; sessions of another version are over.
  var passwordVersion = 1
  /// Digests of those that were not used yet.
  var recoveryCodes: [Data] = []
  /// True where an older account has the address, too; nil otherwise.
  var sharesAddress: Bool?
  /// True once somebody has shown that the address is theirs; nil otherwise.
  var isEmailVerified: Bool?
  /// The path of the person's profile, if there is one.
  var profile: String?
  var createdAt: Timestamp
  /// Nil where an administrator made the account, and nobody has signed in since.
  var lastSignInAt: Timestamp?

  // What follows no version had at first: each is nil in what earlier ones wrote.

  /// True while nothing but a session leads to the account.
  var isAnonymous: Bool?
  var isDisabled: Bool?
  var displayName: String?
  var photoURL: String?
  /// In the form of E.164; what the other unique index is on.
  var phoneNumber: String?
  /// Who the person is at other services, one of each.
  var identities: [LinkedIdentity]?
  /// What accounts are found by at other services; see LinkedIdentity.
  var identityKeys: [String]?
  /// A JSON object; see CustomClaims.
  var customClaims: String?
  /// Goes up when sessions are revoked; sessions of another number are over. Nil is zero.
  var revocation: Int?
  /// Tokens of the program's own that were signed before this are over. Nil is `createdAt`.
  var tokensValidAfter: Timestamp?

  /// An account that is made now.
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
  /// When the password was given last.
  var authenticatedAt: Timestamp
  /// Documents end by this field.
  var expiresAt: Timestamp?
  /// How somebody signed in; nil is by password.
  var provider: String?
  /// What the program that signed somebody in says of this session, as a JSON object.
  var claims: String?
  /// The account's number of revocations when the session began; nil is zero.
  var revocation: Int?
  /// True once the account was disabled: the session does not come back with the account.
  var isSuspended: Bool?
}

/// A document of `puts` below an account's, under the digest of the bytes.
struct PutRecord: Codable, Sendable {
  /// Documents end by this field.
  var expiresAt: Timestamp
}

/// A document of `accountTries`, under a digest of what is counted.
struct TriesRecord: Codable, Sendable {
  /// How many there are, and the first: what versions read that had one moment for all.
  var count: Int
  var since: Timestamp
  /// When each was; nil in what those versions wrote.
  var times: [Timestamp]?
  /// Documents end by this field.
  var expiresAt: Timestamp
}

/// The one document of `accountSettings`.
struct SettingsRecord: Codable, Sendable, Equatable {
  /// Makes digests that nobody can guess from outside.
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

  /// What is hashed against where nobody has the address, so that it takes as long. Where
  /// parameters were raised, some unknown addresses look like people who were not here since.
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
