// The progress of a long command, on one line of standard error that is overwritten: for import,
// export, dump, load, check, compact and backup. It is only for people: if standard error is not a
// terminal, and with --quiet or --no-progress, nothing is written. Updating it is cheap enough for
// every step, because most calls only read a clock.

import Ondol
import OndolTerminal

/// A line with the completed amount, the total, the speed, and the remaining time.
struct ProgressBar {
  /// The unit of the counts.
  enum Unit {
    case bytes
    /// Things with their name, such as "documents".
    case things(String)
  }

  /// The shortest time between two updates of the line.
  private static let interval = Duration.milliseconds(100)
  private static let barCells = 24

  private let unit: Unit
  /// The total amount; nil if unknown, as with a pipe.
  private var total: Int64?
  private let isShown: Bool
  private let start = ContinuousClock.now
  private var lastShown: ContinuousClock.Instant?
  /// The width of the current line in cells.
  private var lastWidth = 0

  init(_ unit: Unit, of total: Int64? = nil, isQuiet: Bool = false) {
    self.unit = unit
    self.total = total
    isShown = !isQuiet && Console.isTerminal
  }

  /// Shows that `done` are complete, of `total` if the caller knows only by now. `note` follows,
  /// for example with a count of something else.
  mutating func show(
    _ done: Int64, of total: Int64? = nil, note: @autoclosure () -> String = ""
  ) {
    guard isShown else { return }
    self.total = total ?? self.total
    let now = ContinuousClock.now
    if let lastShown, lastShown.duration(to: now) < Self.interval { return }
    lastShown = now
    let seconds = start.duration(to: now) / .seconds(1)
    write(Self.line(done, of: self.total, unit, seconds: seconds, note: note()))
  }

  /// Erases the line, before other output and at the end.
  mutating func clear() {
    guard isShown, lastWidth > 0 else { return }
    Console.rewrite(String(repeating: " ", count: lastWidth))
    Console.rewrite("")
    lastWidth = 0
  }

  private mutating func write(_ line: String) {
    let width = TextTable.width(line)
    let rest = String(repeating: " ", count: max(0, lastWidth - width))
    Console.rewrite(line + rest)
    lastWidth = width
  }
}

/// A bar that closures share.
final class SharedProgressBar {
  private var bar: ProgressBar

  init(_ unit: ProgressBar.Unit, of total: Int64? = nil, _ globals: GlobalOptions) {
    bar = ProgressBar(unit, of: total, isQuiet: !globals.showsProgress)
  }

  func show(_ done: some BinaryInteger, note: @autoclosure () -> String = "") {
    bar.show(Int64(clamping: done), note: note())
  }

  func show(_ done: UInt64, of total: UInt64) {
    bar.show(Int64(clamping: done), of: Int64(clamping: total))
  }

  func clear() { bar.clear() }
}

// MARK: - The line

extension ProgressBar {
  /// The line's text. A pure function.
  static func line(
    _ done: Int64, of total: Int64?, _ unit: Unit, seconds: Double, note: String = ""
  ) -> String {
    var parts: [String] = []
    let rate = seconds > 0.2 ? Double(done) / seconds : 0
    if let total, total > 0 {
      let share = min(1, max(0, Double(done) / Double(total)))
      let full = Int(share * Double(barCells))
      let bar =
        String(repeating: "█", count: full) + String(repeating: "·", count: barCells - full)
      parts.append("\(bar) \(Int(share * 100)) %")
    }
    parts.append(amount(done, unit))
    if rate > 0 { parts.append(amount(Int64(rate), unit) + "/s") }
    if let total, total > done, rate > 0 {
      parts.append("\(time(Double(total - done) / rate)) left")
    }
    if !note.isEmpty { parts.append(note) }
    return parts.joined(separator: "  ")
  }

  private static func amount(_ count: Int64, _ unit: Unit) -> String {
    switch unit {
    case .things(let name): "\(count) \(name)"
    case .bytes:
      count < 10 << 20 ? "\(count >> 10) KiB" : "\(count >> 20) MiB"
    }
  }

  private static func time(_ seconds: Double) -> String {
    let whole = Int64(min(seconds.rounded(.up), 1e9))
    if whole < 60 { return "\(whole) s" }
    if whole < 3_600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3_600) h \(whole % 3_600 / 60) min"
  }
}
