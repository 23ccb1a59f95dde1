// Parses keys: for answers from an index alone, for cursors, and to find the document's id after
// the components. The bytes come from a file and may be hostile; format and invariants are in
// KeyCoding.
//
// A key does not show whether a number was an integer, a double or a decimal, if it can be several
// of them: it reads as an integer when it fits, so 3.0 becomes 3 and −0.0 becomes 0, and otherwise
// as a double. It also does not show which NaN it was. Everything else is restored exactly.

internal import OndolEngine

/// A component that was read.
enum KeyComponent: Equatable {
  case value(Value)
  /// Only the beginning is stored; the document has the value.
  case cut
}

/// A cursor over the components of a key.
struct KeyReader: ~Escapable {
  private let octets: Span<UInt8>
  /// Where the next component begins.
  private(set) var offset = 0

  /// Where the component being read would be cut, and its direction.
  private var limit = 0
  private var mask: UInt8 = 0
  /// Set when reading stops because the component continues beyond its cut.
  private var cut: Int?

  /// Reads `key` from its beginning.
  @_lifetime(copy key)
  init(_ key: RawSpan) {
    octets = key.octets
  }

  var isAtEnd: Bool { offset == octets.count }

  /// The next byte; nil at the end.
  var next: UInt8? { isAtEnd ? nil : octets[offset] }

  /// Skips `count` bytes that are not a component, such as the number of a keyspace.
  @_lifetime(self: copy self)
  mutating func skip(raw count: Int) throws(MalformedBytes) {
    guard count <= octets.count - offset else {
      throw MalformedBytes(at: offset, "a key ends too early")
    }
    offset += count
  }

  /// Reads a component.
  @_lifetime(self: copy self)
  mutating func component(descending: Bool = false) throws(MalformedBytes) -> KeyComponent {
    begin(descending: descending, length: KeyCoding.maximumComponentLength)
    do throws(MalformedBytes) {
      return .value(try value(depth: 0))
    } catch {
      try passCut(or: error)
      return .cut
    }
  }

  /// Skips a component without making a value, and returns whether it was whole.
  @_lifetime(self: copy self)
  @discardableResult
  mutating func skip(descending: Bool = false) throws(MalformedBytes) -> Bool {
    begin(descending: descending, length: KeyCoding.maximumComponentLength)
    do throws(MalformedBytes) {
      try skipValue(tag: try octet(), depth: 0)
      return true
    } catch {
      try passCut(or: error)
      return false
    }
  }

  /// Reads an id, which is never cut.
  @_lifetime(self: copy self)
  mutating func id(descending: Bool = false) throws(MalformedBytes) -> String {
    begin(descending: descending, length: octets.count - offset)
    guard try octet() == KeyCoding.Tag.string else { throw malformed("no id") }
    return try text()
  }

  @_lifetime(self: copy self)
  private mutating func begin(descending: Bool, length: Int) {
    limit = offset + length
    mask = descending ? 0xff : 0
    cut = nil
  }

  /// Moves past a cut component, or throws `problem` when it was not cut.
  @_lifetime(self: copy self)
  private mutating func passCut(or problem: MalformedBytes) throws(MalformedBytes) {
    guard let cut, cut < octets.count, octets[cut] ^ mask == KeyCoding.Tag.cut else {
      throw problem
    }
    offset = cut + 1
  }

  /// Records that the component exceeds its limit, so that it must have been cut at `offset`.
  @_lifetime(self: copy self)
  private mutating func overLimit(at offset: Int) -> MalformedBytes {
    cut = offset
    return malformed("a component that is too long")
  }

  private func malformed(_ reason: String) -> MalformedBytes {
    MalformedBytes(at: offset, "a key has \(reason)")
  }
}

// MARK: - Values

