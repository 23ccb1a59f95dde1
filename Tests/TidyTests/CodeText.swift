// Separates code from comments and string literals, so that a rule about words ignores prose. It is
// not a parser: it knows line and nested block comments, plain, raw and multi-line strings, and
// code inside interpolations, which stays visible. It does not know regex literals.

/// Blanks everything except code.
struct CodeText {
  private let characters: [Character]
  private var output: [Character] = []
  private var position = 0

  /// The text in which spaces replace comments and the insides of strings. Line breaks stay.
  static func withoutCommentsAndStrings(_ text: String) -> String {
    var reader = CodeText(characters: Array(text))
    reader.readCode(untilParenthesisCloses: false)
    return String(reader.output)
  }

  private init(characters: [Character]) {
    self.characters = characters
    output.reserveCapacity(characters.count)
  }

  private func isAt(_ text: String) -> Bool {
    characters[position...].starts(with: text)
  }

  private mutating func keep(_ count: Int = 1) {
    let end = min(position + count, characters.count)
    output += characters[position..<end]
    position = end
  }

  private mutating func blank(_ count: Int = 1) {
    let end = min(position + count, characters.count)
    output += characters[position..<end].map { $0.isNewline ? $0 : " " }
    position = end
  }

  private mutating func readCode(untilParenthesisCloses: Bool) {
    var depth = 0
    while position < characters.count {
      switch characters[position] {
      case "/" where isAt("//"):
        while position < characters.count, !characters[position].isNewline { blank() }
      case "/" where isAt("/*"):
        readBlockComment()
      case "\"", "#":
        readStringOrKeep()
      case "(":
        depth += 1
        keep()
      case ")":
        if untilParenthesisCloses, depth == 0 { return }
        depth -= 1
        keep()
      default:
        keep()
      }
    }
  }

  private mutating func readBlockComment() {
    var depth = 0
    repeat {
      if isAt("/*") {
        depth += 1
        blank(2)
      } else if isAt("*/") {
        depth -= 1
        blank(2)
      } else {
        blank()
      }
    } while depth > 0 && position < characters.count
  }

  private mutating func readStringOrKeep() {
    let pounds = characters[position...].prefix { $0 == "#" }.count
    guard position + pounds < characters.count, characters[position + pounds] == "\"" else {
      keep(pounds)
      return
    }
    keep(pounds)
    let quotes = isAt("\"\"\"") ? "\"\"\"" : "\""
    let end = quotes + String(repeating: "#", count: pounds)
    let escape = "\\" + String(repeating: "#", count: pounds)
    keep(quotes.count)
    while position < characters.count {
      if isAt(end) {
        keep(end.count)
        return
      } else if isAt(escape + "(") {
        blank(escape.count)
        keep()
        readCode(untilParenthesisCloses: true)
        keep()
      } else if isAt(escape) {
        blank(escape.count + 1)
      } else if quotes.count == 1, characters[position].isNewline {
        // An unfinished literal: the compiler reports more than a rule could.
        return
      } else {
        blank()
      }
    }
  }
}
