// `sync`: devices that synchronise with servers that die, over networks that break.

#if Server && Sync
  import ArgumentParser
  import OndolServerTestKit
  import OndolTerminal
  import OndolTestKit

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

    /// The number of histories within which a broken promise must be noticed.
    private static let longestSabotage = 200

    @Option(help: "How many.")
    var histories = 10_000

    @Flag(help: "Break each promise on purpose.")
    var sabotage = false

    @Flag(help: "Print each event on a line.")
    var trace = false

    @OptionGroup var options: StressOptions

    func validate() throws {
      guard histories > 0 else { throw ValidationError("--histories must be at least 1") }
    }

    func run() async throws {
      if sabotage { return try await runSabotage() }
      var say: (@Sendable (String) -> Void)?
      if trace { say = { Console.say($0) } }
      try await StressRun("sync", "histories", target: histories, options).run { [say] seed in
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

    private func runSabotage() async throws {
      let promises = SyncSabotage.allCases
      try await StressRun("sync", "promises", target: promises.count, options).runNumbered {
        number in
        let promise = promises[number % promises.count]
        for history in 0..<Self.longestSabotage {
          do {
            _ = try SyncTrial.run(
              seed: SeededRandom.derive(UInt64(number), history), sabotage: promise)
          } catch {
            return UnitResult(cases: 1, counts: ["histories until noticed": history + 1])
          }
        }
        return UnitResult(cases: 1, violation: "\(promise.rawValue), and nobody noticed")
      }
    }
  }
#endif
