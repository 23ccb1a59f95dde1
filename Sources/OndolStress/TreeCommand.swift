// `tree`: random histories of the realtime tree beside a naive one in memory. A unit is a history.

import ArgumentParser
import OndolTestKit

struct TreeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tree",
    abstract: "Compares the realtime tree, its queries and events, with a naive one.")

  @Option(help: "Histories.")
  var histories = 20_000

  @OptionGroup var options: StressOptions

  func run() async throws {
    try await StressRun("tree", "histories", target: histories, options).run { seed in
      do {
        return UnitResult(cases: try TreeTrial.run(seed: seed).histories)
      } catch let fault as TreeFault {
        return UnitResult(cases: 1, violation: fault.description)
      }
    }
  }
}
