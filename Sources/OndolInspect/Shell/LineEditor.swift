// An editable line: arrows, home and end, history, completion. The line is rewritten after every
// key, which a terminal shows faster than anyone types. Pasted text and completed names stay
// unchanged and are shown in their visible form.

import Foundation
import OndolJSON

/// Edits one line after the other.
struct LineEditor {
  /// The meaning of a key.
  enum Key: Equatable {
    case character(Character)
    case left, right, up, down, home, end
    case backspace, delete, deleteToEnd, deleteToStart, deleteWord
    case complete, enter, cancel, endOfInput, clear, unknown
  }

  /// The number of visible cells of a line. A longer line is shown in part.
  private static let shownCells = 100

  private var history: History
  private(set) var line: [Character] = []
  private(set) var cursor = 0
  /// The displayed line of the history, counted from the newest; 0 is the new line.
  private var historyPlace = 0
  private var newLine: [Character] = []

  init(history: History) {
    self.history = history
  }

  /// The line that the person ends with return; nil at the end of all input.
  mutating func readLine(
    prompt: String, complete: ([String]) async -> [String]
  ) async -> String? {
    (line, cursor, historyPlace, newLine) = ([], 0, 0, [])
    var copy = self
    let result: String? = await Terminal.inRawMode {
      copy.show(prompt)
      while let key = Self.readKey() {
        switch key {
        case .enter:
          Terminal.write("\r\n")
          return String(copy.line)
        case .endOfInput where copy.line.isEmpty:
          Terminal.write("\r\n")
          return nil
        case .cancel:
          Terminal.write("^C\r\n")
          return ""
        case .clear: Terminal.write("\u{1B}[H\u{1B}[2J")
        case .complete: await copy.complete(with: complete)
        default: copy.apply(key)
        }
        copy.show(prompt)
      }
      return nil
    }
    self = copy
    guard let text = result else { return nil }
    history.add(text)
    return text
  }

  // MARK: - Keys

  private static func readKey() -> Key? {
    guard let byte = Terminal.byte() else { return nil }
    switch byte {
    case 0x0D, 0x0A: return .enter
    case 0x01: return .home
    case 0x02: return .left
    case 0x03: return .cancel
    case 0x04: return .endOfInput
    case 0x05: return .end
    case 0x06: return .right
    case 0x08, 0x7F: return .backspace
    case 0x09: return .complete
    case 0x0B: return .deleteToEnd
    case 0x0C: return .clear
    case 0x0E: return .down
    case 0x10: return .up
    case 0x15: return .deleteToStart
    case 0x17: return .deleteWord
    case 0x1B: return readEscape()
    case 0x20...: return readCharacter(byte)
    default: return .unknown
    }
  }

