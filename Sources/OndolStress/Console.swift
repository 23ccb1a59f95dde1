// Progress that is written over itself on a terminal, and an interrupt that ends a run with what is
// known by then.

import Foundation
import OndolTerminal

extension Console {
  /// Shows `text` in place of the progress shown before; where nobody can see it being replaced,
  /// only one line in ten comes.
  static func progress(_ text: String, number: Int) {
    if isTerminal {
      rewrite(text, wiping: true)
    } else if number % 10 == 0 {
      say(text)
    }
  }

  /// Ends the line of progress, where there is one.
  static func endProgress() {
    if isTerminal { say("") }
  }
}

extension Interrupt {
  /// Calls a function at the first interrupt; the second one ends the process.
  convenience init(first handler: @escaping @Sendable () -> Void) {
    self.init { number in
      if number == 1 { handler() } else { exit(130) }
    }
  }
}
