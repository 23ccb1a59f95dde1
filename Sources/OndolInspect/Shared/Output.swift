// Where the tool writes: data to standard output, everything else to standard error, so that a pipe
// gets data only. Lines are gathered and written in large pieces; `flush` before anything that must
// be seen. What a person looks at, on a terminal and in a table wherever, has everything in it that
// could not be seen, or would be taken for an order, in its visible form; a pipe and a file get
// bytes as they are.

import Foundation
import Synchronization
import OndolJSON
import OndolPlatform

/// A part of a line, and whether it stands out where colours are used.
struct LinePart {
  var text: String
  var isBold = false
}

/// Standard output.
struct Output {
  private static let pieceBytes = 1 << 16
  private var buffer = Data()
  /// Whether a person is to see what is written.
  let isVisible: Bool

  /// - Parameter format: how data is written; a table is for a person, wherever it goes.
  init(_ format: OutputFormat? = nil) {
    isVisible = format == .table || Self.isTerminal
  }

  /// The file that data goes to instead; see `.output` of the shell.
  private static let redirection = Mutex<FileHandle?>(nil)

  /// True when a person is looking.
  static var isTerminal: Bool {
    isatty(STDOUT_FILENO) == 1 && redirection.withLock { $0 == nil }
  }

  /// Sends data to a file, or back to standard output.
  static func redirect(to path: String?) throws(CommandFailure) {
    guard let path else { return redirection.withLock { $0 = nil } }
    let file = try FileHandle.creating(path)
    redirection.withLock { $0 = file }
  }

  /// Writes a line.
  mutating func print(_ line: String) throws(CommandFailure) {
    try append(isVisible ? VisibleText.line(line) : line)
  }

  /// Writes several lines, or one with tabs that are the program's own.
  mutating func print(lines: String) throws(CommandFailure) {
    try append(isVisible ? VisibleText.lines(lines) : lines)
  }

  /// Writes a line whose bold parts stand out.
  mutating func print(_ parts: [LinePart]) throws(CommandFailure) {
    let texts = parts.map { part in
      let text = isVisible ? VisibleText.line(part.text) : part.text
      return part.isBold ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }
    try append(texts.joined())
  }

  private mutating func append(_ line: String) throws(CommandFailure) {
    buffer.append(contentsOf: line.utf8)
    buffer.append(0x0A)
    if buffer.count >= Self.pieceBytes { try flush() }
  }

  mutating func flush() throws(CommandFailure) {
    defer { buffer.removeAll(keepingCapacity: true) }
    try Self.send(buffer)
  }

  /// Writes bytes as they are; on a terminal as the text they are, which they begin and end between
  /// two characters of. See `WholeCharacters`.
  static func write(_ bytes: Data) throws(CommandFailure) {
    guard isTerminal else { return try send(bytes) }
    try send(Data(VisibleText.lines(String(decoding: bytes, as: UTF8.self)).utf8))
  }

  private static func send(_ bytes: Data) throws(CommandFailure) {
    if Interruption.isRequested { throw .interrupted }
    guard !bytes.isEmpty else { return }
    do {
      let file = redirection.withLock { $0 } ?? .standardOutput
      try file.write(contentsOf: bytes)
    } catch {
      guard errnoCode(error) != EPIPE else { throw .outputClosed }
      throw CommandFailure(
        .failed, "cannot write to standard output: \(error.localizedDescription)")
    }
  }

  /// The system's number for the reason.
  private static func errnoCode(_ error: any Error) -> Int32? {
    let inner = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
    return inner.domain == NSPOSIXErrorDomain ? Int32(clamping: inner.code) : nil
  }
}

/// Cuts the bytes of a text, which come in any pieces, between characters.
struct WholeCharacters {
  /// The beginning of a character whose end has not come.
  private(set) var rest: [UInt8] = []

  /// What is whole by now.
  mutating func next(_ piece: some Sequence<UInt8>) -> Data {
    rest += piece
    let end = rest.count - begunCount
    defer { rest.removeSubrange(..<end) }
    return Data(rest[..<end])
  }

  /// Bytes at the end that are the beginning of a longer character.
  private var begunCount: Int {
    for (index, byte) in rest.reversed().prefix(3).enumerated() where byte & 0xC0 != 0x80 {
      let length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
      return length > index + 1 ? index + 1 : 0
    }
    return 0
  }
}

extension FileHandle {
  /// A new file to write, in the place of what is there.
  static func creating(_ path: String) throws(CommandFailure) -> FileHandle {
    guard FileManager.default.createFile(atPath: path, contents: nil),
      let file = FileHandle(forWritingAtPath: path)
    else { throw CommandFailure(.failed, "cannot write \(path)") }
    return file
  }
}
