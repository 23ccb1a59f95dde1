// What a code that was mailed is good for, and what is stored of it.

internal import Crypto
internal import Foundation
internal import Ondol

/// What somebody does with a code that came by mail; see `Accounts.Options.sendCode`.
public enum ActionCodeOperation: String, Sendable, Hashable, Codable, CaseIterable {
  /// Shows that the address is theirs: `applyActionCode(_:)`.
  case verifyEmail
  /// Gives the account another password: `confirmPasswordReset(withCode:newPassword:)`.
  case passwordReset
  /// Signs in to the account of an address, or makes one: `signIn(withEmail:code:origin:)`.
  case emailSignIn
  /// Shows that another address is theirs, and gives it to the account: `applyActionCode(_:)`.
  case verifyAndChangeEmail
}

/// What a code is for; see `Accounts.checkActionCode(_:origin:)`.
public struct ActionCodeInfo: Sendable, Hashable {
  /// What the code does.
  public let operation: ActionCodeOperation
  /// The address that it went to. Nil for `.emailSignIn`: who signs in says which is theirs.
  public let email: String?
  /// For `.verifyAndChangeEmail`, the address that the account has until the code is used.
  public let previousEmail: String?
}

/// A document of `accountCodes`, under a digest of the code's first letters.
struct CodeRecord: Codable, Sendable {
  var operation: ActionCodeOperation
  /// Nil where nobody has the address: written all the same, so that both take as long.
  var uid: String?
  /// A digest of the address that the account has. The code of one that has another is worth
  /// nothing. It is the address that the code went to, but for a change.
  var address: Data
  /// The version of the password that the code was made for.
  var passwordVersion: Int
  /// A digest of the whole code.
  var digest: Data
  /// Documents end by this field.
  var expiresAt: Timestamp
  /// The address that the account gets, as it was typed; nil where it keeps its own.
  var newEmail: String?
}

extension SettingsRecord {
  /// What is stored of an address that a code goes to.
  func mailDigest(_ address: String) -> Data { digest("mailed address", address) }
}

extension CodeRecord {
  /// Whether this is the code, for an account as it is.
  func fits(_ code: TypedCode, _ settings: SettingsRecord, _ account: AccountRecord) -> Bool {
    guard let email = account.email else { return false }
    return fits(code, settings) && address == settings.mailDigest(email)
      && passwordVersion == account.passwordVersion
  }

  /// Whether this is the code. Takes as long wherever digests differ.
  func fits(_ code: TypedCode, _ settings: SettingsRecord) -> Bool {
    SymmetricKey(data: digest) == SymmetricKey(data: code.mailedDigest(settings, operation))
  }
}
