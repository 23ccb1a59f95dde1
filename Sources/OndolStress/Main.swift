// `ondol-stress`: the suites of SimulationTests for hours instead of seconds, and loads. A suite is
// a series of units, each with a seed of its own (StressRun). A load is operations on documents and
// their latencies (Load/). This file has the command line's root.

import ArgumentParser

@main
struct Main: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ondol-stress",
    abstract: "Looks for broken promises: crashes, faults, kills, damage, races, load.",
    discussion: """
      Progress goes to standard error, the verdict to standard output, in one line. Exit status: 0 \
      nothing found, 1 a violation, 2 wrong usage, 130 interrupted. A violation names the seed of \
      its unit; --replay with that seed does the same again, as far as everything is simulated.
      """,
    subcommands: [
      CrashCommand.self, FaultsCommand.self, KillCommand.self, HostileCommand.self,
      TrialCommand<ModelSuite>.self, TrialCommand<ScheduleSuite>.self,
      TrialCommand<HistorySuite>.self, TrialCommand<ObservationSuite>.self,
      TrialCommand<LivePipelineSuite>.self,
      TrialCommand<DeclarationSuite>.self, TrialCommand<TreeSuite>.self,
      TrialCommand<FailoverSuite>.self, SabotageCommand.self, LoadCommand.self, YCSBCommand.self,
      SoakCommand.self, TenantsCommand.self, BenchCommand.self,
    ] + postgresCommands + serverCommands + syncCommands)

  private static var postgresCommands: [any ParsableCommand.Type] {
    #if Postgres
      [ServerHistoryCommand.self, ServerSoakCommand.self, AwayCommand.self]
    #else
      []
    #endif
  }

  private static var serverCommands: [any ParsableCommand.Type] {
    #if Server
      [ServeCommand.self]
    #else
      []
    #endif
  }

  private static var syncCommands: [any ParsableCommand.Type] {
    #if Server && Sync
      [SyncCommand.self]
    #else
      []
    #endif
  }
}
