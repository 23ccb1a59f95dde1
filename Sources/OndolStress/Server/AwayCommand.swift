// `away`: a database on a server behind a proxy that stops, delays, cuts, half-closes and slows
// connections, and on a server that loses its newest commits. Each call ends within its time, a
// listener is correct or says that it may not be, and each write has the outcome that its caller
// was told.

#if Postgres
  import ArgumentParser
  import OndolPostgresTestKit
  import OndolTestKit

  struct AwayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "away",
      abstract: "Takes a server away in many ways, and checks the results of calls and listeners.",
      discussion: "A round is an outage of some seconds and the time until all is well again.")

    @Option(help: "The smallest number of outages.")
    var rounds = 100

    @Option(help: "Only outages of one kind: \(Self.kinds.joined(separator: ", ")).")
    var only: String?

    @OptionGroup var options: StressOptions

    private static let kinds = FaultyProxy.Mode.outages.map { "\($0)" }

    func validate() throws {
      guard only.map(Self.kinds.contains) ?? true else {
        throw ValidationError("--only takes one of \(Self.kinds.joined(separator: ", "))")
      }
      guard rounds > 0 else { throw ValidationError("--rounds must be at least 1") }
    }

    func run() async throws {
      let run = StressRun("away", "outages", target: rounds, options)
      let only = FaultyProxy.Mode.allCases.first { "\($0)" == self.only }
      try await run.run { seed in
        var random = SeededRandom(seed: seed)
        let mode = only ?? random.pick(FaultyProxy.Mode.outages)
        var result = UnitResult(cases: 1, counts: ["\(mode)": 1])
        do {
          result.counts["in doubt"] = try await AwayTrial(seed: seed, mode, .strict).run()
        } catch let broken as BrokenInvariant {
          result.violation = "\(mode): \(broken)"
        }
        return result
      }
    }
  }
#endif
