// Decides what to compact next. The decision is a pure function of a shard's part of the manifest
// and of the barriers; it uses no clock, no file and no randomness. CompactionJob carries out the
// plans.
//
// Level 0 holds a few flushed runs, which FlushedRunRule merges with each other. The lowest level
// holds nearly all data. Once the oldest flushed run reaches an eighth of the size of the lowest
// level, it sinks: first by a manifest edit to the level above the lowest, then segment by segment
// into the lowest. So no merge is large, and each merge frees its inputs when it ends. The levels
// in between are empty except for sinking segments and segments blocked by a barrier; see Barriers.
// The size of a flushed run counts each tombstone as large as the row that it hides, which alone
// makes tombstones sink to where they disappear.

/// Picks compactions by a policy.
struct CompactionPicker: Sendable {
  var policy: CompactionPolicy

  /// The most urgent compaction, or nil if there is nothing to do.
  func next(
    _ shard: ShardState, dropped: DroppedKeyspaces = DroppedKeyspaces(),
    around barriers: Barriers = Barriers()
  ) -> CompactionPlan? {
    let layout = ShardLayout(shard, policy, barriers)
    return rewriting(layout, dropped) ?? layout.mergingIntoSmallLevels() ?? layout.draining()
      ?? layout.loweringOldest() ?? mergingFlushed(shard, around: barriers)
      ?? sinkingTombstones(layout) ?? collecting(layout)
  }

  /// Merges the newest flushed runs if there are too many, and leaves the levels below alone.
  func mergingFlushed(
    _ shard: ShardState, around barriers: Barriers = Barriers()
  ) -> CompactionPlan? {
    let layout = ShardLayout(shard, policy, barriers)
    let runs = layout.newestFlushed
    let others = shard.levelZero.count - runs.count
    let count = FlushedRunRule.count(
      ofNewest: runs.map { layout.weight($0.segments) },
      limit: max(2, policy.runLimit - others), unit: Double(policy.memtableSize))
    return layout.merging(newest: count)
  }

  /// The next step towards a single run. It is nil if the shard already is one run without hidden
  /// rows, or if barriers allow no further step.
  func majorCompaction(
    _ shard: ShardState, dropped: DroppedKeyspaces = DroppedKeyspaces(),
    around barriers: Barriers = Barriers()
  ) -> CompactionPlan? {
    let layout = ShardLayout(shard, policy, barriers)
    if let plan = rewriting(layout, dropped) { return plan }
    let hides = shard.runs.contains { run in run.segments.contains { $0.tombstones > 0 } }
    guard shard.runs.count > 1 || hides else { return collecting(layout) }
    var plan = layout.sinkingAll(isMajor: true) ?? layout.draining()
    if plan == nil, layout.newestFlushed.count > 1 {
      plan = layout.merging(newest: layout.newestFlushed.count)
    }
    plan = plan ?? layout.removingTombstones()
    plan?.purpose = .major
    return plan ?? collecting(layout)
  }

  /// Rewrites in place a segment that has a number before `border`, or whose rows point to values
  /// in such a file. It is nil if no such segment is left that can be rewritten.
  func rewriting(
    _ shard: ShardState, before border: FileNumber, around barriers: Barriers
  ) -> CompactionPlan? {
    let layout = ShardLayout(shard, policy, barriers)
    for run in shard.runs {
      let segment = run.segments.first { segment in
        !barriers.contains(segment)
          && (segment.number < border
            || segment.valueReferences.contains { reference in
              reference.file < border && !barriers.numbers.contains(reference.file)
            })
      }
      if let segment { return layout.rewriting([segment], of: run, .otherKey) }
    }
    return nil
  }

  /// For a shard that is quiet but does not justify a major compaction: merges flushed runs of
  /// similar size, so that the bytes written depend on the size of the new data and not on the size
  /// of the shard.
  func tidying(
    _ shard: ShardState, around barriers: Barriers = Barriers()
  ) -> CompactionPlan? {
    let layout = ShardLayout(shard, policy, barriers)
    var sum: UInt64 = 0
    let runs = layout.newestFlushed.prefix { run in
      let isCheap = sum == 0 || run.sizeBytes / MajorCompactionRule.cheap <= sum
      sum += run.sizeBytes
      return isCheap
    }
    return layout.merging(newest: runs.count)
  }

  // MARK: - Plans that leave rows where they are

  /// Handles deletions that hide many rows: flushed tombstones once they hide an eighth of the
  /// shard, and a segment of the lowest level once it consists mostly of tombstones.
  private func sinkingTombstones(_ layout: ShardLayout) -> CompactionPlan? {
    let flushed = layout.freeFlushed.flatMap(\.segments).reduce(0) { $0 + $1.tombstones }
    if flushed > 0, Double(flushed) * layout.meanRow * 8 > Double(layout.shard.sizeBytes),
      var plan = layout.sinkingAll(isMajor: false)
    {
      plan.purpose = .tombstones
      return plan
    }
    return layout.removingTombstones { $0.tombstones > $0.entries / 2 }
  }

  /// Rewrites in place a segment that may contain rows of dropped keyspaces.
  private func rewriting(
    _ layout: ShardLayout, _ dropped: DroppedKeyspaces
  ) -> CompactionPlan? {
    guard !dropped.isEmpty else { return nil }
    for run in layout.shard.runs {
      let segment = run.segments.first { dropped.mayTouch($0) && !layout.barriers.contains($0) }
      if let segment { return layout.rewriting([segment], of: run, .droppedRows) }
    }
    return nil
  }

  /// Rewrites in place neighbouring segments of a run whose rows point to value files that are
  /// mostly dead, and moves their values to new files.
  private func collecting(_ layout: ShardLayout) -> CompactionPlan? {
    let dead = layout.shard.mostlyDeadValueFiles.subtracting(layout.barriers.numbers)
    guard !dead.isEmpty else { return nil }
    func isWanted(_ segment: SegmentMetadata) -> Bool {
      segment.valueReferences.contains { dead.contains($0.file) }
        && !layout.barriers.contains(segment)
    }
    for run in layout.shard.runs.reversed() {
      let segments = run.segments.drop { !isWanted($0) }.prefix(while: isWanted)
      if !segments.isEmpty {
        return layout.rewriting(Array(segments), of: run, .deadValues)
      }
    }
    return nil
  }
}
