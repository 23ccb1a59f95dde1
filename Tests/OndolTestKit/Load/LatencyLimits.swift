// The latency limits of a load, so that one command decides whether the writers of a database wait
// too long.

/// The largest acceptable latencies of a distribution; nil for no limit.
package struct LatencyLimits: Sendable, Codable {
  /// Milliseconds that all except one in a thousand may take.
  package var p999: Double?
  /// Milliseconds that the longest may take.
  package var worst: Double?

  package init(p999: Double? = nil, worst: Double? = nil) {
    self.p999 = p999
    self.worst = worst
  }

  /// Whether limits are durations.
  package var areValid: Bool {
    [p999, worst].allSatisfy { limit in limit.map { $0 > 0 && $0.isFinite } ?? true }
  }

  /// The figures of a distribution above their limits. An empty distribution exceeds every limit,
  /// because a run without measurements has not shown that it was fast enough.
  package func faults(of latencies: LatencyHistogram) -> [String] {
    let figures = [
      ("p99.9", latencies.percentile(99.9), p999), ("worst", latencies.maximum, worst),
    ]
    return figures.compactMap { name, nanoseconds, limit in
      guard let limit else { return nil }
      guard latencies.count > 0 else { return "\(name): nothing was measured" }
      let milliseconds = Double(nanoseconds) / 1_000_000
      return milliseconds > limit ? "\(name) is \(milliseconds) ms, and may be \(limit) ms" : nil
    }
  }
}
