// A value in memory has the form of a block with one row, whose key is empty, so that the cache,
// its slots and its pins need not handle two kinds of data.

/// The layout of a block that contains only one value (see BlockLayout).
struct SingleValueBlock {
  let valueLength: Int

  /// Fixed fields, and the lengths of one key and one value.
  private static let headLength = BlockLayout.headerLength + 1 + 4

  var rawLength: Int { Self.headLength + valueLength }

  /// A block whose value `fill` writes.
  func make(_ fill: (inout MutableRawSpan) -> Bool) throws(MalformedBytes) -> Block {
    let head = head
    return try Block.make(rowCount: 1, rawLength: rawLength) { raw in
      var front = raw._mutatingExtracting(first: Self.headLength)
      front.copy(head.bytes)
      var value = raw._mutatingExtracting(droppingFirst: Self.headLength)
      return fill(&value)
    }
  }

  private var head: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendLittleEndian(UInt32(1))
    bytes.append(BlockLayout.version)
    bytes.append(0)
    bytes.append(1)
    bytes.append(4)
    // No prefix, no bytes of keys, and so a key of no length.
    bytes.appendLittleEndian(UInt64(0))
    bytes.append(0)
    bytes.appendLittleEndian(UInt32(valueLength))
    return bytes
  }
}
