// The rows of the pipelines suite, and the amount of work for each.

import BenchmarkKit
import Peers

enum Workload: SuiteWorkload {
  case load
  case report(Report)
  case memory
  /// A durable write, and one while somebody follows a report of a tenth as many groups as
  /// documents.
  case write, followedWrite, followedByPlain

  static let allCases =
    [.load] + Report.allCases.map { Workload.report($0) }
    + [.memory, .write, .followedWrite, .followedByPlain]

  init?(rawValue: String) {
    guard let known = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = known
  }

  var rawValue: String {
    switch self {
    case .load: "load"
    case .report(let report): report.rawValue
    case .memory: "peak memory"
    case .write: "durable write"
    case .followedWrite: "durable write beside a live group"
    case .followedByPlain: "beside a live group by plain"
    }
  }

  var unit: String {
    switch self {
    case .load: "docs/s"
    case .report: "ms"
    case .memory: "MB"
    case .write, .followedWrite: "µs"
    case .followedByPlain: "x"
    }
  }

  var lowerIsBetter: Bool { self != .load }

  var goal: Double? { self == .followedByPlain ? 1.3 : nil }
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
