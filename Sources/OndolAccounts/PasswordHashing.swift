// How passwords are kept: by scrypt, which takes time and memory of whoever guesses. The parameters
// stand beside each hash, so that they can be raised: the next sign-in, which has the password in
// hand, hashes it anew.

package import Crypto
internal import CryptoExtras
package import Foundation

/// What a guess costs: scrypt's parameters.
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

  /// 32 MiB and three passes: some three tenths of a second of one core in an optimised build, a
  /// second or more in a debug build.
  public static let standard = PasswordHashing(unchecked: 1 << 15, 8, 3)

  private static let leastWork = 1 << 19
  private static let mostWork = 1 << 26
  private static let mostMemory = 1 << 30

  /// Parameters of the caller's own.
  ///
  /// - Parameters:
  ///   - rounds: scrypt's N, a power of two.
  ///   - blockSize: scrypt's r.
  ///   - parallelism: scrypt's p.
  /// - Throws: `.internalError` when scrypt cannot have them, when a guess would be too cheap
  ///   (`rounds * blockSize * parallelism` below 2^19), or a sign-in too dear (over 2^26, or over
  ///   1 GiB of memory).
  public init(rounds: Int, blockSize: Int = 8, parallelism: Int = 1) throws(AuthError) {
    self.init(unchecked: rounds, blockSize, parallelism)
    guard isPossible, work >= Self.leastWork else {
      throw AuthError(.internalError, "scrypt cannot have these parameters, or they are too cheap")
    }
  }

  /// Parameters that may be too cheap for anything but tests.
  package init(unchecked rounds: Int, _ blockSize: Int, _ parallelism: Int) {
    self.rounds = rounds
    self.blockSize = blockSize
    self.parallelism = parallelism
  }

  /// Whether scrypt can run with them, within bounds: stored ones may be damaged.
  var isPossible: Bool {
    (2...1 << 24).contains(rounds) && rounds & (rounds - 1) == 0 && (1...64).contains(blockSize)
      && (1...64).contains(parallelism) && work <= Self.mostWork
      && 128 * rounds * blockSize <= Self.mostMemory
  }

  /// What a run costs, in blocks.
  var work: Int { rounds * blockSize * parallelism }
}

/// A password as it is stored.
struct StoredPassword: Sendable, Hashable, Codable {
  static let saltLength = 16
  static let keyLength = 32
  /// What scrypt's key signs. The signature is stored, which says as much and no more.
  static let label = Data("ondol password".utf8)

  var hashing: PasswordHashing
  var salt: Data
  /// 32 bytes.
  var key: Data
  /// What is made of scrypt's key before it signs; nil is nothing. Only passwords that were
  /// imported have one, until their owners sign in.
  var form: Form?

  /// How another system than this one uses scrypt's key.
  enum Form: String, Sendable, Hashable, Codable {
    /// Firebase encrypts a text with it, by AES in counter mode.
    case firebase
  }

  /// Whether the next sign-in should hash the password again.
  func isWeaker(than today: PasswordHashing) -> Bool { form != nil || hashing.work < today.work }
}

/// What makes a key of a password. Tests count its runs.
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
