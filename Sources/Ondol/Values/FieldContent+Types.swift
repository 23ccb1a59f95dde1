// Swift's own types as fields: how each is written, and what each can be read from. A number can be
// read as any type that its value fits: 3.0 as an `Int`, 3 as a `Double`, because the order of
// values treats them as equal.

// MARK: - Ondol's own

extension Value: FieldConvertible, FieldReadable {
  /// The value itself.
  public func encodeField() -> FieldInput { FieldInput(self) }
  /// Reads any value.
  public init?(fieldValue: Value) { self = fieldValue }
}

extension Timestamp: FieldConvertible, FieldReadable {
  /// A timestamp.
  public func encodeField() -> FieldInput { FieldInput(.timestamp(self)) }
  /// Reads a timestamp.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.timestamp else { return nil }
    self = value
  }
}

extension GeoPoint: FieldConvertible, FieldReadable {
  /// A geographical point.
  public func encodeField() -> FieldInput { FieldInput(.geoPoint(self)) }
  /// Reads a geographical point.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.geoPoint else { return nil }
    self = value
  }
}

extension VectorValue: FieldConvertible, FieldReadable {
  /// A vector.
  public func encodeField() -> FieldInput { FieldInput(.vector(self)) }
  /// Reads a vector.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.vector else { return nil }
    self = value
  }
}

extension DocumentPath: FieldConvertible, FieldReadable {
  /// A reference to the document at the path.
  public func encodeField() -> FieldInput { FieldInput(.reference(self)) }
  /// Reads a reference.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.reference else { return nil }
    self = value
  }
}

// MARK: - Texts and booleans

extension Bool: FieldConvertible, FieldReadable {
  /// A boolean.
  public func encodeField() -> FieldInput { FieldInput(.boolean(self)) }
  /// Reads a boolean only: numbers are not booleans.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.boolean else { return nil }
    self = value
  }
}

extension String: FieldConvertible, FieldReadable {
  /// A text.
  public func encodeField() -> FieldInput { FieldInput(.string(self)) }
  /// Reads a text.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.string else { return nil }
    self = value
  }
}

extension Substring: FieldConvertible {
  /// A text.
  public func encodeField() -> FieldInput { FieldInput(.string(String(self))) }
}

// MARK: - Numbers

extension FixedWidthInteger {
  /// The integer as it is stored: above `Int64.max` as a decimal.
  fileprivate func encodedInteger() -> FieldInput {
    if let value = Int64(exactly: self) { return FieldInput(.integer(value)) }
    return FieldInput(.decimal(DecimalValue(UInt64(truncatingIfNeeded: self))))
  }

  /// The number if it is an integer and fits.
  fileprivate init?(wholeNumberIn value: Value) {
    switch value {
    case .integer(let integer): self.init(exactly: integer)
    case .double(let double): self.init(exactly: double)
    case .decimal(let decimal):
      guard let whole = decimal.whole(Self.self) else { return nil }
      self = whole
    default: return nil
    }
  }
}

