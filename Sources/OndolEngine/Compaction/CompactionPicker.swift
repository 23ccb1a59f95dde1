// Decides what to compact next: a pure function of a shard's part of the manifest. No clock, no
// file, no chance; what it plans, CompactionJob does.
//
// Level 0 holds the flushed runs. Below it each level is one run and eight times as large as the
// one above, counted upward from the lowest, which holds nearly everything: so there are as many
// levels as the data needs, and what is stored twice or hidden is about an eighth of all. A level
// counts its tombstones as large as the rows they hide, and that alone sinks them to where they
// vanish.

/// Picks compactions by a policy.
struct CompactionPicker: Sendable {
  var policy: CompactionPolicy

  private static let lowest = ShardState.lowestLevel

  /// The most pressing compaction, or nil when there is nothing to do.
  func next(_ shard: ShardState, dropped: DroppedKeyspaces = DroppedKeyspaces())
    -> CompactionPlan?
  {
    if let plan = rewriting(shard, dropped) { return plan }
    let targets = Targets(shard, policy)
    let row = meanRow(shard)
    var best: (score: Double, level: Int)?
    for level in 0..<Self.lowest {
      let score = score(of: level, shard, targets, meanRow: row)
      if score > max(1, best?.score ?? 0) { best = (score, level) }
    }
    if let best {
      return best.level == 0
        ? mergingFlushed(shard, targets) : lowering(shard, best.level, targets)
    }
    return sinkingTombstones(shard, targets) ?? collecting(shard)
  }

  /// Merges everything into one run; nil when that is so already and nothing is hidden in it.
  /// Segments of the lowest run that nothing above overlaps stay as they are.
  func settling(_ shard: ShardState, dropped: DroppedKeyspaces = DroppedKeyspaces())
    -> CompactionPlan?
  {
    if let plan = rewriting(shard, dropped) { return plan }
    guard let lowest = shard.runs.last else { return nil }
    let hides = lowest.segments.contains { $0.tombstones > 0 }
    guard shard.runs.count > 1 || hides else { return collecting(shard) }
    var inputs = shard.runs
    if !hides, lowest.level > 0, let span = KeySpan(shard.runs.dropLast().flatMap(\.segments)) {
      inputs.removeLast()
      if let part = lowest.overlapping(span) { inputs.append(part) }
    }
    return CompactionPlan(
      purpose: .settling, inputs: inputs,
      outputLevel: hides || lowest.level == 0 ? Self.lowest : lowest.level,
      keepsTombstones: false)
  }

  // MARK: - Pressure

  /// How far a level is beyond its size; above 1 it must be compacted.
  private func score(
    of level: Int, _ shard: ShardState, _ targets: Targets, meanRow: Double
  ) -> Double {
    if level == 0 {
      let runs = shard.levelZero
      guard !runs.isEmpty else { return 0 }
      let bytes = weight(runs.flatMap(\.segments), meanRow)
      return max(
        Double(runs.count) / Double(policy.runLimit), bytes / Double(policy.baseSize))
    }
    guard let run = shard.run(atLevel: level) else { return 0 }
    guard let target = targets.size(of: level) else { return .infinity }
    return weight(run.segments, meanRow) / target
  }

  /// Bytes of `segments`, each tombstone as large as a row.
  private func weight(_ segments: some Sequence<SegmentMetadata>, _ meanRow: Double) -> Double {
    segments.reduce(0) { sum, segment in
      sum + Double(segment.sizeBytes) + Double(segment.tombstones) * meanRow
    }
  }

  /// Bytes of a row in the lowest run, where hidden rows are.
  private func meanRow(_ shard: ShardState) -> Double {
    guard let run = shard.runs.last, run.level > 0 else { return 0 }
    let rows = run.segments.reduce(0) { $0 + $1.entries }
    return Double(run.sizeBytes) / Double(max(1, rows))
  }

  // MARK: - Plans

  /// All flushed runs, and what they overlap in the first level, become part of that level.
  private func mergingFlushed(_ shard: ShardState, _ targets: Targets) -> CompactionPlan? {
    let flushed = Array(shard.levelZero)
    guard let span = KeySpan(flushed.flatMap(\.segments)) else { return nil }
    let first = shard.runs.first { $0.level > 0 }?.level ?? Self.lowest
    let level = min(first, targets.base)
    let below = shard.run(atLevel: level)?.overlapping(span)
    return plan(.flushedRuns, flushed, below, into: level, shard)
  }

  /// The segment of a level that costs least to lower, and what it overlaps, go to the next one. A
  /// level that should not be there goes as a whole.
  private func lowering(
    _ shard: ShardState, _ level: Int, _ targets: Targets
  ) -> CompactionPlan? {
    guard let run = shard.run(atLevel: level) else { return nil }
    if targets.size(of: level) == nil { return lowering(run, .fullLevel, shard) }
    let below = shard.run(atLevel: level + 1)
    let row = meanRow(shard)
    let cheapest = run.segments.min { left, right in
      cost(left, below, row) < cost(right, below, row)
    }
    guard let cheapest else { return nil }
    return lowering(
      RunState(level: level, id: run.id, segments: [cheapest]), .fullLevel, shard)
  }

