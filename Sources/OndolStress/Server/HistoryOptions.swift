// What the commands of simulated histories share: how many, what is printed of them, and promises
// that are broken on purpose.

#if Server
  import ArgumentParser
  import OndolTerminal
  import OndolTestKit

  struct HistoryOptions: ParsableArguments {
    /// The number of histories within which a broken promise must be noticed.
    private static let longestSabotage = 200

    @Option(help: "How many.")
    var histories = 10_000

    @Flag(help: "Break each promise on purpose.")
    var sabotage = false

    @Flag(help: "Print each event on a line.")
    var trace = false

    @OptionGroup var stress: StressOptions

    func validate() throws {
      guard histories > 0 else { throw ValidationError("--histories must be at least 1") }
    }

    /// Prints an event; nil when nothing is to be printed.
    var say: (@Sendable (String) -> Void)? {
      if trace { { Console.say($0) } } else { nil }
    }

    /// Breaks one promise after another, each in histories of its own until one of them throws. If
    /// none does, that is the violation.
    func breakEach<Promise: CaseIterable & RawRepresentable<String> & Sendable>(
      of command: String,
      _ history: @escaping @Sendable (_ seed: UInt64, _ promise: Promise) throws -> Void
    ) async throws {
      let promises = Array(Promise.allCases)
      try await StressRun(command, "promises", target: promises.count, stress).runNumbered {
        number in
        let promise = promises[number % promises.count]
        for count in 0..<Self.longestSabotage {
          do {
            try history(SeededRandom.derive(UInt64(number), count), promise)
          } catch {
            return UnitResult(cases: 1, counts: ["histories until noticed": count + 1])
          }
        }
        return UnitResult(cases: 1, violation: "\(promise.rawValue), and nobody noticed")
      }
    }
  }
#endif
