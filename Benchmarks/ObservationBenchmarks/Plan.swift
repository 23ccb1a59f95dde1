// What is measured, how much of it, and how the figures are shown.

import BenchmarkKit
import Foundation

enum Workload: String, Codable, CaseIterable {
  /// A write beside listeners that it does not concern, as a ratio to one beside none.
  case writeBeside100000 = "write beside 100000 listeners"
  /// The same with as many as an engine bears that asks each of them.
  case writeBeside1000 = "write beside 1000 listeners"
  case delivery = "delivery p50"
  /// To a listener in another open, which only reads, of the same files.
  case besideWriter = "delivery beside the writer p50"
  case identical = "delivery to 10000 identical"
  case largeResult = "1 of 100000 results changes"
  case idle = "memory for one that never reads"

  var unit: String {
    switch self {
    case .writeBeside100000, .writeBeside1000: "x"
    case .delivery, .besideWriter, .largeResult: "µs"
    case .identical: "ms"
    case .idle: "MB"
    }
  }
}

struct Plan: Codable {
  /// Results of the large query.
  var documents: Int
  var quick: Bool
  var workloads: [Workload] = []

  init(documents: Int, quick: Bool) {
    self.documents = documents
    self.quick = quick
  }

  /// Writes timed together, and how many times.
  var groupSize: Int { 200 }
  var groups: Int { quick ? 20 : 100 }
  /// Deliveries timed.
  var deliveries: Int { quick ? 500 : 3_000 }
  /// Writes that one who never reads sleeps through.
  var sleptThrough: Int { quick ? 100_000 : 1_000_000 }
}

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
        suite: "observation", workload: workload.rawValue, engine: engine,
        documents: plan.documents,
        values: results.filter { $0.engine == engine }.compactMap { $0.values[workload.rawValue] },
        unit: workload.unit, lowerIsBetter: true, valueSize: 100)
    }
  }

  func json() throws -> Data {
    try ReportRow.encode(plan.workloads.flatMap(rows))
  }

  func table() -> String {
    var cells = [["workload", "unit"] + engines + ["Ondol against the peer"]]
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

/// Times `body` in microseconds.
func microseconds(_ body: () async throws -> Void) async rethrows -> Double {
  let clock = ContinuousClock()
  let start = clock.now
  try await body()
  return (clock.now - start).microseconds
}

extension Duration {
  var microseconds: Double {
    Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12
  }
}
