// Keys from passphrases, by scrypt (RFC 7914): each guess costs an attacker as much memory and time
// as one opening costs the app.

internal import Crypto
internal import OndolEngine

/// scrypt with one set of parameters.
struct Scrypt: Sendable, Hashable {
  /// The binary logarithm of N.
  var logarithm: UInt8
  /// r and p.
  var blockSize: UInt8
  var parallelism: UInt8

  /// For new databases: 32 MiB, and about a tenth of a second.
  static let standard = Scrypt(logarithm: 15, blockSize: 8, parallelism: 1)

  /// For all lanes together: eight times the time of `standard`. The parameters in a superblock are
  /// untrusted, so larger ones are refused.
  private static let mostTableBytes = 1 << 28

  /// Whether these parameters are accepted.
  var isPossible: Bool {
    guard (1...24).contains(logarithm), blockSize > 0, parallelism > 0 else { return false }
    let table = (128 * Int(blockSize)) << Int(logarithm)
    return table <= Self.mostTableBytes / Int(parallelism)
  }

  /// Bytes derived from the passphrase; nil when the parameters are invalid, or there is too little
  /// memory.
  func bytes(_ count: Int, from passphrase: [UInt8], salt: [UInt8]) -> [UInt8]? {
    guard isPossible else { return nil }
    let lane = 128 * Int(blockSize)
    let key = SymmetricKey(data: passphrase)
    var mixed: [UInt8] = []
    let expanded = Self.expand(key, salt: salt, count: lane * Int(parallelism))
    for start in stride(from: 0, to: expanded.count, by: lane) {
      var bytes = Array(expanded[start..<(start + lane)])
      guard mixScrypt(&bytes, blockSize: Int(blockSize), rounds: 1 << Int(logarithm)) else {
        return nil
      }
      mixed += bytes
    }
    return Self.expand(key, salt: mixed, count: count)
  }

  /// PBKDF2-HMAC-SHA256 (RFC 8018) of one iteration.
  private static func expand(_ key: SymmetricKey, salt: [UInt8], count: Int) -> [UInt8] {
    var output: [UInt8] = []
    var number: UInt32 = 0
    while output.count < count {
      number += 1
      var block = salt
      block.appendBigEndian(number)
      output += Array(HMAC<SHA256>.authenticationCode(for: block, using: key))
    }
    return Array(output.prefix(count))
  }
}
