// The checksums that Google's clients of storage compare: CRC32C and MD5. They detect accidents,
// not forgeries, and Ondol itself relies on SHA-256. A server computes them while bytes arrive,
// because later it would have to read all bytes again.

internal import Crypto
internal import OndolEngine

/// CRC32C and MD5 of a content.
package struct ContentChecksums: Sendable, Hashable {
  private static let md5Length = 16

  package let crc32c: UInt32
  /// 16 bytes.
  package let md5: [UInt8]

  fileprivate init(crc32c: UInt32, md5: [UInt8]) {
    self.crc32c = crc32c
    self.md5 = md5
  }

  /// Nil for bytes that are not those of `bytes`.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 4 + Self.md5Length else { return nil }
    crc32c = bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
    md5 = Array(bytes[4...])
  }

  /// The CRC32C, high byte first, and the MD5.
  package var bytes: [UInt8] { crc32cBytes + md5 }

  /// The CRC32C, high byte first.
  package var crc32cBytes: [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: crc32c >> $0) }
  }
}

/// The checksums of bytes that arrive in pieces.
package struct RunningChecksums: Sendable {
  private var crc: UInt32 = 0
  private var hash = Insecure.MD5()

  package init() {}

  package mutating func update(_ piece: [UInt8]) {
    crc = crc32c(piece.bytes, continuing: crc)
    hash.update(data: piece)
  }

  package func finalize() -> ContentChecksums {
    ContentChecksums(crc32c: crc, md5: Array(hash.finalize()))
  }
}
