// Code that decides must be testable without a world: planners, pickers, codings and state machines
// take values and return values. Code that needs a world takes it from the environment that is
// passed at open.

extension Rule {
  static let purity = [
    Rule(
      "Files that decide are pure: no async, clock, file or chance",
      planted: Sample("Sources/Ondol/Query/Planner.swift", "// A\nfunc plan() async {}\n", line: 2),
      innocent: [
        Sample("Sources/Ondol/Query/Planner.swift", "// async\nlet randomly = asynchronous\n"),
        Sample("Sources/Ondol/Query/Executor.swift", "func run() async {}\n"),
      ]
    ) { file, _ in
      guard file.isSwift, file.isIn("Sources/"), file.mustBePure else { return [] }
      return file.findings(
        of: /\basync\b|\bawait\b|\bTask\b|\bactor\b/, "a pure file does not wait")
        + file.findings(of: clocks, "a pure file gets the time as a value")
        + file.findings(of: chance, "a pure file gets its random numbers as values")
        + file.findings(
          of: /\b(?:Environment|FileSystem|File|Directory|IOThread|FileHandle|FileManager)\b/,
          "a pure file opens nothing")
    },

    Rule(
      "The engine takes time and chance from its environment only",
      planted: Sample(
        "Sources/OndolEngine/Engine/A.swift", "let a = ContinuousClock.now\n", line: 1),
      innocent: [
        Sample("Sources/OndolEngine/System/A.swift", "let a = ContinuousClock.now\n"),
        Sample("Sources/OndolEngine/Engine/A.swift", "let a = environment.random()\n"),
      ]
    ) { file, _ in
      guard file.isIn("Sources/OndolEngine/"), !file.isIn("Sources/OndolEngine/System/")
      else { return [] }
      return file.findings(of: clocks, "ask `Environment.now`")
        + file.findings(of: chance, "ask `Environment.random`")
    },
  ]

  // Computed, because a Regex is not Sendable.
  private static var clocks: Regex<Substring> {
    /\b(?:ContinuousClock|SuspendingClock|clock_gettime|gettimeofday)\b|\bDate\(\)|\bDate\.now\b/
  }

  private static var chance: Regex<Substring> {
    /\bSystemRandomNumberGenerator\b|\.random\(in:|\.randomElement\(|\.shuffled\(|\bUUID\(\)/
  }
}

extension SourceFile {
  fileprivate var mustBePure: Bool {
    let named = ["CompactionPicker", "Planner", "ValueCoding", "KeyCoding"]
    let base = String(name.dropLast(".swift".count))
    return named.contains { base.hasPrefix($0) } || base.hasSuffix("State")
      || base.contains("State+")
  }
}