extension KeyReader {
  @_lifetime(self: copy self)
  private mutating func value(depth: Int) throws(MalformedBytes) -> Value {
    let tag = try octet()
    switch tag {
    case KeyCoding.Tag.null: return .null
    case KeyCoding.Tag.no: return .boolean(false)
    case KeyCoding.Tag.yes: return .boolean(true)
    case KeyCoding.Tag.notANumber: return .double(.nan)
    case KeyCoding.Tag.negativeInfinity: return .double(-.infinity)
    case KeyCoding.Tag.negative: return try number(isNegative: true)
    case KeyCoding.Tag.zero: return .integer(0)
    case KeyCoding.Tag.positive: return try number(isNegative: false)
    case KeyCoding.Tag.positiveInfinity: return .double(.infinity)
    case KeyCoding.Tag.timestamp: return .timestamp(try timestamp())
    case KeyCoding.Tag.string: return .string(try text())
    case KeyCoding.Tag.bytes: return .bytes(try unescaped())
    case KeyCoding.Tag.reference: return .reference(try reference())
    case KeyCoding.Tag.geoPoint: return try geoPoint()
    case KeyCoding.Tag.array: return .array(try array(depth: depth))
    case KeyCoding.Tag.vector: return .vector(try vector())
    case KeyCoding.Tag.map: return .map(try map(depth: depth))
    case KeyCoding.Tag.blob: return .blob(try blob(isSealed: false))
    case KeyCoding.Tag.sealedBlob: return .blob(try blob(isSealed: true))
    default: throw malformed("an unknown tag, \(tag)")
    }
  }

  @_lifetime(self: copy self)
  private mutating func number(isNegative: Bool) throws(MalformedBytes) -> Value {
    let numberMask: UInt8 = isNegative ? 0xff : 0
    var parts = KeyNumber.Parts(bits: 0, rest: 0)
    for index in 0..<KeyNumber.maximumLength {
      let byte = try octet() ^ numberMask
      KeyNumber.add(byte >> 1, at: index, to: &parts)
      guard byte & 1 == 0 else {
        if index == 8, !KeyNumber.hasRest(Double(bitPattern: parts.bits)) { break }
        continue
      }
      guard byte != 0, let value = KeyNumber.value(parts, isNegative: isNegative) else {
        throw malformed("a number that is none")
      }
      return value
    }
    return .decimal(try decimal(behind: parts, isNegative: isNegative))
  }

  /// Reads the rest of a number that continues after the double below it.
  @_lifetime(self: copy self)
  private mutating func decimal(
    behind parts: KeyNumber.Parts, isNegative: Bool
  ) throws(MalformedBytes) -> DecimalValue {
    let mask: UInt8 = isNegative ? 0xff : 0
    let (high, low) = (try octet() ^ mask, try octet() ^ mask)
    var pairs: [UInt8] = []
    while high & low & 1 == 1, pairs.count < DecimalValue.maximumDigits / 2 {
      let byte = try octet() ^ mask
      pairs.append(byte >> 1)
      guard byte & 1 == 0 else { continue }
      let place = Int(high >> 1) << 7 | Int(low >> 1)
      guard
        let decimal = KeyNumber.decimal(
          parts, place: place, pairs: pairs, isNegative: isNegative)
      else { break }
      return decimal
    }
    throw malformed("a number that is none")
  }

  @_lifetime(self: copy self)
  private mutating func timestamp() throws(MalformedBytes) -> Timestamp {
    if offset + 8 > limit { throw overLimit(at: offset) }
    let microseconds = Int64(bitPattern: try eightOctets()) ^ Int64.min
    guard Timestamp.isInRange(microseconds) else { throw malformed("a timestamp out of range") }
    return Timestamp(unchecked: microseconds)
  }

  @_lifetime(self: copy self)
  private mutating func reference() throws(MalformedBytes) -> DocumentPath {
    var segments: [String] = []
    while try nextIs(KeyCoding.Tag.segment) {
      segments.append(try text())
    }
    guard let path = try? DocumentPath(segments: segments) else {
      throw malformed("a reference that is no path")
    }
    return path
  }

