// The keys of groups: bytes that are the same for equal values and for no others, whatever form the
// values are stored in. So a group is found without decoding a value, and 1, 1.0 and a decimal of 1
// are one group. The keys of most values also show the values themselves.
//
//   null, false, true    F0, then 0, 1 or 2
//   whole numbers        as an integer in the stored form (see ValueCoding)
//   other numbers        a double in the stored form, or a decimal that no double equals
//   all others           a tag of the stored form, and then what decides the order of values

internal import OndolEngine

extension [UInt8] {
  /// Appends the key of a value, nil as of null; returns whether the key shows the value itself.
  mutating func append(groupKey value: Value?) -> Bool {
    switch value {
    case nil, .null?: append(groupCode: 0)
    case .boolean(let value)?: append(groupCode: value ? 2 : 1)
    case .integer(let number)?: append(tagged: number)
    case .double(let number)?: return append(groupKey: number)
    case .decimal(let number)?:
      append(groupKey: number)
      return false
    case .timestamp(let time)?:
      append(ValueCoding.Tag.timestamp)
      append(bits: UInt64(bitPattern: time.microsecondsSince1970), width: 8)
    case .string(let text)?: append(ValueCoding.Tag.string, text: text)
    case .bytes(let octets)?: append(ValueCoding.Tag.bytes, octets.bytes)
    case .reference(let path)?: append(ValueCoding.Tag.reference, text: path.description)
    case .geoPoint, .array, .vector, .map, .blob:
      if let value { append(groupKeyOfParts: value) }
      return false
    }
    return true
  }

  /// Null, false or true.
  @inline(__always)
  mutating func append(groupCode code: Int) {
    append(GroupKey.codeTag)
    append(UInt8(truncatingIfNeeded: code))
  }

  /// Appends bytes after a tag and their length.
  mutating func append(_ tag: UInt8, _ octets: RawSpan) {
    append(tag)
    appendVarint(octets.byteCount)
    append(octets)
  }

  private mutating func append(_ tag: UInt8, text: String) {
    text.withUTF8Bytes { append(tag, $0) }
  }

  @inline(__always)
  mutating func append(groupKey number: Double) -> Bool {
    guard let whole = Int64(exactly: number) else {
      append(ValueCoding.Tag.float64)
      append(bits: number.isNaN ? Double.nan.bitPattern : number.bitPattern, width: 8)
      return !number.isNaN || number.bitPattern == Double.nan.bitPattern
    }
    append(tagged: whole)
    return false
  }

  private mutating func append(groupKey number: DecimalValue) {
    if let whole = number.whole(Int64.self) { return append(tagged: whole) }
    let below = number.magnitudeBelow
    guard below.isExact else { return append(number) }
    _ = append(groupKey: number.isNegative ? -below.double : below.double)
  }

  /// Zero has one form, and so has NaN.
  private mutating func append(component number: Double) {
    let bits = number == 0 ? 0 : number.isNaN ? Double.nan.bitPattern : number.bitPattern
    append(bits: bits, width: 8)
  }

  private mutating func append(groupKeyOfParts value: Value) {
    switch value {
    case .geoPoint(let point):
      append(ValueCoding.Tag.geoPoint)
      append(component: point.latitude)
      append(component: point.longitude)
    case .vector(let vector):
      append(ValueCoding.Tag.vector)
      appendVarint(vector.components.count)
      for component in vector.components { append(component: component) }
    case .array(let elements):
      append(ValueCoding.Tag.array)
      appendVarint(elements.count)
      for element in elements { _ = append(groupKey: element) }
    case .map(let fields):
      append(ValueCoding.Tag.map)
      appendVarint(fields.count)
      for (name, value) in ValueOrder.sorted(fields) {
        append(ValueCoding.Tag.string, text: name)
        _ = append(groupKey: value)
      }
    case .blob:
      // Every part of it counts.
      var record = RecordWriter()
      record.append(value)
      self += record.take()
    default: preconditionFailure("all other values have no parts")
    }
  }
}

extension ValueView {
  /// Appends the key of the value; returns whether the key shows the value itself. A text may not
  /// be UTF-8, which `GroupKey.check` finds.
  @inline(__always)
  func append(
    groupKeyTo bytes: inout [UInt8], _ symbols: SymbolTable
  ) throws(MalformedBytes) -> Bool {
    switch place {
    case .inline(let code):
      if code <= 2 {
        bytes.append(groupCode: code)
        return true
      }
      guard ValueCoding.isInline(code) else {
        throw MalformedBytes(at: 0, "a document has a slot without meaning, \(code)")
      }
      bytes.append(tagged: Int64(code - 0x800))
      return true
    case .offset(let offset):
      if let text = try text {
        bytes.append(ValueCoding.Tag.string, text)
        return true
      }
      switch try number {
      case .integer(let number)?:
        bytes.append(tagged: number)
        return true
      case .double(let number)?: return bytes.append(groupKey: number)
      case nil: break
      }
      return try append(groupKeyOfOther: offset, to: &bytes, symbols)
    }
  }

  @inline(never)
  private func append(
    groupKeyOfOther offset: Int, to bytes: inout [UInt8], _ symbols: SymbolTable
  ) throws(MalformedBytes) -> Bool {
    bytes.append(groupKey: try value(symbols))
  }
}

/// Reads keys of groups.
enum GroupKey {
  /// No tag of a stored value is this.
  static let codeTag: UInt8 = 0xf0

  private static let noSymbols = SymbolTable(limit: 0)

  /// Throws when the key does not have the form of keys: it was made of bytes from disk.
  static func check(_ key: RawSpan) throws(MalformedBytes) {
    let octets = key.octets
    var reader = ValueReader(octets, at: 0, symbols: noSymbols)
    while reader.offset < octets.count {
      if octets[reader.offset] == codeTag { reader.offset += 2 } else { try reader.skip() }
    }
  }

  /// The values of a key that shows them.
  static func values(in key: RawSpan) throws(MalformedBytes) -> [Value] {
    let octets = key.octets
    var values: [Value] = []
    var reader = ValueReader(octets, at: 0, symbols: noSymbols)
    while reader.offset < octets.count {
      guard octets[reader.offset] == codeTag else {
        values.append(try reader.value())
        continue
      }
      guard let code = octets.octet(at: reader.offset + 1),
        let value = ValueCoding.inlineValue(Int(code))
      else { throw reader.malformed("has a group without meaning") }
      values.append(value)
      reader.offset += 2
    }
    return values
  }
}
