// Decides when an idle shard is merged into one run, which is the best state for reads. The cost
// must be worth it: the bytes written depend on the size of the new data and not on the size of the
// shard.

/// How long a database must be idle before its shards are merged into one run.
enum MajorCompactionRule {
  /// Microseconds between checks for new commits.
  static let quiet: Int64 = 2_000_000
  /// After the shortest idle time, a major compaction may write this many times the bytes above the
  /// lowest run. A more expensive one waits longer.
  static let cheap: UInt64 = 16
  /// A compaction that costs this many times the bytes runs only on request.
  private static let dear: UInt64 = 64
  /// Microseconds before a compaction that ran out of space is tried again: the first and the
  /// longest pause.
  static let firstPause: Int64 = 60_000_000
  static let longestPause: Int64 = 3_600_000_000

  /// Microseconds of idle time that a compaction needs; nil if it is not worth its cost.
  static func patience(for estimate: MajorCompactionEstimate) -> Int64? {
    guard estimate.upperBytes > 0 else { return quiet }
    let factor = estimate.bytes / estimate.upperBytes
    guard factor <= dear else { return nil }
    return quiet * Int64(max(1, factor / cheap))
  }
}

/// An estimate of the work of a major compaction of a shard.
struct MajorCompactionEstimate: Sendable, Equatable {
  /// Bytes of the runs above the lowest.
  var upperBytes: UInt64
  /// Bytes of those runs and of what they overlap in the lowest run.
  var bytes: UInt64
  /// The same before compression.
  var rawBytes: UInt64

  init(_ shard: ShardState) {
    let upper = shard.runs.dropLast()
    let segments = upper.flatMap(\.segments)
    let touched = KeySpan(segments).flatMap { span in
      shard.runs.last?.overlapping(span).map { Array($0.segments) }
    }
    let all = segments + (touched ?? (upper.isEmpty ? shard.segments : []))
    upperBytes = upper.reduce(0) { $0 + $1.sizeBytes }
    bytes = all.reduce(0) { $0 + $1.sizeBytes }
    rawBytes = all.reduce(0) { $0 + $1.rawBytes }
  }
}
