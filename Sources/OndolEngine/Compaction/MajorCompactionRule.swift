// When a shard that nobody writes to is merged into one run, which is what reads like best. What
// that writes must be worth it: it hangs on what is new and not on what the shard holds.

/// How long a database must be quiet before its shards are merged into one run.
enum MajorCompactionRule {
  /// Microseconds between looks at whether commits still come.
  static let quiet: Int64 = 2_000_000
  /// A major compaction may write so many times the bytes that lie above the lowest run after the
  /// shortest quiet; what costs more waits longer.
  static let cheap: UInt64 = 16
  /// What costs so many times the bytes is not done unasked.
  private static let dear: UInt64 = 64
  /// Microseconds until one is tried again that found no space, at first and at most.
  static let firstPause: Int64 = 60_000_000
  static let longestPause: Int64 = 3_600_000_000

  /// Microseconds of quiet that one needs; nil when it is not worth it.
  static func patience(for estimate: MajorCompactionEstimate) -> Int64? {
    guard estimate.upperBytes > 0 else { return quiet }
    let factor = estimate.bytes / estimate.upperBytes
    guard factor <= dear else { return nil }
    return quiet * Int64(max(1, factor / cheap))
  }
}

/// What a major compaction of a shard takes, about.
struct MajorCompactionEstimate: Sendable, Equatable {
  /// Bytes of the runs above the lowest.
  var upperBytes: UInt64
  /// Those, and what they overlap in the lowest run.
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
