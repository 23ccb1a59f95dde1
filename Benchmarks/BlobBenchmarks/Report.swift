// How the figures are shown.

import BenchmarkKit
import Foundation

struct RunResult: Codable {
  var engine: String
  var values: [String: Double]
}

struct Report {
  var plan: Plan
  var runs: Int
  var results: [RunResult] = []
  var errors: [String] = []

  /// Those that were measured, in the order of the first run.
  private var engines: [String] {
    results.map(\.engine).reduce(into: []) { names, name in
      if !names.contains(name) { names.append(name) }
    }
  }

  private func rows(_ workload: Workload) -> [ReportRow] {
    engines.compactMap { engine in
      ReportRow(
        suite: "blobs", workload: workload.rawValue, engine: engine,
        documents: plan.count(workload),
        values: results.filter { $0.engine == engine }.compactMap { $0.values[workload.rawValue] },
        unit: workload.unit, lowerIsBetter: workload.lowerIsBetter, valueSize: workload.length)
    }
  }

  func json() throws -> Data { try ReportRow.encode(plan.workloads.flatMap(rows)) }

  func table() -> String {
    var cells = [["workload", "unit"] + engines + ["Ondol against the best peer"]]
    for workload in plan.workloads {
      let rows = rows(workload)
      cells.append(
        [workload.rawValue, workload.unit]
          + engines.map { engine in rows.first { $0.engine == engine }?.cell ?? "-" }
          + [standing(rows)])
    }
    let notes = errors.map { "error: \($0)" }
    return (["\(machine()); medians of \(runs) runs", ""] + markdown(cells) + notes)
      .joined(separator: "\n")
  }
}
