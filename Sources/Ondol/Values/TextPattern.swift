// What a condition looks for in a text: at its beginning, as a whole or anywhere in it, with or
// without regard to case. To ignore case, both are compared in lower case, which does not depend on
// a language.

internal import OndolEngine

/// A text to look for in others.
struct TextPattern: Sendable, Hashable {
  /// Where in a text it must be found. The numbers are part of the file format.
  enum Place: UInt8, Sendable {
    case whole = 0
    case beginning = 1
    case anywhere = 2
  }

  /// In lower case when case is ignored.
  let text: ExactText
  let place: Place
  let ignoresCase: Bool

  init(_ text: String, _ place: Place, ignoringCase: Bool) {
    self.text = ExactText(ignoringCase ? text.lowercased() : text)
    self.place = place
    ignoresCase = ignoringCase
  }

  /// Whether it is found in `text`.
  ///
  /// - Complexity: O(n) in the bytes of `text`, about.
  func matches(_ text: String) -> Bool {
    let searched = ignoresCase ? text.lowercased() : text
    return self.text.text.withUTF8Bytes { pattern in
      searched.withUTF8Bytes { bytes in
        switch place {
        case .whole: bytes.compare(pattern) == 0
        case .beginning: bytes.starts(with: pattern)
        case .anywhere: bytes.contains(pattern)
        }
      }
    }
  }
}

extension TextPattern: CustomStringConvertible {
  var description: String {
    let verb =
      switch place {
      case .whole: "is"
      case .beginning: "begins with"
      case .anywhere: "contains"
      }
    return "\(verb) \"\(text.text)\"" + (ignoresCase ? " in any case" : "")
  }
}
