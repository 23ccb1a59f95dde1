// Values as bytes that stand alone: no table of names is needed to read them. Reports write their
// intermediate rows in this form. Scalars are as in documents; see ValueCoding.

internal import OndolEngine

/// The first byte of a value.
private enum RecordTag {
  static let absent: UInt8 = 0
  static let null: UInt8 = 1
  static let `false`: UInt8 = 2
  static let `true`: UInt8 = 3
  static let array: UInt8 = 4
  static let map: UInt8 = 5
  static let timestamp: UInt8 = 6
  static let scalar: UInt8 = 7
}

/// Writes values one after the other.
struct RecordWriter {
  private(set) var bytes: [UInt8] = []
  private var encoder = ValueEncoder(SymbolTable(limit: 0))

  /// The bytes so far, which are taken out.
  mutating func take() -> [UInt8] {
    defer {
      bytes = []
      // It lists the contents that blobs refer to.
      encoder = ValueEncoder(SymbolTable(limit: 0))
    }
    return bytes
  }

  mutating func append(count: Int) { bytes.appendVarint(count) }

  mutating func append(word: UInt64) { bytes.append(bits: word, width: 8) }

  mutating func append(flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// Appends bytes after their length.
  mutating func append(octets: [UInt8]) {
    bytes.appendVarint(octets.count)
    bytes += octets
  }

  /// Appends a text after its length.
  mutating func append(text: String) {
    text.withUTF8Bytes { octets in
      bytes.appendVarint(octets.byteCount)
      bytes.append(octets)
    }
  }

  /// Appends a value; nil is an absent one.
  mutating func append(_ value: Value?) {
    switch value {
    case nil: bytes.append(RecordTag.absent)
    case .null?: bytes.append(RecordTag.null)
    case .boolean(let value)?: bytes.append(value ? RecordTag.true : RecordTag.false)
    case .array(let elements)?:
      bytes.append(RecordTag.array)
      append(count: elements.count)
      for element in elements { append(element) }
    case .map(let fields)?:
      bytes.append(RecordTag.map)
      append(fields)
    case .timestamp(let time)?:
      bytes.append(RecordTag.timestamp)
      append(word: UInt64(bitPattern: time.microsecondsSince1970))
    case .integer?, .double?, .decimal?, .string?, .bytes?, .reference?, .geoPoint?, .vector?,
      .blob?:
      guard let value else { return }
      bytes.append(RecordTag.scalar)
      append(scalar: value)
    }
  }

  /// Appends the number of fields, then names and values.
  mutating func append(_ fields: [String: Value]) {
    append(count: fields.count)
    for (name, value) in fields {
      append(text: name)
      append(value)
    }
  }

  private mutating func append(scalar value: Value) {
    swap(&encoder.bytes, &bytes)
    defer { swap(&encoder.bytes, &bytes) }
    do throws(DatabaseError) {
      try encoder.append(value, depth: 0)
    } catch {
      preconditionFailure("only containers can be nested too deep")
    }
  }
}

/// Reads what a `RecordWriter` has written. Every length is checked.
struct RecordReader {
  private let bytes: [UInt8]
  private(set) var offset = 0
  private let symbols = SymbolTable(limit: 0)

  /// Values in values: those of documents, and as many as functions can put around them.
  private static let mostNesting = 1_000

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  var isAtEnd: Bool { offset >= bytes.count }

  mutating func count() throws(MalformedBytes) -> Int {
    guard let number = bytes.bytes.octets.varint(at: offset) else {
      throw malformed("ends within a number")
    }
    offset += number.length
    return number.value
  }

  mutating func word() throws(MalformedBytes) -> UInt64 {
    guard let word = bytes.bytes.octets.word(at: offset) else {
      throw malformed("ends within a number")
    }
    offset += 8
    return word
  }

  mutating func flag() throws(MalformedBytes) -> Bool { try octet() != 0 }

  /// The number of things of which each takes a byte or more.
  mutating func countOfThings() throws(MalformedBytes) -> Int {
    let count = try count()
    guard count <= bytes.count - offset else { throw malformed("has more than fits into it") }
    return count
  }

  mutating func octets() throws(MalformedBytes) -> [UInt8] {
    let range = try range()
    return Array(bytes[range])
  }

  mutating func text() throws(MalformedBytes) -> String {
    let range = try range()
    guard let text = String(utf8: bytes.bytes.extracting(range)) else {
      throw malformed("has a text that is not UTF-8")
    }
    return text
  }

  /// The next value; nil when it is an absent one.
  mutating func value() throws(MalformedBytes) -> Value? { try value(depth: 0) }

  mutating func fields() throws(MalformedBytes) -> [String: Value] { try fields(depth: 0) }

  private mutating func fields(depth: Int) throws(MalformedBytes) -> [String: Value] {
    let count = try countOfThings()
    var fields = [String: Value](minimumCapacity: count)
    for _ in 0..<count {
      // They were the names of a dictionary, so no two are spellings of one.
      let name = try text()
      fields.updateValue(try present(depth), forKey: name)
    }
    return fields
  }

  private mutating func present(_ depth: Int) throws(MalformedBytes) -> Value {
    guard let value = try value(depth: depth + 1) else {
      throw malformed("has an absent value in a container")
    }
    return value
  }

  private mutating func value(depth: Int) throws(MalformedBytes) -> Value? {
    guard depth <= Self.mostNesting else { throw malformed("is nested too deep") }
    switch try octet() {
    case RecordTag.absent: return nil
    case RecordTag.null: return .null
    case RecordTag.false: return .boolean(false)
    case RecordTag.true: return .boolean(true)
    case RecordTag.array:
      let count = try countOfThings()
      var elements: [Value] = []
      elements.reserveCapacity(count)
      for _ in 0..<count { elements.append(try present(depth)) }
      return .array(elements)
    case RecordTag.map: return .map(try fields(depth: depth))
    case RecordTag.timestamp:
      return .timestamp(Timestamp(unchecked: Int64(bitPattern: try word())))
    case RecordTag.scalar:
      var reader = ValueReader(bytes.bytes.octets, at: offset, symbols: symbols)
      let value = try reader.value()
      offset = reader.offset
      return value
    default: throw malformed("has an unknown kind of value")
    }
  }

  private mutating func octet() throws(MalformedBytes) -> UInt8 {
    guard offset < bytes.count else { throw malformed("ends too early") }
    defer { offset += 1 }
    return bytes[offset]
  }

  /// The range of bytes after their length.
  private mutating func range() throws(MalformedBytes) -> Range<Int> {
    let length = try countOfThings()
    defer { offset += length }
    return offset..<(offset + length)
  }

  private func malformed(_ reason: String) -> MalformedBytes {
    MalformedBytes(at: offset, "an intermediate row \(reason)")
  }
}
