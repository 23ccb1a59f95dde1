// What is printed and written: one row per workload and engine, the median over the runs with the
// least and the greatest beside it.

import Foundation
import Peers

struct Report {
  let plan: Plan
  let runs: Int
  let directory: String
  var deviceFloors: [Double] = []
  var results: [RunResult] = []
  var errors: [String] = []

  init(plan: Plan, runs: Int, directory: String) {
    self.plan = plan
    self.runs = runs
    self.directory = directory
  }

  /// A line of the JSON.
  struct Row: Codable {
    var suite = "engine"
    var workload: String
    var engine: String
    var documents: Int
    var value: Double
    var unit: String
    var lowerIsBetter: Bool
    var min: Double
    var max: Double
    var runs: Int
    /// The slowest hundredth of the operations, median over the runs.
    var p99: Double?
    var valueSize: Int
    var keyOrder: String
  }

  private var engines: [RunResult] {
    var seen: Set<String> = []
    return results.filter { seen.insert($0.engine).inserted }
  }

  private func measurements(_ workload: Workload, _ engine: String) -> [Measurement] {
    results.filter { $0.engine == engine }
      .flatMap { $0.measurements.filter { $0.workload == workload } }
  }

  private func row(_ workload: Workload, _ engine: String) -> Row? {
    let found = measurements(workload, engine)
    let values = found.map(\.value)
    guard let least = values.min(), let greatest = values.max() else { return nil }
    let slowest = found.compactMap(\.slowestHundredth)
    return Row(
      workload: workload.rawValue, engine: engine, documents: documents(of: workload),
      value: rounded(median(values)), unit: workload.unit,
      lowerIsBetter: workload.lowerIsBetter, min: rounded(least), max: rounded(greatest),
      runs: values.count, p99: slowest.isEmpty ? nil : rounded(median(slowest)),
      valueSize: plan.valueLength, keyOrder: plan.keyOrder.rawValue)
  }

  private func documents(of workload: Workload) -> Int {
    switch workload {
    case .getSmall: plan.documentsSmall
    case .sizeOverwritten: plan.documentsOverwritten
    default: plan.documents
    }
  }

  func json() throws -> Data {
    try Self.encode(
      plan.workloads.flatMap { workload in
        engines.compactMap { row(workload, $0.engine) }
      })
  }

  static func encode(_ rows: [Row]) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return try encoder.encode(rows)
  }

  func table() -> String {
    var lines = heading()
    var cells = [["workload", "unit"] + engines.map(\.engine) + ["Ondol against the best peer"]]
    for workload in plan.workloads {
      let rows = engines.map { row(workload, $0.engine) }
      guard rows.contains(where: { $0 != nil }) else { continue }
      cells.append(
        [workload.rawValue, workload.unit]
          + rows.map { row in
            row.map { "\(short($0.value)) (\(short($0.min))..\(short($0.max)))" } ?? "-"
          } + [workload.comparesEngines ? standing(rows.compactMap { $0 }) : "-"])
    }
    lines += markdown(cells)
    lines += ReportNotes(plan: plan, engines: engines, results: results).lines
    lines += errors.map { "ERROR: \($0)" }
    return lines.joined(separator: "\n")
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

  /// Within so much of each other, two medians on a small virtual machine are level.
  private static let tieBand = 1.1

  /// How Ondol stands against the best of the others.
  private func standing(_ rows: [Row]) -> String {
    guard let ours = rows.first(where: { $0.engine == "Ondol" }) else { return "-" }
    let peers = rows.filter { $0.engine != "Ondol" }
    guard
      let best = peers.min(by: { $0.lowerIsBetter ? $0.value < $1.value : $0.value > $1.value })
    else { return "-" }
    let ratio = ours.lowerIsBetter ? best.value / ours.value : ours.value / best.value
    if ratio >= Self.tieBand { return "\(short(ratio)) x better than \(best.engine)" }
    if 1 / ratio >= Self.tieBand { return "\(short(1 / ratio)) x worse than \(best.engine)" }
    return "level with \(best.engine)"
  }
}
