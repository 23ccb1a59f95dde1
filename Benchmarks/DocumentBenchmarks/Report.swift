// What is printed and written: one row per workload and engine, the median over the runs with the
// least and the greatest beside it, and how Ondol stands against its goal and the best peer.

import BenchmarkKit
import Foundation

struct Report {
  let plan: Plan
  let runs: Int
  var results: [RunResult] = []
  var errors: [String] = []

  init(plan: Plan, runs: Int) {
    self.plan = plan
    self.runs = runs
  }

  private var engines: [RunResult] {
    var seen: Set<String> = []
    return results.filter { seen.insert($0.engine).inserted }
  }

  private func row(_ workload: Workload, _ engine: String) -> ReportRow? {
    let found = results.filter { $0.engine == engine }.flatMap(\.measurements)
      .filter { $0.workload == workload }
    let documents =
      switch workload {
      case .scan: Plan.archived
      case .decodeAll: Plan.exported
      default: plan.documents
      }
    return ReportRow(
      suite: "documents", workload: workload.rawValue, engine: engine, documents: documents,
      values: found.map(\.value), unit: workload.unit, lowerIsBetter: workload.lowerIsBetter,
      valueSize: Plan.valueSize)
  }

  func json() throws -> Data {
    try ReportRow.encode(
      plan.workloads.flatMap { workload in engines.compactMap { row(workload, $0.engine) } })
  }

  func table() -> String {
    var cells = [
      ["workload", "unit"] + engines.map(\.engine) + ["goal", "Ondol against the best peer"]
    ]
    for workload in plan.workloads {
      let rows = engines.map { row(workload, $0.engine) }
      guard rows.contains(where: { $0 != nil }) else { continue }
      cells.append(
        [workload.rawValue, workload.unit] + rows.map { $0?.cell ?? "-" }
          + [goal(workload, rows[0]), standing(rows.compactMap { $0 })])
    }
    let heading = [
      "",
      "\(plan.documents) documents of about 1 KB with ten fields; median (least..greatest) of "
        + "\(runs) runs, engines taking turns.",
      "\(machine()).", "",
    ]
    let settings = engines.map { "- \($0.engine) \($0.version): \($0.settings)." }
    return
      (heading + markdown(cells) + ["", "Settings (cache \(Plan.cacheBytes >> 30) GiB each):"]
      + settings + errors.map { "ERROR: \($0)" }).joined(separator: "\n")
  }

  private func goal(_ workload: Workload, _ row: ReportRow?) -> String {
    guard let goal = workload.goal else { return "-" }
    guard let row, row.engine == "Ondol" else { return short(goal) }
    let isMet = workload.lowerIsBetter ? row.value <= goal : row.value >= goal
    return "\(short(goal)), \(isMet ? "met" : "missed")"
  }
}
