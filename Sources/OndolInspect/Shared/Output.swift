// The tool's output: data to standard output, everything else to standard error, so that a pipe
// receives only data. Lines are collected and written in large pieces; `flush` comes before
// anything that must be seen. Output for a person (on a terminal, or in a table wherever it goes)
// shows invisible characters and control sequences in a visible form. A pipe and a file receive
// bytes unchanged.

import Foundation
import Synchronization
import OndolJSON
import OndolPlatform

/// Part of a line, and whether it is highlighted if colours are used.
struct LinePart {
  var text: String
  var isBold = false
}

/// Standard output.
struct Output {
  private static let pieceBytes = 1 << 16
  private var buffer = Data()
  /// Whether the output is for a person.
  let isVisible: Bool

  /// - Parameter format: the format of the data. A table is for a person, wherever it goes.
  init(_ format: OutputFormat? = nil) {
    isVisible = format == .table || Self.isTerminal
  }

  /// The file that data goes to instead; see the shell's `.output`.
  private static let redirection = Mutex<FileHandle?>(nil)

  /// Whether a person sees the output.
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

  /// Writes several lines, or one with tabs of the program's own.
  mutating func print(lines: String) throws(CommandFailure) {
    try append(isVisible ? VisibleText.lines(lines) : lines)
  }

  /// Writes a line with highlighted bold parts.
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

  /// Writes bytes unchanged. On a terminal it writes them as text, in units of complete characters;
  /// see `WholeCharacters`.
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

  /// The system's error number.
  private static func errnoCode(_ error: any Error) -> Int32? {
    let inner = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
    return inner.domain == NSPOSIXErrorDomain ? Int32(clamping: inner.code) : nil
  }
}

/// Splits the bytes of a text, which arrive in arbitrary pieces, between characters.
struct WholeCharacters {
  /// The beginning of a character whose end has not arrived.
  private(set) var rest: [UInt8] = []

  /// The characters that are complete by now.
  mutating func next(_ piece: some Sequence<UInt8>) -> Data {
    rest += piece
    let end = rest.count - begunCount
    defer { rest.removeSubrange(..<end) }
    return Data(rest[..<end])
  }

  /// The number of bytes at the end that begin a longer character.
  private var begunCount: Int {
    for (index, byte) in rest.reversed().prefix(3).enumerated() where byte & 0xC0 != 0x80 {
      let length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
      return length > index + 1 ? index + 1 : 0
    }
    return 0
  }
}

extension FileHandle {
  /// A new file for writing, which replaces an existing one.
  static func creating(_ path: String) throws(CommandFailure) -> FileHandle {
    guard FileManager.default.createFile(atPath: path, contents: nil),
      let file = FileHandle(forWritingAtPath: path)
    else { throw CommandFailure(.failed, "cannot write \(path)") }
    return file
  }
}
