// When a shard that nobody writes to is merged into one run, which is what reads like best.

/// How long a database must be quiet before its shards are settled.
enum SettleRule {
  /// Microseconds between looks at whether commits still come.
  static let quiet: Int64 = 2_000_000
  /// Settling may write so many times the bytes that it takes from the upper runs after the
  /// shortest quiet; what costs more waits longer, so that a few writes now and then to a large
  /// shard do not have it rewritten over and over.
  private static let cheap: UInt64 = 16
  private static let longest: Int64 = 3_600_000_000

  /// Microseconds of quiet that `plan` needs.
  static func patience(for plan: CompactionPlan) -> Int64 {
    let upper = plan.inputs.dropLast().reduce(0) { $0 + $1.sizeBytes }
    guard upper > 0 else { return quiet }
    let factor = plan.sizeBytes / upper / cheap
    return min(longest, quiet * Int64(max(1, min(factor, 10_000))))
  }
}
