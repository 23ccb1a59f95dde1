// The result of a load: one line for people, everything as JSON for programs.

import Foundation
import OndolTestKit

/// A measured run, in the form of its file.
struct LoadReport: Encodable {
  /// Microseconds.
  struct Latency: Encodable {
    var mean, p50, p90, p99, p999, p9999, maximum: Double

    init(_ histogram: LatencyHistogram) {
      func microseconds(_ percent: Double) -> Double {
        Double(histogram.percentile(percent)) / 1_000
      }
      mean = (histogram.mean / 10).rounded() / 100
      p50 = microseconds(50)
      p90 = microseconds(90)
      p99 = microseconds(99)
      p999 = microseconds(99.9)
      p9999 = microseconds(99.99)
      maximum = Double(histogram.maximum) / 1_000
    }
  }

  struct Operation: Encodable {
    var count: UInt64
    /// The number of missing documents, and of operations that threw.
    var missed, failed: Int
    /// Measured from the moment the operation was due, and from its beginning.
    var latency, service: Latency

    init(_ entry: LoadTally.Entry) {
      count = entry.latency.count
      missed = entry.missed
      failed = entry.failed
      latency = Latency(entry.latency)
      service = Latency(entry.service)
    }
  }

  var scenario: Scenario
  var seed: UInt64
  var seconds, operationsPerSecond: Double
  var isInterrupted: Bool
  /// The number of impossible answers.
  var wrong: Int
  var faults: [String]
  var total: Operation
  var operations: [String: Operation]

  init(_ run: LoadRun, isInterrupted: Bool) {
    let tally = run.tally
    scenario = run.scenario
    seed = run.seed
    seconds = run.elapsed / .seconds(1)
    total = Operation(tally.total)
    operationsPerSecond = seconds > 0 ? Double(total.count) / seconds : 0
    self.isInterrupted = isInterrupted
    wrong = tally.wrong
    faults = tally.faults
    operations = Dictionary(
      uniqueKeysWithValues: tally.entries.map { ($0.key.rawValue, Operation($0.value)) })
  }

  /// Whether every operation succeeded.
  var isSound: Bool { wrong == 0 && total.failed == 0 }

  var verdict: String {
    let wanted = scenario.rate > 0 ? " of \(Self.number(scenario.rate)) wanted" : ""
    let latency = total.latency
    return "\(scenario.name): \(total.count) operations in \(Self.number(seconds)) s, "
      + "\(Self.number(operationsPerSecond)) a second\(wanted), p50 \(Self.number(latency.p50)) µs,"
      + " p99 \(Self.number(latency.p99)) µs, p99.9 \(Self.number(latency.p999)) µs,"
      + " longest \(Self.number(latency.maximum / 1_000)) ms, \(total.missed) missed,"
      + " \(total.failed) failed, \(wrong) wrong, seed \(seed)"
      + (isInterrupted ? ", interrupted" : "")
  }

  /// One line for each kind of operation.
  var table: [String] {
    operations.sorted { $0.key < $1.key }.map { name, operation in
      let latency = operation.latency
      let figures = [latency.p50, latency.p90, latency.p99, latency.p999, latency.maximum]
        .map(Self.number).joined(separator: " ")
      return "  \(name): \(operation.count), µs at 50 90 99 99.9 100 %: \(figures)"
    }
  }

  static func number(_ value: Double) -> String {
    String(format: value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
  }
}
