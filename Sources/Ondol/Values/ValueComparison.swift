// Compares a value in its row with an operand: the order of values (ValueOrder) for the types of
// most conditions, without making a `Value`.

internal import OndolEngine

/// The possible orders of two values.
struct ValueOrders: OptionSet, Sendable, BitwiseCopyable {
  let rawValue: UInt8

  static let below = ValueOrders(rawValue: 1)
  static let same = ValueOrders(rawValue: 2)
  static let above = ValueOrders(rawValue: 4)
  /// They have no order, because their types differ. Null has none of these orders, not even this
  /// one, relative to a value of another type.
  static let other = ValueOrders(rawValue: 8)

  init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The result of a comparison: negative, zero or positive.
  @inline(__always)
  init(_ order: Int) {
    self = order < 0 ? .below : order == 0 ? .same : .above
  }
}

extension ValueView {
  /// The twelve bits of a value that fits its slot; otherwise nil. Null is 0.
  @inline(__always)
  var code: Int? {
    if case .inline(let code) = place { code } else { nil }
  }

  /// The number; nil for another type or a decimal.
  @inline(__always)
  var number: Number? {
    get throws(MalformedBytes) {
      switch place {
      case .inline(let code):
        return (0x400...0xbff).contains(code) ? .integer(Int64(code - 0x800)) : nil
      case .offset(let offset):
        guard let tag = octets.octet(at: offset), let width = ValueCoding.width(ofNumber: tag)
        else { return nil }
        guard let bits = octets.littleEndian(at: offset + 1, width: width) else {
          throw MalformedBytes(at: offset, "a document ends within a number")
        }
        return Number(tag, bits)
      }
    }
  }

  /// The order of the value relative to an integer.
  @inline(__always)
  func order(to operand: Int64) throws(MalformedBytes) -> ValueOrders {
    switch try number {
    case .integer(let own): ValueOrders(ValueOrder.sign(own, operand))
    case .double(let own): ValueOrders(-ValueOrder.compare(operand, own))
    case nil: orderOfDecimal { ValueOrder.compare($0, operand) }
    }
  }

  /// The order of the value relative to a double.
  @inline(__always)
  func order(to operand: Double) throws(MalformedBytes) -> ValueOrders {
    switch try number {
    case .integer(let own): ValueOrders(ValueOrder.compare(own, operand))
    case .double(let own): ValueOrders(ValueOrder.compare(own, operand))
    case nil: orderOfDecimal { ValueOrder.compare($0, operand) }
    }
  }

  /// The order of a decimal; none when the value has another type. Separate, so that the other
  /// numbers need not handle it.
  @inline(never)
  private func orderOfDecimal(_ compare: (DecimalValue) -> Int) -> ValueOrders {
    decimal.map { ValueOrders(compare($0)) } ?? []
  }

  /// The decimal; nil for another type.
  var decimal: DecimalValue? {
    guard case .offset(let offset) = place, octets.octet(at: offset) == ValueCoding.Tag.decimal
    else { return nil }
    return octets.decimal(at: offset + 1)?.value
  }

  /// The order of the value relative to a time in microseconds since 1970.
  @inline(__always)
  func order(toTimestamp operand: Int64) throws(MalformedBytes) -> ValueOrders {
    guard case .offset(let offset) = place, octets.octet(at: offset) == ValueCoding.Tag.timestamp
    else { return [] }
    guard let bits = octets.word(at: offset + 1) else {
      throw MalformedBytes(at: offset, "a document ends within a number")
    }
    return ValueOrders(ValueOrder.sign(Int64(bitPattern: bits), operand))
  }

  /// The order of the value relative to a text.
  @inline(__always)
  func order(to operand: RawSpan) throws(MalformedBytes) -> ValueOrders {
    guard let own = try text else { return [] }
    return ValueOrders(own.compare(operand))
  }

  /// The bytes of the text; nil for another type.
  @inline(__always)
  var text: RawSpan? {
    @_lifetime(copy self)
    get throws(MalformedBytes) { try bytes(tagged: ValueCoding.Tag.string) }
  }

  /// The bytes of the path that the value refers to; nil for another type.
  var reference: RawSpan? {
    @_lifetime(copy self)
    get throws(MalformedBytes) { try bytes(tagged: ValueCoding.Tag.reference) }
  }

  /// The bytes that a tag and their number precede; nil for another tag.
  @inline(__always)
  @_lifetime(copy self)
  private func bytes(tagged tag: UInt8) throws(MalformedBytes) -> RawSpan? {
    guard case .offset(let offset) = place, octets.octet(at: offset) == tag else { return nil }
    guard let bytes = octets.lengthPrefixed(at: offset + 1) else {
      throw MalformedBytes(at: offset, "a document ends within a text or bytes")
    }
    return bytes
  }

  // MARK: - Elements

  /// The positions of the elements; nil when the value is not an array.
  func arrayLayout() throws(MalformedBytes) -> ContainerLayout? {
    guard case .offset(let offset) = place, let tag = octets.octet(at: offset),
      tag & 0xf8 == ValueCoding.Tag.array
    else { return nil }
    return try octets.container(at: offset)
  }

  /// An element of the array.
  @_lifetime(copy self)
  func element(_ index: Int, of layout: ContainerLayout) throws(MalformedBytes) -> ValueView {
    ValueView(octets, try octets.place(index, of: layout))
  }
}

/// A number in its stored form.
enum Number: Sendable, BitwiseCopyable {
  case integer(Int64)
  case double(Double)

  /// - Parameter bits: those after `tag`, which is a number's.
  @inline(__always)
  init(_ tag: UInt8, _ bits: UInt64) {
    self =
      switch tag {
      case ValueCoding.Tag.int16: .integer(Int64(Int16(truncatingIfNeeded: bits)))
      case ValueCoding.Tag.int32: .integer(Int64(Int32(truncatingIfNeeded: bits)))
      case ValueCoding.Tag.int64: .integer(Int64(bitPattern: bits))
      case ValueCoding.Tag.float32:
        .double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))))
      default: .double(Double(bitPattern: bits))
      }
  }
}
