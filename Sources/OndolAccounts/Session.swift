// A session and its token. The holder of the token acts as the person, so the token is never
// printed. The database keeps only its digest, so a stolen file gives no sign-in.

internal import Crypto
internal import Foundation
public import Ondol

/// An account, as its owner and an administrator see it.
public struct Account: Sendable, Hashable, Identifiable {
  /// The account's permanent identifier: 20 letters and digits, or one that an administrator chose.
  public let uid: String
  /// The address as it was typed; nil if the account has none.
  public let email: String?
  /// Whether the address is verified, by a mailed code or by an administrator.
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
  /// When the account was created.
  public let creationTime: Timestamp
  /// The last sign-in; nil before the first one.
  public let lastSignInTime: Timestamp?
  /// A token that a program signed for the account is valid only if the person signed in at or
  /// after this time: https://firebase.google.com/docs/auth/admin/manage-sessions. Firebase
  /// compares whole seconds. For sessions, the library checks the end itself.
  public let tokensValidAfterTime: Timestamp
  /// The number of unused recovery codes. A change of the password ends them all. Offer new ones
  /// when there are none.
  public let recoveryCodeCount: Int
  /// The path of the profile from sign-up; nil if there was none.
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

/// The session of a signed-in user.
///
/// An app on a device leaves sessions to `Auth`. A service hands the token to the browser, for
/// instance in a cookie, and passes the returned token to `Accounts.session(forToken:)`.
public struct Session: Sendable, CustomStringConvertible, CustomReflectable {
  /// The signed-in account.
  public let account: Account
  /// The proof of the session: 43 letters, digits, `-` and `_`, of 256 random bits. Anyone with the
  /// token is signed in. A printed session leaves it out.
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

  /// The same session with the account's current state.
  init(_ session: Session, _ account: Account) {
    self.account = account
    token = session.token
    provider = session.provider
    authenticationTime = session.authenticationTime
    claims = session.claims
    isNewUser = session.isNewUser
  }

  /// The uid without the token.
  public var description: String { "Session(uid: \(account.uid))" }

  /// The account without the token: the output of `dump`.
  public var customMirror: Mirror { Mirror(self, children: ["account": account]) }
}

/// The bytes of a token, as text and in the stored form.
struct SessionToken: Sendable {
  static let length = 32

  let text: String
  /// The id of the session's document. The time of its lookup reveals nothing about the token.
  let digest: String

  init(_ random: () -> UInt64) {
    self.init(bytes: Data(Randomness.bytes(Self.length, random)))
  }

  /// Throws `.invalidUserToken` when the text is not a token.
  init(_ text: String) throws(AuthError) {
    let plain = text.replacing("-", with: "+").replacing("_", with: "/")
    guard text.utf8.count == 43, !text.contains("="), !text.contains("+"), !text.contains("/"),
      let bytes = Data(base64Encoded: plain + "="), bytes.count == Self.length
    else { throw AuthError(.invalidUserToken, "this is no token of a session") }
    self.init(bytes: bytes)
    // Of two texts for the same bytes, only one is a token.
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
