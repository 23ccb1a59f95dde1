// What all commands do to a terminal: messages to standard error, progress that is written over
// itself there, and an interrupt that is an event and not the end.

import Foundation
import OndolEngine

/// Standard error.
enum Console {
  static func say(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
  }

  /// Shows `text` in place of the progress shown before; where nobody can see it being replaced,
  /// only one line in ten comes.
  static func progress(_ text: String, number: Int) {
    if isatty(STDERR_FILENO) == 1 {
      try? FileHandle.standardError.write(contentsOf: Data("\r\u{1b}[K\(text)".utf8))
    } else if number % 10 == 0 {
      say(text)
    }
  }

  /// Ends the line of progress, where there is one.
  static func endProgress() {
    if isatty(STDERR_FILENO) == 1 {
      try? FileHandle.standardError.write(contentsOf: Data("\n".utf8))
    }
  }
}

/// Calls a function at SIGINT for as long as it lives; the second one ends the process.
final class Interrupt {
  private let count = Guarded(0)
  private let source: any DispatchSourceSignal

  init(_ handler: @escaping @Sendable () -> Void) {
    signal(SIGINT, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler { [count] in
      let isFirst = count.withLock { count in
        count += 1
        return count == 1
      }
      if isFirst { handler() } else { exit(130) }
    }
    // Until the source is registered an interrupt would be lost: what is ignored does not wait.
    let isRegistered = DispatchSemaphore(value: 0)
    source.setRegistrationHandler { isRegistered.signal() }
    source.resume()
    isRegistered.wait()
  }

  /// Whether there has been one.
  var hasCome: Bool { count.withLock { $0 > 0 } }

  func end() { source.cancel() }
}
