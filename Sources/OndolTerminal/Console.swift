// What this package's programs share at a terminal: messages go to standard error, with names and
// reasons in a visible form, and an interrupt from the keyboard is an event and does not end the
// program.

import Dispatch
import Foundation
import OndolEngine
import OndolJSON

/// Standard error.
package enum Console {
  /// Whether a person reads the messages.
  package static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Prints a message to the person on one line. Line breaks in it, for example in a name, become
  /// visible. A failed write is ignored.
  package static func say(_ message: String, terminator: String = "\n") {
    write(VisibleText.line(message) + terminator)
  }

  /// Prints a message of several lines.
  package static func say(lines: String) {
    write(VisibleText.lines(lines) + "\n")
  }

  /// Overwrites the cursor's line and stays in it.
  ///
  /// - Parameter wiping: whether to erase the rest of the line after the new text.
  package static func rewrite(_ line: String, wiping: Bool = false) {
    write("\r" + (wiping ? "\u{1B}[K" : "") + VisibleText.line(line))
  }

  private static func write(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
  }
}

/// A number and its noun: "1 line", "2 lines".
///
/// - Parameter many: the noun for any number but one, if adding an "s" does not form it.
package func counted(_ number: Int, _ noun: String, _ many: String? = nil) -> String {
  number == 1 ? "1 \(noun)" : "\(number) \(many ?? noun + "s")"
}

/// Calls a function at each SIGINT, or at each occurrence of another signal, as long as the object
/// lives.
package final class Interrupt {
  private let count = Guarded(0)
  private let source: any DispatchSourceSignal

  /// - Parameters:
  ///   - number: the signal.
  ///   - handler: receives the number of the interrupt, counted from 1. It runs on its own thread.
  package init(of number: Int32 = SIGINT, _ handler: @escaping @Sendable (Int) -> Void) {
    signal(number, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: number, queue: .global())
    source.setEventHandler { [count] in
      let number = count.withLock { count in
        count += 1
        return count
      }
      handler(number)
    }
    // Interrupts before the source is registered would be lost, because an ignored signal is not
    // kept.
    let isRegistered = DispatchSemaphore(value: 0)
    source.setRegistrationHandler { isRegistered.signal() }
    source.resume()
    isRegistered.wait()
  }

  /// Whether an interrupt has occurred.
  package var hasCome: Bool { count.withLock { $0 > 0 } }

  /// Ends the handling. The next interrupt is ignored.
  package func end() { source.cancel() }
}
