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

  /// As it was typed.
  var email: String
  /// What the unique index is on; see Accounts+Addresses.
  var emailKey: String
  var password: StoredPassword
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
  var lastSignInAt: Timestamp
}

/// A document of `accountSessions`, under the digest of its token.
struct SessionRecord: Codable, Sendable {
  static let uid = "uid"
  static let expiresAt = "expiresAt"

  var uid: String
  var passwordVersion: Int
  var createdAt: Timestamp
  /// When the password was given last.
  var authenticatedAt: Timestamp
  /// Documents end by this field.
  var expiresAt: Timestamp?
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
  func decoy(for address: EmailAddress, _ hashing: PasswordHashing) -> StoredPassword {
    let draw = digest("decoy parameters", address.key).first.map(Int.init) ?? 0
    let hashing = hashings.isEmpty ? hashing : hashings[draw % hashings.count]
    return StoredPassword(
      hashing: hashing,
      salt: digest("decoy salt", address.key).prefix(StoredPassword.saltLength),
      key: digest("decoy key", address.key))
  }
}
