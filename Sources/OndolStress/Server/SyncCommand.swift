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
        on purpose, until that is noticed; not to notice it is the violation then. With --google \
        the devices take the servers for Google's, which record no names of writes.
        """)

    @OptionGroup var options: HistoryOptions

    @Flag(help: "Speak to the servers as to Google's.")
    var google = false

    func run() async throws {
      if options.sabotage {
        return try await options.breakEach(of: "sync") {
          (seed, promise: SyncSabotage) in
          _ = try SyncTrial.run(seed: seed, sabotage: promise)
        }
      }
      let (say, count, google) = (options.say, options.histories, google)
      try await StressRun("sync", "histories", target: count, options.stress).run { seed in
        let counts = try SyncTrial.run(seed: seed, isGoogles: google, trace: say)
        return UnitResult(
          cases: 1,
          counts: [
            "increments": counts.increments, "transactions": counts.transactions,
            "merged lines": counts.lines, "bookings": counts.bookings,
            "rejections": counts.rejections, "streams broken": counts.connections,
            "contents read": counts.contents,
            "servers and devices ended": counts.deaths, "results": counts.results,
          ])
      }
    }
  }
#endif
