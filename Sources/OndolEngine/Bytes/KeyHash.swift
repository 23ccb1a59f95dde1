// The hash of a key for the filters on disk. It is part of the file format and must never change.
//
//   multiply(a, b)  = low half of a*b (128 bits) XOR high half
//   hash            = seed0
//   for each whole 16 bytes, while more than 16 remain:
//     hash = multiply(word(0) XOR seed1, word(8) XOR hash)
//   the last 1...16 bytes (or none), of which `count` are left:
//     count >= 8      a = the first eight bytes, b = the last eight (they may overlap)
//     4 <= count < 8  a = the first four, b = the last four
//     1 <= count < 4  a = first << 16 | middle << 8 | last (middle = byte[count / 2]), b = 0
//     count = 0       a = b = 0
//   hash = multiply(a XOR seed1, b XOR hash)
//   hash = multiply(hash XOR seed2, length XOR seed1)
//
// Words are little-endian. `length` is the length of the whole key. The construction follows the
// multiply-and-fold family. The seeds are fractional digits of square roots (of 2, 3 and 5), made
// odd.

/// The 64-bit hash of a full engine key.
package enum KeyHash {
  private static let seed0: UInt64 = 0x6a09_e667_f3bc_c909
  private static let seed1: UInt64 = 0xbb67_ae85_84ca_a73b
  private static let seed2: UInt64 = 0x3c6e_f372_fe94_f82b

  @inline(__always)
  private static func multiply(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  /// Hashes `key`.
  /// - Complexity: O(key length), about 0.2 ns a byte.
  package static func hash(_ key: RawSpan) -> UInt64 { hash(key, seed: seed0) }

  /// Hashes `key` for a table in memory. Anyone who can choose keys must not know the seed.
  package static func hash(_ key: RawSpan, seed: UInt64) -> UInt64 {
    var hash = seed
    var offset = 0
    var rest = key.byteCount
    while rest > 16 {
      hash = multiply(word(key, offset) ^ seed1, word(key, offset + 8) ^ hash)
      offset += 16
      rest -= 16
    }
    let a: UInt64
    let b: UInt64
    if rest >= 8 {
      a = word(key, offset)
      b = word(key, offset + rest - 8)
    } else if rest >= 4 {
      a = halfWord(key, offset)
      b = halfWord(key, offset + rest - 4)
    } else if rest > 0 {
      a =
        UInt64(key.byte(at: offset)) << 16 | UInt64(key.byte(at: offset + rest / 2)) << 8
        | UInt64(key.byte(at: offset + rest - 1))
      b = 0
    } else {
      a = 0
      b = 0
    }
    hash = multiply(a ^ seed1, b ^ hash)
    return multiply(hash ^ seed2, UInt64(key.byteCount) ^ seed1)
  }

  @inline(__always)
  private static func word(_ key: RawSpan, _ offset: Int) -> UInt64 {
    // Safe: any bits are an integer, and the load checks its bounds.
    unsafe UInt64(littleEndian: key.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  @inline(__always)
  private static func halfWord(_ key: RawSpan, _ offset: Int) -> UInt64 {
    // Safe: any bits are an integer, and the load checks its bounds.
    UInt64(
      unsafe UInt32(
        littleEndian: key.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)))
  }
}
