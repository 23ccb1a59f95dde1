// `observation`: listeners that could be told too much, too little, or half of a commit. A unit is
// one history of commits, with listeners in the database that is written or beside its writer.

import ArgumentParser
import OndolEngine
import OndolTestKit

struct ObservationCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "observation",
    abstract: "Listens to histories of commits, and compares with queries asked afresh.",
    discussion: """
      After each of 32 commits all queries are asked afresh. Every snapshot must be such a result, \
      none older than the one before, the changes told must lead from each to the next, and the \
      last must be the last. One history in four has its listeners in an open that only reads, \
      beside a writer that also flushes, merges, drops collections, closes and opens again.
      """)

  @Option(help: "Histories.")
  var histories = 20_000

  @OptionGroup var options: StressOptions

  func run() async throws {
    let counts = Guarded(ObservationCounts())
    try await StressRun("observation", "histories", target: histories, options).run { seed in
      let place = seed.isMultiple(of: 4) ? ObservationTrial.Place.besideWriter : .inWriter
      let found = try ObservationTrial.run(seed: seed, place)
      counts.withLock { $0 += found }
      return UnitResult(cases: 1)
    }
    let sum = counts.withLock { $0 }
    print(
      "observation: \(sum.commits) commits, \(sum.snapshots) snapshots with \(sum.changes) changes,"
        + " \(sum.beside) histories beside the writer")
  }
}
