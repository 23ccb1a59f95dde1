// Checks a document without decoding it. A document is checked once when it is read, so that later
// accesses cannot fail. This refuses exactly what ValueReader's decoding refuses, allocates
// nothing, and costs some ten nanoseconds a field.

internal import OndolEngine

extension ValueReader {
  /// Skips the value that begins here, including everything in it, and checks it.
  @_lifetime(self: copy self)
  mutating func skip(depth: Int = 0) throws(MalformedBytes) {
    guard let tag = octets.octet(at: offset) else { throw malformed("ends where a value must be") }
    if tag >= ValueCoding.Tag.map { return try skipContainer(depth: depth) }
    if let width = ValueCoding.width(ofNumber: tag) {
      guard width < octets.count - offset else { throw malformed("ends within a number") }
      offset += 1 + width
      return
    }
    offset += 1
    switch tag {
    case ValueCoding.Tag.timestamp: _ = try timestamp()
    case ValueCoding.Tag.decimal: _ = try decimal()
    case ValueCoding.Tag.string: try skipText()
    case ValueCoding.Tag.bytes: _ = try lengthPrefixed()
    case ValueCoding.Tag.reference: _ = try reference()
    case ValueCoding.Tag.geoPoint: _ = try geoPoint()
    case ValueCoding.Tag.vector:
      let count = try count(atMost: (octets.count - offset) / 8)
      guard 8 * count <= octets.count - offset else { throw malformed("ends within a number") }
      offset += 8 * count
    case ValueCoding.Tag.blob: _ = try blob()
    default: throw malformed("has an unknown kind of value, \(tag)")
    }
  }

  @_lifetime(self: copy self)
  private mutating func skipText() throws(MalformedBytes) {
    let start = offset
    let text = try lengthPrefixed().octets
    guard text.isShortASCII || text.raw.isUTF8 else {
      throw MalformedBytes(at: start, "a document has a text that is not UTF-8")
    }
  }

  @_lifetime(self: copy self)
  private mutating func skipContainer(depth: Int) throws(MalformedBytes) {
    guard depth < ValueCoding.maximumDepthRead else {
      throw malformed("has too many values within values")
    }
    let layout = try octets.container(at: offset)
    offset = layout.contentStart
    if layout.isNamed {
      try skipNames(layout)
    } else if layout.isMap {
      if symbols.hasTwoSpellings {
        // Rare, and its names must be compared with each other.
        _ = try fields(layout, depth: depth)
        return
      }
      return try skipFields(layout, depth: depth)
    }
    for index in 0..<layout.count {
      try skipElement(octets.slot(index, of: layout), of: layout, depth: depth)
    }
  }

  /// Skips the fields of a map, most of which are numbers and texts in a narrow table.
  @_lifetime(self: copy self)
  private mutating func skipFields(
    _ layout: ContainerLayout, depth: Int
  ) throws(MalformedBytes) {
    let symbolCount = symbols.count
    let slotsStart = layout.slotsStart
    var previous = -1
    for index in 0..<layout.count {
      let symbol = octets.symbol(index, of: layout)
      guard symbol > previous else { throw malformed("has symbols out of order") }
      guard symbol < symbolCount else {
        throw malformed("has a field whose name is unknown, number \(symbol)")
      }
      previous = symbol
      let place = slotsStart + index * layout.slotWidth
      let slot =
        layout.isWide
        ? octets.slot(index, of: layout) : Int(octets[place]) | Int(octets[place + 1]) << 8
      try skipElement(slot, of: layout, depth: depth)
    }
  }

  /// Skips the names of a map that has its own.
  @_lifetime(self: copy self)
  private mutating func skipNames(_ layout: ContainerLayout) throws(MalformedBytes) {
    let start = offset
    var previous = start..<start
    var isASCII = true
    for index in 0..<layout.count {
      guard octets.symbol(index, of: layout) == offset - layout.base else {
        throw malformed("has names that do not follow each other")
      }
      let place = offset
      let name = try lengthPrefixed().octets
      let isPlain = name.isShortASCII
      guard isPlain || name.raw.isUTF8 else {
        throw MalformedBytes(at: place, "a document has a text that is not UTF-8")
      }
      isASCII = isASCII && isPlain
      let bounds = (offset - name.count)..<offset
      guard index == 0 || octets.extracting(previous).raw.compare(name.raw) < 0 else {
        throw malformed("has names out of order")
      }
      previous = bounds
    }
    // Only beyond ASCII can different names be spellings of one; long names are not checked.
    guard !isASCII else { return }
    offset = start
    guard Set(try names(layout)).count == layout.count else {
      throw malformed("has a name in two spellings")
    }
  }

  /// Skips the value of a slot, which must be inline or follow here.
  @_lifetime(self: copy self)
  @inline(__always)
  private mutating func skipElement(
    _ slot: Int, of layout: ContainerLayout, depth: Int
  ) throws(MalformedBytes) {
    if slot >= layout.firstInline {
      guard ValueCoding.isInline(slot - layout.firstInline) else {
        throw malformed("has a slot without meaning, \(slot)")
      }
      return
    }
    guard slot == offset - layout.base else {
      throw malformed("has values that do not follow each other")
    }
    try skip(depth: depth + 1)
  }
}

extension Span<UInt8> {
  /// Whether these are few bytes and all of them ASCII: this check is faster than the standard
  /// library's.
  fileprivate var isShortASCII: Bool {
    guard count <= 64 else { return false }
    var place = 0
    while let word = word(at: place) {
      if word & 0x8080_8080_8080_8080 != 0 { return false }
      place += 8
    }
    while place < count {
      if self[place] >= 0x80 { return false }
      place += 1
    }
    return true
  }
}
