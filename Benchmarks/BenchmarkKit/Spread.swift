// The spread of the times of single operations. A mean does not show whether every operation was
// slow or one waited long, and apps notice long waits. Operations shorter than a microsecond are
// timed in groups, because otherwise the clock would be part of the figure.

/// The times of one kind of operation.
package struct Spread: Codable, Sendable {
  /// The microseconds that half of the operations did not exceed.
  package var p50: Double
  /// The microseconds that all except the slowest hundredth did not exceed.
  package var p99: Double
  /// The total of waits longer than a millisecond, in milliseconds; nil if an operation itself
  /// takes as long.
  package var waits: Double?
  /// The number of clock readings, and the number of operations for each.
  package var times: Int
  package var together: Int

  /// Nil if there are no times.
  ///
  /// - Parameters:
  ///   - microseconds: the times, each for `together` operations one after another.
  ///   - together: the number of operations for each time.
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

  /// The microseconds from which on a wait is long.
  private static let longWait = 1_000.0

  /// The median over the runs for each figure; nil without any run.
  package init?(of spreads: [Spread]) {
    guard let first = spreads.first else { return nil }
    self = first
    p50 = rounded(median(spreads.map(\.p50)))
    p99 = rounded(median(spreads.map(\.p99)))
    let waits = spreads.compactMap(\.waits)
    self.waits = waits.isEmpty ? nil : rounded(median(waits))
  }

  /// The spread in the form of a table.
  package var cell: String {
    "\(short(p50)) / \(short(p99)) / \(waits.map(short) ?? "-")"
  }
}

/// Returns the number of operations of this many nanoseconds to time together.
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
