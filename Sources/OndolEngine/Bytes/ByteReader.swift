// Reads fields from bytes that may be hostile. Every length is checked before use, every number
// must be in its shortest form, and reading past the end is an error with a position, never a trap.

/// Why bytes could not be read. The caller adds the file.
package struct MalformedBytes: Error, Sendable, Equatable {
  /// The position in the given bytes.
  package var offset: Int
  package var reason: String
  /// Whether the bytes appear valid, but contain something that only a later version understands.
  package var isOfNewerVersion = false

  package init(at offset: Int, _ reason: String) {
    self.offset = offset
    self.reason = reason
  }

  /// Data that a later version of the format wrote.
  package static func newer(at offset: Int, _ reason: String) -> MalformedBytes {
    var error = MalformedBytes(at: offset, reason)
    error.isOfNewerVersion = true
    return error
  }
}

/// A cursor over borrowed bytes.
package struct ByteReader: ~Escapable {
  package let bytes: RawSpan
  package private(set) var offset = 0

  @_lifetime(copy bytes)
  package init(_ bytes: RawSpan) {
    self.bytes = bytes
  }

  package var remaining: Int { bytes.byteCount - offset }
  package var isAtEnd: Bool { remaining == 0 }

  /// An integer in little-endian order.
  @_lifetime(self: copy self)
  package mutating func littleEndian<Integer: FixedWidthInteger>(
    _: Integer.Type = Integer.self
  ) throws(MalformedBytes) -> Integer {
    let width = Integer.bitWidth / 8
    guard remaining >= width else { throw MalformedBytes(at: offset, "ends within a number") }
    var value: Integer = 0
    for index in 0..<width {
      value |= Integer(truncatingIfNeeded: bytes.byte(at: offset + index)) << Integer(index * 8)
    }
    offset += width
    return value
  }

  /// A variable-length integer in its shortest form.
  @_lifetime(self: copy self)
  package mutating func varint() throws(MalformedBytes) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    let start = offset
    while true {
      guard offset < bytes.byteCount else {
        throw MalformedBytes(at: start, "ends within a number")
      }
      let byte = bytes.byte(at: offset)
      offset += 1
      guard shift < 63 || byte <= 1 else {
        throw MalformedBytes(at: start, "a number over 64 bits")
      }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else {
          throw MalformedBytes(at: start, "a number longer than needed")
        }
        return value
      }
      shift += 7
    }
  }

  /// A variable-length count or length that must not exceed `limit`.
  @_lifetime(self: copy self)
  package mutating func count(atMost limit: Int) throws(MalformedBytes) -> Int {
    let start = offset
    let value = try varint()
    guard value <= UInt64(limit) else {
      throw MalformedBytes(at: start, "\(value) where at most \(limit) is possible")
    }
    return Int(value)
  }

  @_lifetime(self: copy self)
  package mutating func byte() throws(MalformedBytes) -> UInt8 {
    guard offset < bytes.byteCount else { throw MalformedBytes(at: offset, "ends too early") }
    defer { offset += 1 }
    return bytes.byte(at: offset)
  }

  /// The next `count` bytes, borrowed.
  @_lifetime(self: copy self)
  @_lifetime(copy self)
  package mutating func take(_ count: Int) throws(MalformedBytes) -> RawSpan {
    guard count >= 0, count <= remaining else {
      throw MalformedBytes(at: offset, "\(count) bytes wanted, \(remaining) left")
    }
    defer { offset += count }
    return bytes.extracting(offset..<(offset + count))
  }

  /// Bytes preceded by a variable-length length.
  @_lifetime(self: copy self)
  @_lifetime(copy self)
  package mutating func lengthPrefixed() throws(MalformedBytes) -> RawSpan {
    try take(try count(atMost: remaining))
  }
}

extension RawSpan {
  /// The byte at `offset`, which must be in bounds (checked).
  package func byte(at offset: Int) -> UInt8 {
    // Safe: any bits are a UInt8, and the load checks its bounds.
    unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  /// A copy as an array.
  package var array: [UInt8] {
    unsafe withUnsafeBytes { unsafe [UInt8]($0) }
  }

  /// Whether the bytes start with this prefix.
  package func starts(with prefix: [UInt8]) -> Bool { starts(with: prefix.bytes) }

  /// Whether the bytes start with this prefix.
  package func starts(with prefix: RawSpan) -> Bool {
    byteCount >= prefix.byteCount && extracting(first: prefix.byteCount).compare(prefix) == 0
  }

  /// Bytewise order: negative, zero or positive, like `memcmp`. A prefix comes before longer bytes.
  package func compare(_ other: RawSpan) -> Int {
    let common = Swift.min(byteCount, other.byteCount)
    // Safe: both buffers hold at least `common` bytes.
    let order = unsafe withUnsafeBytes { left in
      unsafe other.withUnsafeBytes { right in
        unsafe compareBytes(left.baseAddress, right.baseAddress, common)
      }
    }
    return order != 0 ? order : byteCount - other.byteCount
  }
}
