// A filter that is read in parts. The file has one checksum for all of it, which is verified when
// the segment is opened; what is read again later is compared with checksums of the parts that were
// made then, of eight bytes for each page of the filter.

/// Where the parts of a filter are, and what they must be.
struct FilterParts: Sendable {
  private let offset: UInt64
  private let length: Int
  private let checksums: [UInt64]

  private static let partBytes = Filter.partLines * Filter.lineBytes

  /// For the filter `bytes`, found to be sound, at `offset` of the file.
  init(_ bytes: RawSpan, at offset: UInt64, salt: UInt64) {
    self.offset = offset
    length = bytes.byteCount
    var checksums: [UInt64] = []
    for start in stride(from: 0, to: bytes.byteCount, by: Self.partBytes) {
      let end = min(start + Self.partBytes, bytes.byteCount)
      checksums.append(
        Self.checksum(bytes.extracting(start..<end), at: offset + UInt64(start), salt))
    }
    self.checksums = checksums
  }

  /// Bytes that this takes.
  var byteCount: Int { checksums.count * MemoryLayout<UInt64>.stride }

  /// Where part number `part` is in the file.
  func range(_ part: Int) -> Range<UInt64> {
    let start = part * Self.partBytes
    let end = min(start + Self.partBytes, length)
    return (offset + UInt64(start))..<(offset + UInt64(end))
  }

  /// Whether `bytes` are those of part number `part`.
  func isPart(_ part: Int, _ bytes: RawSpan, salt: UInt64) -> Bool {
    Self.checksum(bytes, at: range(part).lowerBound, salt) == checksums[part]
  }

  private static func checksum(_ bytes: RawSpan, at offset: UInt64, _ salt: UInt64) -> UInt64 {
    seededChecksum(contextSeed(salt: salt, offset: offset), bytes)
  }
}
