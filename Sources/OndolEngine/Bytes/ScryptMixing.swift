// The slow step of scrypt, for the layer above, which handles passphrases. It is written in C for
// the sake of apps that are built without optimisation.

internal import COndol

/// Mixes `bytes` (128 times `blockSize` of them) as section 5 of RFC 7914 describes, with a table
/// of `rounds` times as many bytes. `rounds` is a power of two of at least 2.
///
/// - Returns: false, with the bytes unchanged, if memory is too low for the table or the numbers do
///   not fit.
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
