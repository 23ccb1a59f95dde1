// `sync`: devices that synchronise with servers that die, over networks that break.

#if Server && Sync
  import ArgumentParser
  import OndolServerTestKit

  struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "sync",
      abstract: "Has devices and simulated servers write, die and come back, and checks that they"
        + " end equal.",
      discussion: """
        Two to four devices with clocks that are years off. A third of the histories have one to \
        three servers on a store, the others one on files. With --sabotage each promise is broken \
        on purpose, until that is noticed; not to notice it is the violation then.
        """)

    @OptionGroup var options: HistoryOptions

    func run() async throws {
      if options.sabotage {
        return try await options.breakEach(of: "sync") {
          (seed, promise: SyncSabotage) in
          _ = try SyncTrial.run(seed: seed, sabotage: promise)
        }
      }
      let (say, count) = (options.say, options.histories)
      try await StressRun("sync", "histories", target: count, options.stress).run { seed in
        let counts = try SyncTrial.run(seed: seed, trace: say)
        return UnitResult(
          cases: 1,
          counts: [
            "increments": counts.increments, "transactions": counts.transactions,
            "rejections": counts.rejections, "streams broken": counts.connections,
            "servers and devices ended": counts.deaths, "results": counts.results,
          ])
      }
    }
  }
#endif
