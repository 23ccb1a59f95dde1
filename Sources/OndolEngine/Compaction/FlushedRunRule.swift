// How many of the newest flushed runs to merge among themselves once there are too many. Merging
// all of them each time would write quadratically much; merging equals with equals needs more runs,
// the more there is. The sizes kept here are binomial coefficients: with `limit` runs of sizes C(a,
// limit), C(b, limit - 1), ..., oldest first, each row is written as seldom as any rule can have it
// (C. Mathieu and others, "Bigtable merge compaction", 2014). With eight runs 500 memtables are
// merged by writing each row four times, 12,000 by eight.
//
// It is a function of the sizes alone: what is there is compared with what should be there, oldest
// run first, and from the first run that is too small on everything newer is put together.

/// Chooses among flushed runs.
enum FlushedRunRule {
  /// A run that has this share of the size it should have stays as it is.
  private static let tolerance = 0.7

  /// How many of the newest runs to merge, 0 when there are no more than `limit`.
  ///
  /// - Parameters:
  ///   - sizes: newest first.
  ///   - unit: what a memtable comes to.
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

  /// The largest C(n, k) that is no more than `amount`.
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
