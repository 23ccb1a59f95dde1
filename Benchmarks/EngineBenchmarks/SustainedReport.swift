// The printed and written report of sustained writing: a line for each engine and size of a commit.

import BenchmarkKit
import Foundation
import Peers

struct SustainedReport {
  let plan: Plan
  var results: [RunResult] = []
  var errors: [String] = []

  init(plan: Plan) {
    self.plan = plan
  }

  private var lines: [(engine: String, figures: SustainedFigures)] {
    results.flatMap { result in result.sustained.map { (result.engine, $0) } }
      .sorted { $0.1.shape.order < $1.1.shape.order }
  }

  func table() -> String {
    var cells = [
      ["writers", "documents in a commit", "engine", "docs/s", "p50, µs", "p99, µs", "p99.9, µs"]
        + ["longest, ms"]
    ]
    for (engine, figures) in lines {
      cells.append([
        "\(figures.shape.writers)", "\(figures.shape.documentsPerWrite)", engine,
        short(figures.documentsPerSecond),
        short(figures.p50), short(figures.p99), short(figures.p999),
        short(figures.longest / 1e3),
      ])
    }
    let heading = [
      "",
      "At full rate for \(short(plan.sustainedSeconds)) s, .process, random documents "
        + "of \(plan.documents) with \(plan.valueLength) bytes, \(plan.keyOrder.rawValue) keys.",
      machine(), "",
    ]
    return (heading + markdown(cells) + errors.map { "ERROR: \($0)" }).joined(separator: "\n")
  }

  func json() throws -> Data {
    let rows = lines.flatMap { engine, figures in
      [
        ("docs/s", figures.documentsPerSecond, "docs/s"), ("p50", figures.p50, "µs"),
        ("p99", figures.p99, "µs"), ("p99.9", figures.p999, "µs"),
        ("longest", figures.longest, "µs"),
      ].compactMap { name, value, unit in
        var row = ReportRow(
          suite: "engine", workload: "sustained \(figures.shape.name) .process, \(name)",
          engine: engine, documents: plan.documents, values: [value], unit: unit,
          lowerIsBetter: unit == "µs", valueSize: plan.valueLength)
        row?.keyOrder = plan.keyOrder.rawValue
        return row
      }
    }
    return try ReportRow.encode(rows)
  }
}
