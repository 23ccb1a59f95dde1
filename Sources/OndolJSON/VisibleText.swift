// How the tools show other people's text: the one place that decides it. A name or a value may
// contain characters that a terminal obeys (they set a title, wipe the screen, or answer as if a
// person typed), characters that reverse the order of the text (`exe.png` for `gnp.exe`), or
// invisible ones. Each of them is shown as its number, `\u{1b}`. Characters that languages need
// stay: joiners, variation selectors, the Mongolian vowel separator.
//
// The ranges are listed here instead of coming from the standard library, so that they are the same
// with every version of Unicode, and so that the console's `dom.js` can have the same ones. Tests
// compare both.

/// Text in which everything is visible.
package enum VisibleText {
  /// The scalars that have a visible form.
  ///
  /// Controls (C0, DEL, C1), line and paragraph separators, marks and overrides of direction, and
  /// format characters without a glyph: soft hyphen, zero width space, word joiner, byte order
  /// mark, annotations, shorthand and musical controls, tags, and the ranges reserved for more.
  package static let hidden: [ClosedRange<UInt32>] = [
    0...0x1F, 0x7F...0x9F, 0xAD...0xAD, 0x61C...0x61C, 0x200B...0x200B, 0x200E...0x200F,
    0x2028...0x202E, 0x2060...0x206F, 0xFEFF...0xFEFF, 0xFFF0...0xFFFB, 0x1BCA0...0x1BCA3,
    0x1D173...0x1D17A, 0xE0000...0xE00FF, 0xE01F0...0xE0FFF,
  ]

  /// Whether the scalar with this number is shown as its number.
  package static func isHidden(_ number: UInt32) -> Bool {
    // Nearly all text is ASCII, or Hangul and its neighbours.
    if number < 0x7F { return number < 0x20 }
    if (0x3000..<0xFEFF).contains(number) { return false }
    return hidden.contains { $0 ~= number }
  }

  /// Returns the text on one line: line breaks and tabs are made visible as well.
  ///
  /// - Complexity: O(*n*) in the length of the text.
  package static func line(_ text: some StringProtocol) -> String {
    // This works by scalar: "\r\n" is one `Character`, and so is a tab with a combining mark after
    // it.
    shown(text.unicodeScalars) { _ in false }
  }

  /// Returns the text with its tabs and its line breaks, which are all `\n`, for text that the
  /// program itself laid out.
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