  @_lifetime(self: copy self)
  private mutating func geoPoint() throws(MalformedBytes) -> Value {
    let latitude = KeyCoding.double(orderedBits: try eightOctets())
    let longitude = KeyCoding.double(orderedBits: try eightOctets())
    guard let place = try? GeoPoint(latitude: latitude, longitude: longitude) else {
      throw malformed("a place that is not on Earth")
    }
    return .geoPoint(place)
  }

  @_lifetime(self: copy self)
  private mutating func vector() throws(MalformedBytes) -> VectorValue {
    // Nothing is reserved: the count may be false, and the limit stops the loop.
    let count = try dimension()
    var components: [Double] = []
    for _ in 0..<count {
      components.append(KeyCoding.double(orderedBits: try eightOctets()))
    }
    return VectorValue(components)
  }

  @_lifetime(self: copy self)
  private mutating func blob(isSealed: Bool) throws(MalformedBytes) -> BlobReference {
    let digest = try take(BlobDigest.length)
    let length = try eightOctets()
    let contentType = try textOrNull()
    let path = try textOrNull()
    let key = isSealed ? BlobKey(bytes: try take(BlobKey.length)) : nil
    guard let digest = BlobDigest(bytes: digest), let length = Int(exactly: length),
      let blob = try? BlobReference(
        digest: digest, length: length, contentType: contentType, path: path, key: key)
    else { throw malformed("a blob that is none") }
    return blob
  }

  @_lifetime(self: copy self)
  private mutating func take(_ count: Int) throws(MalformedBytes) -> [UInt8] {
    var taken: [UInt8] = []
    for _ in 0..<count { taken.append(try octet()) }
    return taken
  }

  @_lifetime(self: copy self)
  private mutating func textOrNull() throws(MalformedBytes) -> String? {
    switch try octet() {
    case KeyCoding.Tag.null: return nil
    case KeyCoding.Tag.string: return try text()
    case let tag: throw malformed("the tag \(tag) where a text or none must be")
    }
  }

  @_lifetime(self: copy self)
  private mutating func array(depth: Int) throws(MalformedBytes) -> [Value] {
    try checkDepth(depth)
    var elements: [Value] = []
    while try !passEnd() {
      elements.append(try value(depth: depth + 1))
    }
    return elements
  }

  @_lifetime(self: copy self)
  private mutating func map(depth: Int) throws(MalformedBytes) -> [String: Value] {
    try checkDepth(depth)
    var fields: [String: Value] = [:]
    while try nextIs(KeyCoding.Tag.string) {
      let name = try text()
      guard fields.updateValue(try value(depth: depth + 1), forKey: name) == nil else {
        throw malformed("a name twice, or in two spellings")
      }
    }
    return fields
  }

  private func checkDepth(_ depth: Int) throws(MalformedBytes) {
    guard depth < KeyCoding.maximumDepth else { throw malformed("too many values within values") }
  }
}

// MARK: - Skipping values

extension KeyReader {
  /// Skips a value whose tag has been read.
  @_lifetime(self: copy self)
  private mutating func skipValue(tag: UInt8, depth: Int) throws(MalformedBytes) {
    switch tag {
    case KeyCoding.Tag.null, KeyCoding.Tag.no, KeyCoding.Tag.yes, KeyCoding.Tag.notANumber,
      KeyCoding.Tag.negativeInfinity, KeyCoding.Tag.zero, KeyCoding.Tag.positiveInfinity:
      break
    case KeyCoding.Tag.negative: _ = try number(isNegative: true)
    case KeyCoding.Tag.positive: _ = try number(isNegative: false)
    case KeyCoding.Tag.timestamp: _ = try timestamp()
    case KeyCoding.Tag.string, KeyCoding.Tag.bytes: try skipEscaped()
    case KeyCoding.Tag.reference:
      while try nextIs(KeyCoding.Tag.segment) { try skipEscaped() }
    case KeyCoding.Tag.geoPoint:
      _ = try eightOctets()
      _ = try eightOctets()
    case KeyCoding.Tag.array:
      try checkDepth(depth)
      while try !passEnd() { try skipValue(tag: try octet(), depth: depth + 1) }
    case KeyCoding.Tag.vector:
      for _ in 0..<(try dimension()) { _ = try eightOctets() }
    case KeyCoding.Tag.map:
      try checkDepth(depth)
      while try nextIs(KeyCoding.Tag.string) {
        try skipEscaped()
        try skipValue(tag: try octet(), depth: depth + 1)
      }
    case KeyCoding.Tag.blob, KeyCoding.Tag.sealedBlob:
      _ = try blob(isSealed: tag == KeyCoding.Tag.sealedBlob)
    default: throw malformed("an unknown tag, \(tag)")
    }
  }

