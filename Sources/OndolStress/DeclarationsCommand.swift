// `declarations`: schemas, times to live, unique values and drops, and answers that could be those
// of another moment, or different from each other. A unit is one history.

import ArgumentParser
import OndolEngine
import OndolTestKit

struct DeclarationsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "declarations",
    abstract: "Declares and drops, and compares every form of answer with a model.",
    discussion: """
      After each of 40 steps (writes, schemas with upgrades that may fail, ends by a clock that is \
      turned, unique indexes, drops with declarations and without, openings) documents, queries, \
      selections, aggregates, streams, transactions, snapshots taken earlier and listeners must \
      show what a model does.
      """)

  @Option(help: "Histories.")
  var histories = 10_000

  @OptionGroup var options: StressOptions

  func run() async throws {
    let counts = Guarded(DeclarationCounts())
    try await StressRun("declarations", "histories", target: histories, options).run { seed in
      let found = try DeclarationTrial.run(seed: seed)
      counts.withLock { $0 += found }
      return UnitResult(cases: 1)
    }
    let sum = counts.withLock { $0 }
    print(
      "declarations: \(sum.schemas) schemas, \(sum.drops) drops, \(sum.answers) answers,"
        + " \(sum.pastAnswers) from earlier snapshots, \(sum.unreadable) documents unreadable")
  }
}
