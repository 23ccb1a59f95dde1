// Support for Foundation's `Date`, `Data` and `Decimal`, the types that apps have in their models.
// Nothing else of the value layer imports Foundation, and this only the small half that every
// platform has.

public import OndolFoundation

/// Microseconds from 1970 to 2001, from which dates count.
private let referenceDateMicroseconds: Int64 = 978_307_200_000_000

extension Timestamp {
  /// The microsecond nearest to `date`, so that converting a timestamp to a `Date` and back
  /// restores it.
  ///
  /// - Throws: `.invalidArgument` outside the years 1 to 9999; `Date.distantPast` is outside by two
  ///   days.
  public init(date: Date) throws(DatabaseError) {
    let microseconds = (date.timeIntervalSinceReferenceDate * 1_000_000).rounded()
    guard let exact = Int64(exactly: microseconds) else { throw Self.outOfRange }
    let (sum, isTooLarge) = exact.addingReportingOverflow(referenceDateMicroseconds)
    guard !isTooLarge else { throw Self.outOfRange }
    try self.init(microsecondsSince1970: sum)
  }

  /// The time as a `Date`, exact to the microsecond for some centuries around today.
  public func dateValue() -> Date {
    let microseconds = microsecondsSince1970 - referenceDateMicroseconds
    return Date(timeIntervalSinceReferenceDate: Double(microseconds) / 1_000_000)
  }
}

extension Date: FieldConvertible, FieldReadable {
  /// A timestamp. Throws outside the years 1 to 9999.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    FieldInput(.timestamp(try Timestamp(date: self)))
  }

  /// Reads a timestamp.
  public init?(fieldValue: Value) {
    guard let timestamp = fieldValue.timestamp else { return nil }
    self = timestamp.dateValue()
  }
}

extension DecimalValue {
  /// The same number.
  ///
  /// - Throws: `.invalidArgument` when it is NaN, has 39 digits or is 10^128 or more.
  public init(_ decimal: Decimal) throws(DatabaseError) {
    guard !decimal.isNaN, let value = DecimalValue(decimal.description) else {
      throw DatabaseError(
        .invalidArgument,
        "\(decimal) cannot be stored: a decimal has up to \(Self.maximumDigits) digits, and up to"
          + " 128 before the point")
    }
    self = value
  }

  /// The same number.
  public var decimal: Decimal {
    let high = Decimal(UInt64(coefficient >> 64)) * (Decimal(UInt64(1) << 63) * 2)
    let significand = high + Decimal(UInt64(truncatingIfNeeded: coefficient))
    return Decimal(
      sign: isNegative ? .minus : .plus, exponent: exponent, significand: significand)
  }
}

extension DecimalValue: FieldConvertible, FieldReadable {
  /// A decimal.
  public func encodeField() -> FieldInput { FieldInput(.decimal(self)) }

  /// Reads a number, unless it has too many digits.
  public init?(fieldValue: Value) {
    switch fieldValue {
    case .decimal(let value): self = value
    case .integer(let value): self.init(value)
    case .double(let value): self.init(exactly: value)
    default: return nil
    }
  }
}

extension Decimal: FieldConvertible, FieldReadable {
  /// A decimal. Throws when it is NaN or has 39 digits.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    FieldInput(.decimal(try DecimalValue(self)))
  }

  /// Reads a number, unless it would have to be rounded: 0.5 as a double is read, 0.1 as one is
  /// not.
  public init?(fieldValue: Value) {
    guard let value = DecimalValue(fieldValue: fieldValue) else { return nil }
    self = value.decimal
  }
}

extension DecimalValue: Codable {
  /// Reads a decimal in the decoder's form.
  ///
  /// - Throws: what the decoder throws, and when it has 39 digits.
  public init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(Decimal.self))
  }

  /// Writes a `Decimal`.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(decimal)
  }
}

extension FieldValue {
  /// Adds to a number, exactly; to a double as a double. The write throws `.outOfRange` when the
  /// sum has more digits than a decimal.
  @_disfavoredOverload
  public static func increment(_ amount: Decimal) -> FieldValue {
    FieldValue(amount) { .increment($0) }
  }

  /// Stores `value` when the field is larger, missing or not a number.
  @_disfavoredOverload
  public static func minimum(_ value: Decimal) -> FieldValue {
    FieldValue(value) { .minimum($0) }
  }

  /// Stores `value` when the field is smaller, missing or not a number.
  @_disfavoredOverload
  public static func maximum(_ value: Decimal) -> FieldValue {
    FieldValue(value) { .maximum($0) }
  }

  private init(_ operand: Decimal, _ operation: (Value) -> Operation) {
    do throws(DatabaseError) {
      self.init(operation: operation(.decimal(try DecimalValue(operand))))
    } catch {
      self.init(operation: .invalid(error))
    }
  }
}

extension Data: FieldConvertible, FieldReadable {
  /// Bytes.
  public func encodeField() -> FieldInput { FieldInput(.bytes([UInt8](self))) }

  /// Reads bytes.
  public init?(fieldValue: Value) {
    guard let bytes = fieldValue.bytes else { return nil }
    self = Data(bytes)
  }
}
