// `model`, `schedule` and `history`: answers that could be wrong without any crash. A unit is one
// trial.

import ArgumentParser
import OndolTestKit

struct ModelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Compares the engine with an ordered map.")

  @Option(help: "Trials.")
  var seeds = 1_000

  @OptionGroup var options: StressOptions

  func run() async throws {
    try await StressRun("model", "trials", target: seeds, options).run { seed in
      _ = try ModelTrial.run(seed: seed)
      return UnitResult(cases: 1)
    }
  }
}

struct ScheduleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schedule",
    abstract: "Interleaves tasks over documents step by step, and checks that they are in a row.",
    discussion: "Strictly serializable: as if all had happened one after the other, in real time.")

  @Option(help: "Trials.")
  var seeds = 1_000

  @OptionGroup var options: StressOptions

  func run() async throws {
    try await StressRun("schedule", "schedules", target: seeds, options).run { seed in
      UnitResult(cases: 1, violation: try HistoryTrial.runInOrder(seed: seed))
    }
  }
}

struct HistoryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Runs tasks over documents on real threads, and checks that they are in a row.")

  @Option(help: "Trials.")
  var histories = 1_000

  @OptionGroup var options: StressOptions

  func run() async throws {
    try await StressRun("history", "histories", target: histories, options).run { seed in
      UnitResult(cases: 1, violation: try await HistoryTrial.runOnThreads(seed: seed))
    }
  }
}
