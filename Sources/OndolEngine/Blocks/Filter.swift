// The filter that rules out most keys that a segment does not hold, before any block is read. A
// blocked Bloom filter: all bits of a key are in one line of 64 bytes, so a lookup costs one cache
// miss.
//
//   lines   = max(1, keys * bitsPerKey / 512, rounded up)
//   line    = high half of hash * lines (128 bits)
//   mixed   = hash * 0x9E3779B97F4A7C15 (low half)
//   bit i   = nine bits of mixed from bit 55 - 9 i on, for i in 0..<6
//   bit n of a line is bit n % 8 of its byte n / 8
//
// `hash` is KeyHash of the full key. At 10 bits a key, the false positive rate is about one in
// eighty.

/// The arithmetic shared by building and lookups.
enum Filter {
  static let lineBytes = 64
  static let probes = 6
  /// Lines that are read at once when a filter is not kept as a whole.
  static let partLines = 64

  static func lineCount(keys: Int, bitsPerKey: Int) -> Int {
    max(1, (keys * bitsPerKey + 511) / 512)
  }

  @inline(__always)
  static func line(_ hash: UInt64, of count: Int) -> Int {
    Int(truncatingIfNeeded: hash.multipliedFullWidth(by: UInt64(count)).high)
  }

  @inline(__always)
  static func mix(_ hash: UInt64) -> UInt64 { hash &* 0x9E37_79B9_7F4A_7C15 }

  /// The bit among the line's 512 that probe number `probe` checks.
  @inline(__always)
  static func bit(_ mixed: UInt64, _ probe: Int) -> Int {
    Int(truncatingIfNeeded: mixed >> UInt64(55 - 9 * probe)) & 511
  }

  /// The filter over `hashes`, in its stored form.
  static func build(_ hashes: KeyHashes, bitsPerKey: Int) -> [UInt8] {
    let lines = lineCount(keys: hashes.count, bitsPerKey: bitsPerKey)
    var bytes = [UInt8](repeating: 0, count: lines * lineBytes)
    hashes.forEach { hash in
      let start = line(hash, of: lines) * lineBytes
      let mixed = mix(hash)
      for probe in 0..<probes {
        let bit = bit(mixed, probe)
        bytes[start + (bit >> 3)] |= 1 << UInt8(bit & 7)
      }
    }
    return bytes
  }
}
