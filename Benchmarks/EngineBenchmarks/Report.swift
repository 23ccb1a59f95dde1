// The printed and written report: one row for each workload and engine, the median over the runs
// with the least and the greatest beside it.

import BenchmarkKit
import Foundation
import Peers

struct Report {
  let plan: Plan
  let runs: Int
  let directory: String
  var deviceFloors: [Double] = []
  /// Why no run could have a memory limit; nil if one could.
  var noEqualMemory: String?
  var results: [RunResult] = []
  var errors: [String] = []

  init(plan: Plan, runs: Int, directory: String) {
    self.plan = plan
    self.runs = runs
    self.directory = directory
  }

  private var engines: [RunResult] {
    var seen: Set<String> = []
    return results.filter { seen.insert($0.engine).inserted }
  }

  private func measurements(_ workload: Workload, _ engine: String) -> [Measurement] {
    results.filter { $0.engine == engine }
      .flatMap { $0.measurements.filter { $0.workload == workload } }
  }

  private func row(_ workload: Workload, _ engine: String) -> ReportRow? {
    let found = measurements(workload, engine)
    var row = ReportRow(
      suite: plan.comparesSealed ? "encryption" : "engine", workload: workload.rawValue,
      engine: engine, documents: documents(of: workload), values: found.map(\.value),
      unit: workload.unit, lowerIsBetter: workload.lowerIsBetter, valueSize: plan.valueLength,
      goal: engine == SealedFiles.name ? sealedGoal(workload) : nil)
    row?.spread = Spread(of: found.compactMap(\.spread))
    row?.keyOrder = plan.keyOrder.rawValue
    return row
  }

  /// The goal of the encrypted database, derived from the figure of the plain one.
  private func sealedGoal(_ workload: Workload) -> Double? {
    guard let factor = workload.sealedFactor, let clear = row(workload, ClearFiles.name) else {
      return nil
    }
    return clear.value * factor
  }

  private func documents(of workload: Workload) -> Int {
    switch workload {
    case .getSmall: plan.documentsSmall
    case .sizeOverwritten: plan.documentsOverwritten
    default: plan.documents
    }
  }

  func json() throws -> Data {
    try ReportRow.encode(
      plan.workloads.flatMap { workload in
        engines.compactMap { row(workload, $0.engine) }
      })
  }

  func table() -> String {
    var lines = heading()
    var cells = [["workload", "unit"] + engines.map(\.engine) + verdictHeadings]
    for workload in plan.workloads {
      let rows = engines.map { row(workload, $0.engine) }
      guard rows.contains(where: { $0 != nil }) else { continue }
      cells.append(
        [workload.rawValue, workload.unit]
          + rows.map { $0?.cell ?? "-" }
          + verdicts(workload, rows.compactMap { $0 }))
    }
    lines += markdown(cells)
    lines += spreadTable(plan.workloads.map(\.rawValue), engines.map(\.engine)) {
      workload, engine in
      Workload(rawValue: workload).flatMap { row($0, engine)?.spread }
    }
    lines +=
      ReportNotes(
        plan: plan, engines: engines, results: results, noEqualMemory: noEqualMemory
      ).lines
    lines += errors.map { "ERROR: \($0)" }
    return lines.joined(separator: "\n")
  }

  private var verdictHeadings: [String] {
    plan.comparesSealed
      ? ["sealed / clear", "goal", "sealed against the best peer"]
      : ["Ondol against the best peer"]
  }

  private func verdicts(_ workload: Workload, _ rows: [ReportRow]) -> [String] {
    guard plan.comparesSealed else {
      return [workload.comparesEngines ? standing(rows) : "-"]
    }
    let clear = rows.first { $0.engine == ClearFiles.name }
    let sealed = rows.first { $0.engine == SealedFiles.name }
    guard let clear, let sealed, clear.value > 0, workload.comparesEngines else {
      return ["-", "-", "-"]
    }
    return [
      "\(short(sealed.value / clear.value)) x", sealed.goalText ?? "-",
      standing(
        rows.filter { ![ClearFiles.name, KeyedFiles.name].contains($0.engine) },
        of: SealedFiles.name),
    ]
  }

  private func heading() -> [String] {
    [
      "",
      "\(plan.documents) documents of \(plan.valueLength) bytes, 16-byte keys in "
        + "\(plan.keyOrder.rawValue) order; median (least..greatest) of \(runs) runs, engines "
        + "taking turns.",
      "\(machine()); databases in \(directory).",
      deviceFloors.isEmpty
        ? ""
        : "Device: a synced write of the bytes of one document takes "
          + "\(short(median(deviceFloors))) µs (\(short(deviceFloors.min() ?? 0)).."
          + "\(short(deviceFloors.max() ?? 0))).",
      "",
    ]
  }
}
