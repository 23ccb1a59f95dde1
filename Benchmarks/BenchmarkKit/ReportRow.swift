// A figure as a row for programs, and Ondol's standing among the others in one line. It is the same
// for every suite, so a reader of the rows need not know their suite.

package import Foundation

/// The median over the runs of one engine for one workload, with the least and the greatest.
package struct ReportRow: Codable {
  package var suite: String
  package var workload: String
  package var engine: String
  package var documents: Int
  package var value: Double
  package var unit: String
  package var lowerIsBetter: Bool
  package var min: Double
  package var max: Double
  package var runs: Int
  /// The spread of single operations, as the median over the runs.
  package var spread: Spread?
  package var valueSize: Int
  package var keyOrder: String?
  /// The largest acceptable value, or the smallest if more is better.
  package var goal: Double?

  /// Nil if there are no values.
  package init?(
    suite: String, workload: String, engine: String, documents: Int, values: [Double],
    unit: String, lowerIsBetter: Bool, valueSize: Int, goal: Double? = nil
  ) {
    guard let least = values.min(), let greatest = values.max() else { return nil }
    self.suite = suite
    self.workload = workload
    self.engine = engine
    self.documents = documents
    value = rounded(median(values))
    self.unit = unit
    self.lowerIsBetter = lowerIsBetter
    min = rounded(least)
    max = rounded(greatest)
    runs = values.count
    self.valueSize = valueSize
    self.goal = goal
  }

  package static func encode(_ rows: [ReportRow]) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return try encoder.encode(rows)
  }

  /// The row in a table for people.
  package var cell: String { "\(short(value)) (\(short(min))..\(short(max)))" }

  /// The goal, and whether the value meets it; nil without a goal.
  package var goalText: String? {
    goal.map { goal in
      let isMet = lowerIsBetter ? value <= goal : value >= goal
      return "\(short(goal)), \(isMet ? "met" : "missed")"
    }
  }
}

/// Two medians within this factor of each other are level, on a small virtual machine.
private let tieBand = 1.1

/// Returns the standing of Ondol, or of another engine, against the best of the others.
package func standing(_ rows: [ReportRow], of name: String = "Ondol") -> String {
  guard let ours = rows.first(where: { $0.engine == name }) else { return "-" }
  let peers = rows.filter { $0.engine != name }
  guard
    let best = peers.min(by: { $0.lowerIsBetter ? $0.value < $1.value : $0.value > $1.value })
  else { return "-" }
  let ratio = ours.lowerIsBetter ? best.value / ours.value : ours.value / best.value
  if ratio >= tieBand { return "\(short(ratio)) x better than \(best.engine)" }
  if 1 / ratio >= tieBand { return "\(short(1 / ratio)) x worse than \(best.engine)" }
  return "level with \(best.engine)"
}
