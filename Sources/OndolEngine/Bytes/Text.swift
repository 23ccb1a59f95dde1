// Strings as their UTF-8 bytes. Names and texts are ordered, compared and stored by their bytes,
// because Swift's own `==` and `<` on strings follow Unicode equivalence, under which two different
// keys could be equal.
//
// The fast way from bytes to a string came with macOS 26. Older Apple systems use another way, in a
// separate function, so that tests exercise it on other systems as well.

extension String {
  /// Lends the UTF-8 bytes to `body`. A string that Foundation created need not be UTF-8 in memory
  /// on Apple's systems, and is copied in that case.
  ///
  /// It does not use `utf8Span`, which came with macOS 26: in optimised builds, the bytes that it
  /// lends for a short text were overwritten before `body` had read them.
  @inlinable package func withUTF8Bytes<Result>(_ body: (RawSpan) -> Result) -> Result {
    var text = self
    // Safe: the buffer is read within the closure only.
    return text.withUTF8 { unsafe body(RawSpan(_unsafeElements: $0)) }
  }

  /// How the bytes compare with those of `other`: negative, zero or positive.
  package func compareBytes(_ other: String) -> Int {
    withUTF8Bytes { $0.compare(other) }
  }

  /// The string whose UTF-8 is `bytes`, or nil if they are not UTF-8.
  package init?(utf8 bytes: RawSpan) {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      self.init(repairing: bytes)
      return
    }
    // Four times as fast as `String(validating:as:)`: 24 ns for 36 bytes.
    guard let text = try? UTF8Span(validating: bytes.octets) else { return nil }
    self.init(copying: text)
  }

  /// The same on older systems. There, bytes that are not UTF-8 are repaired and therefore differ.
  package init?(repairing bytes: RawSpan) {
    // Safe: the buffer is read within the closure only.
    let text = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    guard text.withUTF8Bytes({ $0.compare(bytes) }) == 0 else { return nil }
    self = text
  }
}

extension RawSpan {
  /// How the bytes compare with those of `text`: negative, zero or positive.
  package func compare(_ text: String) -> Int {
    text.withUTF8Bytes { compare($0) }
  }

  /// Whether the bytes are UTF-8.
  package var isUTF8: Bool {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      return String(repairing: self) != nil
    }
    return (try? UTF8Span(validating: octets)) != nil
  }
}

extension Hasher {
  /// Feeds the bytes of `text` and their count.
  package mutating func combine(utf8 text: String) {
    text.withUTF8Bytes { combine($0) }
  }

  /// Feeds the bytes and their count.
  package mutating func combine(_ bytes: RawSpan) {
    combine(bytes.byteCount)
    // Safe: the buffer is read within the closure only.
    unsafe bytes.withUnsafeBytes { unsafe combine(bytes: $0) }
  }
}

extension RawSpan {
  /// The same bytes, with a bounds-checked subscript.
  @inlinable package var octets: Span<UInt8> {
    @_lifetime(copy self)
    get {
      Span<UInt8>(_bytes: self)
    }
  }
}

extension Span<UInt8> {
  /// The same bytes, untyped.
  @inlinable package var raw: RawSpan {
    @_lifetime(copy self)
    get {
      // Safe: all bits of a `UInt8` are initialised.
      unsafe bytes
    }
  }
}

extension Span<UInt8> {
  /// The little-endian 64-bit number at `offset`, or nil if it is not completely within bounds. It
  /// is inlinable because reading a document's row takes eight of these, and each would cost 4 ns
  /// as a call.
  @inlinable package func word(at offset: Int) -> UInt64? {
    guard offset >= 0, offset <= count - 8 else { return nil }
    // Safe: the bounds were checked, and any bits are a `UInt64`.
    return unsafe UInt64(
      littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}
