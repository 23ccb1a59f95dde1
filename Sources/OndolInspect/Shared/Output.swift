// Where the tool writes: data to standard output, everything else to standard error, so that a pipe
// gets data only. Lines are gathered and written in large pieces; `flush` before anything that must
// be seen.

import Foundation
import Synchronization
import OndolPlatform

/// Standard output.
struct Output {
  private static let pieceBytes = 1 << 16
  private var buffer = Data()

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

  mutating func print(_ line: String) throws(CommandFailure) {
    buffer.append(contentsOf: line.utf8)
    buffer.append(0x0A)
    if buffer.count >= Self.pieceBytes { try flush() }
  }

  mutating func flush() throws(CommandFailure) {
    defer { buffer.removeAll(keepingCapacity: true) }
    try Self.write(buffer)
  }

  /// Writes bytes as they are.
  static func write(_ bytes: Data) throws(CommandFailure) {
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

extension FileHandle {
  /// A new file to write, in the place of what is there.
  static func creating(_ path: String) throws(CommandFailure) -> FileHandle {
    guard FileManager.default.createFile(atPath: path, contents: nil),
      let file = FileHandle(forWritingAtPath: path)
    else { throw CommandFailure(.failed, "cannot write \(path)") }
    return file
  }
}
