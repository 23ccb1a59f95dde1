// Hashes of a segment's keys, collected until the segment is written and its filter can be made.
// They are in pieces of one size: a list that doubles repeatedly would be copied as often, and
// cause fragmentation.

/// A list of hashes that only grows.
struct KeyHashes {
  private static let pieceLength = 8_192

  private var full: [[UInt64]] = []
  private var last: [UInt64] = []

  var count: Int { full.count * Self.pieceLength + last.count }

  mutating func append(_ hash: UInt64) {
    if last.count == Self.pieceLength {
      full.append(last)
      last = []
      last.reserveCapacity(Self.pieceLength)
    }
    last.append(hash)
  }

  func forEach(_ body: (UInt64) -> Void) {
    for piece in full { for hash in piece { body(hash) } }
    for hash in last { body(hash) }
  }
}
