// The options of every suite on the command line, and the names of workloads and engines there.

package import ArgumentParser
package import Foundation

/// The options that all suites have.
package struct SuiteOptions: ParsableArguments {
  @Flag(help: "100,000 documents, two runs and fewer operations: about a minute for all.")
  package var quick = false

  @Option(name: .long, help: "The number of documents: 1,000,000, or 100,000 with --quick.")
  private var documents: Int?

  @Option(
    name: .long,
    help: "Runs per engine: 3, or 2 with --quick. Fewer than three make no real median.")
  private var runs: Int?

  @Option(
    name: .customLong("engines"), help: "Engines to run, with commas between; all by default.")
  private var engineNames: String?

  @Option(name: .customLong("workloads"), help: "Workloads to run, with commas between.")
  private var workloadNames: String?

  @Option(help: "The file for the rows, as JSON.")
  package var json: String?

  @Option(help: "The folder in which databases are created and removed, on the measured device.")
  package var directory = ".build-bench/databases"

  @Option(help: "Passes over each kind of read in a run; many of them help a profiler.")
  package var passes: Int?

  /// The task of a child process; see `runChild`.
  @Option(help: .hidden)
  package var child: String?

  package init() {}

  package func validate() throws {
    guard runs ?? 1 >= 1, documents ?? 1 >= 1, passes ?? 1 >= 1 else {
      throw ValidationError("Runs, passes and documents must be at least 1.")
    }
  }

  package var documentCount: Int { documents ?? (quick ? 100_000 : 1_000_000) }

  /// The number of documents in a suite with other defaults.
  package func documentCount(usually: Int, quick few: Int) -> Int {
    documents ?? (quick ? few : usually)
  }

  package var runCount: Int { runs ?? (quick ? 2 : 3) }

  /// The number of runs if each takes an hour: one, unless the options ask for more.
  package var scaleRunCount: Int { runs ?? 1 }

  /// The engines to run, among those of this build.
  package func engines<Engine>(of all: [Engine], name: (Engine) -> String) throws -> [Engine] {
    try Self.choose(engineNames, of: all, called: "engine", name: name)
  }

  /// The workloads to run; nil if none was named.
  package func workloads<Workload>() throws -> [Workload]?
  where Workload: CaseIterable & RawRepresentable<String> {
    guard let workloadNames else { return nil }
    return try Self.choose(workloadNames, of: Array(Workload.allCases), called: "workload") {
      $0.rawValue
    }
  }

  private static func choose<Choice>(
    _ names: String?, of all: [Choice], called noun: String, name: (Choice) -> String
  ) throws -> [Choice] {
    guard let names else { return all }
    return try names.split(separator: ",").map { text in
      let wanted = text.trimmingCharacters(in: .whitespaces)
      guard let choice = all.first(where: { name($0).lowercased() == wanted.lowercased() }) else {
        let known = all.map(name).joined(separator: ", ")
        throw ValidationError("There is no \(noun) \(wanted). There are: \(known).")
      }
      return choice
    }
  }

  /// Prints the table, writes the rows to the requested place, and fails if anything was wrong.
  package func tell(_ table: String, rows: Data, _ errors: [String]) throws {
    print(table)
    if let json { try rows.write(to: URL(fileURLWithPath: json)) }
    if !errors.isEmpty { throw ExitCode.failure }
  }
}