extension Int: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension Int8: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension Int16: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension Int32: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension Int64: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(self)) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension UInt: FieldConvertible, FieldReadable {
  /// An integer; above `Int64.max` a decimal.
  public func encodeField() -> FieldInput { encodedInteger() }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension UInt8: FieldConvertible, FieldReadable {
  /// An integer. An array of `UInt8`, however, is stored as bytes.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension UInt16: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension UInt32: FieldConvertible, FieldReadable {
  /// An integer.
  public func encodeField() -> FieldInput { FieldInput(.integer(Int64(self))) }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension UInt64: FieldConvertible, FieldReadable {
  /// An integer; above `Int64.max` a decimal.
  public func encodeField() -> FieldInput { encodedInteger() }
  /// Reads an integer that fits.
  public init?(fieldValue: Value) { self.init(wholeNumberIn: fieldValue) }
}

extension Double: FieldConvertible, FieldReadable {
  /// A double.
  public func encodeField() -> FieldInput { FieldInput(.double(self)) }
  /// Reads any number; an integer or a decimal as the nearest double.
  public init?(fieldValue: Value) {
    switch fieldValue {
    case .double(let value): self = value
    case .integer(let value): self = Double(value)
    case .decimal(let value): self = value.double
    default: return nil
    }
  }
}

extension Float: FieldConvertible, FieldReadable {
  /// A double.
  public func encodeField() -> FieldInput { FieldInput(.double(Double(self))) }
  /// Reads any number as the nearest `Float`, except a finite one that is too large for it.
  public init?(fieldValue: Value) {
    guard let value = Double(fieldValue: fieldValue) else { return nil }
    self = Float(value)
    if isInfinite, value.isFinite { return nil }
  }
}

// MARK: - Containers

extension Optional: FieldContent {
  /// Null when it is nil. Throws when the wrapped value cannot be a field.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    guard let wrapped = self else { return FieldInput(.null) }
    return try encodeElement(wrapped)
  }
}

extension Array: FieldContent {
  /// An array; an array of `UInt8` is bytes.
  ///
  /// - Throws: `.invalidArgument` when an element cannot be a field or is an instruction.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    if let bytes = self as? [UInt8], Element.self == UInt8.self { return FieldInput(.bytes(bytes)) }
    var values: [Value] = []
    values.reserveCapacity(count)
    for (index, element) in enumerated() {
      do throws(DatabaseError) {
        values.append(try encodeElement(element).plainValue())
      } catch {
        throw error.within(index: index)
      }
    }
    return FieldInput(.array(values))
  }
}

extension Dictionary: FieldContent where Key == String {
  /// A map. Throws when a value cannot be a field.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    var fields: [String: FieldInput] = [:]
    fields.reserveCapacity(count)
    for (name, element) in self {
      do throws(DatabaseError) {
        try fields.put(encodeElement(element), at: name)
      } catch {
        throw error.within(field: name)
      }
    }
    return FieldInput.map(fields)
  }
}

extension Optional: FieldConvertible where Wrapped: FieldConvertible {}
extension Array: FieldConvertible where Element: FieldConvertible {}
extension Dictionary: FieldConvertible where Key == String, Value: FieldConvertible {}

private func encodeElement(_ element: Any) throws(DatabaseError) -> FieldInput {
  guard let content = element as? any FieldContent else {
    throw DatabaseError(
      .invalidArgument,
      "a \(type(of: element)) cannot be a field; convert it, or conform it to FieldConvertible")
  }
  return try content.encodeField()
}

extension Array: FieldReadable where Element: FieldReadable {
  /// Reads an array when every element is readable; an array of `UInt8` also reads bytes.
  public init?(fieldValue: Value) {
    if case .bytes(let bytes) = fieldValue {
      guard Element.self == UInt8.self, let same = bytes as? [Element] else { return nil }
      self = same
      return
    }
    guard let values = fieldValue.array else { return nil }
    self = []
    reserveCapacity(values.count)
    for value in values {
      guard let element = Element(fieldValue: value) else { return nil }
      append(element)
    }
  }
}

extension Dictionary: FieldReadable where Key == String, Value: FieldReadable {
  /// Reads a map when every value is readable.
  public init?(fieldValue: Ondol.Value) {
    guard let fields = fieldValue.map else { return nil }
    self = [:]
    reserveCapacity(fields.count)
    for (name, value) in fields {
      guard let element = Value(fieldValue: value) else { return nil }
      self[name] = element
    }
  }
}

extension BlobReference: FieldConvertible, FieldReadable {
  /// A blob.
  public func encodeField() -> FieldInput { FieldInput(.blob(self)) }
  /// Reads a blob.
  ///
  /// - Parameter fieldValue: the field's value.
  public init?(fieldValue: Value) {
    guard let value = fieldValue.blob else { return nil }
    self = value
  }
}
