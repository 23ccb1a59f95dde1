// The rows of a server's answer in binary form. A server may not be what it claims, or may have
// different tables. So the presence and length of every column are checked before it is read.

internal import CLibPQ
internal import OndolEngine

/// Rows of one statement.
@safe
final class PostgresAnswer {
  // Safe: created by the library, passed to no other owner and cleared once, at the end.
  private let result: OpaquePointer
  let rowCount: Int
  private let columnCount: Int

  /// - Parameter result: owned by this object from now on.
  init(owning result: OpaquePointer) {
    unsafe self.result = result
    rowCount = unsafe Int(PQntuples(result))
    columnCount = unsafe Int(PQnfields(result))
  }

  deinit {
    unsafe PQclear(result)
  }

  /// Throws if there are fewer columns.
  func expect(columns: Int) throws(PostgresFailure) {
    guard columnCount == columns else {
      throw .malformed("\(columnCount) columns in the place of \(columns)")
    }
  }

  /// Lends the bytes at a position; nil if the value is null.
  private func withBytes<R>(
    _ row: Int, _ column: Int, _ body: (RawSpan) throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R? {
    guard row >= 0, row < rowCount, column >= 0, column < columnCount else {
      throw .malformed("row \(row) has no column \(column)")
    }
    let (row, column) = (Int32(row), Int32(column))
    if unsafe PQgetisnull(result, row, column) != 0 { return nil }
    let count = unsafe Int(PQgetlength(result, row, column))
    guard count >= 0, let start = unsafe PQgetvalue(result, row, column) else {
      throw .malformed("a value without bytes")
    }
    // Safe: the library keeps the stated number of bytes until the result is cleared.
    return try unsafe body(RawSpan(_unsafeStart: start, byteCount: count))
  }

  private func integer<Integer: FixedWidthInteger>(
    _ row: Int, _ column: Int, _: Integer.Type
  ) throws(PostgresFailure) -> Integer? {
    try withBytes(row, column) { bytes throws(PostgresFailure) in
      guard bytes.byteCount == Integer.bitWidth / 8 else {
        throw .malformed("a number of \(bytes.byteCount) bytes")
      }
      return Self.number(bytes, 0)
    }
  }

  /// A big-endian number. Its bytes must exist.
  private static func number<Integer: FixedWidthInteger>(
    _ bytes: RawSpan, _ offset: Int
  ) -> Integer {
    var value: Integer = 0
    for place in offset..<offset + Integer.bitWidth / 8 {
      value = value << 8 | Integer(truncatingIfNeeded: bytes.byte(at: place))
    }
    return value
  }

  private static let missing = PostgresFailure.malformed("a null where there is none")

  func int32(_ row: Int, _ column: Int) throws(PostgresFailure) -> Int32 {
    guard let value = try integer(row, column, Int32.self) else { throw Self.missing }
    return value
  }

  func int64(_ row: Int, _ column: Int) throws(PostgresFailure) -> Int64 {
    guard let value = try integer(row, column, Int64.self) else { throw Self.missing }
    return value
  }

  func int64OrNull(_ row: Int, _ column: Int) throws(PostgresFailure) -> Int64? {
    try integer(row, column, Int64.self)
  }

  func bool(_ row: Int, _ column: Int) throws(PostgresFailure) -> Bool {
    guard let value = try integer(row, column, UInt8.self) else { throw Self.missing }
    return value != 0
  }

  func bytesOrNull(_ row: Int, _ column: Int) throws(PostgresFailure) -> [UInt8]? {
    try withBytes(row, column) { $0.array }
  }

  func bytes(_ row: Int, _ column: Int) throws(PostgresFailure) -> [UInt8] {
    guard let value = try bytesOrNull(row, column) else { throw Self.missing }
    return value
  }

  func textOrNull(_ row: Int, _ column: Int) throws(PostgresFailure) -> String? {
    try bytesOrNull(row, column).map { String(decoding: $0, as: UTF8.self) }
  }

  /// An array of 64-bit integers without nulls.
  func int64s(_ row: Int, _ column: Int) throws(PostgresFailure) -> [Int64] {
    guard
      let values = try withBytes(
        row, column,
        { bytes throws(PostgresFailure) in
          func word(_ offset: Int) -> Int32 { Self.number(bytes, offset) }
          guard bytes.byteCount >= 20, word(0) == 1, word(4) == 0, word(8) == 20,
            bytes.byteCount == 20 + Int64(word(12)) * 12
          else { throw .malformed("an array of \(bytes.byteCount) bytes that is none of numbers") }
          var values: [Int64] = []
          for offset in stride(from: 20, to: bytes.byteCount, by: 12) {
            guard word(offset) == 8 else { throw .malformed("an array's number without bytes") }
            values.append(Self.number(bytes, offset + 4))
          }
          return values
        })
    else { throw Self.missing }
    return values
  }
}
