// The picker's view of a shard: what may move, how large things are, and the plans that move rows
// downwards. Two rules make each plan correct. Rows sink in order: no row goes below an older row
// of its key. Each level stays disjoint: a merge includes everything in its target level that lies
// within its keys, and ends its segments at the barriers among them.

/// One shard, and the plans that are possible for it.
struct ShardLayout {
  let shard: ShardState
  let policy: CompactionPolicy
  let barriers: Barriers
  /// Mean bytes per row in the lowest run, where hidden rows are.
  let meanRow: Double
  /// The flushed runs that may be merged with each other, newest first.
  let newestFlushed: [RunState]
  /// The part of the flushed runs that no barrier among them blocks.
  let freeFlushed: [RunState]

  private static let lowest = ShardState.lowestLevel

  init(_ shard: ShardState, _ policy: CompactionPolicy, _ barriers: Barriers) {
    self.shard = shard
    self.policy = policy
    self.barriers = barriers
    newestFlushed = barriers.newestFlushedRuns(of: shard)
    freeFlushed = barriers.freeFlushedRuns(of: shard)
    let bottom = shard.runs.last.flatMap { $0.level > 0 ? $0 : nil }
    let rows = bottom?.segments.reduce(0) { $0 + $1.entries } ?? 0
    meanRow = Double(bottom?.sizeBytes ?? 0) / Double(max(1, rows))
  }

  // MARK: - Sizes

  /// Bytes of `segments`, with each tombstone counted as a row.
  func weight(_ segments: some Sequence<SegmentMetadata>) -> Double {
    segments.reduce(0) { sum, segment in
      sum + Double(segment.sizeBytes) + Double(segment.tombstones) * meanRow
    }
  }

  private var flushedWeight: Double { weight(shard.levelZero.flatMap(\.segments)) }

  /// The runs below the flushed ones, uppermost first.
  private var levels: ArraySlice<RunState> { shard.runs.drop { $0.level == 0 } }

  /// Whether the levels are so small that everything is merged with them at once.
  private var hasSmallLevels: Bool {
    levels.reduce(0) { $0 + $1.sizeBytes } <= policy.baseSize
  }

  /// The size that justifies merging with the lowest level.
  private var worthLowering: Double {
    let largest = Double(levels.map(\.sizeBytes).max() ?? 0)
    return max(largest, Double(policy.baseSize)) / Double(CompactionPolicy.ratio)
  }

  // MARK: - Down from the flushed runs

  /// While the levels are small, merges all flushed runs into them once there are many or they are
  /// large.
  func mergingIntoSmallLevels() -> CompactionPlan? {
    guard hasSmallLevels else { return nil }
    let isDue =
      freeFlushed.count > policy.runLimit
      || weight(freeFlushed.flatMap(\.segments)) > Double(policy.baseSize)
    return isDue ? sinkingAll(isMajor: false) : nil
  }

  /// Moves the oldest flushed run out of level 0 when it is large enough. If all flushed runs are
  /// large enough only together, the ones that can be merged first become one run.
  func loweringOldest() -> CompactionPlan? {
    guard !hasSmallLevels, let oldest = freeFlushed.last else { return nil }
    if weight(oldest.segments) >= worthLowering {
      return sinking([oldest], .lowering, isMajor: false)
    }
    let isAll = newestFlushed.count == shard.levelZero.count && newestFlushed.count > 1
    guard isAll, flushedWeight >= 4 * worthLowering else { return nil }
    return merging(newest: newestFlushed.count)
  }

  /// Moves all flushed runs down.
  func sinkingAll(isMajor: Bool) -> CompactionPlan? {
    sinking(freeFlushed, .flushedRuns, isMajor: isMajor)
  }

  /// Moves the oldest free flushed runs down as far as is useful: into the lowest level if the
  /// whole merge is one piece of work, otherwise to the level above it.
  private func sinking(
    _ runs: [RunState], _ purpose: CompactionPlan.Purpose, isMajor: Bool
  ) -> CompactionPlan? {
    guard let span = KeySpan(runs.flatMap(\.segments)) else { return nil }
    guard let first = levels.first else {
      return lowering(runs, purpose, into: Self.lowest, isMajor: isMajor)
    }
    if first.level == shard.runs.last?.level, first.level > 1, !hasSmallLevels {
      let touched = first.overlapping(span)
      let raw = (runs + [touched].compactMap { $0 }).flatMap(\.segments)
        .reduce(0) { $0 + $1.rawBytes }
      if touched != nil, raw > (isMajor ? policy.majorPieceSize : policy.pieceSize) {
        return lowering(runs, purpose, into: first.level - 1, isMajor: isMajor)
      }
    }
    let free = barriers.freeFlushedRuns(of: shard, above: first)
    let wanted = Set(runs.flatMap(\.segments).map(\.number))
    let parts = free.compactMap { run -> RunState? in
      let part = run.keeping { wanted.contains($0.number) }
      return part.segments.isEmpty ? nil : part
    }
    if !parts.isEmpty { return lowering(parts, purpose, into: first.level, isMajor: isMajor) }
    // A barrier in that level blocks all of them. They stay directly above it.
    guard first.level > 1 else { return nil }
    return lowering(runs, purpose, into: first.level - 1, isMajor: isMajor)
  }

  // MARK: - Down from level to level

  /// Moves the cheapest segment above the lowest level down to the next run.
  func draining() -> CompactionPlan? {
    for (run, below) in zip(levels, levels.dropFirst()).reversed() {
      let part = barriers.free(run, above: below)
      let cheapest = part.segments.min { cost($0, below) < cost($1, below) }
      guard let cheapest else { continue }
      let single = RunState(level: run.level, id: run.id, segments: [cheapest])
      return lowering([single], .lowering, into: below.level, isMajor: false)
    }
    return nil
  }

