// A session and its token. Who holds the token is the person, so it is never printed, and the
// database keeps its digest only: a stolen file signs nobody in.

internal import Crypto
internal import Foundation
public import Ondol

/// An account, as its owner sees it.
public struct Account: Sendable, Hashable, Identifiable {
  /// What the account is called for good: 20 letters and digits.
  public let uid: String
  /// The address, as it was typed.
  public let email: String
  /// Whether somebody has shown, by a code that went there, that the address is theirs.
  public let isEmailVerified: Bool
  /// When it was made.
  public let creationTime: Timestamp
  /// When somebody signed in to it last.
  public let lastSignInTime: Timestamp
  /// Recovery codes that may still be used. A change of the password ends them all: offer others
  /// where there are none.
  public let recoveryCodeCount: Int
  /// Where the profile is that was given at sign-up; nil where none was.
  public let profilePath: String?

  /// The uid.
  public var id: String { uid }

  init(_ uid: String, _ record: AccountRecord) {
    self.uid = uid
    email = record.email
    isEmailVerified = record.isEmailVerified ?? false
    creationTime = record.createdAt
    lastSignInTime = record.lastSignInAt
    recoveryCodeCount = record.recoveryCodes.count
    profilePath = record.profile
  }
}

/// Somebody who is signed in.
///
/// An app on a device leaves sessions to `Auth`. A service hands the token to the browser, in a
/// cookie for instance, and asks `Accounts.session(forToken:)` with what comes back.
public struct Session: Sendable, CustomStringConvertible, CustomReflectable {
  /// Who it is.
  public let account: Account
  /// What shows that it is: 43 letters, digits, `-` and `_`, of 256 random bits. Whoever has it is
  /// signed in. It is left out where the session is printed.
  public let token: String

  /// The uid, and nothing of the token.
  public var description: String { "Session(uid: \(account.uid))" }

  /// The account, and nothing of the token: what `dump` shows.
  public var customMirror: Mirror { Mirror(self, children: ["account": account]) }
}

/// The bytes of a token, as text and as what is stored.
struct SessionToken: Sendable {
  static let length = 32

  let text: String
  /// The id of the session's document. Looking it up says nothing of the token, whatever it takes.
  let digest: String

  init(_ random: () -> UInt64) {
    self.init(bytes: Data(Randomness.bytes(Self.length, random)))
  }

  /// Throws `.invalidUserToken` when the text is no token.
  init(_ text: String) throws(AuthError) {
    let plain = text.replacing("-", with: "+").replacing("_", with: "/")
    guard text.utf8.count == 43, !text.contains("="), !text.contains("+"), !text.contains("/"),
      let bytes = Data(base64Encoded: plain + "="), bytes.count == Self.length
    else { throw AuthError(.invalidUserToken, "this is no token of a session") }
    self.init(bytes: bytes)
    // Of two texts for the same bytes only one is a token.
    guard self.text == text else {
      throw AuthError(.invalidUserToken, "this is no token of a session")
    }
  }

  private init(bytes: Data) {
    text = bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
    digest = Data(SHA256.hash(data: bytes)).hexadecimal
  }
}
