// Decides how many of the newest flushed runs to merge with each other once there are too many.
// Merging all of them each time would write a quadratic amount. Merging only runs of equal size
// needs more runs as the data grows. The sizes used here are binomial coefficients: with `limit`
// runs of sizes C(a, limit), C(b, limit - 1), ..., oldest first, each row is written as rarely as
// any rule allows (C. Mathieu and others, "Bigtable merge compaction", 2014). With eight runs,
// merging 500 memtables writes each row four times, and merging 12,000 writes it eight times.
//
// The result depends on the sizes alone. The rule compares each run with its target size, oldest
// first. From the first run that is too small, it merges that run and everything newer.

/// Chooses among flushed runs.
enum FlushedRunRule {
  /// A run that has reached this share of its target size stays as it is.
  private static let tolerance = 0.7

  /// The number of newest runs to merge; 0 if there are no more than `limit`.
  ///
  /// - Parameters:
  ///   - sizes: newest first.
  ///   - unit: the size of a memtable.
  static func count(ofNewest sizes: [Double], limit: Int, unit: Double) -> Int {
    guard sizes.count > limit, sizes.count > 1 else { return 0 }
    var rest = sizes.reduce(0, +)
    var kept = 0
    for size in sizes.reversed().prefix(limit) {
      let wanted = largestCoefficient(upTo: max(1, rest / max(1, unit)), below: limit - kept)
      guard size >= tolerance * wanted * unit else { break }
      rest -= size
      kept += 1
    }
    return max(2, sizes.count - kept)
  }

  /// The largest C(n, k) that is at most `amount`.
  private static func largestCoefficient(upTo amount: Double, below k: Int) -> Double {
    guard k > 1 else { return amount.rounded(.down) }
    var coefficient = 1.0
    var n = Double(k)
    while true {
      // C(n + 1, k) from C(n, k).
      let next = coefficient * (n + 1) / (n + 1 - Double(k))
      if next > amount { return coefficient }
      coefficient = next
      n += 1
    }
  }
}
