// Unsigned LEB128: seven bits per byte, low bits first, and the top bit means that more bytes
// follow. Only the shortest form is accepted, so that equal numbers have equal bytes.

/// Lengths and decoding of variable-length integers.
enum Varint {
  /// The longest encoding of a 64-bit integer.
  static let maximumLength = 10

  /// The number of bytes for `value`.
  static func length(_ value: UInt64) -> Int {
    value == 0 ? 1 : (70 - value.leadingZeroBitCount) / 7
  }
}

extension Array where Element == UInt8 {
  /// Appends `value` in its shortest form.
  package mutating func appendVarint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends a non-negative `value` in its shortest form.
  package mutating func appendVarint(_ value: Int) {
    appendVarint(UInt64(value))
  }

  /// Appends an integer in little-endian order.
  @inlinable
  package mutating func appendLittleEndian<Integer: FixedWidthInteger>(_ value: Integer) {
    var rest = value.littleEndian
    for _ in 0..<(Integer.bitWidth / 8) {
      append(UInt8(truncatingIfNeeded: rest))
      rest >>= 8
    }
  }

  /// Appends an integer in big-endian order.
  @inlinable
  package mutating func appendBigEndian<Integer: FixedWidthInteger>(_ value: Integer) {
    for shift in stride(from: Integer.bitWidth - 8, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: value >> Integer(shift)))
    }
  }

  /// Appends a copy of `bytes`.
  package mutating func append(_ bytes: RawSpan) {
    // Safe: the buffer is read within the closure only.
    unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
  }

  /// Writes `value` in little-endian order over the bytes at `offset`.
  package mutating func overwriteLittleEndian<Integer: FixedWidthInteger>(
    _ value: Integer, at offset: Int
  ) {
    for index in 0..<(Integer.bitWidth / 8) {
      self[offset + index] = UInt8(truncatingIfNeeded: value >> Integer(index * 8))
    }
  }

  /// The bytes, borrowed.
  package var bytes: RawSpan {
    @_lifetime(borrow self)
    get {
      // Safe: bytes of an array of bytes are all initialised.
      unsafe elements.bytes
    }
  }
}

extension Array where Element: BitwiseCopyable {
  /// The elements, borrowed. It compiles to the same machine code as `span`, which came with macOS
  /// 26.
  @inlinable package var elements: Span<Element> {
    @_lifetime(borrow self)
    get {
      let buffer = unsafe withUnsafeBufferPointer { unsafe $0 }
      // Safe: elements that are not objects are stored in the array itself on every system. They
      // stay at one place until the array is changed or released, and the span borrows the array
      // until then.
      return unsafe _overrideLifetime(Span(_unsafeElements: buffer), borrowing: self)
    }
  }
}
