// Why a record was rejected, and its location in the file, so that a person can find it.

import OndolJSON

/// The location of a record.
struct ImportRecord: Sendable {
  /// Its first line, and the byte in that line where it begins, counted from 1.
  var line: Int
  var column: Int
  /// The number of its lines.
  var count = 1
  /// Its bytes in the piece.
  var range: Range<Int>
}

/// Why a record is not a document.
struct Refusal: Error {
  var reason: String
  /// The position in the record.
  var offset: Int?
  var field: String?
  /// Whether it concerns all lines of the record, which begin before the position.
  var isOfWhole = false

  init(
    _ reason: String, offset: Int? = nil, field: String? = nil, isOfWhole: Bool = false
  ) {
    self.reason = reason
    self.offset = offset
    self.field = field
    self.isOfWhole = isOfWhole
  }
}

/// An invalid record, or several lines if a quotation mark includes more of them.
struct BadRecord: Sendable {
  var record: ImportRecord
  /// Its location, for people: "line 3: column 5".
  var place: String
  var reason: String
  /// The number of lines, or of values in JSON that is not divided into lines.
  var count: Int

  /// - Parameters:
  ///   - bytes: the record's bytes.
  ///   - start: where it begins.
  init(
    _ record: ImportRecord, _ refusal: Refusal, bytes: ArraySlice<UInt8>,
    from start: ImportPosition, _ form: FileForm
  ) {
    self.init(record, refusal, form)
    guard let offset = refusal.offset else { return }
    var end = start
    // Something missing at the end of a line is reported in that line.
    let breaks = bytes.reversed().prefix { $0 == 0x0A || $0 == 0x0D }.count
    let reached = min(bytes.startIndex + offset, bytes.endIndex - breaks)
    end.advance(over: bytes[..<reached], lineBreak: form.table.lineBreak)
    let lines = refusal.isOfWhole ? Self.lines(record) : "line \(end.lines + 1)"
    place = "\(lines): column \(end.column + 1)"
  }

  /// A record of which only the beginning is known.
  init(_ record: ImportRecord, _ refusal: Refusal, _ form: FileForm) {
    self.record = record
    let isValue = form.format == .json
    place = isValue ? "line \(record.line): column \(record.column)" : Self.lines(record)
    reason = refusal.reason + (refusal.field.map { " (field \"\($0)\")" } ?? "")
    count = isValue ? 1 : max(1, record.count)
  }

  private static func lines(_ record: ImportRecord) -> String {
    record.count <= 1
      ? "line \(record.line)" : "lines \(record.line) to \(record.line + record.count - 1)"
  }
}
