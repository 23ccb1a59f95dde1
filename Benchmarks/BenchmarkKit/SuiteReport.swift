// A suite's results, and their presentation: the same for all suites that measure each engine in
// one process. The table has a line for each workload, with the median over the runs and the least
// and the greatest beside it, and Ondol's standing against its goal and the best of the others.

package import Foundation

/// Workloads by name. Names are a contract: tables and checks elsewhere find rows by them.
package protocol SuiteWorkload: Codable, CaseIterable, Hashable, Sendable, RawRepresentable<String>
{
  var unit: String { get }
  var lowerIsBetter: Bool { get }
  /// Ondol's goal on the machine of Docs/Performance.md; nil if the only goal is to be ahead of the
  /// others.
  var goal: Double? { get }
}

extension SuiteWorkload {
  package var lowerIsBetter: Bool { true }
  package var goal: Double? { nil }
}

/// The result of one run of one engine.
package struct SuiteResult: Codable {
  package var engine: String
  /// The engine's version and settings, for the lines below the table.
  package var settings: String?
  /// By the names of workloads.
  package var values: [String: Double] = [:]
  /// The spreads of single operations, for workloads that time them.
  package var spreads: [String: Spread] = [:]
  /// The checksums of the reads, for workloads that compare them.
  package var checksums: [String: UInt64] = [:]

  package init(engine: String, settings: String? = nil) {
    self.engine = engine
    self.settings = settings
  }

  package mutating func note(
    _ workload: some SuiteWorkload, _ value: Double?, checksum: UInt64? = nil,
    spread: Spread? = nil
  ) {
    values[workload.rawValue] = value
    spreads[workload.rawValue] = spread
    checksums[workload.rawValue] = checksum
  }
}

/// The results of all runs of a suite.
package struct SuiteReport<Workload: SuiteWorkload> {
  /// The suite's name in its rows.
  package var suite: String
  package var workloads: [Workload]
  package var runs: Int
  /// The number of a workload's documents, and their size.
  package var documents: (Workload) -> Int
  package var valueSize: (Workload) -> Int
  /// Lines above the table, in addition to the machine's.
  package var heading: [String] = []
  package var results: [SuiteResult] = []
  package var errors: [String] = []

  package init(
    _ suite: String, _ workloads: [Workload], runs: Int, documents: @escaping (Workload) -> Int,
    valueSize: @escaping (Workload) -> Int
  ) {
    self.suite = suite
    self.workloads = workloads
    self.runs = runs
    self.documents = documents
    self.valueSize = valueSize
  }

  /// The measured engines, in the order of the first run.
  private var engines: [SuiteResult] {
    var seen: Set<String> = []
    return results.filter { seen.insert($0.engine).inserted }
  }

  private func row(_ workload: Workload, _ engine: String) -> ReportRow? {
    let runs = results.filter { $0.engine == engine }
    var row = ReportRow(
      suite: suite, workload: workload.rawValue, engine: engine, documents: documents(workload),
      values: runs.compactMap { $0.values[workload.rawValue] }, unit: workload.unit,
      lowerIsBetter: workload.lowerIsBetter, valueSize: valueSize(workload),
      goal: engine == "Ondol" ? workload.goal : nil)
    row?.spread = Spread(of: runs.compactMap { $0.spreads[workload.rawValue] })
    return row
  }

  package func json() throws -> Data {
    try ReportRow.encode(
      workloads.flatMap { workload in engines.compactMap { row(workload, $0.engine) } })
  }

  package func table() -> String {
    let hasGoals = workloads.contains { $0.goal != nil }
    let names = engines.map(\.engine)
    let last = names.count > 1 ? ["Ondol against the best peer"] : []
    var cells = [["workload", "unit"] + names + (hasGoals ? ["goal"] : []) + last]
    for workload in workloads {
      let rows = names.map { row(workload, $0) }
      guard rows.contains(where: { $0 != nil }) else { continue }
      cells.append(
        [workload.rawValue, workload.unit] + rows.map { $0?.cell ?? "-" }
          + (hasGoals ? [rows.first.flatMap { $0?.goalText } ?? "-"] : [])
          + (last.isEmpty ? [] : [standing(rows.compactMap { $0 })]))
    }
    let settings = engines.compactMap { engine in
      engine.settings.map { "- \(engine.engine) \($0)." }
    }
    let spreads = spreadTable(workloads.map(\.rawValue), names) { workload, engine in
      Workload(rawValue: workload).flatMap { row($0, engine)?.spread }
    }
    let how = "median (least..greatest) of \(runs) runs, engines taking turns."
    var lines = ["", "\(machine()); \(how)"]
    lines += heading + [""] + markdown(cells) + spreads
    lines += settings.isEmpty ? [] : [""] + settings
    lines += errors.map { "ERROR: \($0)" }
    return lines.joined(separator: "\n")
  }
}

// MARK: - Runs

/// The task of a child process.
package struct SuiteTask<Plan: Codable>: Codable {
  package var engine: String
  package var plan: Plan
  package var directory: String

  package init(engine: String, plan: Plan, directory: String) {
    self.engine = engine
    self.plan = plan
    self.directory = directory
  }
}

extension SuiteOptions {
  /// Returns this process's task, if `takeTurns` started it.
  package func childTask<Plan: Codable>(
    of plan: Plan.Type = Plan.self
  ) throws -> SuiteTask<Plan>? {
    try child.map { try JSONDecoder().decode(SuiteTask<Plan>.self, from: Data($0.utf8)) }
  }

  /// Sends a child's result to the process that started it.
  package func tell(_ result: SuiteResult) throws {
    try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
  }

  /// Runs every engine in a process and a directory of its own, one after another, for the
  /// requested number of runs. `check` reports what is wrong with a result.
  package func takeTurns<Workload>(
    _ engines: [String], _ plan: some Codable, into report: inout SuiteReport<Workload>,
    check: (SuiteResult) -> [String] = { _ in [] }
  ) {
    for round in 1...report.runs {
      for engine in engines {
        progress("run \(round) of \(report.runs): \(engine)")
        let place = directory + "/" + engine.replacing(" ", with: "-")
        do {
          let result = try inFreshDirectory(place) { place in
            try runChild(
              SuiteTask(engine: engine, plan: plan, directory: place), named: engine,
              as: SuiteResult.self)
          }
          report.errors += check(result)
          report.results.append(result)
        } catch {
          report.errors.append("\(error)")
        }
      }
    }
    progress("")
  }

  /// Prints the report, writes its rows to the requested place, and fails if anything was wrong.
  package func tell<Workload>(_ report: SuiteReport<Workload>) throws {
    try tell(report.table(), rows: try report.json(), report.errors)
  }
}

// MARK: - Time

extension Duration {
  package var microseconds: Double { self / .microseconds(1) }
}

/// Times `body` in microseconds.
package func microseconds(_ body: () async throws -> Void) async rethrows -> Double {
  let start = ContinuousClock.now
  try await body()
  return (ContinuousClock.now - start).microseconds
}
