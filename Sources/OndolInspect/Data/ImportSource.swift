// The input of an import: a file or standard input, in pieces of complete records. One worker
// parses a piece and one commit writes it, so an import may be larger than the machine's memory.
// The form of the file is detected from its beginning before the first piece.

import Foundation
import OndolJSON

/// A position between two records of a file.
struct ImportPosition: Sendable, Equatable {
  var offset: Int64 = 0
  /// The number of line breaks before it.
  var lines = 0
  /// The number of bytes between the last of them and the position.
  var column = 0

  /// Advances past some bytes.
  mutating func advance(over bytes: some RandomAccessCollection<UInt8>, lineBreak: UInt8) {
    offset += Int64(bytes.count)
    var breaks = 0
    for byte in bytes where byte == lineBreak { breaks += 1 }
    lines += breaks
    if breaks == 0 {
      column += bytes.count
    } else {
      column = bytes.reversed().prefix { $0 != lineBreak }.count
    }
  }
}

/// Complete records of a file.
struct ImportPiece: Sendable {
  var bytes: [UInt8]
  var start: ImportPosition
  var end: ImportPosition
  /// The locations of the records, for forms that are not divided into lines.
  var records: [Range<Int>]?
  /// Whether nothing comes after it.
  var isLast = false
}

/// Reads a file piece by piece.
struct PieceReader {
  /// The number of records in a piece.
  static let pieceLines = 1_000
  /// A piece ends with the record that brings it above this size.
  static let pieceBytes = 4 << 20
  /// Longer than the text form of any document.
  static let maximumLineBytes = 64 << 20
  private static let readBytes = 1 << 18

  private let path: String
  private let handle: FileHandle
  private var buffer: [UInt8] = []
  /// The bytes of the buffer that were returned.
  private var used = 0
  private var isAtEnd = false
  private var splitter: JSONSplitter?
  /// The failure to report after the returned records.
  private var failure: CommandFailure?
  private(set) var position = ImportPosition()
  private(set) var form = FileForm(.jsonl)

  /// Opens the file at `path`; "-" is standard input.
  init(path: String) throws(CommandFailure) {
    self.path = path
    if path == "-" {
      handle = .standardInput
    } else if let file = FileHandle(forReadingAtPath: path) {
      handle = file
    } else {
      throw CommandFailure(.failed, "cannot read \(path)")
    }
  }

  /// Its name in messages.
  var name: String { path == "-" ? "standard input" : path }

  /// The file's first bytes, as many as detecting its form requires, and whether it has no more.
  mutating func beginning() throws(CommandFailure) -> (bytes: [UInt8], isWhole: Bool) {
    while buffer.count < FormFinder.windowBytes, !isAtEnd { try fill() }
    return (buffer, isAtEnd)
  }

  /// Begins after some bytes at the file's start that are not records.
  mutating func begin(_ form: FileForm, behind bytes: Int = 0) {
    self.form = form
    used = form.startBytes + bytes
    position = ImportPosition(offset: Int64(form.startBytes))
    position.advance(over: buffer[form.startBytes..<used], lineBreak: form.table.lineBreak)
    if form.format == .json { splitter = Self.splitter(form) }
    splitter?.move(by: -used)
  }

  private static func splitter(_ form: FileForm, goesOn: Bool = false) -> JSONSplitter {
    JSONSplitter(
      form.layout, lineBreak: form.table.lineBreak, comment: form.table.comment, goesOn: goesOn)
  }

  /// Continues after a record that was returned in an earlier run.
  mutating func resume(at position: ImportPosition) throws(CommandFailure) {
    do {
      try handle.seek(toOffset: UInt64(position.offset))
    } catch {
      throw CommandFailure(.failed, "cannot continue in \(path): \(error.localizedDescription)")
    }
    self.position = position
    buffer = []
    used = 0
    isAtEnd = false
    if form.format == .json { splitter = Self.splitter(form, goesOn: true) }
  }

  /// The next records; nil at the end.
  mutating func next(records limit: Int = pieceLines) throws(CommandFailure) -> ImportPiece? {
    if let failure { throw failure }
    return splitter == nil ? try nextLines(limit) : try nextValues(limit)
  }

  private mutating func nextLines(_ limit: Int) throws(CommandFailure) -> ImportPiece? {
    var scan = Scan(form)
    while true {
      scan.look(in: buffer, from: used, atMost: limit)
      let isFull = scan.records == limit || scan.end - used >= Self.pieceBytes
      if isFull || isAtEnd {
        // The last line need not end in a line break.
        let end = isFull ? scan.end : buffer.count
        return take(upTo: end, lines: form.format == .jsonl ? scan.records : nil)
      }
      guard buffer.count - max(used, scan.end) <= Self.maximumLineBytes else {
        throw tooLong(at: max(used, scan.end))
      }
      let moved = used
      try fill()
      scan.move(by: moved - used)
    }
  }

