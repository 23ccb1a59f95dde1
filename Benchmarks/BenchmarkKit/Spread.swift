// How the times of single operations were spread. A mean does not tell whether every operation was
// slow or one of them waited long; what an app feels is the second. Operations of less than a
// microsecond are timed some together, because the clock would be a part of what it tells.

/// The times of one kind of operation.
package struct Spread: Codable, Sendable {
  /// Microseconds that a half of the operations did not exceed.
  package var p50: Double
  /// Microseconds that all but the slowest hundredth did not exceed.
  package var p99: Double
  /// Milliseconds in all of waits longer than one; nil where an operation itself takes as long.
  package var waits: Double?
  /// How often the clock was read, and over how many operations each time.
  package var times: Int
  package var together: Int

  /// Nil without times.
  ///
  /// - Parameters:
  ///   - microseconds: each of `together` operations one after the other.
  ///   - together: operations in each of the times.
  package init?(microseconds: [Double], together: Int = 1) {
    guard !microseconds.isEmpty, together > 0 else { return nil }
    let sorted = microseconds.sorted()
    p50 = percentile(0.5, ofSorted: sorted) / Double(together)
    p99 = percentile(0.99, ofSorted: sorted) / Double(together)
    let long = sorted.filter { $0 > Self.longWait }
    waits = p50 * Double(together) > Self.longWait / 2 ? nil : long.reduce(0, +) / 1_000
    times = sorted.count
    self.together = together
  }

  /// Microseconds above which a wait is a long one.
  private static let longWait = 1_000.0

  /// The median over the runs of each figure; nil without any.
  package init?(of spreads: [Spread]) {
    guard let first = spreads.first else { return nil }
    self = first
    p50 = rounded(median(spreads.map(\.p50)))
    p99 = rounded(median(spreads.map(\.p99)))
    let waits = spreads.compactMap(\.waits)
    self.waits = waits.isEmpty ? nil : rounded(median(waits))
  }

  /// As a table for people has it.
  package var cell: String {
    "\(short(p50)) / \(short(p99)) / \(waits.map(short) ?? "-")"
  }
}

/// How many operations of so many nanoseconds are timed together.
package func operationsTogether(nanoseconds: Double) -> Int {
  nanoseconds < 1_000 ? 100 : 1
}

/// The table of spreads: a line per workload that has one, a column per engine.
package func spreadTable(
  _ workloads: [String], _ engines: [String], _ spread: (String, String) -> Spread?
) -> [String] {
  var cells = [["workload"] + engines]
  for workload in workloads {
    let spreads = engines.map { spread(workload, $0) }
    guard spreads.contains(where: { $0 != nil }) else { continue }
    cells.append([workload] + spreads.map { $0?.cell ?? "-" })
  }
  guard cells.count > 1 else { return [] }
  return [
    "",
    "How single operations were spread: p50, µs / p99, µs / the sum of waits longer than 1 ms,"
      + " ms. Those of less than a microsecond are timed a hundred together.", "",
  ] + markdown(cells)
}
