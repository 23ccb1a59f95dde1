// The visible form of other people's text, checked for every scalar, and for texts that deceive
// people.

import OndolJSON
import Testing

@testable import Ondol

@Suite struct `Text that is shown` {
  private static var scalars: some Sequence<Unicode.Scalar> {
    (UInt32(0)...0x10FFFF).lazy.compactMap { Unicode.Scalar($0) }
  }

  /// By Unicode's properties of a scalar: controls, separators, and characters without a glyph that
  /// no language needs.
  private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    let properties = scalar.properties
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: return true
    case .format where !properties.isDefaultIgnorableCodePoint:
      // Interlinear annotations; others, such as the Arabic number sign, have a glyph.
      return 0xFFF9...0xFFFB ~= scalar.value
    case .format: return !["\u{200C}", "\u{200D}", "\u{180E}"].contains(scalar)
    case .unassigned: return properties.isDefaultIgnorableCodePoint
    default: return false
    }
  }

  @Test func `Of all scalars exactly the invisible ones have another form`() {
    var wrong: [UInt32] = []
    for scalar in Self.scalars {
      let shown = VisibleText.line(String(scalar))
      let isSame = shown.unicodeScalars.elementsEqual(CollectionOfOne(scalar))
      if isSame == Self.isInvisible(scalar) { wrong.append(scalar.value) }
      let isVisible = shown.unicodeScalars.allSatisfy { !Self.isInvisible($0) }
      if !isVisible { wrong.append(scalar.value) }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(20).map { String($0, radix: 16) })")
  }

  @Test func `A visible form stays the same in any context`() {
    var wrong: [UInt32] = []
    for scalar in Self.scalars where VisibleText.isHidden(scalar.value) {
      // A combining mark after it, or a line feed, would be one `Character` with it.
      for text in ["a\(scalar)b", "\(scalar)\u{301}", "\r\(scalar)", "\(scalar)\n", "🏴\(scalar)"] {
        let shown = VisibleText.line(text)
        if shown.unicodeScalars.contains(where: { VisibleText.isHidden($0.value) })
          || VisibleText.line(shown) != shown
        {
          wrong.append(scalar.value)
        }
      }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(20).map { String($0, radix: 16) })")
  }

  @Test(arguments: [
    ("\u{1B}]0;x\u{7}", #"\u{1b}]0;x\u{7}"#), ("\u{9B}2J", #"\u{9b}2J"#),
    ("\u{202E}gnp.exe", #"\u{202e}gnp.exe"#), ("a\r\nb\tc", #"a\r\nb\tc"#),
    ("a\u{200B}b", #"a\u{200b}b"#), ("x\u{E0041}", #"x\u{e0041}"#), ("\u{7F}\0", #"\u{7f}\u{0}"#),
    ("온돌 ä é", "온돌 ä é"), ("👨‍👩‍👧 ❤️ کتاب‌ها", "👨‍👩‍👧 ❤️ کتاب‌ها"), ("", ""),
  ])
  func `Orders and tricks are numbers, and languages stay`(text: String, shown: String) {
    #expect(VisibleText.line(text) == shown)
  }

  @Test func `Of lines the breaks stay`() {
    #expect(VisibleText.lines("a\n\tb\r\n\r\u{1B}c\r") == "a\n\tb\n\\r\\u{1b}c\\r")
  }

  @Test(arguments: [JSONForm.plain, .relaxed, .canonical])
  func `JSON shows it all, and reads back as the same`(form: JSONForm) throws {
    var wrong: [UInt32] = []
    for scalar in Self.scalars {
      let isHidden = VisibleText.isHidden(scalar.value)
      guard isHidden || scalar.value.isMultiple(of: 61) else { continue }
      let text = "a\(scalar)b"
      let line = JSONWriter.line(.string(text), form)
      let isEscaped = line.utf8.contains(UInt8(ascii: "\\"))
      let read = try JSONReader.read(Array(line.utf8)).string
      let isRight =
        isEscaped == (isHidden || scalar == "\"" || scalar == "\\")
        && read?.utf8.elementsEqual(text.utf8) == true
        && !line.unicodeScalars.contains { VisibleText.isHidden($0.value) }
      if !isRight { wrong.append(scalar.value) }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(20).map { String($0, radix: 16) })")
    #expect(
      JSONWriter.line(["\u{202E}b": "\u{9B}\u{2028}\u{E0041}\u{7F}"], form)
        == #"{"\u202eb":"\u009b\u2028\udb40\udc41\u007f"}"#)
  }
}
