// Decides what to compact next: a pure function of a shard's part of the manifest and of what must
// be left alone. No clock, no file, no chance; what it plans, CompactionJob does.
//
// Level 0 holds the flushed runs, no more than a few, which are merged among themselves by
// FlushedRunRule. The lowest level holds nearly everything. Once the oldest flushed run has an
// eighth of its size, that run goes down: by an edit to the level above the lowest, and from there
// segment by segment into it, so that no merge is large and each frees what it took when it ends.
// Levels in between are empty, but for what goes down and for what a barrier holds up; see
// Barriers. A flushed run counts its tombstones as large as the rows they hide, and that alone
// sinks them to where they vanish.

/// Picks compactions by a policy.
struct CompactionPicker: Sendable {
  var policy: CompactionPolicy

  /// The most pressing compaction, or nil when there is nothing to do.
  func next(
    _ shard: ShardState, dropped: DroppedKeyspaces = DroppedKeyspaces(),
    around barriers: Barriers = Barriers()
  ) -> CompactionPlan? {
    let layout = ShardLayout(shard, policy, barriers)
    return rewriting(layout, dropped) ?? layout.mergingIntoSmallLevels() ?? layout.draining()
      ?? layout.loweringOldest() ?? mergingFlushed(shard, around: barriers)
      ?? sinkingTombstones(layout) ?? collecting(layout)
  }

  /// Merges the newest flushed runs when there are too many, and touches nothing below.
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

  /// The next step towards one run; nil when that is so already and nothing is hidden in it, or
  /// when barriers allow no more.
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

  /// A segment that has a number before `border`, or rows that point to values in such a file, is
  /// written anew where it is; nil when none is left that can be.
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

  /// For a shard that is quiet but not worth a major compaction: puts flushed runs together that
  /// are of about one size, so that the bytes written hang on what is new and not on what the shard
  /// holds.
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

  /// Deletions that hide much: flushed ones once they hide an eighth of the shard, a segment of the
  /// lowest level once it is mostly tombstones.
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

  /// A segment that may hold rows of dropped keyspaces is written anew where it is.
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

  /// Neighbours in a run whose rows point into value files that are mostly dead are written anew
  /// where they are, and their values elsewhere.
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
