// A document read in place: a field is found without touching its siblings, and only requested
// fields are decoded. Filters, sorting and index maintenance read documents in this way; only
// documents for the app are decoded as a whole. The bytes may be hostile, so every step is checked.

internal import OndolEngine

/// The row of a document, borrowed. Small, because it is passed on for each row of a scan.
struct DocumentView: ~Escapable {
  private let octets: Span<UInt8>
  /// The number of top-level fields, and the tag of their table. For a table in its usual form,
  /// that is enough to find a field; ContainerLayout knows the other forms.
  private let count: Int
  private let tag: UInt8

  /// Reads the envelope and the header of the fields.
  @inline(__always)
  @_lifetime(copy row)
  init(_ row: RawSpan) throws(MalformedBytes) {
    let octets = row.octets
    guard let update = octets.word(at: 8), let create = octets.word(at: 16) else {
      throw MalformedBytes(at: 0, "a document has no envelope")
    }
    guard Timestamp.isInRange(Int64(bitPattern: update)),
      Timestamp.isInRange(Int64(bitPattern: create))
    else { throw MalformedBytes(at: 8, "a document has a time out of range") }
    let root = try octets.container(at: ValueCoding.envelopeLength)
    guard root.isMap else {
      throw MalformedBytes(at: ValueCoding.envelopeLength, "a document has no fields")
    }
    self.octets = octets
    count = root.count
    tag = root.tag
  }

  /// A copy of the whole row.
  var row: [UInt8] { octets.raw.array }

  /// The commit that last changed the document.
  var version: SequenceNumber { SequenceNumber(rawValue: word(at: 0)) }
  /// When it was last changed.
  var updateTime: Timestamp { Timestamp(unchecked: Int64(bitPattern: word(at: 8))) }
  /// When the document was created.
  var createTime: Timestamp { Timestamp(unchecked: Int64(bitPattern: word(at: 16))) }

  /// A word of the envelope, which exists.
  private func word(at offset: Int) -> UInt64 { octets.word(at: offset) ?? 0 }

  /// All fields.
  ///
  /// - Complexity: O(length of the document).
  func fields(_ symbols: SymbolTable) throws(MalformedBytes) -> [String: Value] {
    var reader = ValueReader(octets, at: ValueCoding.envelopeLength, symbols: symbols)
    let fields = try reader.value()
    guard reader.offset == octets.count, let map = fields.map else {
      throw MalformedBytes(at: reader.offset, "a document goes on behind its fields")
    }
    return map
  }

  /// Throws unless the whole document is well formed and has no name beyond `symbols`.
  ///
  /// - Complexity: O(length of the document), without an allocation.
  func check(_ symbols: SymbolTable) throws(MalformedBytes) {
    var reader = ValueReader(octets, at: ValueCoding.envelopeLength, symbols: symbols)
    try reader.skip()
    guard reader.offset == octets.count else {
      throw MalformedBytes(at: reader.offset, "a document goes on behind its fields")
    }
  }

  /// The field that `path` leads to; nil when there is none.
  ///
  /// - Complexity: O(log n) in the fields of each map on the way.
  @inline(__always)
  @_lifetime(copy self)
  func field(_ path: ResolvedPath) throws(MalformedBytes) -> ValueView? {
    path.topSymbol >= 0 && !isNamed
      ? try field(numbered: path.topSymbol) : try field(along: path)
  }

  /// Whether the top-level fields have names instead of numbers.
  @inline(__always)
  var isNamed: Bool { tag & ValueCoding.Flag.named != 0 }

  /// The top-level field with the number; only when fields have numbers.
  @inline(__always)
  @_lifetime(copy self)
  func field(numbered symbol: Int) throws(MalformedBytes) -> ValueView? {
    // With few fields, a linear search is faster.
    guard tag & ValueCoding.Flag.wide == 0, count <= 16 else {
      return try field(searching: symbol)
    }
    let symbolsStart = ValueCoding.envelopeLength + 4
    let isShort = tag & ValueCoding.Flag.shortSymbols != 0
    var index = 0
    var found = -1
    while index < count {
      found =
        isShort
        ? Int(octets[symbolsStart + index]) : octets.short(at: symbolsStart + 2 * index)
      if found >= symbol { break }
      index += 1
    }
    guard found == symbol else { return nil }
    let slotsStart = symbolsStart + (isShort ? count : 2 * count)
    let slot = octets.short(at: slotsStart + 2 * index)
    if slot >= ValueCoding.firstInline {
      return ValueView(octets, .inline(slot - ValueCoding.firstInline))
    }
    let offset = ValueCoding.envelopeLength + slot
    guard offset >= slotsStart + 2 * count, offset < octets.count else {
      throw MalformedBytes(
        at: ValueCoding.envelopeLength, "a document has a value out of bounds")
    }
    return ValueView(octets, .offset(offset))
  }

  @_lifetime(copy self)
  private func field(searching symbol: Int) throws(MalformedBytes) -> ValueView? {
    let root = try octets.container(at: ValueCoding.envelopeLength)
    guard let index = octets.index(ofSymbol: symbol, in: root) else { return nil }
    return ValueView(octets, try octets.place(index, of: root))
  }

  @_lifetime(copy self)
  private func field(along path: ResolvedPath) throws(MalformedBytes) -> ValueView? {
    var layout = try octets.container(at: ValueCoding.envelopeLength)
    let last = path.steps.count - 1
    // By index: iterating would retain and release the names.
    for step in path.steps.indices {
      guard let index = try index(of: path, step, in: layout) else { return nil }
      let place = try octets.place(index, of: layout)
      if step == last { return ValueView(octets, place) }
      guard case .offset(let offset) = place, octets.isMap(at: offset) else { return nil }
      layout = try octets.container(at: offset)
    }
    return nil
  }

