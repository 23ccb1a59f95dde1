// `sabotage`: how soon the suites notice a planted bug. Here a suite that finds nothing is the
// violation.

import ArgumentParser
import OndolTerminal
import OndolTestKit

struct SabotageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sabotage",
    abstract: "Breaks promises on purpose, and counts until the suites notice.",
    discussion: """
      A disk swallows syncs of one kind, commits are acknowledged early, tasks break the rules of \
      transactions, and every row of an index is taken away once. Exit status 1 when something \
      goes unnoticed.
      """)

  @Option(help: "The number of times that each fault is planted.")
  var rounds = 20

  @Option(help: "The number of cases after which a planted fault counts as unnoticed.")
  var limit = 5_000

  @Option(help: "The seed that the rounds' seeds follow from; by default random.")
  var seed: UInt64?

  func validate() throws {
    guard rounds > 0, limit > 0 else {
      throw ValidationError("--rounds and --limit must be at least 1")
    }
  }

  func run() async throws {
    let seed = seed ?? UInt64.random(in: 1..<1 << 32)
    let interrupt = Interrupt(first: {})
    defer { interrupt.end() }
    var unnoticed = 0
    var planted = 0
    for fault in PlantedFault.all {
      var counts: [Int] = []
      for round in 0..<rounds where !interrupt.hasCome {
        planted += 1
        let found = try fault.casesUntilNoticed(
          seed: SeededRandom.derive(seed, round), limit: limit)
        if let found { counts.append(found) } else { unnoticed += 1 }
      }
      if interrupt.hasCome { break }
      counts.sort()
      let middle = counts.isEmpty ? "none" : "\(counts[counts.count / 2])"
      print(
        "\(fault.name): noticed in \(counts.count) of \(rounds), after \(middle) \(fault.cases)"
          + " (median), \(counts.last ?? 0) at most")
    }
    if !interrupt.hasCome {
      let lost = try LostRows.ofIndexes(seed: seed)
      planted += lost.rows
      unnoticed += lost.missed.count
      print("a lost row of an index: verify notices \(lost)")
    }
    print(
      "sabotage: \(planted) faults planted, \(unnoticed) unnoticed, seed \(seed)"
        + (interrupt.hasCome ? ", interrupted" : ""))
    if unnoticed > 0 { throw ExitCode(1) }
    if interrupt.hasCome { throw ExitCode(130) }
  }
}
