// Comma-separated values as RFC 4180 has them: records of cells, a cell in quotes when it has a
// comma, a quote or a line break in it, quotes inside doubled. The reader takes any line break, and
// bytes that may be hostile.

import OndolEngine

/// Why a text is no CSV.
package struct CSVError: Error, Sendable {
  package let reason: String
  /// Where, in bytes from the beginning.
  package let offset: Int
}

/// Reads and writes records.
package enum CSV {
  /// A cell, and whether it stood in quotes: `""` is an empty text, and nothing is no value.
  package struct Cell: Sendable, Equatable {
    package var text: String
    package var isQuoted: Bool

    package init(_ text: String, isQuoted: Bool = false) {
      self.text = text
      self.isQuoted = isQuoted
    }
  }

  /// Finds where records end, byte by byte. A quote that does not begin a cell means nothing, so a
  /// broken record does not swallow those behind it.
  package struct Scanner: Sendable {
    private enum State {
      case cellStart, plain, quoted
      /// Behind a quote in a cell in quotes: its end, or the first of two.
      case quoteInQuotes
    }

    private var state = State.cellStart

    package init() {}

    /// Takes a byte; true when it ends a record.
    package mutating func endsRecord(_ byte: UInt8) -> Bool {
      let isQuote = byte == UInt8(ascii: "\"")
      if state == .quoted {
        if isQuote { state = .quoteInQuotes }
        return false
      }
      if isQuote, state != .plain {
        state = .quoted
        return false
      }
      state = byte == UInt8(ascii: ",") || byte == 0x0A ? .cellStart : .plain
      return byte == 0x0A
    }
  }

  /// Where the record ends that begins at `start`, its line break included; nil when it goes on
  /// behind `bytes`.
  package static func recordEnd(_ bytes: [UInt8], from start: Int) -> Int? {
    var scanner = Scanner()
    for index in start..<bytes.count where scanner.endsRecord(bytes[index]) { return index + 1 }
    return nil
  }

  /// The cells of one record, without a line break at its end or with one.
  package static func cells(_ record: RawSpan) throws(CSVError) -> [Cell] {
    var end = record.byteCount
    if end > 0, record.byte(at: end - 1) == 0x0A { end -= 1 }
    if end > 0, record.byte(at: end - 1) == 0x0D { end -= 1 }
    var cells: [Cell] = []
    var position = 0
    while true {
      let (cell, next) = try cell(record, from: position, to: end)
      cells.append(cell)
      guard next < end else { return cells }
      // A comma at the very end has an empty cell behind it.
      position = next + 1
      if position == end {
        cells.append(Cell(""))
        return cells
      }
    }
  }

  /// A cell, and where the comma behind it is.
  private static func cell(
    _ record: RawSpan, from start: Int, to end: Int
  ) throws(CSVError) -> (Cell, Int) {
    var position = start
    guard start < end, record.byte(at: start) == UInt8(ascii: "\"") else {
      while position < end, record.byte(at: position) != UInt8(ascii: ",") {
        guard record.byte(at: position) != UInt8(ascii: "\"") else {
          throw CSVError(reason: "a quote in a cell without quotes", offset: position)
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
      guard position == end || record.byte(at: position) == UInt8(ascii: ",") else {
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

  /// One record with its line break.
  package static func record(_ cells: [Cell]) -> String {
    cells.map(written).joined(separator: ",") + "\r\n"
  }

  private static func written(_ cell: Cell) -> String {
    let needsQuotes = cell.text.utf8.contains { byte in
      byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\"") || byte == 0x0A || byte == 0x0D
    }
    guard needsQuotes || cell.isQuoted else { return cell.text }
    return "\"" + doublingQuotes(cell.text) + "\""
  }

  /// By code unit: a quote followed by a combining mark is one `Character`, and still a quote.
  package static func doublingQuotes(_ text: String) -> String {
    let quote = UInt8(ascii: "\"")
    return String(
      decoding: text.utf8.flatMap { $0 == quote ? [quote, quote] : [$0] }, as: UTF8.self)
  }
}
