// Why a record becomes no document, and where in its file it is: what a person needs to find it.

import OndolJSON

/// Where a record stands.
struct ImportRecord: Sendable {
  /// Its first line, and where in it it begins, in bytes from one.
  var line: Int
  var column: Int
  /// How many lines it comes to.
  var count = 1
  /// Its bytes in the piece.
  var range: Range<Int>
}

/// Why a record is no document.
struct Refusal: Error {
  var reason: String
  /// Where in the record.
  var offset: Int?
  var field: String?
  /// Whether all lines of the record are meant, which begin before the place.
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

/// A record that is no document, or several lines where a quote takes in more of them.
struct BadRecord: Sendable {
  var record: ImportRecord
  /// Where it is, for people: "line 3: column 5".
  var place: String
  var reason: String
  /// What is counted: lines, and in JSON that is no lines the values.
  var count: Int

  /// - Parameters:
  ///   - bytes: the record's.
  ///   - start: where it begins.
  init(
    _ record: ImportRecord, _ refusal: Refusal, bytes: ArraySlice<UInt8>,
    from start: ImportPosition, _ form: FileForm
  ) {
    self.init(record, refusal, form)
    guard let offset = refusal.offset else { return }
    var end = start
    // What is missing at a line's end is missing in that line.
    let breaks = bytes.reversed().prefix { $0 == 0x0A || $0 == 0x0D }.count
    let reached = min(bytes.startIndex + offset, bytes.endIndex - breaks)
    end.advance(over: bytes[..<reached], lineBreak: form.table.lineBreak)
    let lines = refusal.isOfWhole ? Self.lines(record) : "line \(end.lines + 1)"
    place = "\(lines): column \(end.column + 1)"
  }

  /// A record of which no more is known than where it begins.
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
