// What the programs of this package have in common at a terminal: what they say goes to standard
// error, with names and reasons in a form that can be seen, and an interrupt from the keyboard is
// an event and not the end.

import Dispatch
import Foundation
import OndolEngine
import OndolJSON

/// Standard error.
package enum Console {
  /// True when a person reads what is said.
  package static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Says something to the person in one line: what has line breaks in it, as a name may, has them
  /// visibly. Not being heard is no failure.
  package static func say(_ message: String, terminator: String = "\n") {
    write(VisibleText.line(message) + terminator)
  }

  /// Says something of several lines.
  package static func say(lines: String) {
    write(VisibleText.lines(lines) + "\n")
  }

  /// Writes over the line that the cursor is in, and stays in it.
  ///
  /// - Parameter wiping: whether what was there is wiped behind the new text, too.
  package static func rewrite(_ line: String, wiping: Bool = false) {
    write("\r" + (wiping ? "\u{1B}[K" : "") + VisibleText.line(line))
  }

  private static func write(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
  }
}

/// A number and its noun: "1 line", "2 lines".
///
/// - Parameter many: the noun for any number but one, where an "s" does not make it.
package func counted(_ number: Int, _ noun: String, _ many: String? = nil) -> String {
  number == 1 ? "1 \(noun)" : "\(number) \(many ?? noun + "s")"
}

/// Calls a function at each SIGINT, or at each of another signal, for as long as it lives.
package final class Interrupt {
  private let count = Guarded(0)
  private let source: any DispatchSourceSignal

  /// - Parameters:
  ///   - number: which signal.
  ///   - handler: gets the number of the interrupt, from 1; runs on a thread of its own.
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
    // Until the source is registered an interrupt would be lost: what is ignored does not wait.
    let isRegistered = DispatchSemaphore(value: 0)
    source.setRegistrationHandler { isRegistered.signal() }
    source.resume()
    isRegistered.wait()
  }

  /// Whether there has been one.
  package var hasCome: Bool { count.withLock { $0 > 0 } }

  /// Ends it: the next interrupt is ignored.
  package func end() { source.cancel() }
}
