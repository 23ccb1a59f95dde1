// What an administrator asks of accounts, as values: which account, what it has, what changes. A
// property that is not named stays, and one that goes is named, so that no change has two meanings.

/// What becomes of a property.
public enum PropertyChange<Value: Sendable>: Sendable {
  /// It stays as it is.
  case keep
  /// It is this.
  case set(Value)
  /// There is none.
  case remove

  /// The change with a value that was checked.
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

/// What an account is found by.
public enum AccountIdentifier: Sendable, Hashable {
  /// Its uid.
  case uid(String)
  /// Its address, in any spelling.
  case email(String)
  /// Its phone number.
  case phoneNumber(String)
}

/// An account that an administrator makes.
public struct NewAccount: Sendable, Hashable, CustomReflectable {
  /// The uid, 1 to 128 characters without `/`; nil, the default, for one of 20 random characters.
  public var uid: String?
  /// The address.
  public var email: String?
  /// Whether the address is known to be its owner's.
  public var isEmailVerified = false
  /// The password. It says nothing until the account has an address, too.
  public var password: String?
  /// The phone number, with its country's code.
  public var phoneNumber: String?
  /// The name that others see.
  public var displayName: String?
  /// Where a picture is.
  public var photoURL: String?
  /// Whether nobody may sign in yet.
  public var isDisabled = false
  /// What is said of the account in tokens.
  public var customClaims = CustomClaims.none

  /// An account with nothing but its uid.
  ///
  /// - Parameter uid: the uid; nil for a random one.
  public init(uid: String? = nil) { self.uid = uid }

  /// All but the password: what `dump` shows.
  public var customMirror: Mirror {
    Mirror(self, children: ["uid": uid as Any, "email": email as Any])
  }
}

/// What an administrator changes of an account.
///
/// ```swift
/// var changes = AccountChanges()
/// changes.isDisabled = true
/// changes.phoneNumber = .remove
/// try await accounts.updateAccount(uid, changes)
/// ```
public struct AccountChanges: Sendable, Hashable, CustomReflectable {
  /// The address. Another one is not verified, unless `isEmailVerified` says so.
  public var email = PropertyChange<String>.keep
  /// Whether the address is known to be its owner's; nil, the default, leaves that as it is.
  public var isEmailVerified: Bool?
  /// The password. Another one, and none, ends all sessions and recovery codes.
  public var password = PropertyChange<String>.keep
  /// The phone number, with its country's code.
  public var phoneNumber = PropertyChange<String>.keep
  /// The name that others see.
  public var displayName = PropertyChange<String>.keep
  /// Where a picture is.
  public var photoURL = PropertyChange<String>.keep
  /// Whether the account is disabled; nil, the default, leaves that as it is. At once nobody signs
  /// in to it, and its sessions are refused with `.userDisabled`. They are over for good: to enable
  /// the account again does not bring them back, as Firebase ends refresh tokens. See
  /// https://firebase.google.com/docs/auth/admin/manage-sessions.
  public var isDisabled: Bool?
  /// What is said of the account in tokens. It goes into those that are signed from then on.
  public var customClaims = PropertyChange<CustomClaims>.keep

  /// Nothing changes.
  public init() {}

  /// All but the password: what `dump` shows.
  public var customMirror: Mirror { Mirror(self, children: ["email": email]) }
}

/// Some of all accounts, in the order of their uids.
public struct AccountPage: Sendable, Hashable {
  /// The accounts.
  public let accounts: [Account]
  /// What the next page is asked for by; nil where there is none.
  public let nextPageToken: String?
}

/// What became of many accounts.
public struct AccountBatchResult: Sendable, Hashable {
  /// An account that was left as it was.
  public struct Failure: Sendable, Hashable {
    /// Which one of those that were given, from 0.
    public let index: Int
    /// Why.
    public let error: AuthError
  }

  /// How many it was done to.
  public internal(set) var successCount = 0
  /// Those it was not done to, in their order.
  public internal(set) var failures: [Failure] = []
}