  @_lifetime(self: copy self)
  private mutating func skipEscaped() throws(MalformedBytes) {
    while true {
      guard try octet() == 0 else { continue }
      if try isEscapeTheEnd() { return }
    }
  }
}

// MARK: - Bytes

extension KeyReader {
  @_lifetime(self: copy self)
  private mutating func octet() throws(MalformedBytes) -> UInt8 {
    guard offset < limit else { throw overLimit(at: limit) }
    guard offset < octets.count else { throw malformed("an end within a component") }
    defer { offset += 1 }
    return octets[offset] ^ mask
  }

  /// Whether `tag` follows; if not, the end of the container must.
  @_lifetime(self: copy self)
  private mutating func nextIs(_ tag: UInt8) throws(MalformedBytes) -> Bool {
    let found = try octet()
    guard found == tag || found == KeyCoding.Tag.end else {
      throw malformed("the tag \(found) where \(tag) or an end must be")
    }
    return found == tag
  }

  /// Skips the end of a container if it is here.
  @_lifetime(self: copy self)
  private mutating func passEnd() throws(MalformedBytes) -> Bool {
    guard try octet() == KeyCoding.Tag.end else {
      offset -= 1
      return false
    }
    return true
  }

  /// Reads the byte after a zero: the end of the text, or the mark that the zero belongs to it.
  @_lifetime(self: copy self)
  private mutating func isEscapeTheEnd() throws(MalformedBytes) -> Bool {
    switch try octet() {
    case 0x01: return true
    case 0xff: return false
    default: throw malformed("a wrong escape")
    }
  }

  @_lifetime(self: copy self)
  private mutating func unescaped() throws(MalformedBytes) -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let byte = try octet()
      if byte == 0, try isEscapeTheEnd() { return bytes }
      bytes.append(byte)
    }
  }

  @_lifetime(self: copy self)
  private mutating func text() throws(MalformedBytes) -> String {
    if let text = plainText() { return text }
    let bytes = try unescaped()
    guard let text = String(utf8: bytes.bytes) else {
      throw malformed("a text that is not UTF-8")
    }
    return text
  }

  /// The text here in its literal form, which most have. With nil, nothing was read, and it must be
  /// read byte by byte.
  @_lifetime(self: copy self)
  private mutating func plainText() -> String? {
    guard mask == 0 else { return nil }
    let end = min(limit, octets.count)
    var place = offset
    while place < end, octets[place] != 0 { place += 1 }
    guard place < end - 1, octets[place + 1] == 0x01,
      let text = String(utf8: octets.extracting(offset..<place).raw)
    else { return nil }
    offset = place + 2
    return text
  }

  @_lifetime(self: copy self)
  private mutating func eightOctets() throws(MalformedBytes) -> UInt64 {
    var bits: UInt64 = 0
    for _ in 0..<8 {
      bits = bits << 8 | UInt64(try octet())
    }
    return bits
  }

  @_lifetime(self: copy self)
  private mutating func dimension() throws(MalformedBytes) -> Int {
    var count = 0
    for _ in 0..<4 {
      count = count << 8 | Int(try octet())
    }
    return count
  }
}