  /// Bytes rewritten below for each byte that goes, hidden ones included.
  private func cost(
    _ segment: SegmentMetadata, _ below: RunState?, _ meanRow: Double
  ) -> Double {
    let overlap = below?.overlapping(KeySpan(segment))?.sizeBytes ?? 0
    return Double(overlap) / max(1, weight([segment], meanRow))
  }

  /// Part of a run goes down by one level.
  private func lowering(
    _ part: RunState, _ purpose: CompactionPlan.Purpose, _ shard: ShardState
  ) -> CompactionPlan? {
    guard let span = KeySpan(part.segments) else { return nil }
    let below = shard.run(atLevel: part.level + 1)?.overlapping(span)
    return plan(purpose, [part], below, into: part.level + 1, shard)
  }

  /// Deletions that hide much, in levels that are not too large: flushed ones once they hide an
  /// eighth of the shard, a segment of a level once it is mostly tombstones.
  private func sinkingTombstones(_ shard: ShardState, _ targets: Targets) -> CompactionPlan? {
    let flushed = shard.levelZero.flatMap(\.segments).reduce(0) { $0 + $1.tombstones }
    if flushed > 0, Double(flushed) * meanRow(shard) * 8 > Double(shard.sizeBytes) {
      return mergingFlushed(shard, targets).map { plan in
        var plan = plan
        plan.purpose = .tombstones
        return plan
      }
    }
    for run in shard.runs where run.level > 0 {
      guard let rich = run.segments.first(where: { $0.tombstones > $0.entries / 2 }) else {
        continue
      }
      let part = RunState(level: run.level, id: run.id, segments: [rich])
      if run.level < Self.lowest { return lowering(part, .tombstones, shard) }
      return CompactionPlan(
        purpose: .tombstones, inputs: [part], outputLevel: run.level, keepsTombstones: false)
    }
    return nil
  }

  /// A segment that may hold rows of dropped keyspaces is written anew where it is.
  private func rewriting(_ shard: ShardState, _ dropped: DroppedKeyspaces) -> CompactionPlan? {
    guard !dropped.isEmpty else { return nil }
    for run in shard.runs {
      guard let segment = run.segments.first(where: dropped.mayTouch) else { continue }
      let part = RunState(level: run.level, id: run.id, segments: [segment])
      return CompactionPlan(
        purpose: .droppedRows, inputs: [part], outputLevel: run.level, outputRun: run.id,
        keepsTombstones: hasRowsBelow(part, [part], shard))
    }
    return nil
  }

  /// Neighbours in a run whose rows point into value files that are mostly dead are written anew
  /// where they are, and their values elsewhere.
  private func collecting(_ shard: ShardState) -> CompactionPlan? {
    let dead = shard.mostlyDeadValueFiles
    guard !dead.isEmpty else { return nil }
    func pointsIntoDead(_ segment: SegmentMetadata) -> Bool {
      segment.valueReferences.contains { dead.contains($0.file) }
    }
    for run in shard.runs.reversed() {
      let segments = run.segments.drop { !pointsIntoDead($0) }.prefix(while: pointsIntoDead)
      guard !segments.isEmpty else { continue }
      let part = RunState(level: run.level, id: run.id, segments: segments)
      return CompactionPlan(
        purpose: .deadValues, inputs: [part], outputLevel: run.level, outputRun: run.id,
        keepsTombstones: hasRowsBelow(part, [part], shard))
    }
    return nil
  }

  private func plan(
    _ purpose: CompactionPlan.Purpose, _ inputs: [RunState], _ below: RunState?, into level: Int,
    _ shard: ShardState
  ) -> CompactionPlan {
    let all = inputs + (below.map { [$0] } ?? [])
    let target = RunState(level: level, id: 0, segments: all.flatMap(\.segments))
    let keepsTombstones = hasRowsBelow(target, all, shard)
    return CompactionPlan(
      purpose: purpose, inputs: all, outputLevel: level, keepsTombstones: keepsTombstones,
      isMove: below == nil && canMove(inputs, keepsTombstones: keepsTombstones))
  }

  /// Whether rows older than those of `part` may lie in its span, outside of `inputs`.
  private func hasRowsBelow(
    _ part: RunState, _ inputs: [RunState], _ shard: ShardState
  ) -> Bool {
    guard let span = KeySpan(part.segments) else { return false }
    return shard.runs.contains { run in
      guard run.level > part.level || (part.level == 0 && run.level == 0) else { return false }
      return !inputs.contains { $0.level == run.level && $0.id == run.id }
        && run.overlapping(span) != nil
    }
  }

  /// Whether segments may change their level as they are: when they do not overlap, are not tiny,
  /// and have no tombstones that could vanish.
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
}

/// How large each level should be.
struct Targets {
  /// The level that flushed runs are merged into.
  private(set) var base: Int
  private var sizes: [Double] = []

  init(_ shard: ShardState, _ policy: CompactionPolicy) {
    let largest = shard.runs.filter { $0.level > 0 }.map(\.sizeBytes).max() ?? 0
    var size = Double(max(largest, 1))
    base = ShardState.lowestLevel
    sizes = [size]
    while size > Double(policy.baseSize), base > 1 {
      base -= 1
      size /= Double(CompactionPolicy.ratio)
      sizes.append(size)
    }
  }

  /// Bytes that a level may have; nil for one that should not be there.
  func size(of level: Int) -> Double? {
    level >= base ? sizes[ShardState.lowestLevel - level] : nil
  }
}