  private func index(
    of path: ResolvedPath, _ step: Int, in layout: ContainerLayout
  ) throws(MalformedBytes) -> Int? {
    if layout.isNamed { return try octets.index(ofName: path.steps[step].name, in: layout) }
    guard let symbol = path.steps[step].symbol else { return nil }
    return octets.index(ofSymbol: Int(symbol), in: layout)
  }
}

/// A value inside a document, borrowed.
struct ValueView: ~Escapable {
  enum Place {
    /// The position of the value's tag.
    case offset(Int)
    /// The slot is the value: its twelve bits.
    case inline(Int)
  }

  let octets: Span<UInt8>
  let place: Place

  @_lifetime(copy octets)
  init(_ octets: Span<UInt8>, _ place: Place) {
    self.octets = octets
    self.place = place
  }

  /// The value, including everything in it.
  func value(_ symbols: SymbolTable) throws(MalformedBytes) -> Value {
    switch place {
    case .inline(let code):
      guard let value = ValueCoding.inlineValue(code) else {
        throw MalformedBytes(at: 0, "a document has a slot without meaning, \(code)")
      }
      return value
    case .offset(let offset):
      if let number = octets.number(at: offset) { return number }
      var reader = ValueReader(octets, at: offset, symbols: symbols)
      return try reader.value()
    }
  }

  /// The order of the value relative to `other`: negative, zero or positive. Texts and bytes are
  /// compared in place.
  func compare(_ other: Value, _ symbols: SymbolTable) throws(MalformedBytes) -> Int {
    if case .offset(let offset) = place, let tag = octets.octet(at: offset) {
      switch (tag, other) {
      case (ValueCoding.Tag.string, .string(let text)):
        if let own = octets.lengthPrefixed(at: offset + 1) { return own.compare(text) }
      case (ValueCoding.Tag.bytes, .bytes(let bytes)):
        if let own = octets.lengthPrefixed(at: offset + 1) { return own.compare(bytes.bytes) }
      default: break
      }
    }
    return ValueOrder.compare(try value(symbols), other)
  }
}

// MARK: - Finding

extension Span<UInt8> {
  /// The position of a slot's value.
  @inline(__always)
  func place(_ index: Int, of layout: ContainerLayout) throws(MalformedBytes) -> ValueView.Place {
    let slot = slot(index, of: layout)
    if slot >= layout.firstInline {
      return .inline(slot - layout.firstInline)
    }
    let offset = layout.base + slot
    guard offset >= layout.contentStart, offset < count else {
      throw MalformedBytes(at: layout.base, "a document has a value out of bounds")
    }
    return .offset(offset)
  }

  func isMap(at offset: Int) -> Bool {
    octet(at: offset).map { $0 & 0xf8 == ValueCoding.Tag.map } ?? false
  }

  /// Finds a symbol in a map's table.
  func index(ofSymbol symbol: Int, in layout: ContainerLayout) -> Int? {
    let place = place(ofSymbol: symbol, in: layout)
    return place.isThere ? place.index : nil
  }

  /// The place of a symbol in a map's table, or of the first one after it, and whether it is there.
  @inline(__always)
  func place(
    ofSymbol symbol: Int, in layout: ContainerLayout
  ) -> (index: Int, isThere: Bool) {
    var low = 0
    var high = layout.count
    while high - low > 8 {
      let middle = (low + high) / 2
      if self.symbol(middle, of: layout) < symbol { low = middle + 1 } else { high = middle + 1 }
    }
    while low < high {
      let found = self.symbol(low, of: layout)
      if found >= symbol { return (low, found == symbol) }
      low += 1
    }
    return (low, false)
  }

  /// Finds a name in a map that has its own.
  func index(ofName name: String, in layout: ContainerLayout) throws(MalformedBytes) -> Int? {
    let place = try place(ofName: name, in: layout)
    return place.isThere ? place.index : nil
  }

  /// The place of a name in a map that has its own, or of the first name after it.
  func place(
    ofName name: String, in layout: ContainerLayout
  ) throws(MalformedBytes) -> (index: Int, isThere: Bool) {
    var low = 0
    var high = layout.count
    while low < high {
      let middle = (low + high) / 2
      let offset = layout.base + symbol(middle, of: layout)
      guard offset >= layout.contentStart, let text = lengthPrefixed(at: offset) else {
        throw MalformedBytes(at: layout.base, "a document has a name out of bounds")
      }
      let order = text.compare(name)
      if order == 0 { return (middle, true) }
      if order < 0 { low = middle + 1 } else { high = middle }
    }
    return (low, false)
  }

  /// The text whose tag is at `offset`; nil when there is none.
  func text(at offset: Int) -> String? {
    guard octet(at: offset) == ValueCoding.Tag.string,
      let bytes = lengthPrefixed(at: offset + 1)
    else { return nil }
    return String(utf8: bytes)
  }

  /// Bytes after their length; nil when they are incomplete.
  @inline(__always)
  @_lifetime(copy self)
  func lengthPrefixed(at offset: Int) -> RawSpan? {
    guard let varint = varint(at: offset) else { return nil }
    let start = offset + varint.length
    guard varint.value <= count - start else { return nil }
    return extracting(start..<(start + varint.value)).raw
  }
}
