// Where Ondol meets Foundation: `Date` and `Data`, the two types apps have in their models. Nothing
// else of the value layer imports it, and of it only the small half that every platform has.

public import OndolFoundation

/// Seconds from 1970 to 2001, which dates count from.
private let referenceDateMicroseconds: Int64 = 978_307_200_000_000

extension Timestamp {
  /// The microsecond nearest to `date`, so that a timestamp survives the way through a `Date` and
  /// back.
  ///
  /// - Throws: `.invalidArgument` outside the years 1 to 9999, which `Date.distantPast` is by two
  ///   days.
  public init(date: Date) throws(DatabaseError) {
    let microseconds = (date.timeIntervalSinceReferenceDate * 1_000_000).rounded()
    guard let exact = Int64(exactly: microseconds) else { throw Self.outOfRange }
    let (sum, isTooLarge) = exact.addingReportingOverflow(referenceDateMicroseconds)
    guard !isTooLarge else { throw Self.outOfRange }
    try self.init(microsecondsSince1970: sum)
  }

  /// The moment as a `Date`, exact to the microsecond for some centuries around today.
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

extension Data: FieldConvertible, FieldReadable {
  /// Bytes.
  public func encodeField() -> FieldInput { FieldInput(.bytes([UInt8](self))) }

  /// Reads bytes.
  public init?(fieldValue: Value) {
    guard let bytes = fieldValue.bytes else { return nil }
    self = Data(bytes)
  }
}
