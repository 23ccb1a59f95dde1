// What a shard's merges go around: segments that are damaged, and those that another merge is busy
// with. Such a segment stays where it is, and so no row above it may sink past it: a read would
// find the older row first. Whatever is newer and overlaps it, and whatever is newer and overlaps
// that, stays above it, too.

/// The segments of a shard that no merge may take.
struct Barriers: Sendable, Equatable {
  private(set) var numbers: Set<FileNumber>

  init(_ numbers: Set<FileNumber> = []) {
    self.numbers = numbers
  }

  var isEmpty: Bool { numbers.isEmpty }

  func contains(_ segment: SegmentMetadata) -> Bool {
    !numbers.isEmpty && numbers.contains(segment.number)
  }

  /// The flushed runs without the segments that must stay above `below`, newest first; runs of
  /// which nothing is left are left out.
  func freeFlushedRuns(of shard: ShardState, above below: RunState? = nil) -> [RunState] {
    let runs = Array(shard.levelZero)
    if numbers.isEmpty { return runs }
    var fixed = below?.segments.filter(contains) ?? []
    var free: [RunState] = []
    for run in runs.reversed() {
      let part = run.keeping { segment in
        !contains(segment) && !fixed.contains { KeySpan($0).overlaps(segment) }
      }
      let kept = Set(part.segments.map(\.number))
      fixed += run.segments.filter { !kept.contains($0.number) }
      if !part.segments.isEmpty { free.append(part) }
    }
    return free.reversed()
  }

  /// The flushed runs newer than all that have a barrier: only these may be merged among
  /// themselves, as whole runs.
  func newestFlushedRuns(of shard: ShardState) -> [RunState] {
    Array(shard.levelZero.prefix { run in !run.segments.contains(where: contains) })
  }

  /// The part of `run` that may go down into `below`.
  func free(_ run: RunState, above below: RunState?) -> RunState {
    if numbers.isEmpty { return run }
    let fixed = below?.segments.filter(contains) ?? []
    return run.keeping { segment in
      !contains(segment) && !fixed.contains { KeySpan($0).overlaps(segment) }
    }
  }

  /// What of `run` a merge over `span` takes.
  func overlapping(_ span: KeySpan, in run: RunState?) -> RunState? {
    guard let part = run?.overlapping(span) else { return nil }
    if numbers.isEmpty { return part }
    let free = part.keeping { !contains($0) }
    return free.segments.isEmpty ? nil : free
  }

  /// Keys at which the segments of a merge into `level` must end: none may reach over a barrier in
  /// its own level, and with those around deeper ones little is held up by them.
  func cuts(_ span: KeySpan, into level: Int, _ shard: ShardState) -> [[UInt8]] {
    if numbers.isEmpty { return [] }
    let fixed = shard.runs.filter { $0.level >= level && $0.level > 0 }.flatMap(\.segments)
      .filter { contains($0) && span.overlaps($0) }
    return fixed.flatMap { [$0.minKey, $0.maxKey + [0]] }
  }
}
