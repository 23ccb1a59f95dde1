// Decodes bytes into values. The bytes come from a file and may be anything: every length, offset,
// symbol and text is checked, and a container's values must follow each other without gaps, so that
// a pass is never longer than the bytes. The form is in ValueCoding.

internal import OndolEngine

/// Reads the values of one document from some position on.
struct ValueReader: ~Escapable {
  let octets: Span<UInt8>
  let symbols: SymbolTable
  /// Where the next value begins.
  var offset: Int

  @_lifetime(copy octets)
  init(_ octets: Span<UInt8>, at offset: Int, symbols: SymbolTable) {
    self.octets = octets
    self.offset = offset
    self.symbols = symbols
  }

  /// Reads the value that begins here, including everything in it.
  @_lifetime(self: copy self)
  mutating func value(depth: Int = 0) throws(MalformedBytes) -> Value {
    let tag = octets.octet(at: offset)
    guard let tag else { throw malformed("ends where a value must be") }
    if tag >= ValueCoding.Tag.map { return try container(depth: depth) }
    if let width = ValueCoding.width(ofNumber: tag) {
      guard let number = octets.number(at: offset) else { throw malformed("ends within a number") }
      offset += 1 + width
      return number
    }
    offset += 1
    switch tag {
    case ValueCoding.Tag.timestamp: return .timestamp(try timestamp())
    case ValueCoding.Tag.string: return .string(try text())
    case ValueCoding.Tag.bytes: return .bytes(try lengthPrefixed().array)
    default: return try rareValue(tag)
    }
  }

  /// Reads types that few documents have. Separate from the recursive function, because a hundred
  /// nested values must fit a small stack.
  @_lifetime(self: copy self)
  @inline(never)
  private mutating func rareValue(_ tag: UInt8) throws(MalformedBytes) -> Value {
    switch tag {
    case ValueCoding.Tag.decimal: return .decimal(try decimal())
    case ValueCoding.Tag.reference: return try reference()
    case ValueCoding.Tag.geoPoint: return try geoPoint()
    case ValueCoding.Tag.vector: return try vector()
    case ValueCoding.Tag.blob: return .blob(try blob())
    default: throw malformed("has an unknown kind of value, \(tag)")
    }
  }

  func malformed(_ reason: String) -> MalformedBytes {
    MalformedBytes(at: offset, "a document \(reason)")
  }
}

// MARK: - Scalars

extension ValueReader {
  @_lifetime(self: copy self)
  mutating func word() throws(MalformedBytes) -> UInt64 {
    guard let word = octets.word(at: offset) else { throw malformed("ends within a number") }
    offset += 8
    return word
  }

  @_lifetime(self: copy self)
  mutating func timestamp() throws(MalformedBytes) -> Timestamp {
    let microseconds = Int64(bitPattern: try word())
    guard Timestamp.isInRange(microseconds) else { throw malformed("has a timestamp out of range") }
    return Timestamp(unchecked: microseconds)
  }

  @_lifetime(self: copy self)
  mutating func decimal() throws(MalformedBytes) -> DecimalValue {
    guard let decimal = octets.decimal(at: offset) else {
      throw malformed("has a decimal that is none")
    }
    offset += decimal.length
    return decimal.value
  }

  @_lifetime(self: copy self)
  mutating func geoPoint() throws(MalformedBytes) -> Value {
    let latitude = Double(bitPattern: try word())
    let longitude = Double(bitPattern: try word())
    guard let place = try? GeoPoint(latitude: latitude, longitude: longitude) else {
      throw malformed("has a place that is not on Earth")
    }
    return .geoPoint(place)
  }

  @_lifetime(self: copy self)
  private mutating func vector() throws(MalformedBytes) -> Value {
    let count = try count(atMost: (octets.count - offset) / 8)
    var components: [Double] = []
    components.reserveCapacity(count)
    for _ in 0..<count {
      components.append(Double(bitPattern: try word()))
    }
    return .vector(VectorValue(components))
  }

  @_lifetime(self: copy self)
  mutating func blob() throws(MalformedBytes) -> BlobReference {
    guard let flags = octets.octet(at: offset),
      flags <= ValueCoding.BlobFlag.all,
      BlobDigest.length < octets.count - offset
    else { throw malformed("has a blob without a digest") }
    let start = offset + 1
    let digest = BlobDigest(octets.extracting(start..<(start + BlobDigest.length)))
    offset = start + BlobDigest.length
    guard let length = Int(exactly: try word()) else { throw malformed("has a blob too long") }
    let contentType = flags & ValueCoding.BlobFlag.contentType != 0 ? try text() : nil
    let path = flags & ValueCoding.BlobFlag.path != 0 ? try text() : nil
    let key = flags & ValueCoding.BlobFlag.key != 0 ? try contentKey() : nil
    guard
      let blob = try? BlobReference(
        digest: digest, length: length, contentType: contentType, path: path, key: key)
    else { throw malformed("has a blob that is none") }
    return blob
  }

