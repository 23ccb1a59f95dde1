// Values as bytes that compare as the values do: the keys of indexes and document ids. All index
// rows are written here (stage 2 of the write path), and all bounds of a query's ranges.
//
// A key is a sequence of components. A component is a tag, which gives the type, and its body:
//
//   05 end of a container       25 +infinity             58 array: components, 05
//   10 null                     30 timestamp: 8 bytes    60 vector: dimension, 8 bytes each
//   18 false   19 true          38 string, escaped       68 map: (string, value)*, 05
//   20 NaN     21 -infinity     40 bytes, escaped        70 blob: digest, length, 2 components
//   22 negative 23 zero         48 reference: (49, segment)*, 05
//   24 positive number          50 geo point: 2 x 8 bytes
//
// Invariants:
// - The bytes of two components compare as the values do in ValueOrder, as far as the first 1,024
//   bytes reach. Values that compare equal have equal bytes: 1 and 1.0 are one key, and so are 0
//   and −0.0.
// - No component is the beginning of another. So components can follow each other, and a range that
//   begins with a component has exactly the rows with that value.
// - A descending component is the complement of the ascending one. Tags are within 05...F8, so in
//   neither direction does a component begin with 00 or FF: a key followed by FF comes after all
//   keys that begin with it.
// - Strings and bytes: 00 becomes 00 FF, and 00 01 ends. So a shorter text comes before its
//   continuations.
// - Numbers: see KeyNumber. Doubles in vectors and geo points: eight bytes, the sign bit flipped,
//   negative ones complemented, NaN all zero.
// - Blobs: 32 bytes, length in eight, then content type and path, each a string or null.
// - Timestamps: microseconds since 1970, sign bit flipped, high byte first. A pending one is
//   recorded as a stamp, which the sequencer fills in with the commit's time.
// - A component longer than 1,024 bytes is cut there, and 04 follows; no whole component is that
//   long. So all values that agree in 1,024 bytes share one key, and a reader that meets a cut
//   component looks at the document. A stamp cannot be cut, so the cut is before a timestamp's body
//   that does not fit as a whole. All values that share those bytes have a timestamp there and are
//   also cut there.

internal import OndolEngine

/// Properties of key bytes that both writing and reading use.
enum KeyCoding {
  /// The longest whole form of a component. Longer ones are cut here.
  static let maximumComponentLength = 1_024
  /// How deep arrays and maps may be nested in a key that is read.
  static let maximumDepth = 128
  /// After everything that begins with the bytes it is appended to.
  static let afterAll: UInt8 = 0xff

  /// The first byte of an ascending component.
  enum Tag {
    static let cut: UInt8 = 0x04
    static let end: UInt8 = 0x05
    static let null: UInt8 = 0x10
    static let no: UInt8 = 0x18
    static let yes: UInt8 = 0x19
    static let notANumber: UInt8 = 0x20
    static let negativeInfinity: UInt8 = 0x21
    static let negative: UInt8 = 0x22
    static let zero: UInt8 = 0x23
    static let positive: UInt8 = 0x24
    static let positiveInfinity: UInt8 = 0x25
    static let timestamp: UInt8 = 0x30
    static let string: UInt8 = 0x38
    static let bytes: UInt8 = 0x40
    static let reference: UInt8 = 0x48
    static let segment: UInt8 = 0x49
    static let geoPoint: UInt8 = 0x50
    static let array: UInt8 = 0x58
    static let vector: UInt8 = 0x60
    static let map: UInt8 = 0x68
    static let blob: UInt8 = 0x70
    static let sealedBlob: UInt8 = 0x71
    /// No value begins with it; only in bounds.
    static let maximum: UInt8 = 0xf8
  }

  /// The tags that values of the same type as `value` have, in ascending components. Numbers are
  /// one type.
  static func tags(ofTypeOf value: Value) -> ClosedRange<UInt8> {
    switch value {
    case .null: Tag.null...Tag.null
    case .boolean: Tag.no...Tag.yes
    case .integer, .double, .decimal: Tag.notANumber...Tag.positiveInfinity
    case .timestamp: Tag.timestamp...Tag.timestamp
    case .string: Tag.string...Tag.string
    case .bytes: Tag.bytes...Tag.bytes
    case .reference: Tag.reference...Tag.reference
    case .geoPoint: Tag.geoPoint...Tag.geoPoint
    case .array: Tag.array...Tag.array
    case .vector: Tag.vector...Tag.vector
    case .map: Tag.map...Tag.map
    case .blob: Tag.blob...Tag.sealedBlob
    }
  }

  /// The smallest bytes after all that begin with `prefix`; nil when there are none (all FF).
  static func successor(ofPrefix prefix: [UInt8]) -> [UInt8]? {
    guard let last = prefix.lastIndex(where: { $0 != 0xff }) else { return nil }
    var bytes = Array(prefix[...last])
    bytes[last] += 1
    return bytes
  }

  /// Eight bytes of a double that compare as unsigned integers do.
  static func orderedBits(_ value: Double) -> UInt64 {
    if value.isNaN { return 0 }
    // Adding zero makes −0.0 the same as 0.
    let bits = (value + 0).bitPattern
    return bits >> 63 == 1 ? ~bits : bits | 1 << 63
  }

  /// The double of `orderedBits(_:)`.
  static func double(orderedBits bits: UInt64) -> Double {
    if bits == 0 { return .nan }
    return Double(bitPattern: bits >> 63 == 1 ? bits & ~(1 << 63) : ~bits)
  }
}
