// Storage of passwords: by scrypt, which makes each guess cost time and memory. The parameters are
// stored with each hash, so they can be raised. The next sign-in has the password and hashes it
// again.

package import Crypto
internal import CryptoExtras
package import Foundation

/// The cost of a guess: scrypt's parameters.
///
/// A run takes `128 * rounds * blockSize` bytes of memory, and time in proportion to
/// `rounds * blockSize * parallelism`.
public struct PasswordHashing: Sendable, Hashable, Codable {
  /// Scrypt's N, a power of two.
  public let rounds: Int
  /// Scrypt's r.
  public let blockSize: Int
  /// Scrypt's p.
  public let parallelism: Int

  /// 32 MiB and three passes: about 0.3 seconds on one core in an optimised build, a second or more
  /// in a debug build.
  public static let standard = PasswordHashing(unchecked: 1 << 15, 8, 3)

  private static let leastWork = 1 << 19
  private static let mostWork = 1 << 26
  private static let mostMemory = 1 << 30

  /// Custom parameters.
  ///
  /// - Parameters:
  ///   - rounds: scrypt's N, a power of two.
  ///   - blockSize: scrypt's r.
  ///   - parallelism: scrypt's p.
  /// - Throws: `.internalError` when scrypt cannot have these parameters, when a guess would be too
  ///   cheap (`rounds * blockSize * parallelism` below 2^19), or when a sign-in would be too
  ///   expensive (over 2^26, or over 1 GiB of memory).
  public init(rounds: Int, blockSize: Int = 8, parallelism: Int = 1) throws(AuthError) {
    self.init(unchecked: rounds, blockSize, parallelism)
    guard isPossible, work >= Self.leastWork else {
      throw AuthError(.internalError, "scrypt cannot have these parameters, or they are too cheap")
    }
  }

  /// Parameters that may be too cheap outside tests.
  package init(unchecked rounds: Int, _ blockSize: Int, _ parallelism: Int) {
    self.rounds = rounds
    self.blockSize = blockSize
    self.parallelism = parallelism
  }

  /// Whether scrypt can run with them, within bounds. Stored parameters may be damaged.
  var isPossible: Bool {
    (2...1 << 24).contains(rounds) && rounds & (rounds - 1) == 0 && (1...64).contains(blockSize)
      && (1...64).contains(parallelism) && work <= Self.mostWork
      && 128 * rounds * blockSize <= Self.mostMemory
  }

  /// The cost of a run, in blocks.
  var work: Int { rounds * blockSize * parallelism }
}

/// A stored password.
struct StoredPassword: Sendable, Hashable, Codable {
  static let saltLength = 16
  static let keyLength = 32
  /// The text that scrypt's key signs. The database stores the signature, which reveals no more
  /// than the key would.
  static let label = Data("ondol password".utf8)

  var hashing: PasswordHashing
  var salt: Data
  /// 32 bytes.
  var key: Data
  /// The transformation of scrypt's key before it signs; nil for none. Only imported passwords have
  /// one, until their owners sign in.
  var form: Form?

  /// The way another system uses scrypt's key.
  enum Form: String, Sendable, Hashable, Codable {
    /// Firebase encrypts a text with it, by AES in counter mode.
    case firebase
  }

  /// Whether the next sign-in should hash the password again.
  func isWeaker(than today: PasswordHashing) -> Bool { form != nil || hashing.work < today.work }
}

/// Derives a key from a password. Tests count its runs.
package struct KeyDerivation: Sendable {
  package typealias Derive =
    @Sendable (_ password: [UInt8], _ salt: Data, PasswordHashing) throws(AuthError) -> SymmetricKey

  package let derive: Derive

  package init(_ derive: @escaping Derive) {
    self.derive = derive
  }

  /// Scrypt.
  package static let scrypt = KeyDerivation { password, salt, hashing throws(AuthError) in
    guard hashing.isPossible else {
      throw AuthError(.internalError, "the parameters of a stored password are damaged")
    }
    do {
      return try KDF.Scrypt.deriveKey(
        from: password, salt: salt, outputByteCount: StoredPassword.keyLength,
        rounds: hashing.rounds, blockSize: hashing.blockSize, parallelism: hashing.parallelism)
    } catch {
      throw AuthError(.internalError, "scrypt could not run; there may be too little memory")
    }
  }
}
