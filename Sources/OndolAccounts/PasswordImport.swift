// Passwords that another system hashed. The import converts a hash as far as it can without the
// password: scrypt's key, or the keystream that Firebase makes of it, signs the fixed text at once.
// So the database holds neither the other system's hashes nor its signer key, and the library
// checks all passwords in the same steps. The next sign-in has the password and stores it like any
// other.

internal import Crypto
internal import CryptoExtras
internal import Foundation

/// How another system hashed the passwords of accounts that are imported.
///
/// Firebase's console shows a project's parameters under Authentication, Users, Password hash
/// parameters, and `firebase auth:export` writes the hashes:
/// https://firebase.google.com/docs/cli/auth. The bounds are those of
/// https://firebase.google.com/docs/auth/admin/import-users.
public struct PasswordHashFormat: Sendable, Hashable {
  let hashing: PasswordHashing
  /// The separator that follows each account's own salt.
  let saltSeparator: [UInt8]
  /// The text that Firebase encrypts; nil for scrypt alone.
  let signerKey: [UInt8]?

  private static let mostKeyBytes = 1_024
  private static let mostSeparatorBytes = 64

  /// Firebase's variant of scrypt, which https://github.com/firebase/scrypt describes.
  ///
  /// - Parameters:
  ///   - signerKey: the decoded `base64_signer_key`, 32 to 1,024 bytes.
  ///   - saltSeparator: the decoded `base64_salt_separator`, at most 64 bytes.
  ///   - rounds: scrypt's r, 1 to 8.
  ///   - memoryCost: scrypt's N as a power of two, 1 to 14.
  /// - Throws: `.invalidHashParameters` for a parameter outside of these bounds.
  public static func firebaseScrypt(
    signerKey: [UInt8], saltSeparator: [UInt8], rounds: Int, memoryCost: Int
  ) throws(AuthError) -> PasswordHashFormat {
    guard (StoredPassword.keyLength...mostKeyBytes).contains(signerKey.count),
      saltSeparator.count <= mostSeparatorBytes, (1...8).contains(rounds),
      (1...14).contains(memoryCost)
    else { throw .invalidHashParameters }
    return PasswordHashFormat(
      hashing: PasswordHashing(unchecked: 1 << memoryCost, rounds, 1),
      saltSeparator: saltSeparator, signerKey: signerKey)
  }

  /// Scrypt as RFC 7914 defines it, with keys of 32 to 1,024 bytes.
  ///
  /// - Parameters:
  ///   - memoryCost: scrypt's N, a power of two.
  ///   - blockSize: scrypt's r, 1 to 64.
  ///   - parallelization: scrypt's p, 1 to 64.
  /// - Throws: `.invalidHashParameters` when scrypt cannot have these parameters, when
  ///   `memoryCost * blockSize * parallelization` is over 2^26, or when a run would need more than
  ///   1 GiB of memory.
  public static func scrypt(
    memoryCost: Int, blockSize: Int, parallelization: Int
  ) throws(AuthError) -> PasswordHashFormat {
    let hashing = PasswordHashing(unchecked: memoryCost, blockSize, parallelization)
    guard hashing.isPossible else { throw .invalidHashParameters }
    return PasswordHashFormat(hashing: hashing, saltSeparator: [], signerKey: nil)
  }

  /// Returns the password in this store's form. Throws `.invalidPasswordHash` when the format
  /// cannot have produced the hash.
  func stored(_ hash: [UInt8], salt: [UInt8]) throws(AuthError) -> StoredPassword {
    let length = StoredPassword.keyLength
    guard (length...Self.mostKeyBytes).contains(hash.count), salt.count <= Self.mostKeyBytes,
      signerKey.map({ $0.count == hash.count }) ?? true
    else {
      throw AuthError(
        .invalidPasswordHash, "a hash of a password does not go with the parameters")
    }
    // Scrypt's longer keys begin with its shorter ones. Firebase's hash is the signer key combined
    // with a keystream, so the two give the keystream, which only the right password makes.
    let mask = signerKey ?? Array(repeating: 0, count: length)
    let key = zip(hash, mask).prefix(length).map { $0 ^ $1 }
    let code = HMAC<SHA256>.authenticationCode(
      for: StoredPassword.label, using: SymmetricKey(data: key))
    return StoredPassword(
      hashing: hashing, salt: Data(salt + saltSeparator), key: Data(code),
      form: signerKey == nil ? nil : .firebase)
  }
}

extension StoredPassword.Form {
  private static let blockLength = 16

  /// The signing key, derived from scrypt's key.
  func key(of derived: SymmetricKey) throws(AuthError) -> SymmetricKey {
    switch self {
    case .firebase:
      // The first blocks of the keystream: the numbers 0 and 1, encrypted.
      var stream: [UInt8] = []
      for number in 0..<(StoredPassword.keyLength / Self.blockLength) {
        var block = [UInt8](repeating: 0, count: Self.blockLength)
        block[Self.blockLength - 1] = UInt8(truncatingIfNeeded: number)
        do { try AES.permute(&block, key: derived) } catch {
          throw AuthError(.internalError, "an imported password could not be checked")
        }
        stream += block
      }
      return SymmetricKey(data: stream)
    }
  }
}

extension AuthError {
  fileprivate static var invalidHashParameters: AuthError {
    AuthError(.invalidHashParameters, "the parameters of the hashes are out of bounds")
  }
}
