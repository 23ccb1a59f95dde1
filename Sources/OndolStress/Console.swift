// Progress that overwrites itself on a terminal, and an interrupt that ends a run with the result
// so far.

import Foundation
import OndolTerminal

extension Console {
  /// Shows `text` instead of the previous progress. Without a terminal, it prints only one line in
  /// ten.
  static func progress(_ text: String, number: Int) {
    if isTerminal {
      rewrite(text, wiping: true)
    } else if number % 10 == 0 {
      say(text)
    }
  }

  /// Ends the progress line, if there is one.
  static func endProgress() {
    if isTerminal { say("") }
  }
}

extension Interrupt {
  /// Calls a function at the first interrupt. The second one ends the process.
  convenience init(first handler: @escaping @Sendable () -> Void) {
    self.init { number in
      if number == 1 { handler() } else { exit(130) }
    }
  }
}
