// The terminal in raw mode: every key arrives at once, and nothing is echoed. It is the only file
// of the tool that makes system calls directly.

import Foundation
import OndolPlatform

/// The terminal at standard input.
enum Terminal {
  /// Whether a person types.
  static var isInput: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

  /// Runs `body` in raw mode, and restores the terminal in every case.
  static func inRawMode<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    var settings = termios()
    guard unsafe tcgetattr(STDIN_FILENO, &settings) == 0 else { return try await body() }
    var raw = settings
    raw.c_iflag &= ~tcflag_t(BRKINT | ICRNL | INPCK | ISTRIP | IXON)
    raw.c_lflag &= ~tcflag_t(ECHO | ICANON | IEXTEN | ISIG)
    _ = unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
    defer { _ = unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) }
    return try await body()
  }

  /// The next typed byte; nil at the end.
  static func byte() -> UInt8? {
    (try? FileHandle.standardInput.read(upToCount: 1))?.first
  }

  static func write(_ text: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
  }
}
