// An app that writes as fast as it can, with the console in its own process, to measure the cost of
// the console. Tests/Browser/figures.py runs it.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolPlatform
import OndolTerminal

struct Rate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rate",
    abstract: "Writes for the seconds in each line of standard input, and counts the commits.",
    discussion: "Prints the console's address, then COMMITS SECONDS CPU-SECONDS for each line.",
    shouldDisplay: false)

  @OptionGroup var options: DemoOptions

  @Option(help: "Tasks that write, one document each.")
  var writers = 4

  @Flag(help: "Wait for no disk, so that only processors count.")
  var memory = false

  @Flag(help: "Without a console.")
  var alone = false

  func run() async throws {
    let database = try await Database.open(at: try options.database(of: "rate"))
    let console = alone ? nil : try await Console.start(database, access: .edit)
    Story.line(console?.url ?? "alone")
    // Waiting for a line blocks a thread, which must not be one that tasks share.
    let (lines, input) = AsyncStream<String>.makeStream()
    Thread.detachNewThread {
      while let line = readLine() { input.yield(line) }
      input.finish()
    }
    for await line in lines {
      guard let seconds = Double(line) else { continue }
      let start = (clock: ContinuousClock.now, work: Self.work)
      let commits = try await write(database, for: .seconds(seconds))
      let took = ContinuousClock.now - start.clock
      Story.line("\(commits) \(took / .seconds(1)) \(Self.work - start.work)")
    }
    await console?.stop()
    try await database.close()
  }

  private func write(_ database: Database, for duration: Duration) async throws -> Int {
    let end = ContinuousClock.now + duration
    let durability: Durability? = memory ? .memory : nil
    return try await withThrowingTaskGroup(of: Int.self) { group in
      for writer in 0..<writers {
        group.addTask {
          let document = database.collection("rate").document("writer-\(writer)")
          var count = 0
          while ContinuousClock.now < end {
            try await document.setData(
              ["name": "writer \(writer)", "count": count], durability: durability)
            count += 1
          }
          return count
        }
      }
      return try await group.reduce(0, +)
    }
  }

  /// The processor time of this process, in seconds.
  private static var work: Double {
    // In millionths of a second, on every system that has it.
    Double(clock()) / 1e6
  }
}