  private func tooLong(at index: Int) -> CommandFailure {
    failure(
      "what begins here is longer than \(Self.maximumLineBytes >> 20) MiB, or a quote or a bracket "
        + "is never closed", at: index)
  }

  /// A failure at a position in the buffer.
  private func failure(_ reason: String, at index: Int) -> CommandFailure {
    var place = position
    let end = min(max(index, used), buffer.count)
    place.advance(over: buffer[used..<end], lineBreak: form.table.lineBreak)
    return CommandFailure(
      .failed, "\(name): line \(place.lines + 1): column \(place.column + 1): \(reason)")
  }

  /// - Parameter lines: the lines of the piece, if they were already counted.
  private mutating func take(
    upTo end: Int, _ records: [Range<Int>]? = nil, lines: Int? = nil
  ) -> ImportPiece? {
    guard end > used else { return nil }
    let bytes = Array(buffer[used..<end])
    let start = position
    if let lines {
      position.offset += Int64(bytes.count)
      position.lines += lines
    } else {
      position.advance(over: bytes, lineBreak: form.table.lineBreak)
    }
    used = end
    return ImportPiece(
      bytes: bytes, start: start, end: position, records: records,
      isLast: isAtEnd && end == buffer.count)
  }

  private mutating func fill() throws(CommandFailure) {
    buffer.removeSubrange(..<used)
    used = 0
    do {
      let bytes = try handle.read(upToCount: Self.readBytes) ?? Data()
      isAtEnd = bytes.isEmpty
      buffer.append(contentsOf: bytes)
    } catch {
      throw CommandFailure(
        .failed, "\(name): after line \(position.lines): \(error.localizedDescription)")
    }
  }

  // MARK: - Values

  private mutating func nextValues(_ limit: Int) throws(CommandFailure) -> ImportPiece? {
    // Counted from `used`, which moves with the buffer.
    var records: [Range<Int>] = []
    while true {
      do throws(JSONError) {
        while records.count < limit, records.last?.upperBound ?? 0 < Self.pieceBytes {
          guard let range = try splitter?.next(in: buffer, isAtEnd: isAtEnd) else { break }
          records.append(range.lowerBound - used..<range.upperBound - used)
        }
      } catch {
        // The preceding records are complete and are returned first.
        failure = failure(error.reason, at: error.column - 1)
        return try end(records)
      }
      let isFull = records.count == limit || records.last?.upperBound ?? 0 >= Self.pieceBytes
      if isFull || isAtEnd { return try end(records) }
      guard buffer.count - (splitter?.start ?? buffer.count) <= Self.maximumLineBytes else {
        failure = tooLong(at: splitter?.start ?? used)
        return try end(records)
      }
      // The text outside the array is not used.
      if records.isEmpty, let end = splitter.map({ $0.start ?? $0.position }) {
        _ = take(upTo: end)
      }
      let moved = used
      try fill()
      splitter?.move(by: moved - used)
    }
  }

  private mutating func end(_ records: [Range<Int>]) throws(CommandFailure) -> ImportPiece? {
    guard let last = records.last else {
      if let failure { throw failure }
      return nil
    }
    return take(upTo: used + last.upperBound, records)
  }

  /// Names next to the array, whose values are not imported.
  var neighbours: [String] { splitter?.neighbours.map(\.name) ?? [] }

  /// How far line breaks were searched for.
  private struct Scan {
    var records = 0
    /// The end of the last complete record.
    var end = 0
    private var next = 0
    private let isTable: Bool
    private let lineBreak: UInt8
    private var scanner: CSV.Scanner

    init(_ form: FileForm) {
      isTable = form.format.isTable
      lineBreak = form.table.lineBreak
      scanner = CSV.Scanner(form.table)
    }

    mutating func move(by distance: Int) {
      end = max(0, end - distance)
      next = max(0, next - distance)
    }

    mutating func look(in buffer: [UInt8], from start: Int, atMost limit: Int) {
      next = max(next, start)
      end = max(end, start)
      while next < buffer.count, records < limit, end - start < PieceReader.pieceBytes {
        let byte = buffer[next]
        next += 1
        guard isTable ? scanner.endsRecord(byte) : byte == lineBreak else { continue }
        records += 1
        end = next
      }
    }
  }
}
