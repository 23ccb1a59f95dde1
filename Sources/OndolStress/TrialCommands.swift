// `model`, `schedule`, `history`, `observation`, `declarations`, `tree` and `failovers`: answers
// that could be wrong without any crash. A unit is one trial.

import ArgumentParser
import OndolTestKit

/// A suite of trials, each with a seed.
protocol TrialSuite: Sendable {
  static var configuration: CommandConfiguration { get }
  /// The default number of trials, and the option that changes it.
  static var count: Int { get }
  static var option: String { get }
  /// The noun of the trials in the verdict.
  static var cases: String { get }

  static func run(seed: UInt64) async throws -> UnitResult
}

extension TrialSuite {
  static var option: String { "histories" }
  static var cases: String { "histories" }
}

/// Runs the trials of a suite.
struct TrialCommand<Suite: TrialSuite>: AsyncParsableCommand {
  static var configuration: CommandConfiguration { Suite.configuration }

  @Option(name: .customLong(Suite.option), help: "How many.")
  var count = Suite.count

  @OptionGroup var options: StressOptions

  func run() async throws {
    let name = Self.configuration.commandName ?? Suite.cases
    try await StressRun(name, Suite.cases, target: count, options).run { seed in
      try await Suite.run(seed: seed)
    }
  }
}

enum ModelSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Compares the engine with an ordered map.")
  static let count = 1_000
  static let option = "seeds"
  static let cases = "trials"

  static func run(seed: UInt64) throws -> UnitResult {
    _ = try ModelTrial.run(seed: seed)
    return UnitResult(cases: 1)
  }
}

enum ScheduleSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "schedule",
    abstract: "Interleaves tasks on documents step by step, and checks that they are serializable.",
    discussion: "Strictly serializable: as if they had run one after another, in real time.")
  static let count = 1_000
  static let option = "seeds"
  static let cases = "schedules"

  static func run(seed: UInt64) throws -> UnitResult {
    UnitResult(cases: 1, violation: try HistoryTrial.runInOrder(seed: seed))
  }
}

enum HistorySuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Runs tasks on documents on real threads, and checks that they are serializable.")
  static let count = 1_000

  static func run(seed: UInt64) async throws -> UnitResult {
    UnitResult(cases: 1, violation: try await HistoryTrial.runOnThreads(seed: seed))
  }
}

enum TreeSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "tree",
    abstract: "Compares the realtime tree, its queries and events, with a naive one.")
  static let count = 20_000

  static func run(seed: UInt64) throws -> UnitResult {
    UnitResult(cases: try TreeTrial.run(seed: seed).histories)
  }
}

/// Listeners that could receive too much, too little, or half of a commit, in the process that
/// writes the database or beside it.
enum ObservationSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "observation",
    abstract: "Listens to histories of commits, and compares the results with new queries.",
    discussion: """
      After each of 32 commits all queries are asked afresh. Every snapshot must be such a result, \
      none older than the one before, the changes told must lead from each to the next, and the \
      last must be the last. One history in four has its listeners in an open that only reads, \
      beside a writer that also flushes, merges, drops collections, closes and opens again.
      """)
  static let count = 20_000

  static func run(seed: UInt64) throws -> UnitResult {
    let place = seed.isMultiple(of: 4) ? ObservationTrial.Place.besideWriter : .inWriter
    let found = try ObservationTrial.run(seed: seed, place)
    return UnitResult(
      cases: 1,
      counts: [
        "commits": found.commits, "snapshots": found.snapshots, "changes": found.changes,
        "histories beside the writer": found.beside,
      ])
  }
}

/// Live pipelines that could show something other than the pipeline gives when it is executed.
enum LivePipelineSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "pipelines",
    abstract: "Listens to pipelines in histories of commits, and executes them beside it.",
    discussion: """
      After each of 30 commits the pipelines are executed. Every answer of a listener must be such \
      a one, none older than the one before, and the last must be the last. In between blobs are \
      put, collections dropped and renamed, documents expire, and transactions run. A third of the \
      histories is encrypted, and in a third the listeners are in another open of the same store.
      """)
  static let count = 5_000

  static func run(seed: UInt64) throws -> UnitResult {
    let places = LivePipelineTrial.Place.allCases
    let found = try LivePipelineTrial.run(seed: seed, places[Int(seed % UInt64(places.count))])
    return UnitResult(
      cases: 1,
      counts: [
        "commits": found.commits, "answers": found.answers,
        "pipelines that follow changes": found.following,
        "pipelines that run again": found.repeating,
      ])
  }
}

/// Schemas, expiring documents, unique values and drops, and answers that could belong to another
/// moment, or differ from each other.
enum DeclarationSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "declarations",
    abstract: "Declares and drops, and compares every form of answer with a model.",
    discussion: """
      After each of 40 steps (writes, schemas with upgrades that may fail, ends by a clock that is \
      turned, unique indexes, drops with declarations and without, openings) documents, queries, \
      selections, aggregates, streams, transactions, snapshots taken earlier and listeners must \
      show what a model does.
      """)
  static let count = 10_000

  static func run(seed: UInt64) throws -> UnitResult {
    let found = try DeclarationTrial.run(seed: seed)
    return UnitResult(
      cases: 1,
      counts: [
        "schemas": found.schemas, "drops": found.drops, "answers": found.answers,
        "answers from earlier snapshots": found.pastAnswers,
        "documents unreadable": found.unreadable,
      ])
  }
}

enum FailoverSuite: TrialSuite {
  static let configuration = CommandConfiguration(
    commandName: "failovers",
    abstract: "Kills a simulated server under three processes, and lets standbys take over.",
    discussion: "A unit is 100 failovers; answers and requests are also lost, or come late.")
  static let count = 100_000
  static let option = "failovers"
  static let cases = "failovers"

  static func run(seed: UInt64) throws -> UnitResult {
    let counts = try FailoverTrial.run(seed: seed, failovers: 100)
    return UnitResult(
      cases: counts.failovers,
      counts: [
        "commits": counts.commits, "silences": counts.silences, "late": counts.late,
        "lost with servers": counts.lostWithServers, "refused": counts.refused,
      ])
  }
}
