// What an encrypted database is opened with. It says nothing of itself: what is printed, logged or
// looked at in a debugger's summary shows that there is a key or a passphrase, and not which.

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

    enum Secret: Sendable, Hashable {
      case key([UInt8])
      /// A passphrase in UTF-8, and what it costs to try one on a database that is made or whose
      /// keys are set.
      case passphrase([UInt8], Scrypt)
    }

    let secret: Secret

    /// A key of 32 random bytes, which the app keeps where its system keeps such: the Keychain, a
    /// key management service. Who loses it loses the database.
    ///
    /// - Parameter bytes: the key, `keyLength` bytes; with any other number opening throws
    ///   `.invalidArgument`.
    public static func key(_ bytes: some Sequence<UInt8>) -> Encryption {
      Encryption(secret: .key(Array(bytes)))
    }

    /// A passphrase, from which a key is made by scrypt (RFC 7914), with 32 MiB and about a tenth
    /// of a second for each try, and a salt that the database keeps. Who has the files can go on
    /// guessing: several words that nobody would guess are safe, a short password is not. Two
    /// spellings that look the same are the same.
    ///
    /// - Parameter text: the passphrase; with an empty one opening throws `.invalidArgument`.
    public static func passphrase(_ text: String) -> Encryption {
      passphrase(text, by: .standard)
    }

    static func passphrase(_ text: String, by scrypt: Scrypt) -> Encryption {
      Encryption(secret: .passphrase(Array(text.composed().utf8), scrypt))
    }

    /// A new key from the system's randomness.
    ///
    /// - Returns: the key's bytes, to be kept by the app.
    public static func randomKey() -> [UInt8] { DatabaseVault.randomBytes() }

    /// Throws `.invalidArgument` for a key or a passphrase that cannot be one.
    func check(for path: String) throws(DatabaseError) {
      switch secret {
      case .key(let bytes) where bytes.count != Self.keyLength:
        throw DatabaseError(
          .invalidArgument,
          "a key has \(Self.keyLength) bytes, and this one has \(bytes.count)", path: path)
      case .passphrase([], _):
        throw DatabaseError(.invalidArgument, "a passphrase is not empty", path: path)
      default: break
      }
    }
  }
}

extension Database.Encryption: CustomStringConvertible, CustomReflectable {
  /// Not the key.
  public var description: String {
    switch secret {
    case .key: "a key"
    case .passphrase: "a passphrase"
    }
  }

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
