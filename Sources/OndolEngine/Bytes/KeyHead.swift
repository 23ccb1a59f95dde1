// The beginning of a key as numbers, which decides most comparisons without accessing the key.

/// A key's first twelve bytes, padded with zeros, as numbers that sort like the bytes.
struct KeyHead: Equatable {
  /// The length of a keyspace.
  static let keyspaceLength = 4

  /// The first four bytes, which most keys in a memtable share with many others.
  let keyspace: UInt32
  /// The next eight bytes.
  let rest: UInt64

  @inline(__always)
  init(keyspace: UInt32, rest: UInt64) {
    self.keyspace = keyspace
    self.rest = rest
  }

  @inline(__always)
  init(_ key: RawSpan) {
    keyspace = UInt32(truncatingIfNeeded: keyHead(key) >> 32)
    rest =
      key.byteCount > Self.keyspaceLength
      ? keyHead(key.extracting(droppingFirst: Self.keyspaceLength)) : 0
  }

  @inline(__always)
  static func < (left: Self, right: Self) -> Bool {
    left.keyspace != right.keyspace ? left.keyspace < right.keyspace : left.rest < right.rest
  }
}

/// The first eight bytes of `key`, padded with zeros, as a number that sorts like the bytes.
func keyHead(_ key: RawSpan) -> UInt64 {
  if key.byteCount >= 8 {
    // Safe: any bits are an integer, and the load checks its bounds.
    return unsafe UInt64(bigEndian: key.unsafeLoadUnaligned(as: UInt64.self))
  }
  var head: UInt64 = 0
  for index in 0..<key.byteCount { head |= UInt64(key.byte(at: index)) << (56 - 8 * index) }
  return head
}