  /// Bytes rewritten below for each byte that sinks, including hidden bytes.
  private func cost(_ segment: SegmentMetadata, _ below: RunState) -> Double {
    let overlap = below.overlapping(KeySpan(segment))?.sizeBytes ?? 0
    return Double(overlap) / max(1, weight([segment]))
  }

  private func lowering(
    _ inputs: [RunState], _ purpose: CompactionPlan.Purpose, into level: Int, isMajor: Bool
  ) -> CompactionPlan? {
    guard let span = KeySpan(inputs.flatMap(\.segments)) else { return nil }
    let below = barriers.overlapping(span, in: shard.run(atLevel: level))
    let all = inputs + (below.map { [$0] } ?? [])
    let keepsTombstones = hasOlderRows(all, below: level)
    return CompactionPlan(
      purpose: purpose, inputs: all, outputLevel: level, keepsTombstones: keepsTombstones,
      isMove: below == nil && canMove(inputs, keepsTombstones: keepsTombstones),
      cuts: cuts(all, into: level, isMajor: isMajor))
  }

  // MARK: - In place

  /// Merges the newest flushed runs into one.
  func merging(newest count: Int) -> CompactionPlan? {
    guard count > 1 else { return nil }
    let runs = Array(newestFlushed.prefix(count))
    return CompactionPlan(
      purpose: .flushedRuns, inputs: runs, outputLevel: 0,
      keepsTombstones: hasOlderRows(runs, below: 0),
      cuts: cuts(runs, into: 0, isMajor: false))
  }

  /// Rewrites neighbouring segments of a run in place.
  func rewriting(
    _ segments: [SegmentMetadata], of run: RunState, _ purpose: CompactionPlan.Purpose
  ) -> CompactionPlan {
    let part = RunState(level: run.level, id: run.id, segments: segments)
    return CompactionPlan(
      purpose: purpose, inputs: [part], outputLevel: run.level, outputRun: run.id,
      keepsTombstones: hasOlderRows([part], below: run.level))
  }

  /// Rewrites, without their tombstones, those lowest segments with tombstones that `predicate`
  /// selects.
  func removingTombstones(
    where predicate: (SegmentMetadata) -> Bool = { _ in true }
  ) -> CompactionPlan? {
    guard let run = shard.runs.last, run.level > 0 else { return nil }
    func isWanted(_ segment: SegmentMetadata) -> Bool {
      segment.tombstones > 0 && predicate(segment) && !barriers.contains(segment)
    }
    var raw: UInt64 = 0
    let segments = run.segments.drop { !isWanted($0) }.prefix { segment in
      let fits = raw == 0 || raw + segment.rawBytes <= policy.pieceSize
      raw += segment.rawBytes
      return fits && isWanted(segment)
    }
    return segments.isEmpty ? nil : rewriting(Array(segments), of: run, .tombstones)
  }

  // MARK: - Correctness

  /// Whether rows older than those of `inputs` may exist in their key span below `level`.
  private func hasOlderRows(_ inputs: [RunState], below level: Int) -> Bool {
    guard let span = KeySpan(inputs.flatMap(\.segments)) else { return false }
    let ids = Set(inputs.map(\.id))
    let last = shard.runs.lastIndex { $0.level == 0 && ids.contains($0.id) } ?? -1
    return shard.runs.enumerated().contains { index, run in
      (run.level > level || (level == 0 && index > last)) && run.overlapping(span) != nil
    }
  }

  /// Whether segments may change their level unchanged: they do not overlap, are not tiny, and have
  /// no tombstones that could be removed.
  private func canMove(_ inputs: [RunState], keepsTombstones: Bool) -> Bool {
    let segments = inputs.flatMap(\.segments).sorted {
      $0.minKey.lexicographicallyPrecedes($1.minKey)
    }
    let raw = segments.reduce(0) { $0 + $1.rawBytes }
    return raw >= UInt64(segments.count) * policy.segmentSize / 4
      && (keepsTombstones || segments.allSatisfy { $0.tombstones == 0 })
      && zip(segments, segments.dropFirst()).allSatisfy { left, right in
        left.maxKey.lexicographicallyPrecedes(right.minKey)
      }
  }

  /// Cuts a result that will sink further so that each of its segments overlaps at most one piece
  /// of the lowest level, unless the segments would become tiny.
  private func cuts(_ inputs: [RunState], into level: Int, isMajor: Bool) -> [[UInt8]] {
    guard let span = KeySpan(inputs.flatMap(\.segments)) else { return [] }
    var cuts = barriers.cuts(span, into: level, shard)
    if let bottom = levels.last, bottom.level > level, let below = bottom.overlapping(span) {
      let raw = inputs.flatMap(\.segments).reduce(0) { $0 + $1.rawBytes }
      let rawBelow = below.segments.reduce(0) { $0 + $1.rawBytes }
      if isMajor {
        cuts += pieces(of: below, upTo: policy.majorPieceSize)
      } else if rawBelow / 4 / CompactionPolicy.ratio <= raw {
        cuts += pieces(of: below, upTo: policy.pieceSize)
      }
    }
    return cuts.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The first keys of the pieces of a run, without the first piece.
  private func pieces(of run: RunState, upTo size: UInt64) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    var raw: UInt64 = 0
    for segment in run.segments {
      if raw > 0, raw + segment.rawBytes > size {
        keys.append(segment.minKey)
        raw = 0
      }
      raw += segment.rawBytes
    }
    return keys
  }
}
