// CRC32C with its context mixed in. A checksum over the bytes alone accepts a block that was
// written to the wrong place or belongs to an older incarnation of the file; seeding it with the
// file's salt and the offset makes those fail as well.

internal import COndol

/// CRC32C (Castagnoli) over `bytes`, continuing `crc`.
package func crc32c(_ bytes: RawSpan, continuing crc: UInt32 = 0) -> UInt32 {
  // Safe: the C function reads exactly `count` bytes at the base.
  unsafe bytes.withUnsafeBytes { buffer in
    unsafe ondol_crc32c(crc, buffer.baseAddress, buffer.count)
  }
}

/// The seed of a checksum for the bytes at `offset` of the file whose salt is `salt`.
package func contextSeed(salt: UInt64, offset: UInt64) -> UInt64 {
  salt &+ (offset &* 0x9E37_79B9_7F4A_7C15)
}

/// The checksum written into files: CRC32C over the seed's eight bytes followed by the given bytes.
/// It takes the low half of a 64-bit field whose high half is zero.
package func seededChecksum(_ seed: UInt64, _ bytes: RawSpan) -> UInt64 {
  UInt64(crc32c(bytes, continuing: seedState(seed)))
}

/// As above, over two consecutive pieces.
package func seededChecksum(_ seed: UInt64, _ first: RawSpan, _ second: RawSpan) -> UInt64 {
  UInt64(crc32c(second, continuing: crc32c(first, continuing: seedState(seed))))
}

private func seedState(_ seed: UInt64) -> UInt32 {
  // Safe: all bytes of an integer are initialised, and the buffer is read within the closure only.
  unsafe withUnsafeBytes(of: seed.littleEndian) { bytes in
    unsafe crc32c(RawSpan(_unsafeBytes: bytes))
  }
}
