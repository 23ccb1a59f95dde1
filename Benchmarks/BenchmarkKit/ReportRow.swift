// A figure as a row for programs, and how Ondol stands against the others in one line. The same for
// every suite, so that whoever reads the rows need not know which suite they are from.

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
  /// How single operations were spread, median over the runs.
  package var spread: Spread?
  package var valueSize: Int
  package var keyOrder: String?
  /// What the value is to be at most, or at least where more is better.
  package var goal: Double?

  /// Nil when there are no values.
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

  /// The goal, and whether it is met; nil where there is none.
  package var goalText: String? {
    goal.map { goal in
      let isMet = lowerIsBetter ? value <= goal : value >= goal
      return "\(short(goal)), \(isMet ? "met" : "missed")"
    }
  }
}

/// Within so much of each other, two medians on a small virtual machine are level.
private let tieBand = 1.1

/// How Ondol, or another engine, stands against the best of the others.
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
