// Converts the records of a piece into documents that are ready to commit. Several workers run it
// at once: a parser is a value, and its settings are the same for all pieces.

import Foundation
import Ondol
import OndolEngine
import OndolJSON
import OndolTerminal

/// The result of parsing a piece.
struct ParsedPiece: Sendable {
  var documents: [ImportedDocument] = []
  /// The locations of the documents, and their bytes in the piece.
  var records: [ImportRecord] = []
  /// In file order.
  var badRecords: [BadRecord] = []
  /// The number of `__name__` fields that were not valid ids and were ignored.
  var unusedNames = 0
  /// The fields that were omitted on request.
  var leftOut: [String: Int] = [:]
  /// The bytes of the piece, if rejected records are kept.
  var bytes: [UInt8] = []
  var end = ImportPosition()
  /// What ends the import: a line that shows that the file has another form.
  var doubt: BadRecord?
}

/// Parses the pieces of one file.
struct ImportParser: Sendable {
  /// The destination of documents; nil if their ids are whole paths.
  var collection: CollectionPath?
  /// Whether an id with "/" in it is a whole path.
  var takesPaths = false
  /// The field with the id. If nil, it is `__name__`, or a generated id for documents without one.
  var idField: String?
  var mode: ImportedDocument.Mode
  var dialect: JSONDialect
  var numbers = JSONNumbers.exact
  var form: FileForm
  /// The names of the columns.
  var header: [String] = []
  var guessesTypes = false
  /// Whether a record may have fewer cells than there are columns.
  var takesShortRows = false
  /// Fields that are not imported.
  var leftOut: Set<String> = []
  /// Whether parsing ends with the first invalid line.
  var stopsOnError = false
  /// Whether the bytes of rejected records are requested.
  var keepsBytes = false
  let makeID: @Sendable () -> String
  let makeEncoder: @Sendable () -> ImportEncoder

  func parse(_ piece: ImportPiece) -> ParsedPiece {
    var parsed = ParsedPiece()
    parsed.end = piece.end
    if keepsBytes { parsed.bytes = piece.bytes }
    parsed.documents.reserveCapacity(PieceReader.pieceLines)
    parsed.records.reserveCapacity(PieceReader.pieceLines)
    var encoder = makeEncoder()
    var place = piece.start
    if let records = piece.records {
      var end = 0
      for record in records {
        place.advance(over: piece.bytes[end..<record.lowerBound], lineBreak: lineBreak)
        guard parse(record, of: piece, &place, &encoder, into: &parsed) else { return parsed }
        end = record.upperBound
      }
      return parsed
    }
    var start = 0
    while start < piece.bytes.count {
      let end = recordEnd(piece.bytes, from: start)
      guard parse(start..<end, of: piece, &place, &encoder, into: &parsed) else { return parsed }
      start = end
    }
    return parsed
  }

  private var lineBreak: UInt8 { form.table.lineBreak }

  /// Parses one record and advances past it. Returns false if nothing after it is wanted.
  private func parse(
    _ range: Range<Int>, of piece: ImportPiece, _ place: inout ImportPosition,
    _ encoder: inout ImportEncoder, into parsed: inout ParsedPiece
  ) -> Bool {
    let bytes = piece.bytes
    let start = place
    // A line has exactly one line break, which need not be searched for.
    if form.format == .jsonl {
      place.lines += 1
    } else {
      place.advance(over: bytes[range], lineBreak: lineBreak)
    }
    guard !isNothing(bytes, range) else { return true }
    var record = ImportRecord(line: start.lines + 1, column: start.column + 1, range: range)
    do throws(Refusal) {
      parsed.documents.append(try document(bytes.bytes.extracting(range), &encoder, &parsed))
      parsed.records.append(record)
      return true
    } catch {
      // The last line need not end in a line break.
      let hasBreak = bytes[range.upperBound - 1] == lineBreak
      record.count = place.lines - start.lines + (hasBreak || form.format == .jsonl ? 0 : 1)
      let bad = BadRecord(record, error, bytes: bytes[range], from: start, form)
      if showsOtherForm(piece, range) {
        parsed.doubt = bad
        return false
      }
      parsed.badRecords.append(bad)
      return !stopsOnError
    }
  }

  /// Whether an invalid line is the beginning of an object that continues on the next lines.
  /// Treating those lines as documents might import part of the object.
  private func showsOtherForm(_ piece: ImportPiece, _ range: Range<Int>) -> Bool {
    guard form.format == .jsonl, !form.isSaid, FormFinder.goesOn(piece.bytes[range]) else {
      return false
    }
    return !(piece.isLast && isNothing(piece.bytes, range.upperBound..<piece.bytes.count))
  }

  private func recordEnd(_ bytes: [UInt8], from start: Int) -> Int {
    if form.format.isTable { return CSV.recordEnd(bytes, from: start, form.table) ?? bytes.count }
    var end = start
    while end < bytes.count, bytes[end] != lineBreak { end += 1 }
    return min(end + 1, bytes.count)
  }

