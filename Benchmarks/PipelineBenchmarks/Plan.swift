// The rows of the pipelines suite, and the amount of work for each.

import BenchmarkKit
import Peers

enum Workload: SuiteWorkload {
  case load
  case report(Report)
  case memory

  static let allCases = [.load] + Report.allCases.map { Workload.report($0) } + [.memory]

  init?(rawValue: String) {
    guard let known = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = known
  }

  var rawValue: String {
    switch self {
    case .load: "load"
    case .report(let report): report.rawValue
    case .memory: "peak memory"
    }
  }

  var unit: String {
    switch self {
    case .load: "docs/s"
    case .report: "ms"
    case .memory: "MB"
    }
  }

  var lowerIsBetter: Bool { self != .load }
}

struct Plan: Codable {
  var documents: Int
  var workloads: [Workload]
  var passes = 3

  /// The number of documents in a commit of the load.
  static let batchSize = 1_000

  /// The reports among the workloads.
  var reports: [Report] {
    workloads.compactMap { if case .report(let report) = $0 { report } else { nil } }
  }
}
