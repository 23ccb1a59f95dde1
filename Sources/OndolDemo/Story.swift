// How the apps speak: line by line to standard output, each line out at once, because a process
// that is about to be killed has no later.

import Foundation
import OndolPlatform

/// Prints the story.
enum Story {
  static func chapter(_ title: String) {
    line("\n== \(title)")
  }

  static func say(_ text: String) {
    line("   \(text)")
  }

  static func line(_ text: String) {
    // Nobody listening is no reason to stop.
    try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
  }

  static func milliseconds(_ duration: Duration) -> String {
    let value =
      Double(duration.components.attoseconds) / 1e15 + Double(duration.components.seconds) * 1e3
    return value < 10 ? String(format: "%.2f ms", value) : String(format: "%.0f ms", value)
  }
}

/// Counts acknowledged writes, and at half of them ends this process as a crash would.
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

  /// Notes that `more` writes were acknowledged.
  mutating func add(_ more: Int = 1) {
    count += more
    guard isKilling else { return }
    Story.line("acknowledged \(count)")
    if count >= fatalCount {
      Story.say(
        "Killing this process now, without a word to the database. Start it again without --kill.")
      kill(getpid(), SIGKILL)
    }
  }
}
