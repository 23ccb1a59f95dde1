// `serve`: clients of Firestore's protocol on servers that die, over connections that break.

#if Server
  import ArgumentParser
  import OndolServerTestKit
  import OndolTerminal
  import OndolTestKit

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
      try await StressRun("serve", "histories", target: histories, options).run { [say] seed in
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

    private func runSabotage() async throws {
      let promises = ServeSabotage.allCases
      try await StressRun("serve", "promises", target: promises.count, options).runNumbered {
        number in
        let promise = promises[number % promises.count]
        for history in 0..<Self.longestSabotage {
          do {
            _ = try ServeTrial.run(
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