  /// Whether it is white space or a comment.
  private func isNothing(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    let comment = form.table.comment
    if !comment.isEmpty, form.format != .json, bytes[range].starts(with: comment) { return true }
    let isTSV = form.table.delimiter == 0x09 && form.format.isTable
    for index in range {
      switch bytes[index] {
      case 0x20, 0x0D, 0x0A: continue
      // A tab separates two empty cells.
      case 0x09 where !isTSV: continue
      default: return false
      }
    }
    return true
  }

  // MARK: - One document

  private func document(
    _ record: RawSpan, _ encoder: inout ImportEncoder, _ parsed: inout ParsedPiece
  ) throws(Refusal) -> ImportedDocument {
    var fields = try fields(record)
    let path = try path(in: fields)
    // An id in its dedicated field is not a document field.
    let name = fields.removeValue(forKey: JSONWriter.documentIDName)
    if name != nil, let idField, idField != JSONWriter.documentIDName { parsed.unusedNames += 1 }
    for name in leftOut where fields.removeValue(forKey: name) != nil {
      parsed.leftOut[name, default: 0] += 1
    }
    do throws(DatabaseError) {
      return try encoder.document(fields, at: path, mode)
    } catch {
      let isReserved = error.field.map { Self.isReserved("\($0)") } ?? false
      let hint = isReserved ? "; --leave-out \(error.field ?? "") imports without it" : ""
      throw Refusal(error.message + hint, field: error.field.map { "\($0)" })
    }
  }

  /// Whether no field can have this name.
  static func isReserved(_ name: String) -> Bool {
    name.utf8.count >= 4 && name.hasPrefix("__") && name.hasSuffix("__")
  }

  private func fields(_ record: RawSpan) throws(Refusal) -> [String: Value] {
    if form.format.isTable { return try row(record) }
    do throws(JSONError) {
      return try JSONReader.readDocument(record, dialect, numbers: numbers)
    } catch {
      throw Refusal(error.reason, offset: error.column - 1)
    }
  }

  private func path(in fields: [String: Value]) throws(Refusal) -> DocumentPath {
    let id = try id(in: fields)
    do throws(DatabaseError) {
      // Otherwise it is taken literally: a "/" in an id is a mistake and does not lead into a
      // subcollection.
      if takesPaths, id.utf8.contains(UInt8(ascii: "/")) { return try DocumentPath(id) }
      guard let collection else {
        throw DatabaseError(
          .invalidArgument, "\"\(id)\" is not a document's path; say --into COLLECTION")
      }
      return try collection.document(id)
    } catch {
      throw Refusal(error.message, field: idField ?? JSONWriter.documentIDName)
    }
  }

  private func id(in fields: [String: Value]) throws(Refusal) -> String {
    let name = idField ?? JSONWriter.documentIDName
    switch fields[name] {
    case .string(let id): return id
    case .integer(let id): return String(id)
    case .decimal(let id) where id.exponent >= 0: return "\(id)"
    case .map(let wrapper):
      // An id in MongoDB's form.
      if wrapper.count == 1, let id = wrapper["$oid"]?.string { return id }
    case nil where idField == nil: return makeID()
    case nil:
      throw Refusal("there is no field \"\(name)\"; without --id-field documents get ids")
    default: break
    }
    throw Refusal("\"\(name)\" must be a text or a whole number to be the id")
  }

  // MARK: - Cells

  private func row(_ record: RawSpan) throws(Refusal) -> [String: Value] {
    let cells: [CSV.Cell]
    do throws(CSVError) {
      cells = try CSV.cells(record, form.table)
    } catch {
      let isColumn = header.indices.contains(error.cell)
      throw Refusal(
        error.reason, offset: error.offset, field: isColumn ? header[error.cell] : nil,
        isOfWhole: error.reason.hasSuffix("is never closed"))
    }
    guard cells.count == header.count || takesShortRows && cells.count < header.count else {
      let hint =
        cells.count < header.count ? "; --short-rows takes cells that are missing for empty" : ""
      throw Refusal(
        "\(counted(cells.count, "cell")), and \(counted(header.count, "column"))\(hint)")
    }
    var fields = [String: Value](minimumCapacity: cells.count)
    for (name, cell) in zip(header, cells) where cell.isQuoted || !cell.text.isEmpty {
      guard !name.isEmpty else {
        throw Refusal(
          "\"\(cell.text)\" stands in a column without a name; --columns names columns of a file "
            + "without its first line")
      }
      fields[name] = guessesTypes ? guess(cell) : .string(cell.text)
    }
    return fields
  }

  /// Unquoted cells become numbers, true, false and null if possible. Quoted cells become arrays
  /// and objects if possible. Everything else is text.
  private func guess(_ cell: CSV.Cell) -> Value {
    let first = cell.text.utf8.first
    let isNested = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    guard isNested || !cell.isQuoted, first != UInt8(ascii: "\""),
      let value = try? JSONReader.read(Array(cell.text.utf8), dialect, numbers: numbers)
    else { return .string(cell.text) }
    return value
  }
}
