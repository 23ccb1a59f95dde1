// The reports in DuckDB, a column store in a process of Python. It reads the same rows from a file
// of JSON Lines into its own tables, and answers the same SQL; Scripts/lib/duckdb_reports.py times
// it.

import BenchmarkKit
import Foundation
import Peers

enum DuckDBReports {
  static let name = "DuckDB"

  /// The Python that has the package `duckdb`; nil when the suite was started without one.
  static let python = ProcessInfo.processInfo.environment["BENCH_DUCKDB_PYTHON"]

  private struct Task: Codable {
    var rows: String
    var sellers: String
    var passes: Int
    var reports: [String: String]
  }

  private struct Outcome: Codable {
    var version: String
    var load: Double
    var memory: Double
    var milliseconds: [String: Double]
    var checksums: [String: UInt64]
  }

  static func measure(_ plan: Plan, in directory: String) throws -> SuiteResult {
    guard let python else { throw ChildFailure(description: "\(name): there is no Python for it") }
    let (rows, sellers) = (directory + "/sales.json", directory + "/sellers.json")
    try write(plan.documents, to: rows) { Sale($0, of: plan.documents).json }
    try write(Sale.sellers(of: plan.documents), to: sellers) {
      "{\"number\":\($0),\"country\":\"\(Sale.country(ofSeller: $0))\"}"
    }
    var reports: [String: String] = [:]
    for report in plan.reports {
      reports[report.rawValue] = report.sql(
        { $0 }, elements: { "(SELECT unnest(\($0)) AS value)" },
        matches: { "regexp_matches(\($0), '\($1)')" })
    }
    let task = Task(rows: rows, sellers: sellers, passes: plan.passes, reports: reports)
    let place = directory + "/task.json"
    try JSONEncoder().encode(task).write(to: URL(fileURLWithPath: place))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = ["Scripts/lib/duckdb_reports.py", place]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw ChildFailure(description: "\(name): ended with \(process.terminationStatus)")
    }
    let outcome = try JSONDecoder().decode(Outcome.self, from: data)
    var result = SuiteResult(
      engine: name,
      settings: "\(outcome.version) from Python, a column store: its own tables, all cores;"
        + " rows are fetched as Python's values, and not looked at")
    result.note(Workload.load, outcome.load)
    result.note(Workload.memory, outcome.memory)
    for report in plan.reports {
      guard let time = outcome.milliseconds[report.rawValue] else { continue }
      result.note(Workload.report(report), time, checksum: outcome.checksums[report.rawValue])
    }
    return result
  }

  private static func write(_ count: Int, to path: String, _ line: (Int) -> String) throws {
    guard FileManager.default.createFile(atPath: path, contents: nil) else {
      throw ChildFailure(description: "\(name): \(path) cannot be written")
    }
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    for start in stride(from: 0, to: count, by: 10_000) {
      let lines = (start..<min(start + 10_000, count)).map { line($0) + "\n" }
      try file.write(contentsOf: Data(lines.joined().utf8))
    }
    try file.close()
  }
}
