// Splits a line into words like a shell: at white space, with literal single quotes, double quotes
// and backslashes.

/// The words of a line.
enum ShellWords {
  static func split(_ line: String) throws(CommandFailure) -> [String] {
    var words: [String] = []
    var word: String?
    var rest = line[...]
    while let character = rest.popFirst() {
      switch character {
      case "'":
        guard let end = rest.firstIndex(of: "'") else {
          throw CommandFailure(.usage, "a quote is not closed")
        }
        word = (word ?? "") + rest[..<end]
        rest = rest[rest.index(after: end)...]
      case "\"":
        word = (word ?? "") + (try quoted(&rest))
      case "\\":
        guard let next = rest.popFirst() else {
          throw CommandFailure(.usage, "the line ends with a backslash")
        }
        word = (word ?? "") + String(next)
      case _ where character.isWhitespace:
        if let complete = word { words.append(complete) }
        word = nil
      default:
        word = (word ?? "") + String(character)
      }
    }
    if let word { words.append(word) }
    return words
  }

  private static func quoted(_ rest: inout Substring) throws(CommandFailure) -> String {
    var text = ""
    while let character = rest.popFirst() {
      switch character {
      case "\"": return text
      case "\\":
        guard let next = rest.popFirst() else { continue }
        if next != "\"", next != "\\" { text.append(character) }
        text.append(next)
      default: text.append(character)
      }
    }
    throw CommandFailure(.usage, "a quote is not closed")
  }
}
