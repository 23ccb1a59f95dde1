// What an import reads: a file or standard input in pieces of whole lines, or a directory of such
// files. A piece is what one worker parses and one commit writes, so an import may be larger than
// the machine's memory.

import Foundation
import OndolJSON

/// What stands in a file.
enum ImportFormat: String, Sendable {
  case jsonl, csv

  /// What the file's name says it is.
  init(path: String) {
    self = path.lowercased().hasSuffix(".csv") ? .csv : .jsonl
  }
}

/// A place between two lines of a file.
struct ImportPosition: Sendable, Equatable {
  var offset: Int64 = 0
  /// Lines before it.
  var lines = 0
}

/// Whole lines of a file.
struct ImportPiece: Sendable {
  var bytes: [UInt8]
  var start: ImportPosition
  var end: ImportPosition
}

/// Reads a file piece by piece.
struct PieceReader {
  /// Lines in a piece.
  static let pieceLines = 1_000
  /// A piece ends with the line that brings it over so many bytes.
  static let pieceBytes = 4 << 20
  /// Longer than any document can be written.
  static let maximumLineBytes = 64 << 20
  private static let readBytes = 1 << 18

  private let handle: FileHandle
  private let format: ImportFormat
  private var buffer: [UInt8] = []
  /// Bytes of the buffer that were given out.
  private var used = 0
  private var isAtEnd = false
  private(set) var position: ImportPosition

  /// Reads the file at `path` from a position on; "-" is standard input.
  init(
    path: String, _ format: ImportFormat, from position: ImportPosition = ImportPosition()
  ) throws(CommandFailure) {
    if path == "-" {
      handle = .standardInput
    } else if let file = FileHandle(forReadingAtPath: path) {
      handle = file
    } else {
      throw CommandFailure(.failed, "cannot read \(path)")
    }
    self.format = format
    self.position = position
    guard position.offset > 0 else { return }
    do {
      try handle.seek(toOffset: UInt64(position.offset))
    } catch {
      throw CommandFailure(.failed, "cannot go on in \(path): \(error.localizedDescription)")
    }
  }

  /// The next lines; nil at the end.
  mutating func next(lines limit: Int = pieceLines) throws(CommandFailure) -> ImportPiece? {
    var scan = Scan()
    while true {
      scan.look(in: buffer, from: used, atMost: limit, isCSV: format == .csv)
      let isFull = scan.records == limit || scan.end - used >= Self.pieceBytes
      if isFull || isAtEnd {
        // The last line need not end in a line break.
        return take(upTo: isFull ? scan.end : buffer.count, scan)
      }
      guard buffer.count - max(used, scan.end) <= Self.maximumLineBytes else {
        throw CommandFailure(
          .failed,
          "line \(position.lines + scan.lines + 1): longer than \(Self.maximumLineBytes >> 20) MiB")
      }
      let moved = used
      try fill()
      scan.move(by: moved - used)
    }
  }

  private mutating func take(upTo end: Int, _ scan: Scan) -> ImportPiece? {
    guard end > used else { return nil }
    let bytes = Array(buffer[used..<end])
    let start = position
    position.offset += Int64(bytes.count)
    position.lines += scan.lines + (bytes.last == 0x0A ? 0 : 1)
    used = end
    return ImportPiece(bytes: bytes, start: start, end: position)
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
        .failed, "after line \(position.lines): \(error.localizedDescription)")
    }
  }

  /// How far line breaks were looked for.
  private struct Scan {
    /// Records, and lines, which are more where a cell has line breaks in it.
    var records = 0
    var lines = 0
    /// Behind the last whole record.
    var end = 0
    private var next = 0
    private var scanner = CSV.Scanner()

    mutating func move(by distance: Int) {
      end = max(0, end - distance)
      next = max(0, next - distance)
    }

    mutating func look(in buffer: [UInt8], from start: Int, atMost limit: Int, isCSV: Bool) {
      next = max(next, start)
      end = max(end, start)
      while next < buffer.count, records < limit, end - start < PieceReader.pieceBytes {
        let byte = buffer[next]
        next += 1
        if byte == 0x0A { lines += 1 }
        guard isCSV ? scanner.endsRecord(byte) : byte == 0x0A else { continue }
        records += 1
        end = next
      }
    }
  }
}
