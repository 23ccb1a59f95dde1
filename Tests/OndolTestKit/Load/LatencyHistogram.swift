// The latencies of all operations, in little memory: a log-linear histogram in the style of
// HdrHistogram. Each power of two is cut into 128 equal parts, so a value is known to within 0.8 %,
// whether it is microseconds or minutes. It is written here because it is a page of code, and every
// user of the library would have to download a package for it.

/// Counts of durations, in nanoseconds.
package struct LatencyHistogram: Sendable {
  private static let subdivision = 128
  private static let subdivisionBits = 7

  private var counts: [UInt64] = []
  package private(set) var count: UInt64 = 0
  package private(set) var maximum: UInt64 = 0
  private var sum: Double = 0

  package init() {}

  package mutating func record(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    record(nanoseconds: UInt64(max(0, nanoseconds)))
  }

  package mutating func record(nanoseconds value: UInt64) {
    let index = Self.index(of: value)
    if counts.count <= index {
      counts += [UInt64](repeating: 0, count: index + 1 - counts.count)
    }
    counts[index] += 1
    count += 1
    maximum = max(maximum, value)
    sum += Double(value)
  }

  package static func += (left: inout LatencyHistogram, right: LatencyHistogram) {
    let missing = right.counts.count - left.counts.count
    if missing > 0 { left.counts += [UInt64](repeating: 0, count: missing) }
    for (index, count) in right.counts.enumerated() { left.counts[index] += count }
    left.count += right.count
    left.maximum = max(left.maximum, right.maximum)
    left.sum += right.sum
  }

  package var mean: Double { count == 0 ? 0 : sum / Double(count) }

  /// The least duration that `percent` of all do not exceed, in nanoseconds; 0 if there is none.
  package func percentile(_ percent: Double) -> UInt64 {
    let wanted = max(1, UInt64((Double(count) * percent / 100).rounded(.up)))
    var seen: UInt64 = 0
    for (index, count) in counts.enumerated() {
      seen += count
      if seen >= wanted { return min(Self.greatestValue(at: index), maximum) }
    }
    return maximum
  }

  // MARK: - Buckets

  /// Small values have a bucket each. After them every power of two has the same number.
  private static func index(of value: UInt64) -> Int {
    guard value >= subdivision else { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount
    let part = Int(value >> UInt64(exponent - subdivisionBits)) & (subdivision - 1)
    return (exponent - subdivisionBits + 1) * subdivision + part
  }

  private static func greatestValue(at index: Int) -> UInt64 {
    guard index >= subdivision else { return UInt64(index) }
    let shift = UInt64(index / subdivision - 1)
    let next = UInt64(subdivision + index % subdivision + 1)
    let (end, isTooLarge) = next.multipliedReportingOverflow(by: 1 << shift)
    return isTooLarge ? .max : end - 1
  }
}
