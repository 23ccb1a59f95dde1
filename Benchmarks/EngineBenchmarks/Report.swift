// What is printed and written: one row per workload and engine, the median over the runs with the
// least and the greatest beside it.

import Foundation

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
  }

  private var engines: [RunResult] {
    var seen: Set<String> = []
    return results.filter { seen.insert($0.engine).inserted }
  }

  private func row(_ workload: Workload, _ engine: String) -> Row? {
    let found = results.filter { $0.engine == engine }
      .flatMap { $0.measurements.filter { $0.workload == workload } }
    let values = found.map(\.value)
    guard let least = values.min(), let greatest = values.max() else { return nil }
    let slowest = found.compactMap(\.slowestHundredth)
    return Row(
      workload: workload.rawValue, engine: engine, documents: plan.documents,
      value: rounded(median(values)), unit: workload.unit,
      lowerIsBetter: workload.lowerIsBetter, min: rounded(least), max: rounded(greatest),
      runs: values.count, p99: slowest.isEmpty ? nil : rounded(median(slowest)),
      valueSize: plan.valueLength)
  }

  func json() throws -> Data {
    let rows = plan.workloads.flatMap { workload in
      engines.compactMap { row(workload, $0.engine) }
    }
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
          } + [standing(rows.compactMap { $0 })])
    }
    lines += markdown(cells)
    lines += notes()
    return lines.joined(separator: "\n")
  }

  private func heading() -> [String] {
    let process = ProcessInfo.processInfo
    return [
      "",
      "\(plan.documents) documents of \(plan.valueLength) bytes, 16-byte keys in random order; "
        + "median (least..greatest) of \(runs) runs, engines taking turns.",
      "\(process.activeProcessorCount) cores, \(process.operatingSystemVersionString), "
        + "databases in \(directory).",
      deviceFloors.isEmpty
        ? ""
        : "Device: writing and syncing the bytes of one document takes "
          + "\(short(median(deviceFloors))) µs (\(short(deviceFloors.min() ?? 0)).."
          + "\(short(deviceFloors.max() ?? 0))).",
      "",
    ]
  }

  /// How Ondol stands against the best of the others.
  private func standing(_ rows: [Row]) -> String {
    guard let ours = rows.first(where: { $0.engine == "Ondol" }) else { return "-" }
    let peers = rows.filter { $0.engine != "Ondol" }
    guard
      let best = peers.min(by: { $0.lowerIsBetter ? $0.value < $1.value : $0.value > $1.value })
    else { return "-" }
    let ratio = ours.lowerIsBetter ? best.value / ours.value : ours.value / best.value
    return ratio >= 1
      ? "\(short(ratio)) x better than \(best.engine)"
      : "\(short(1 / ratio)) x worse than \(best.engine)"
  }

  private func markdown(_ cells: [[String]]) -> [String] {
    let widths = cells[0].indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
    var lines = cells.map { row in
      "| "
        + zip(row, widths)
        .map { text, width in text + String(repeating: " ", count: width - text.count) }
        .joined(separator: " | ") + " |"
    }
    lines.insert(
      "|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|",
      at: 1)
    return lines
  }

  private func notes() -> [String] {
    var lines = ["", "Settings (cache 1 GiB each):"]
    for engine in engines {
      let settling = results.filter { $0.engine == engine.engine }.map(\.settleSeconds)
      lines.append(
        "- \(engine.engine) \(engine.version): \(engine.settings). Settling after the load took "
          + "\(short(median(settling))) s, not counted.")
    }
    for workload in [Workload.putProcess, .putPower] where plan.includes(workload) {
      let tails = engines.compactMap { engine in
        row(workload, engine.engine)?.p99.map { "\(engine.engine) \(short($0))" }
      }
      lines.append(
        "- \(workload.rawValue), slowest hundredth, µs: \(tails.joined(separator: ", ")).")
    }
    if plan.includes(.putPower) {
      lines.append(
        "- single put .process is the mean of \(plan.putsProcess) commits, single put .power the "
          + "median of \(plan.putsPower).")
    }
    if plan.includes(.size) {
      lines.append("- size on disk counts the blocks that the closed database's files take.")
    }
    lines += errors.map { "ERROR: \($0)" }
    return lines
  }
}

/// Three significant digits, as a person reads them.
private func short(_ value: Double) -> String {
  switch abs(value) {
  case 100...: String(Int(value.rounded()))
  case 10..<100: String(format: "%.1f", value)
  default: String(format: "%.2f", value)
  }
}

/// Enough digits for any use, without noise.
private func rounded(_ value: Double) -> Double {
  (value * 1_000).rounded() / 1_000
}
