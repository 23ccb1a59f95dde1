// The slow step of scrypt, for the floor above, which knows what passphrases are. It is C for the
// sake of apps that are not optimised.

internal import COndol

/// Mixes `bytes`, 128 `blockSize` of them, as section 5 of RFC 7914 has it, with a table of
/// `rounds` times as many bytes; `rounds` is a power of two from 2 on.
///
/// - Returns: false, and the bytes are as they were, when there is too little memory for the table
///   or the numbers do not fit.
/// - Complexity: O(bytes of the table).
package func mixScrypt(_ bytes: inout [UInt8], blockSize: Int, rounds: Int) -> Bool {
  guard blockSize > 0, rounds > 1, bytes.count % 128 == 0, bytes.count / 128 == blockSize else {
    return false
  }
  // Safe: the C function reads and writes exactly these bytes, and a table of its own.
  return unsafe bytes.withUnsafeMutableBufferPointer { buffer in
    unsafe ondol_scrypt_mix(buffer.baseAddress, blockSize, rounds) != 0
  }
}
