// How text that somebody else wrote is shown to a person: the one place that decides it. A name or
// a value may hold characters that a terminal takes for orders (it sets a title, wipes the screen,
// answers as if somebody had typed), that turn the order of what is read (`exe.png` for
// `gnp.exe`), or that nobody sees at all. Each of them is shown as its number, `\u{1b}`. What a
// language is written with stays: joiners, variation selectors, the Mongolian vowel separator.
//
// The ranges are listed and not asked of the standard library, so that they are the same with every
// version of Unicode and the console's `dom.js` can have them, too. Tests compare both.

/// Text with everything in sight.
package enum VisibleText {
  /// The scalars that have a visible form.
  ///
  /// Controls (C0, DEL, C1), line and paragraph separators, marks and overrides of direction, and
  /// characters for formats that have no picture: soft hyphen, zero width space, word joiner, byte
  /// order mark, annotations, shorthand and musical controls, tags, and the places kept for more.
  package static let hidden: [ClosedRange<UInt32>] = [
    0...0x1F, 0x7F...0x9F, 0xAD...0xAD, 0x61C...0x61C, 0x200B...0x200B, 0x200E...0x200F,
    0x2028...0x202E, 0x2060...0x206F, 0xFEFF...0xFEFF, 0xFFF0...0xFFFB, 0x1BCA0...0x1BCA3,
    0x1D173...0x1D17A, 0xE0000...0xE00FF, 0xE01F0...0xE0FFF,
  ]

  /// Whether the scalar with this number is shown by it.
  package static func isHidden(_ number: UInt32) -> Bool {
    // Nearly all text is ASCII, or Hangul and its neighbours.
    if number < 0x7F { return number < 0x20 }
    if (0x3000..<0xFEFF).contains(number) { return false }
    return hidden.contains { $0 ~= number }
  }

  /// The text in one line: line breaks and tabs are visible, too.
  ///
  /// - Complexity: O(*n*) in the length of the text.
  package static func line(_ text: some StringProtocol) -> String {
    // By scalar: "\r\n", and a tab with a combining mark behind it, are one `Character` each.
    shown(text.unicodeScalars) { _ in false }
  }

  /// The text with its tabs and its line breaks, which are all `\n`, for what the program itself
  /// laid out.
  ///
  /// - Complexity: O(*n*) in the length of the text.
  package static func lines(_ text: some StringProtocol) -> String {
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
    return shown(lines.joined(separator: "\n").unicodeScalars) { $0 == "\n" || $0 == "\t" }
  }

  private static func shown(
    _ scalars: some Sequence<Unicode.Scalar>, keeping isKept: (Unicode.Scalar) -> Bool
  ) -> String {
    var shown = String.UnicodeScalarView()
    for scalar in scalars {
      if isHidden(scalar.value), !isKept(scalar) {
        shown.append(contentsOf: form(of: scalar).unicodeScalars)
      } else {
        shown.append(scalar)
      }
    }
    return String(shown)
  }

  /// `\n`, `\r`, `\t`, or the number: `\u{202e}`.
  private static func form(of scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u{\(String(scalar.value, radix: 16))}"
    }
  }
}