  @_lifetime(self: copy self)
  private mutating func contentKey() throws(MalformedBytes) -> BlobKey {
    guard BlobKey.length <= octets.count - offset else { throw malformed("ends within a key") }
    let start = offset
    offset += BlobKey.length
    var bytes: [UInt8] = []
    for place in start..<offset { bytes.append(octets[place]) }
    guard let key = BlobKey(bytes: bytes) else { throw malformed("has a key that is none") }
    return key
  }

  @_lifetime(self: copy self)
  mutating func reference() throws(MalformedBytes) -> Value {
    let path = try text()
    guard let reference = try? DocumentPath(path), reference.description == path else {
      throw malformed("has a reference that is no path")
    }
    return .reference(reference)
  }

  @_lifetime(self: copy self)
  mutating func text() throws(MalformedBytes) -> String {
    let start = offset
    guard let text = String(utf8: try lengthPrefixed()) else {
      throw MalformedBytes(at: start, "a document has a text that is not UTF-8")
    }
    return text
  }

  /// Bytes after their length.
  @_lifetime(self: copy self)
  @_lifetime(copy self)
  mutating func lengthPrefixed() throws(MalformedBytes) -> RawSpan {
    let length = try count(atMost: octets.count)
    guard length <= octets.count - offset else { throw malformed("ends within a text or bytes") }
    defer { offset += length }
    return octets.extracting(offset..<(offset + length)).raw
  }

  @_lifetime(self: copy self)
  mutating func count(atMost limit: Int) throws(MalformedBytes) -> Int {
    guard let varint = octets.varint(at: offset), varint.value <= limit else {
      throw malformed("has a length that is not possible")
    }
    offset += varint.length
    return varint.value
  }
}

// MARK: - Containers

extension ValueReader {
  @_lifetime(self: copy self)
  private mutating func container(depth: Int) throws(MalformedBytes) -> Value {
    guard depth < ValueCoding.maximumDepthRead else {
      throw malformed("has too many values within values")
    }
    let layout = try octets.container(at: offset)
    offset = layout.contentStart
    if !layout.isMap { return .array(try elements(layout, depth: depth)) }
    return .map(
      layout.isNamed ? try namedFields(layout, depth: depth) : try fields(layout, depth: depth))
  }

  @_lifetime(self: copy self)
  private mutating func elements(
    _ layout: ContainerLayout, depth: Int
  ) throws(MalformedBytes) -> [Value] {
    var elements: [Value] = []
    elements.reserveCapacity(layout.count)
    for index in 0..<layout.count {
      elements.append(try element(index, of: layout, depth: depth))
    }
    return elements
  }

  @_lifetime(self: copy self)
  mutating func fields(
    _ layout: ContainerLayout, depth: Int
  ) throws(MalformedBytes) -> [String: Value] {
    var fields = [String: Value](minimumCapacity: layout.count)
    var previous = -1
    for index in 0..<layout.count {
      let symbol = octets.symbol(index, of: layout)
      guard symbol > previous else { throw malformed("has symbols out of order") }
      guard let name = symbols.name(UInt32(symbol)) else {
        throw malformed("has a field whose name is unknown, number \(symbol)")
      }
      previous = symbol
      fields.updateValue(try element(index, of: layout, depth: depth), forKey: name)
    }
    guard fields.count == layout.count else { throw malformed("has a name in two spellings") }
    return fields
  }

  @_lifetime(self: copy self)
  private mutating func namedFields(
    _ layout: ContainerLayout, depth: Int
  ) throws(MalformedBytes) -> [String: Value] {
    var fields = [String: Value](minimumCapacity: layout.count)
    for (index, name) in try names(layout).enumerated() {
      fields.updateValue(try element(index, of: layout, depth: depth), forKey: name)
    }
    guard fields.count == layout.count else { throw malformed("has a name in two spellings") }
    return fields
  }

  /// The names of a map that has its own, in their order.
  @_lifetime(self: copy self)
  mutating func names(_ layout: ContainerLayout) throws(MalformedBytes) -> [String] {
    var names: [String] = []
    names.reserveCapacity(layout.count)
    for index in 0..<layout.count {
      guard octets.symbol(index, of: layout) == offset - layout.base else {
        throw malformed("has names that do not follow each other")
      }
      let name = try text()
      guard names.last.map({ ValueOrder.compare($0, name) < 0 }) ?? true else {
        throw malformed("has names out of order")
      }
      names.append(name)
    }
    return names
  }

  /// Reads the value of a slot, which must be inline or follow here.
  @_lifetime(self: copy self)
  private mutating func element(
    _ index: Int, of layout: ContainerLayout, depth: Int
  ) throws(MalformedBytes) -> Value {
    let slot = octets.slot(index, of: layout)
    if slot >= layout.firstInline {
      guard let value = ValueCoding.inlineValue(slot - layout.firstInline) else {
        throw malformed("has a slot without meaning, \(slot)")
      }
      return value
    }
    guard slot == offset - layout.base else {
      throw malformed("has values that do not follow each other")
    }
    return try value(depth: depth + 1)
  }
}
