// What an encrypted database is opened with. It says nothing of itself: what is printed, logged or
// looked at in a debugger's summary shows that there is a key, and not which.

package import OndolEngine

extension Database {
  /// What an encrypted database is opened with.
  ///
  /// ```swift
  /// var options = Database.Options()
  /// options.encryption = .key(keyFromTheKeychain)
  /// let database = try await Database.open(at: "diary.ondol", options: options)
  /// ```
  public struct Encryption: Sendable, Hashable {
    /// Bytes of a key.
    public static let keyLength = 32
    /// Keys that can open one database.
    public static let mostKeys = 4

    let secret: [UInt8]

    /// A key of 32 random bytes, which the app keeps where its system keeps such: the Keychain, a
    /// key management service. Who loses it loses the database.
    ///
    /// - Parameter bytes: the key, `keyLength` bytes; with any other number opening throws
    ///   `.invalidArgument`.
    public static func key(_ bytes: some Sequence<UInt8>) -> Encryption {
      Encryption(secret: Array(bytes))
    }

    /// A new key from the system's randomness.
    ///
    /// - Returns: the key's bytes, to be kept by the app.
    public static func randomKey() -> [UInt8] { DatabaseVault.randomBytes() }

    /// Throws `.invalidArgument` for a key that cannot be one.
    func check(for path: String) throws(DatabaseError) {
      guard secret.count == Self.keyLength else {
        throw DatabaseError(
          .invalidArgument,
          "a key has \(Self.keyLength) bytes, and this one has \(secret.count)", path: path)
      }
    }
  }
}

extension Database.Encryption: CustomStringConvertible, CustomReflectable {
  /// Not the key.
  public var description: String { "a key" }

  /// Without the key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Environment {
  /// The same world, in which databases are opened and made with this key.
  package func opening(with encryption: Database.Encryption?) -> Environment {
    guard let encryption else { return self }
    var environment = self
    environment.vault = DatabaseVault(encryption)
    return environment
  }
}
