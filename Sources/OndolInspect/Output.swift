// Where the tool writes: data to standard output, everything else to standard error, so that a pipe
// gets data only. Lines are gathered and written in large pieces; `flush` before anything that must
// be seen.

import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Standard output.
struct Output {
  private static let pieceBytes = 1 << 16
  private var buffer = Data()

  /// True when a person is looking.
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
  /// True when messages go to a person.
  static var messagesGoToTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  mutating func print(_ line: String) throws(CommandFailure) {
    buffer.append(contentsOf: line.utf8)
    buffer.append(0x0A)
    if buffer.count >= Self.pieceBytes { try flush() }
  }

  mutating func flush() throws(CommandFailure) {
    do {
      try FileHandle.standardOutput.write(contentsOf: buffer)
      buffer.removeAll(keepingCapacity: true)
    } catch {
      throw CommandFailure(
        .failed, "cannot write to standard output: \(error.localizedDescription)")
    }
  }

  /// Says something to the person. Not being heard is no failure.
  static func say(_ message: String, terminator: String = "\n") {
    try? FileHandle.standardError.write(contentsOf: Data((message + terminator).utf8))
  }
}
