// Comma-separated values in the form of RFC 4180: records of cells. A cell with a comma, a quote or
// a line break is in quotes, and quotes inside it are doubled. Another character may separate the
// cells, and a line may be a comment. The bytes may be hostile.

import OndolEngine

/// Why a text is not CSV.
package struct CSVError: Error, Sendable {
  package let reason: String
  /// The place, in bytes from the beginning.
  package let offset: Int
  /// The index of the cell, counted from zero.
  package var cell = 0
}

/// Reads and writes records.
package enum CSV {
  /// A cell, and whether it was in quotes: `""` is an empty text, and a cell without anything is no
  /// value.
  package struct Cell: Sendable, Equatable {
    package var text: String
    package var isQuoted: Bool

    package init(_ text: String, isQuoted: Bool = false) {
      self.text = text
      self.isQuoted = isQuoted
    }
  }

  /// The separators of cells and records.
  package struct Form: Sendable, Equatable {
    /// Separates cells.
    package var delimiter = UInt8(ascii: ",")
    /// Ends a record: a line feed with or without a carriage return before it, or, in files from
    /// old systems, a carriage return.
    package var lineBreak: UInt8 = 0x0A
    /// The beginning of a comment line; empty if there are none. Its characters are neither quotes
    /// nor delimiters nor line breaks.
    package var comment: [UInt8] = []

    package init(
      delimiter: UInt8 = UInt8(ascii: ","), lineBreak: UInt8 = 0x0A, comment: [UInt8] = []
    ) {
      self.delimiter = delimiter
      self.lineBreak = lineBreak
      self.comment = comment
    }
  }

  /// Finds the ends of records and comments, byte by byte. A quote that does not begin a cell has
  /// no meaning, so a broken record does not swallow the ones after it.
  package struct Scanner: Sendable {
    private enum State {
      case cellStart, plain, quoted
      /// After a quote in a quoted cell: it is the cell's end, or the first of two quotes.
      case quoteInQuotes
      /// After the first characters of a possible comment mark.
      case mark(Int)
      case comment
    }

    private let form: Form
    private var state = State.mark(0)

    package init(_ form: Form = Form()) {
      self.form = form
    }

    /// Takes a byte. Returns true when it ends a record or a comment.
    package mutating func endsRecord(_ byte: UInt8) -> Bool {
      switch state {
      case .quoted:
        if byte == UInt8(ascii: "\"") { state = .quoteInQuotes }
        return false
      case .comment:
        guard byte == form.lineBreak else { return false }
        state = .mark(0)
        return true
      case .mark(let count) where count < form.comment.count && byte == form.comment[count]:
        state = count + 1 == form.comment.count ? .comment : .mark(count + 1)
        return false
      case .mark(let count): state = count == 0 ? .cellStart : .plain
      default: break
      }
      if byte == UInt8(ascii: "\""), !isPlain {
        state = .quoted
        return false
      }
      if byte == form.lineBreak {
        state = .mark(0)
        return true
      }
      state = byte == form.delimiter ? .cellStart : .plain
      return false
    }

    private var isPlain: Bool {
      if case .plain = state { true } else { false }
    }
  }

  /// Returns the end of the record that begins at `start`, including its line break; nil if the
  /// record continues after `bytes`.
  package static func recordEnd(
    _ bytes: [UInt8], from start: Int, _ form: Form = Form()
  ) -> Int? {
    var scanner = Scanner(form)
    for index in start..<bytes.count where scanner.endsRecord(bytes[index]) { return index + 1 }
    return nil
  }

  /// Returns the cells of one record, with or without a line break at its end.
  package static func cells(
    _ record: RawSpan, _ form: Form = Form()
  ) throws(CSVError) -> [Cell] {
    var end = record.byteCount
    if end > 0, record.byte(at: end - 1) == form.lineBreak { end -= 1 }
    if form.lineBreak == 0x0A, end > 0, record.byte(at: end - 1) == 0x0D { end -= 1 }
    var cells: [Cell] = []
    var position = 0
    while true {
      let cell: Cell
      let next: Int
      do throws(CSVError) {
        (cell, next) = try self.cell(record, from: position, to: end, form)
      } catch {
        throw CSVError(reason: error.reason, offset: error.offset, cell: cells.count)
      }
      cells.append(cell)
      guard next < end else { return cells }
      // A delimiter at the very end is followed by an empty cell.
      position = next + 1
      if position == end {
        cells.append(Cell(""))
        return cells
      }
    }
  }

  /// Returns a cell, and the place of the delimiter after it.
  private static func cell(
    _ record: RawSpan, from start: Int, to end: Int, _ form: Form
  ) throws(CSVError) -> (Cell, Int) {
    var position = start
    guard start < end, record.byte(at: start) == UInt8(ascii: "\"") else {
      while position < end, record.byte(at: position) != form.delimiter {
        let byte = record.byte(at: position)
        guard byte != UInt8(ascii: "\"") else {
          throw CSVError(reason: "a quote in a cell without quotes", offset: position)
        }
        guard byte != 0x0D, byte != 0x0A else {
          throw CSVError(
            reason: "a line break of another kind in a cell without quotes", offset: position)
        }
        position += 1
      }
      return (Cell(try text(record.extracting(start..<position), start)), position)
    }
    position += 1
    var content: [UInt8] = []
    while position < end {
      let byte = record.byte(at: position)
      position += 1
      guard byte == UInt8(ascii: "\"") else {
        content.append(byte)
        continue
      }
      if position < end, record.byte(at: position) == UInt8(ascii: "\"") {
        content.append(byte)
        position += 1
        continue
      }
      guard position == end || record.byte(at: position) == form.delimiter else {
        throw CSVError(reason: "something follows a closing quote", offset: position)
      }
      return (Cell(try text(content.bytes, start), isQuoted: true), position)
    }
    throw CSVError(reason: "a quote that begins here is never closed", offset: start)
  }

  private static func text(_ bytes: RawSpan, _ offset: Int) throws(CSVError) -> String {
    guard let text = String(utf8: bytes) else {
      throw CSVError(reason: "a cell is not UTF-8", offset: offset)
    }
    return text
  }

  // MARK: - Writing

  /// Returns one record with its line break.
  package static func record(
    _ cells: [Cell], delimiter: UInt8 = UInt8(ascii: ","), lineBreak: String = "\r\n"
  ) -> String {
    let separator = String(decoding: [delimiter], as: UTF8.self)
    return cells.map { written($0, delimiter) }.joined(separator: separator) + lineBreak
  }

  private static func written(_ cell: Cell, _ delimiter: UInt8) -> String {
    let needsQuotes = cell.text.utf8.contains { byte in
      byte == delimiter || byte == UInt8(ascii: "\"") || byte == 0x0A || byte == 0x0D
    }
    guard needsQuotes || cell.isQuoted else { return cell.text }
    return "\"" + doublingQuotes(cell.text) + "\""
  }

  /// This works by code unit: a quote and a combining mark after it are one `Character`, but the
  /// quote is still a quote.
  package static func doublingQuotes(_ text: String) -> String {
    let quote = UInt8(ascii: "\"")
    return String(
      decoding: text.utf8.flatMap { $0 == quote ? [quote, quote] : [$0] }, as: UTF8.self)
  }
}
