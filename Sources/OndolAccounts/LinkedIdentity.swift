// Identities at other services, which the program has checked itself. An account has at most one
// identity of each service, and an identity leads to one account. The account's record has the keys
// of its identities in an array with an index on its elements. So finding an account is a lookup,
// and two transactions that link one identity conflict in the same range of that index.

internal import Foundation

/// A person's identity at another service, such as `google.com`.
///
/// The library contacts no service. A program that has checked a service's token passes its
/// contents.
public struct LinkedIdentity: Sendable, Hashable, Codable {
  /// The service: 1 to 128 visible ASCII characters, such as `google.com`.
  public var provider: String
  /// The person's identifier at the service: 1 to 256 bytes without control characters.
  public var uid: String
  /// The address that the service has; it need not be the account's.
  public var email: String?
  /// The name that the service has.
  public var displayName: String?
  /// The URL of the picture that the service has.
  public var photoURL: String?

  private static let reservedProviders: Set<String> = ["password", "phone", "anonymous", "custom"]

  /// An identity without an address, a name or a picture.
  ///
  /// - Parameters:
  ///   - provider: the service.
  ///   - uid: the person's identifier at the service.
  public init(provider: String, uid: String) {
    self.provider = provider
    self.uid = uid
  }

  /// The key that finds accounts. Neither part contains the separator.
  var key: String { Self.key(provider, uid) }

  static func key(_ provider: String, _ uid: String) -> String { "\(provider)\n\(uid)" }

  /// The identity with all properties checked; throws `.invalidIdentity` and what is wrong with
  /// the address, the name or the URL.
  func checked() throws(AuthError) -> LinkedIdentity {
    try Self.check(provider, uid)
    var checked = self
    if let email { checked.email = try EmailAddress(email).text }
    checked.displayName = try displayName.map(AccountProperties.displayName)
    checked.photoURL = try photoURL.map(AccountProperties.photoURL)
    return checked
  }

  static func check(_ provider: String, _ uid: String) throws(AuthError) {
    let isVisible = provider.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    guard (1...128).contains(provider.utf8.count), isVisible,
      !reservedProviders.contains(provider), (1...256).contains(uid.utf8.count),
      uid.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
    else {
      throw AuthError(.invalidIdentity, "an identity must name a service and a person there")
    }
  }
}

extension AccountRecord {
  /// Adds an identity to the account. It replaces an identity of the same service.
  mutating func link(_ identity: LinkedIdentity) {
    var all = (identities ?? []).filter { $0.provider != identity.provider }
    all.append(identity)
    setIdentities(all)
    isAnonymous = nil
  }

  /// Removes the identity at a service; false if there is none.
  mutating func unlink(_ provider: String) -> Bool {
    let all = identities ?? []
    let rest = all.filter { $0.provider != provider }
    setIdentities(rest)
    return rest.count < all.count
  }

  mutating func setIdentities(_ all: [LinkedIdentity]) {
    identities = all.isEmpty ? nil : all
    identityKeys = all.isEmpty ? nil : all.map(\.key)
  }
}
