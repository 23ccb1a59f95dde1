// Numbers and tables in a document's bytes, writing and reading. Everything that can be out of
// bounds returns nil or throws. The readers of symbols and slots rely on `container(at:)` having
// checked the tables.

internal import OndolEngine

extension [UInt8] {
  /// Appends the low `width` bytes of `bits`, low byte first. The engine's generic form is not
  /// specialised across modules, and takes 25 times as long here.
  mutating func append(bits: UInt64, width: Int) {
    for index in 0..<width {
      append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * index)))
    }
  }

  /// Appends an integer as a value: its tag, and as many bytes as it needs.
  mutating func append(tagged value: Int64) {
    let (tag, width) =
      if Int16(exactly: value) != nil {
        (ValueCoding.Tag.int16, 2)
      } else if Int32(exactly: value) != nil {
        (ValueCoding.Tag.int32, 4)
      } else {
        (ValueCoding.Tag.int64, 8)
      }
    append(tag)
    append(bits: UInt64(bitPattern: value), width: width)
  }

  /// Appends a decimal as a value: its tag, and as many bytes as its digits need.
  mutating func append(_ value: DecimalValue) {
    append(ValueCoding.Tag.decimal)
    let coefficient = value.coefficient
    let width = (UInt128.bitWidth - coefficient.leadingZeroBitCount + 7) / 8
    append(UInt8(width) | (value.isNegative ? 0x80 : 0))
    append(bits: UInt64(truncatingIfNeeded: value.exponent), width: 2)
    for index in 0..<width {
      append(UInt8(truncatingIfNeeded: coefficient >> UInt128(8 * index)))
    }
  }

  /// Appends eight bytes, high byte first.
  mutating func append(highFirst bits: UInt64) {
    append(bits: bits.byteSwapped, width: 8)
  }

  /// Writes the low `width` bytes of `bits`, low byte first, over those at `offset`.
  mutating func set(bits: Int, width: Int, at offset: Int) {
    for index in 0..<width {
      self[offset + index] = UInt8(truncatingIfNeeded: bits >> (8 * index))
    }
  }
}

extension Span<UInt8> {
  /// The octet at `offset`; nil beyond the end.
  func octet(at offset: Int) -> UInt8? {
    offset < count ? self[offset] : nil
  }

  /// The number of two bytes at `offset`, which must be in bounds (checked).
  @inline(__always)
  func short(at offset: Int) -> Int {
    Int(self[offset]) | Int(self[offset + 1]) << 8
  }

  /// The number of `width` bytes at `offset`, low byte first; nil beyond the end.
  func littleEndian(at offset: Int, width: Int) -> UInt64? {
    guard offset <= count - width else { return nil }
    if width == 8 { return word(at: offset) }
    var bits: UInt64 = 0
    for index in 0..<width {
      bits |= UInt64(self[offset + index]) << UInt64(8 * index)
    }
    return bits
  }

  /// The integer or double whose tag is at `offset`; nil when there is none or it is incomplete.
  func number(at offset: Int) -> Value? {
    guard let tag = octet(at: offset), let width = ValueCoding.width(ofNumber: tag),
      let bits = littleEndian(at: offset + 1, width: width)
    else { return nil }
    return switch Number(tag, bits) {
    case .integer(let number): .integer(number)
    case .double(let number): .double(number)
    }
  }

  /// The decimal whose tag is before `offset`, in its one form, and its length in bytes; nil when
  /// there is none.
  func decimal(at offset: Int) -> (value: DecimalValue, length: Int)? {
    guard let head = octet(at: offset), let exponent = littleEndian(at: offset + 1, width: 2)
    else { return nil }
    let width = Int(head & 0x7f)
    let start = offset + 3
    guard width <= 16, width <= count - start else { return nil }
    var coefficient: UInt128 = 0
    for index in 0..<width { coefficient |= UInt128(self[start + index]) << UInt128(8 * index) }
    guard width == 0 || self[start + width - 1] != 0,
      let value = DecimalValue(
        canonical: coefficient, exponent: Int(Int16(truncatingIfNeeded: exponent)),
        isNegative: head & 0x80 != 0)
    else { return nil }
    return (value, 3 + width)
  }

  /// The variable-length number at `offset`, in its shortest form and of at most 35 bits; otherwise
  /// nil.
  @inline(__always)
  func varint(at offset: Int) -> (value: Int, length: Int)? {
    guard let first = octet(at: offset) else { return nil }
    return first < 0x80 ? (Int(first), 1) : longVarint(first, at: offset)
  }

  private func longVarint(_ first: UInt8, at offset: Int) -> (value: Int, length: Int)? {
    var value = Int(first & 0x7f)
    for index in 1..<5 {
      guard let octet = octet(at: offset + index) else { return nil }
      value |= Int(octet & 0x7f) << (7 * index)
      if octet < 0x80 { return octet == 0 ? nil : (value, index + 1) }
    }
    return nil
  }
}

// MARK: - Containers

extension Span<UInt8> {
  /// The container whose tag is at `base`. Its tables are known to be in bounds.
  @inline(__always)
  func container(at base: Int) throws(MalformedBytes) -> ContainerLayout {
    guard base <= count - 4 else {
      throw MalformedBytes(at: base, "a document ends within a table")
    }
    let tag = self[base]
    let flags = tag & 7
    let isMap = tag & 0xf8 == ValueCoding.Tag.map
    let isWide = flags & ValueCoding.Flag.wide != 0
    guard isMap || tag & 0xfe == ValueCoding.Tag.array, self[base + 1] == 0,
      flags & (ValueCoding.Flag.named | ValueCoding.Flag.shortSymbols) != 6
    else { throw MalformedBytes(at: base, "a document has an unknown kind of table, \(tag)") }
    let low = short(at: base + 2)
    var layout = ContainerLayout(
      base: base, count: low, isMap: isMap, isWide: isWide,
      hasShortSymbols: flags & ValueCoding.Flag.shortSymbols != 0,
      isNamed: flags & ValueCoding.Flag.named != 0)
    if isWide {
      guard low == 0, let wideCount = littleEndian(at: base + 4, width: 4) else {
        throw MalformedBytes(at: base, "a document has a wrong table")
      }
      layout.count = Int(wideCount)
    }
    guard layout.contentStart <= count else {
      throw MalformedBytes(at: base, "a document ends within a table")
    }
    return layout
  }

  /// The symbol at `index`, or in a map with names the slot of the name.
  func symbol(_ index: Int, of layout: ContainerLayout) -> Int {
    let offset = layout.symbolsStart + index * layout.symbolWidth
    return layout.hasShortSymbols
      ? Int(self[offset]) : number(at: offset, isWide: layout.isNamed && layout.isWide)
  }

  /// The slot at `index`.
  func slot(_ index: Int, of layout: ContainerLayout) -> Int {
    number(at: layout.slotsStart + index * layout.slotWidth, isWide: layout.isWide)
  }

  private func number(at offset: Int, isWide: Bool) -> Int {
    let low = short(at: offset)
    return isWide ? low | Int(self[offset + 2]) << 16 | Int(self[offset + 3]) << 24 : low
  }
}
