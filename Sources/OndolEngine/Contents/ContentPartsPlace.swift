// A content in parts on a store: the contents of its location, and how its bytes are read. Each
// frame has a checksum, as in files, so that any range can be verified without the rest.

/// A content's parts on a store.
package struct ContentPartsPlace: Sendable, Hashable {
  package var id: [UInt8]
  /// Bytes of the content.
  package var length: UInt64
  /// One for each frame.
  package var checksums: [UInt32]

  /// The seed of the checksums.
  static func salt(of id: [UInt8]) -> UInt64 {
    id.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The number of parts of a content of this length.
  static func count(ofContent length: UInt64) -> Int {
    Int((length + UInt64(ContentPart.length) - 1) / UInt64(ContentPart.length))
  }

  /// Bytes requested at once.
  private static let askedAtOnce = 4 * ContentPart.length

  /// The bytes of the content in `range`, which must not be empty. Blocks.
  func content(
    in range: Range<Int>, of store: any RemoteStore
  ) throws(EngineError) -> [UInt8] {
    let first = range.lowerBound / ContentFrame.length
    let last = (range.upperBound - 1) / ContentFrame.length
    let length = Int(clamping: length)
    let start = ContentFrame.range(first, ofContent: length).lowerBound
    let end = ContentFrame.range(last, ofContent: length).upperBound
    var bytes: [UInt8] = []
    bytes.reserveCapacity(end - start)
    while start + bytes.count < end {
      let next = start + bytes.count
      let piece = next..<min(end, (next / Self.askedAtOnce + 1) * Self.askedAtOnce)
      let found = try store.content(id, in: piece)
      guard found.count == piece.count else {
        throw .corrupt(
          file: store.name, offset: UInt64(next + min(found.count, piece.count)),
          reason: "a part of a content is missing")
      }
      bytes += found
    }
    let salt = Self.salt(of: id)
    for frame in first...last {
      let place = ContentFrame.range(frame, ofContent: length)
      let offset = UInt64(place.lowerBound)
      let part = bytes.bytes.extracting((place.lowerBound - start)..<(place.upperBound - start))
      guard ContentFrame.checksum(part, salt: salt, offset: offset) == checksums[frame] else {
        throw .corrupt(
          file: store.name, offset: offset, reason: "the checksum of a frame does not match")
      }
    }
    if range.count == bytes.count { return bytes }
    return Array(bytes[(range.lowerBound - start)..<(range.upperBound - start)])
  }
}
