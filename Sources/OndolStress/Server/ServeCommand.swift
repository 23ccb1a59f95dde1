// `serve`: clients of Firestore's protocol on servers that die, over connections that break.

#if Server
  import ArgumentParser
  import OndolServerTestKit

  struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "serve",
      abstract: "Has clients of a simulated server write, listen and come back, and checks what"
        + " they were told.",
      discussion: """
        Half of the histories have one server on files, the others one to three on a store. With \
        --sabotage each promise is broken on purpose, until that is noticed; not to notice it is \
        the violation then.
        """)

    @OptionGroup var options: HistoryOptions

    func run() async throws {
      if options.sabotage {
        return try await options.breakEach(of: "serve") {
          (seed, promise: ServeSabotage) in
          _ = try ServeTrial.run(seed: seed, sabotage: promise)
        }
      }
      let (say, count) = (options.say, options.histories)
      try await StressRun("serve", "histories", target: count, options.stress).run { seed in
        let counts = try ServeTrial.run(seed: seed, trace: say)
        return UnitResult(
          cases: 1,
          counts: [
            "commits": counts.commits, "connections broken": counts.connections,
            "transactions tried again": counts.attempts, "moments": counts.moments,
            "servers ended": counts.deaths,
          ])
      }
    }
  }
#endif
