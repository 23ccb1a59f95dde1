// Documents as bytes, form D1: the row of a document in the log, the memtables and the segments.
// ValueEncoder makes it once on the write path; DocumentView reads it in place, ValueReader as a
// whole.
//
//   document  version u64, update time i64, create time i64 (microseconds), then one map
//
//   map       tag E0 + flags, 0, count u16 | wide: tag, 0, 0, 0, count u32
//             symbols  count x u16 | short: u8, ascending
//                      named: count slots of names, in the order of the names
//             slots    count x u16 | wide: u32
//             names, then values, consecutive in the order of their slots, without gaps
//   array     the same with tag E8 and without symbols
//
//   slot      F000...FFFF: a value in 12 bits, null, false, true or an integer of -1024...1023
//             otherwise the position of the value, counted from the container's tag
//             (wide: FFFFF000...FFFFFFFF, otherwise the position of the value)
//
//   value     tag, then  10 i16   11 i32   12 i64   18 f64   19 f32   20 timestamp i64
//             1a decimal: count of bytes (+ 80 when negative), exponent i16, coefficient
//             28 string  30 bytes  38 reference (its path): varint length, bytes
//             40 geo point 2 x f64     48 vector: varint count, f64 each
//             50 blob: flags (1 content type, 2 path), digest of 32, length i64, then those two
//   name      varint length, bytes
//
// All numbers are low byte first. A reader finds a field by its symbol's place in the table and
// skips everything else. Because values leave no gaps, a whole document is read in one pass as long
// as the document, whatever the offsets claim.
//
// Narrow containers are usual; wide is for containers of 60 KiB and more. A map with a name that
// has no symbol (SymbolTable is full) stores all its names itself. The same fields and the same
// table give the same bytes.
//
// Timestamps of the commit itself, and the document's version and update time, are stamps: places
// that the sequencer fills in.

internal import OndolEngine

/// Limits and marks of the stored form of documents.
enum ValueCoding {
  /// How deep an app may nest arrays and maps in a document.
  static let maximumNesting = 100
  /// The deepest nesting of containers in a document, including its own map.
  static let maximumDepth = maximumNesting + 1
  /// The deepest nesting that reading accepts.
  static let maximumDepthRead = 128
  /// The longest document.
  static let maximumLength = 16 << 20
  /// Bytes before a document's map.
  static let envelopeLength = 24

  /// The first byte of a value outside a slot.
  enum Tag {
    static let int16: UInt8 = 0x10
    static let int32: UInt8 = 0x11
    static let int64: UInt8 = 0x12
    static let float64: UInt8 = 0x18
    static let float32: UInt8 = 0x19
    static let decimal: UInt8 = 0x1a
    static let timestamp: UInt8 = 0x20
    static let string: UInt8 = 0x28
    static let bytes: UInt8 = 0x30
    static let reference: UInt8 = 0x38
    static let geoPoint: UInt8 = 0x40
    static let vector: UInt8 = 0x48
    static let blob: UInt8 = 0x50
    static let map: UInt8 = 0xe0
    static let array: UInt8 = 0xe8
  }

  /// What a blob has besides its digest and its length.
  enum BlobFlag {
    static let contentType: UInt8 = 1
    static let path: UInt8 = 2
    static let key: UInt8 = 4
    static let all = contentType | path | key
  }

  /// The flags in a container's tag.
  enum Flag {
    static let wide: UInt8 = 1
    static let shortSymbols: UInt8 = 2
    static let named: UInt8 = 4
  }

  /// The smallest slot that is a value itself, in narrow containers and wide ones.
  static let firstInline = 0xf000
  static let firstWideInline = 0xffff_f000

  /// The twelve bits of a value that fits a slot, or nil.
  static func inlineCode(_ value: Value) -> Int? {
    switch value {
    case .null: 0
    case .boolean(let value): value ? 2 : 1
    case .integer(let value): value >= -1_024 && value < 1_024 ? 0x800 + Int(value) : nil
    default: nil
    }
  }

  /// Whether twelve bits are a value.
  static func isInline(_ code: Int) -> Bool {
    code >= 0 && code <= 2 || code >= 0x400 && code <= 0xbff
  }

  /// The value of twelve bits; nil when they are not a value.
  static func inlineValue(_ code: Int) -> Value? {
    switch code {
    case 0: .null
    case 1: .boolean(false)
    case 2: .boolean(true)
    case 0x400...0xbff: .integer(Int64(code - 0x800))
    default: nil
    }
  }
}

extension ValueCoding {
  /// The bytes after the tag of a number; nil when `tag` is not a number's.
  static func width(ofNumber tag: UInt8) -> Int? {
    switch tag {
    case Tag.int16: 2
    case Tag.int32, Tag.float32: 4
    case Tag.int64, Tag.float64: 8
    default: nil
    }
  }
}

/// The positions of a container's parts: the arithmetic shared by reading and writing.
struct ContainerLayout: Sendable, Equatable {
  /// The position of the container's tag.
  var base: Int
  var count: Int
  var isMap: Bool
  var isWide = false
  var hasShortSymbols = false
  /// Whether the map has names of its own instead of symbols.
  var isNamed = false

  var tag: UInt8 {
    (isMap ? ValueCoding.Tag.map : ValueCoding.Tag.array)
      | (isWide ? ValueCoding.Flag.wide : 0)
      | (hasShortSymbols ? ValueCoding.Flag.shortSymbols : 0)
      | (isNamed ? ValueCoding.Flag.named : 0)
  }

  var slotWidth: Int { isWide ? 4 : 2 }
  var symbolWidth: Int { !isMap ? 0 : isNamed ? slotWidth : hasShortSymbols ? 1 : 2 }
  var symbolsStart: Int { base + (isWide ? 8 : 4) }
  var slotsStart: Int { symbolsStart + count * symbolWidth }
  var contentStart: Int { slotsStart + count * slotWidth }
  /// The smallest slot that is a value itself.
  var firstInline: Int { isWide ? ValueCoding.firstWideInline : ValueCoding.firstInline }
}