  private static func readEscape() -> Key? {
    guard let open = Terminal.byte() else { return nil }
    guard open == UInt8(ascii: "[") || open == UInt8(ascii: "O") else { return .unknown }
    var digits = ""
    while let byte = Terminal.byte() {
      switch byte {
      case UInt8(ascii: "A"): return .up
      case UInt8(ascii: "B"): return .down
      case UInt8(ascii: "C"): return .right
      case UInt8(ascii: "D"): return .left
      case UInt8(ascii: "H"): return .home
      case UInt8(ascii: "F"): return .end
      case UInt8(ascii: "~"):
        return switch digits {
        case "1", "7": .home
        case "4", "8": .end
        case "3": .delete
        default: .unknown
        }
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ";"):
        digits.unicodeScalars.append(UnicodeScalar(byte))
      default: return .unknown
      }
    }
    return nil
  }

  /// The rest of a character whose first byte is known.
  private static func readCharacter(_ first: UInt8) -> Key? {
    let rest = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3
    var bytes = [first]
    for _ in 0..<rest {
      guard let byte = Terminal.byte() else { return nil }
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self).first.map { .character($0) } ?? .unknown
  }

  // MARK: - Editing

  mutating func apply(_ key: Key) {
    switch key {
    case .character(let character):
      line.insert(character, at: cursor)
      cursor += 1
    case .left: cursor = max(0, cursor - 1)
    case .right: cursor = min(line.count, cursor + 1)
    case .home: cursor = 0
    case .end: cursor = line.count
    case .backspace:
      guard cursor > 0 else { return }
      cursor -= 1
      line.remove(at: cursor)
    case .delete, .endOfInput:
      if cursor < line.count { line.remove(at: cursor) }
    case .deleteToEnd: line.removeSubrange(cursor...)
    case .deleteToStart:
      line.removeSubrange(..<cursor)
      cursor = 0
    case .deleteWord:
      var start = cursor
      while start > 0, line[start - 1] == " " { start -= 1 }
      while start > 0, line[start - 1] != " " { start -= 1 }
      line.removeSubrange(start..<cursor)
      cursor = start
    case .up: recall(historyPlace + 1)
    case .down: recall(historyPlace - 1)
    case .complete, .enter, .cancel, .clear, .unknown: break
    }
  }

  private mutating func recall(_ place: Int) {
    guard place >= 0, place <= history.lines.count else { return }
    if historyPlace == 0 { newLine = line }
    historyPlace = place
    line = place == 0 ? newLine : Array(history.lines[history.lines.count - place])
    cursor = line.count
  }

  /// Completes the word before the cursor by the common prefix of all candidates. If there is
  /// nothing to add, it shows them.
  private mutating func complete(with candidates: ([String]) async -> [String]) async {
    let before = String(line[..<cursor])
    var words = before.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
    if before.isEmpty || before.hasSuffix(" ") { words.append("") }
    let word = Self.name(endingWord: words.last ?? "")
    let found = await candidates(words).filter { $0.hasPrefix(word) }.sorted()
    guard let first = found.first, let last = found.last else { return }
    let common = String(zip(first, last).prefix { $0.0 == $0.1 }.map(\.0))
    if common.count > word.count || found.count == 1 {
      for character in common.dropFirst(word.count) { apply(.character(character)) }
      if found.count == 1 { apply(.character(" ")) }
    } else {
      let names = found.prefix(100).map { VisibleText.line($0) }
      Terminal.write("\r\n" + names.joined(separator: "  ") + "\r\n")
    }
  }

  /// The name at the end of the last word. Within quotes and after an operator, it is a field's
  /// name.
  static func name(endingWord word: String) -> String {
    let start = word.lastIndex { "'\"([,=<>!".contains($0) }.map { word.index(after: $0) }
    return String(word[(start ?? word.startIndex)...])
  }

  // MARK: - Showing

  private func show(_ prompt: String) {
    let characters = line.map { VisibleText.line(String($0)) }
    func width(_ characters: some Sequence<String>) -> Int {
      characters.reduce(0) { $0 + TextTable.width($1) }
    }
    var start = 0
    while start < cursor, width(characters[start..<cursor]) > Self.shownCells { start += 1 }
    var shown = characters[start...]
    while width(shown) > Self.shownCells { shown.removeLast() }
    let text = "\r\u{1B}[K" + prompt + shown.joined()
    let behind = width(shown.dropFirst(cursor - start))
    Terminal.write(text + (behind > 0 ? "\u{1B}[\(behind)D" : ""))
  }
}

/// The lines of earlier shells, in a file.
struct History {
  private static let maximumLines = 1_000

  private(set) var lines: [String] = []
  private let path: String?

  init(path: String?) {
    self.path = path
    guard let path, let data = FileManager.default.contents(atPath: path) else { return }
    lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
      .suffix(Self.maximumLines)
  }

  /// `.ondol_history` in the person's home directory, or the file that ONDOL_HISTORY names.
  static var file: History {
    let environment = ProcessInfo.processInfo.environment
    return History(
      path: environment["ONDOL_HISTORY"] ?? environment["HOME"].map { $0 + "/.ondol_history" })
  }

  /// Adds a line, unless it repeats the last one.
  mutating func add(_ line: String) {
    guard line.contains(where: { !$0.isWhitespace }), line != lines.last else { return }
    lines.append(line)
    if lines.count > Self.maximumLines { lines.removeFirst() }
    guard let path else { return }
    // A failure to save the history is ignored.
    try? Data((lines.joined(separator: "\n") + "\n").utf8).write(
      to: URL(filePath: path), options: .atomic)
  }
}
