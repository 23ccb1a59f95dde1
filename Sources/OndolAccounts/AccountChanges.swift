// Administrators' requests as values: the account's identifier, its properties, the changes. A
// change states for each property whether it stays, gets a value or is removed, so nil never has
// two meanings.

/// A change of one property.
public enum PropertyChange<Value: Sendable>: Sendable {
  /// Leaves it as it is.
  case keep
  /// Gives it this value.
  case set(Value)
  /// Removes it.
  case remove

  /// The change with a checked value.
  func map(
    _ transform: (Value) throws(AuthError) -> Value
  ) throws(AuthError) -> PropertyChange {
    if case .set(let value) = self { .set(try transform(value)) } else { self }
  }

  /// Changes a property of a record.
  func apply(to property: inout Value?) {
    switch self {
    case .keep: break
    case .set(let value): property = value
    case .remove: property = nil
    }
  }

  /// Whether nothing changes.
  var isKept: Bool { if case .keep = self { true } else { false } }
}

extension PropertyChange: Equatable where Value: Equatable {}
extension PropertyChange: Hashable where Value: Hashable {}

/// Identifies an account.
public enum AccountIdentifier: Sendable, Hashable {
  /// Its uid.
  case uid(String)
  /// Its address, in any spelling.
  case email(String)
  /// Its phone number.
  case phoneNumber(String)
  /// Its identity at another service.
  case identity(provider: String, uid: String)
}

/// The properties of an account that an administrator creates.
public struct NewAccount: Sendable, Hashable, CustomReflectable {
  /// The uid, 1 to 128 characters without `/`; nil, the default, generates 20 random characters.
  public var uid: String?
  /// The address.
  public var email: String?
  /// Whether the address is verified.
  public var isEmailVerified = false
  /// The password. Signing in by it also needs an address.
  public var password: String?
  /// The phone number, with its country's code.
  public var phoneNumber: String?
  /// The name that others see.
  public var displayName: String?
  /// The URL of a picture.
  public var photoURL: String?
  /// Who the person is at other services. Of two at one service, the account gets the last.
  public var identities: [LinkedIdentity] = []
  /// Whether the account is disabled.
  public var isDisabled = false
  /// The custom claims.
  public var customClaims = CustomClaims.none

  /// An account with a uid and no other properties.
  ///
  /// - Parameter uid: the uid; nil for a random one.
  public init(uid: String? = nil) { self.uid = uid }

  /// All except the password: the output of `dump`.
  public var customMirror: Mirror {
    Mirror(self, children: ["uid": uid as Any, "email": email as Any])
  }
}

/// Changes of an account by an administrator.
///
/// ```swift
/// var changes = AccountChanges()
/// changes.isDisabled = true
/// changes.phoneNumber = .remove
/// try await accounts.updateAccount(uid, changes)
/// ```
public struct AccountChanges: Sendable, Hashable, CustomReflectable {
  /// The address. A new address is not verified, unless `isEmailVerified` says so.
  public var email = PropertyChange<String>.keep
  /// Whether the address is verified; nil, the default, leaves it as it is.
  public var isEmailVerified: Bool?
  /// The password. Setting or removing it ends all sessions and recovery codes.
  public var password = PropertyChange<String>.keep
  /// The phone number, with its country's code.
  public var phoneNumber = PropertyChange<String>.keep
  /// The name that others see.
  public var displayName = PropertyChange<String>.keep
  /// The URL of a picture.
  public var photoURL = PropertyChange<String>.keep
  /// Services whose identities the account loses. A service without an identity is no failure.
  public var unlinkedProviders: [String] = []
  /// Identities at other services. Each replaces the account's identity at the same service.
  public var linkedIdentities: [LinkedIdentity] = []
  /// Whether the account is disabled; nil, the default, leaves it as it is.
  ///
  /// From the commit that disables it, sign-ins and sessions throw `.userDisabled`. Enabling the
  /// account again does not bring its sessions back, as Firebase does not bring refresh tokens
  /// back: https://firebase.google.com/docs/auth/admin/manage-sessions.
  public var isDisabled: Bool?
  /// The custom claims.
  public var customClaims = PropertyChange<CustomClaims>.keep

  /// Leaves all properties as they are.
  public init() {}

  /// All except the password: the output of `dump`.
  public var customMirror: Mirror { Mirror(self, children: ["email": email]) }
}

/// The properties that both a new account and an imported one may have.
protocol DescribedAccount {
  var email: String? { get }
  var isEmailVerified: Bool { get }
  var phoneNumber: String? { get }
  var displayName: String? { get }
  var photoURL: String? { get }
  var identities: [LinkedIdentity] { get }
  var customClaims: CustomClaims { get }
}

extension NewAccount: DescribedAccount {}
extension ImportedAccount: DescribedAccount {}

extension AccountChanges {
  /// Gives an account these properties, and removes those of them that it does not have here.
  init(to account: some DescribedAccount) {
    email = account.email.map(PropertyChange.set) ?? .remove
    isEmailVerified = account.isEmailVerified
    phoneNumber = account.phoneNumber.map(PropertyChange.set) ?? .remove
    displayName = account.displayName.map(PropertyChange.set) ?? .remove
    photoURL = account.photoURL.map(PropertyChange.set) ?? .remove
    linkedIdentities = account.identities
    customClaims = .set(account.customClaims)
  }
}

/// One page of the list of accounts, in the order of their uids.
public struct AccountPage: Sendable, Hashable {
  /// The accounts.
  public let accounts: [Account]
  /// The token of the next page; nil on the last page.
  public let nextPageToken: String?
}

/// The result of a call for many accounts.
public struct AccountBatchResult: Sendable, Hashable {
  /// An account that the call left as it was.
  public struct Failure: Sendable, Hashable {
    /// Its position in the call's array, from 0.
    public let index: Int
    /// The reason.
    public let error: AuthError
  }

  /// The number of accounts for which the call succeeded.
  public internal(set) var successCount = 0
  /// The accounts for which it failed, in the order of their positions.
  public internal(set) var failures: [Failure] = []
}
