// How the apps speak: a chapter for each, line by line to standard output. Each line is written at
// once, because the process may be about to be killed. Terminals get colours; a pipe or a file gets
// plain text.

import Foundation
import OndolPlatform

/// Prints the story.
enum Story {
  private enum Style: String {
    case title = "\u{1B}[1;36m"
    case dim = "\u{1B}[2m"
    case label = "\u{1B}[33m"
  }

  private static let end = "\u{1B}[0m"
  private static let isColoured =
    isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    && ProcessInfo.processInfo.environment["TERM"] != "dumb"

  /// Begins a chapter, and names its database.
  static func chapter(_ title: String, in place: String? = nil) {
    line("\n" + styled("== \(title)", .title) + (place.map { styled("   \($0)", .dim) } ?? ""))
  }

  /// Prints an action.
  static func say(_ text: String) {
    line("   \(text)")
  }

  /// Prints its result, below the action.
  static func show(_ text: String) {
    line("     " + styled(text, .dim))
  }

  /// Prints what the same would take in the usual setup.
  static func elsewhere(_ text: String) {
    line("   " + styled("Elsewhere:", .label) + " \(text)")
  }

  /// Prints what to open next.
  static func next(_ app: String, at place: String? = nil) {
    let option = place.map { " --at \($0)" } ?? ""
    line("   " + styled("Look inside:", .label) + " Scripts/demo open \(app)\(option)")
  }

  static func line(_ text: String) {
    // The story continues even if nothing reads it.
    try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
  }

  private static func styled(_ text: String, _ style: Style) -> String {
    isColoured ? style.rawValue + text + end : text
  }

  // MARK: - Figures

  static func milliseconds(_ duration: Duration) -> String {
    let value =
      Double(duration.components.attoseconds) / 1e15 + Double(duration.components.seconds) * 1e3
    return value < 10 ? String(format: "%.2f ms", value) : String(format: "%.0f ms", value)
  }

  /// A number with its noun: `1 picture`, `2 pictures`.
  static func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }

  /// `12,345 bytes`.
  static func bytes(_ number: Int) -> String {
    "\(grouped(number)) byte\(abs(number) == 1 ? "" : "s")"
  }

  /// `12,345`.
  static func grouped(_ number: Int) -> String {
    var digits = String(abs(number))
    var groups: [String] = []
    while digits.count > 3 {
      groups.insert(String(digits.suffix(3)), at: 0)
      digits.removeLast(3)
    }
    groups.insert(digits, at: 0)
    return (number < 0 ? "-" : "") + groups.joined(separator: ",")
  }
}

/// Counts acknowledged writes, and ends this process after half of them, as a crash would.
struct Acknowledgements {
  private let isKilling: Bool
  private let fatalCount: Int
  private var count: Int

  /// Starts at `done` of `total`.
  init(killing: Bool, done: Int, total: Int) {
    isKilling = killing
    count = done
    fatalCount = done + (total - done + 1) / 2
  }

  /// Records that `more` writes were acknowledged.
  mutating func add(_ more: Int = 1) {
    count += more
    guard isKilling else { return }
    Story.line("acknowledged \(count)")
    if count >= fatalCount {
      Story.say(
        "Killing this process now, without closing the database. Start it again without --kill.")
      kill(getpid(), SIGKILL)
    }
  }
}
