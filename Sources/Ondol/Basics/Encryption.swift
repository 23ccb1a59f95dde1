// The key with which an encrypted database is opened. Printing, logging or a debugger's summary
// shows that there is a key or a passphrase, but not its value.

package import OndolEngine

extension Database {
  /// The key or passphrase with which an encrypted database is opened.
  ///
  /// ```swift
  /// var options = Database.Options()
  /// options.encryption = .key(keyFromTheKeychain)
  /// let database = try await Database.open(at: "diary.ondol", options: options)
  /// ```
  public struct Encryption: Sendable, Hashable {
    /// Bytes of a key.
    public static let keyLength = 32
    /// The most keys that can open one database.
    public static let mostKeys = 4

    enum Secret: Sendable, Hashable {
      case key([UInt8])
      /// A passphrase in UTF-8, and the cost of trying one on a database that is created or whose
      /// keys are set.
      case passphrase([UInt8], Scrypt)
    }

    let secret: Secret

    /// A key of 32 random bytes, which the app stores where its system stores keys: the Keychain, a
    /// key management service. Losing the key means losing the database.
    ///
    /// - Parameter bytes: the key, `keyLength` bytes; with any other number opening throws
    ///   `.invalidArgument`.
    public static func key(_ bytes: some Sequence<UInt8>) -> Encryption {
      Encryption(secret: .key(Array(bytes)))
    }

    /// A passphrase, from which scrypt (RFC 7914) derives a key. Each try takes 32 MiB and about a
    /// tenth of a second, and the database stores a salt. An attacker with the files can keep
    /// guessing: several unpredictable words are safe, a short password is not. Two spellings that
    /// look the same are the same.
    ///
    /// - Parameter text: the passphrase; with an empty one opening throws `.invalidArgument`.
    public static func passphrase(_ text: String) -> Encryption {
      passphrase(text, by: .standard)
    }

    static func passphrase(_ text: String, by scrypt: Scrypt) -> Encryption {
      Encryption(secret: .passphrase(Array(text.composed().utf8), scrypt))
    }

    /// A new key from the system's random generator.
    ///
    /// - Returns: the key's bytes, which the app must store.
    public static func randomKey() -> [UInt8] { DatabaseVault.randomBytes() }

    /// Throws `.invalidArgument` for an invalid key or passphrase.
    func check(for path: String) throws(DatabaseError) {
      switch secret {
      case .key(let bytes) where bytes.count != Self.keyLength:
        throw DatabaseError(
          .invalidArgument,
          "a key must have \(Self.keyLength) bytes, and this one has \(bytes.count)", path: path)
      case .passphrase([], _):
        throw DatabaseError(.invalidArgument, "a passphrase must not be empty", path: path)
      default: break
      }
    }
  }
}

extension Database.Encryption: CustomStringConvertible, CustomReflectable {
  /// Does not include the key.
  public var description: String {
    switch secret {
    case .key: "a key"
    case .passphrase: "a passphrase"
    }
  }

  /// Does not include the key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Environment {
  /// The same environment, in which databases are opened and made with this key.
  package func opening(with encryption: Database.Encryption?) -> Environment {
    guard let encryption else { return self }
    var environment = self
    environment.vault = DatabaseVault(encryption)
    return environment
  }
}
