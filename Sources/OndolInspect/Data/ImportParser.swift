// From the lines of a piece to documents that are ready to be committed. Runs on several workers at
// once: a parser is a value, and what it needs to know is the same for all pieces.

import Foundation
import Ondol
import OndolEngine
import OndolJSON
import OndolTerminal

/// A line that is no document, or several where a quote takes in more of them.
struct BadLine: Sendable {
  var line: Int
  /// How many lines it comes to.
  var count = 1
  var reason: String

  /// Which lines, for people.
  var place: String { count == 1 ? "line \(line)" : "lines \(line) to \(line + count - 1)" }
}

/// What became of a piece.
struct ParsedPiece: Sendable {
  var documents: [ImportedDocument] = []
  /// The lines of the documents.
  var lines: [Int] = []
  /// In the order of the lines.
  var badLines: [BadLine] = []
  var end = ImportPosition()
}

/// Parses pieces of one file.
struct ImportParser: Sendable {
  /// Where documents go; nil when their ids are whole paths.
  var collection: CollectionPath?
  /// Whether an id with "/" in it is a whole path.
  var takesPaths = false
  /// The field with the id; nil for `__name__`, or an id made up where there is none.
  var idField: String?
  var mode: ImportedDocument.Mode
  var dialect: JSONDialect
  var format: ImportFormat
  /// The names of the columns.
  var header: [String] = []
  var guessesTypes = false
  /// Whether parsing ends with the first bad line.
  var stopsOnError = false
  let makeID: @Sendable () -> String
  let makeEncoder: @Sendable () -> ImportEncoder

  func parse(_ piece: ImportPiece) -> ParsedPiece {
    var parsed = ParsedPiece()
    parsed.end = piece.end
    parsed.documents.reserveCapacity(PieceReader.pieceLines)
    parsed.lines.reserveCapacity(PieceReader.pieceLines)
    var line = piece.start.lines
    var start = 0
    let bytes = piece.bytes
    var encoder = makeEncoder()
    while start < bytes.count {
      let end: Int
      switch format {
      case .jsonl: end = Self.lineEnd(bytes, from: start)
      case .csv: end = CSV.recordEnd(bytes, from: start) ?? bytes.count
      }
      let record = bytes.bytes.extracting(start..<end)
      let breaks = format == .jsonl ? 1 : bytes[start..<end].count { $0 == 0x0A }
      if !Self.isBlank(record) {
        do throws(CommandFailure) {
          parsed.documents.append(try document(record, &encoder))
          parsed.lines.append(line + 1)
        } catch {
          // The last line need not end in a line break.
          let count = format == .csv && bytes[end - 1] != 0x0A ? breaks + 1 : breaks
          parsed.badLines.append(
            BadLine(line: line + 1, count: max(1, count), reason: error.message))
          if stopsOnError { return parsed }
        }
      }
      line += breaks
      start = end
    }
    return parsed
  }

  private static func lineEnd(_ bytes: [UInt8], from start: Int) -> Int {
    var end = start
    while end < bytes.count, bytes[end] != 0x0A { end += 1 }
    return min(end + 1, bytes.count)
  }

  private static func isBlank(_ line: RawSpan) -> Bool {
    for index in 0..<line.byteCount {
      let byte = line.byte(at: index)
      guard byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A else { return false }
    }
    return true
  }

  // MARK: - One document

  private func document(
    _ record: RawSpan, _ encoder: inout ImportEncoder
  ) throws(CommandFailure) -> ImportedDocument {
    var fields = try fields(record)
    let path = try path(in: fields)
    // The id under its own name comes from `ondol ls`, and no field can be called so.
    fields[JSONWriter.documentIDName] = nil
    do throws(DatabaseError) {
      return try encoder.document(fields, at: path, mode)
    } catch {
      throw CommandFailure(.failed, error.field.map { "\($0): \(error.message)" } ?? error.message)
    }
  }

  private func fields(_ record: RawSpan) throws(CommandFailure) -> [String: Value] {
    if format == .csv { return try row(record) }
    do throws(JSONError) {
      return try JSONReader.readDocument(record, dialect)
    } catch {
      throw CommandFailure(.failed, "column \(error.column): \(error.reason)")
    }
  }

  private func path(in fields: [String: Value]) throws(CommandFailure) -> DocumentPath {
    let id = try id(in: fields)
    do throws(DatabaseError) {
      // Taken literally otherwise: a "/" in an id is a mistake, not the way into a subcollection.
      if takesPaths, id.utf8.contains(UInt8(ascii: "/")) { return try DocumentPath(id) }
      guard let collection else {
        throw DatabaseError(
          .invalidArgument, "\"\(id)\" is no path of a document; say --into COLLECTION")
      }
      return try collection.document(id)
    } catch {
      throw CommandFailure(.failed, error.message)
    }
  }

  private func id(in fields: [String: Value]) throws(CommandFailure) -> String {
    let name = idField ?? JSONWriter.documentIDName
    switch fields[name] {
    case .string(let id): return id
    case .integer(let id): return String(id)
    case .map(let wrapper):
      // An id as MongoDB makes them.
      if wrapper.count == 1, let id = wrapper["$oid"]?.string { return id }
    case nil where idField == nil: return makeID()
    case nil: throw CommandFailure(.failed, "there is no field \"\(name)\"")
    default: break
    }
    throw CommandFailure(.failed, "\"\(name)\" must be a text or a whole number")
  }

  // MARK: - CSV

  /// The cells of the first record.
  static func header(_ record: [UInt8]) throws(CommandFailure) -> [String] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let record = record.starts(with: mark) ? Array(record.dropFirst(mark.count)) : record
    let names = try cells(record.bytes).map(\.text)
    guard Set(names).count == names.count else {
      throw CommandFailure(.failed, "line 1: two columns have the same name")
    }
    return names
  }

  private static func cells(_ record: RawSpan) throws(CommandFailure) -> [CSV.Cell] {
    do throws(CSVError) {
      return try CSV.cells(record)
    } catch {
      throw CommandFailure(.failed, "column \(error.offset + 1): \(error.reason)")
    }
  }

  private func row(_ record: RawSpan) throws(CommandFailure) -> [String: Value] {
    let cells = try Self.cells(record)
    guard cells.count == header.count else {
      throw CommandFailure(
        .failed, "\(counted(cells.count, "cell")), and \(counted(header.count, "column"))")
    }
    var fields = [String: Value](minimumCapacity: cells.count)
    for (name, cell) in zip(header, cells) where cell.isQuoted || !cell.text.isEmpty {
      fields[name] = guessesTypes ? guess(cell) : .string(cell.text)
    }
    return fields
  }

  /// Numbers, true, false and null as they stand without quotes, arrays and objects with them; all
  /// else is text.
  private func guess(_ cell: CSV.Cell) -> Value {
    let first = cell.text.utf8.first
    let isNested = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    guard isNested || !cell.isQuoted, first != UInt8(ascii: "\""),
      let value = try? JSONReader.read(Array(cell.text.utf8), dialect)
    else { return .string(cell.text) }
    return value
  }
}
