// A session and its token. Who holds the token is the person, so it is never printed, and the
// database keeps its digest only: a stolen file signs nobody in.

internal import Crypto
internal import Foundation
public import Ondol

/// An account, as its owner and an administrator see it.
public struct Account: Sendable, Hashable, Identifiable {
  /// What the account is called for good: 20 letters and digits, or what an administrator chose.
  public let uid: String
  /// The address, as it was typed; nil where the account has none.
  public let email: String?
  /// Whether somebody has shown, by a code that went there, that the address is theirs, or an
  /// administrator said so.
  public let isEmailVerified: Bool
  /// Whether only a session leads to the account; see `Accounts.signInAnonymously(origin:)`.
  public let isAnonymous: Bool
  /// Whether an administrator disabled the account, so that sign-ins and sessions throw
  /// `.userDisabled`.
  public let isDisabled: Bool
  /// Whether the account has a password.
  public let hasPassword: Bool
  /// The person's name, for others to see; nil if the account has none.
  public let displayName: String?
  /// The URL of a picture; nil if the account has none. A picture that was given at sign-up is in
  /// the profile instead.
  public let photoURL: String?
  /// The phone number in the form of E.164, such as `+821012345678`; nil if the account has none.
  public let phoneNumber: String?
  /// Who the person is at other services, one of each.
  public let identities: [LinkedIdentity]
  /// The claims that an administrator set.
  public let customClaims: CustomClaims
  /// When it was made.
  public let creationTime: Timestamp
  /// The last sign-in; nil before the first one.
  public let lastSignInTime: Timestamp?
  /// A token that a program signed for the account is valid only if the person signed in at or
  /// after this time: https://firebase.google.com/docs/auth/admin/manage-sessions. Firebase
  /// compares whole seconds. For sessions, the library checks the end itself.
  public let tokensValidAfterTime: Timestamp
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
    isAnonymous = record.isAnonymous ?? false
    isDisabled = record.isDisabled ?? false
    hasPassword = record.password != nil
    displayName = record.displayName
    photoURL = record.photoURL
    phoneNumber = record.phoneNumber
    identities = record.identities ?? []
    customClaims = CustomClaims(stored: record.customClaims)
    creationTime = record.createdAt
    lastSignInTime = record.lastSignInAt
    tokensValidAfterTime = record.tokensValidAfter ?? record.createdAt
    recoveryCodeCount = record.recoveryCodes.count
    profilePath = record.profile
  }
}

/// How a person signed in: the sign-in provider in Firebase's ID tokens.
public struct SignInProvider: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  /// The provider's name in tokens.
  public let rawValue: String

  /// A provider of the program's own, such as `phone`.
  ///
  /// - Parameter rawValue: the name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// An address with a password, or with a code that was mailed.
  public static let password = SignInProvider(rawValue: "password")
  /// `Accounts.signInAnonymously(origin:)`.
  public static let anonymous = SignInProvider(rawValue: "anonymous")
  /// The program's own check: `Accounts.signIn(withUID:provider:claims:)`.
  public static let custom = SignInProvider(rawValue: "custom")

  /// The name.
  public var description: String { rawValue }
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
  /// How the person signed in.
  public let provider: SignInProvider
  /// When the person signed in, or gave the password again: `auth_time` in tokens.
  public let authenticationTime: Timestamp
  /// Claims of this session only, from `Accounts.signIn(withUID:provider:claims:)`.
  public let claims: CustomClaims
  /// Whether the call that started the session also created the account. A session that was looked
  /// up by its token says false.
  public let isNewUser: Bool

  init(
    _ record: SessionRecord, _ account: AccountRecord, token: String, isNewUser: Bool = false
  ) {
    self.account = Account(record.uid, account)
    self.token = token
    provider = record.provider.map(SignInProvider.init(rawValue:)) ?? .password
    authenticationTime = record.authenticatedAt
    claims = CustomClaims(stored: record.claims)
    self.isNewUser = isNewUser
  }

  /// The same session of the account as it is now.
  init(_ session: Session, _ account: Account) {
    self.account = account
    token = session.token
    provider = session.provider
    authenticationTime = session.authenticationTime
    claims = session.claims
    isNewUser = session.isNewUser
  }

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
