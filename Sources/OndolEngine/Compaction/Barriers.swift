// The segments that merges in a shard avoid: damaged ones, and those that another merge is working
// on. Such a segment stays where it is. So no newer row may sink below it, because a read would
// then find the older row first. Everything newer that overlaps it stays above it, and so does
// everything newer that overlaps that.

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

  /// The flushed runs, newest first, without the segments that must stay above `below`. Runs that
  /// become empty are left out.
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

  /// The flushed runs that are newer than every run with a barrier. Only these may be merged with
  /// each other as whole runs.
  func newestFlushedRuns(of shard: ShardState) -> [RunState] {
    Array(shard.levelZero.prefix { run in !run.segments.contains(where: contains) })
  }

  /// The part of `run` that may sink into `below`.
  func free(_ run: RunState, above below: RunState?) -> RunState {
    if numbers.isEmpty { return run }
    let fixed = below?.segments.filter(contains) ?? []
    return run.keeping { segment in
      !contains(segment) && !fixed.contains { KeySpan($0).overlaps(segment) }
    }
  }

  /// The part of `run` that a merge over `span` takes.
  func overlapping(_ span: KeySpan, in run: RunState?) -> RunState? {
    guard let part = run?.overlapping(span) else { return nil }
    if numbers.isEmpty { return part }
    let free = part.keeping { !contains($0) }
    return free.segments.isEmpty ? nil : free
  }

  /// Keys at which the segments of a merge into `level` must end. No segment may span a barrier in
  /// its own level. Cuts around deeper barriers keep the number of blocked segments small.
  func cuts(_ span: KeySpan, into level: Int, _ shard: ShardState) -> [[UInt8]] {
    if numbers.isEmpty { return [] }
    let fixed = shard.runs.filter { $0.level >= level && $0.level > 0 }.flatMap(\.segments)
      .filter { contains($0) && span.overlaps($0) }
    return fixed.flatMap { [$0.minKey, $0.maxKey + [0]] }
  }
}
