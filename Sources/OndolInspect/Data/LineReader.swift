// A file or standard input, line by line, in memory for one line at a time: an import may be larger
// than the machine's memory.

import Foundation

/// Lines of bytes with their numbers.
struct LineReader {
  /// Longer than any document can be written.
  static let maximumLineBytes = 64 << 20
  private static let chunkBytes = 1 << 16

  private let handle: FileHandle
  private var buffer: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  /// The number of the line read last, counted from one.
  private(set) var lineNumber = 0

  /// Reads the file at `path`; "-" is standard input.
  init(path: String) throws(CommandFailure) {
    if path == "-" {
      handle = .standardInput
    } else if let file = FileHandle(forReadingAtPath: path) {
      handle = file
    } else {
      throw CommandFailure(.failed, "cannot read \(path)")
    }
  }

  /// The next line that is not blank, without its line break; nil at the end.
  mutating func next() throws(CommandFailure) -> [UInt8]? {
    while let line = try nextLine() {
      lineNumber += 1
      let isBlank = line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
      if !isBlank { return line }
    }
    return nil
  }

  private mutating func nextLine() throws(CommandFailure) -> [UInt8]? {
    var searched = position
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0A) {
        defer { position = end + 1 }
        return Array(buffer[position..<end])
      }
      if isAtEnd {
        guard position < buffer.count else { return nil }
        defer { position = buffer.count }
        return Array(buffer[position...])
      }
      buffer.removeSubrange(..<position)
      position = 0
      searched = buffer.count
      guard buffer.count <= Self.maximumLineBytes else {
        throw CommandFailure(
          .failed, "line \(lineNumber + 1): longer than \(Self.maximumLineBytes >> 20) MiB")
      }
      try fill()
    }
  }

  private mutating func fill() throws(CommandFailure) {
    do {
      let chunk = try handle.read(upToCount: Self.chunkBytes) ?? Data()
      isAtEnd = chunk.isEmpty
      buffer.append(contentsOf: chunk)
    } catch {
      throw CommandFailure(.failed, "after line \(lineNumber): \(error.localizedDescription)")
    }
  }
}
