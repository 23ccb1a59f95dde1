// The purposes of mailed codes, and their stored records.

internal import Crypto
internal import Foundation
internal import Ondol

/// The purpose of a mailed code; see `Accounts.Options.sendCode`.
public enum ActionCodeOperation: String, Sendable, Hashable, Codable, CaseIterable {
  /// Verifies the address: `applyActionCode(_:)`.
  case verifyEmail
  /// Resets the account's password: `confirmPasswordReset(withCode:newPassword:)`.
  case passwordReset
  /// Signs in to the account of an address, or creates one: `signIn(withEmail:code:origin:)`.
  case emailSignIn
  /// Verifies a new address and gives it to the account: `applyActionCode(_:)`.
  case verifyAndChangeEmail
}

/// The purpose of a code; see `Accounts.checkActionCode(_:origin:)`.
public struct ActionCodeInfo: Sendable, Hashable {
  /// What the code does.
  public let operation: ActionCodeOperation
  /// The address that it went to. Nil for `.emailSignIn`: the person gives the address at sign-in.
  public let email: String?
  /// For `.verifyAndChangeEmail`, the address that the account has until the code is used.
  public let previousEmail: String?
}

/// A document of `accountCodes`, under a digest of the code's first letters.
struct CodeRecord: Codable, Sendable {
  var operation: ActionCodeOperation
  /// Nil if no account has the address. The document is written all the same, so both cases take as
  /// long.
  var uid: String?
  /// A digest of the account's address. The code is invalid once the account has another one.
  /// Except for a change of address, the code went to this address.
  var address: Data
  /// The version of the password that the code was made for.
  var passwordVersion: Int
  /// A digest of the whole code.
  var digest: Data
  /// The field by which documents expire.
  var expiresAt: Timestamp
  /// The address that the account gets, as it was typed; nil if the account keeps its own.
  var newEmail: String?
}

extension SettingsRecord {
  /// The stored digest of an address that a code goes to.
  func mailDigest(_ address: String) -> Data { digest("mailed address", address) }
}

extension CodeRecord {
  /// Whether this is the code, given the account's current state.
  func fits(_ code: TypedCode, _ settings: SettingsRecord, _ account: AccountRecord) -> Bool {
    guard let email = account.email else { return false }
    return fits(code, settings) && address == settings.mailDigest(email)
      && passwordVersion == account.passwordVersion
  }

  /// Whether this is the code. The comparison takes as long wherever the digests differ.
  func fits(_ code: TypedCode, _ settings: SettingsRecord) -> Bool {
    SymmetricKey(data: digest) == SymmetricKey(data: code.mailedDigest(settings, operation))
  }
}
