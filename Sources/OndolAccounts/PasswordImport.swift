// Passwords that another system hashed. They come as that system stored them and are kept in the
// form of this one, as far as that goes without the password: scrypt's key, or what was encrypted
// with it, signs the fixed text at once. So the other system's hashes and its signer key are not in
// the database, and checking a password takes the same steps for all. The next sign-in, which has
// the password in hand, makes it a password like any other.

internal import Crypto
internal import CryptoExtras
internal import Foundation

/// How another system hashed the passwords of accounts that are imported.
///
/// The parameters of a Firebase project are in its console, under Authentication, Users, Password
/// hash parameters; `firebase auth:export` writes the hashes. See
/// https://firebase.google.com/docs/auth/admin/import-users and
/// https://firebase.google.com/docs/cli/auth.
public struct PasswordHashFormat: Sendable, Hashable {
  let hashing: PasswordHashing
  /// What follows each account's own salt.
  let saltSeparator: [UInt8]
  /// What Firebase encrypts; nil for scrypt alone.
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
  /// - Throws: `.invalidHashParameters` for what is out of these bounds, which are Firebase's.
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

  /// Scrypt as RFC 7914 has it, with a key of 32 bytes or more.
  ///
  /// - Parameters:
  ///   - memoryCost: scrypt's N, a power of two.
  ///   - blockSize: scrypt's r, 1 to 64.
  ///   - parallelization: scrypt's p, 1 to 64.
  /// - Throws: `.invalidHashParameters` when scrypt cannot have them, or a sign-in would cost more
  ///   than `PasswordHashing` lets one cost: `memoryCost * blockSize * parallelization` over 2^26,
  ///   or over 1 GiB of memory.
  public static func scrypt(
    memoryCost: Int, blockSize: Int, parallelization: Int
  ) throws(AuthError) -> PasswordHashFormat {
    let hashing = PasswordHashing(unchecked: memoryCost, blockSize, parallelization)
    guard hashing.isPossible else { throw .invalidHashParameters }
    return PasswordHashFormat(hashing: hashing, saltSeparator: [], signerKey: nil)
  }

  /// A password as it is stored, of what the other system stored; throws `.invalidPasswordHash` for
  /// what this format cannot have made.
  func stored(_ hash: [UInt8], salt: [UInt8]) throws(AuthError) -> StoredPassword {
    let length = StoredPassword.keyLength
    guard (length...Self.mostKeyBytes).contains(hash.count), salt.count <= Self.mostKeyBytes,
      signerKey.map({ $0.count == hash.count }) ?? true
    else {
      throw AuthError(
        .invalidPasswordHash, "a hash of a password does not go with the parameters")
    }
    // Scrypt's longer keys begin with its shorter ones. What was encrypted by a stream, and the
    // stream itself, are each other's: both are as good as the key.
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

  /// What signs, of the key that scrypt made.
  func key(of derived: SymmetricKey) throws(AuthError) -> SymmetricKey {
    switch self {
    case .firebase:
      // The first blocks of the stream: the numbers 0 and 1, encrypted.
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
