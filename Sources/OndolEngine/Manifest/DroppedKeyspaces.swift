// Keyspaces whose rows are permanently removed. Keyspace numbers are never reused, so a drop is one
// edit of the manifest and touches no row. Segments without other rows are removed at once. Flushes
// and merges omit the rows in other segments, and no segment created after a drop has any. So a
// drop can be forgotten once all segments and logs from before it are gone, and one without
// remaining rows need not be recorded at all.

/// Dropped keyspaces, and the segments that may still contain their rows.
struct DroppedKeyspaces: Sendable, Equatable {
  private struct Drop: Sendable, Equatable {
    var keyspace: UInt32
    /// Segments with this number and above contain none of its rows.
    var before: FileNumber
  }

  /// Sorted by keyspace.
  private var drops: [Drop] = []

  var isEmpty: Bool { drops.isEmpty }

  var keyspaces: [UInt32] { drops.map(\.keyspace) }

  /// The keyspace of a row, derived from its key.
  static func keyspace(of key: RawSpan) -> UInt32 { UInt32(keyHead(key) >> 32) }

  func contains(_ keyspace: UInt32) -> Bool {
    let index = firstIndex(atOrAfter: keyspace)
    return index < drops.count && drops[index].keyspace == keyspace
  }

  /// Adds a keyspace. An earlier drop of the same keyspace stays unchanged.
  mutating func insert(_ keyspace: UInt32, before: FileNumber) {
    let index = firstIndex(atOrAfter: keyspace)
    if index < drops.count, drops[index].keyspace == keyspace { return }
    drops.insert(Drop(keyspace: keyspace, before: before), at: index)
  }

  /// Whether a segment contains only rows of dropped keyspaces.
  func covers(_ segment: SegmentMetadata) -> Bool {
    guard !isEmpty else { return false }
    let (first, last) = Self.keyspaces(segment)
    return UInt64(between(first, last).count) == UInt64(last - first) + 1
  }

  /// Whether a segment may contain rows of dropped keyspaces.
  func mayTouch(_ segment: SegmentMetadata) -> Bool {
    guard !isEmpty else { return false }
    let (first, last) = Self.keyspaces(segment)
    return between(first, last).contains { segment.number < $0.before }
  }

  /// The dropped keyspaces of which segments of a shard may still contain rows.
  ///
  /// - Parameter count: the number of shards.
  func touched(by segments: some Sequence<SegmentMetadata>, of shard: Int, in count: Int)
    -> Set<UInt32>
  {
    var touched: Set<UInt32> = []
    for segment in segments {
      let (first, last) = Self.keyspaces(segment)
      for drop in between(first, last) where segment.number < drop.before {
        if Self.shard(of: drop.keyspace, in: count) == shard { touched.insert(drop.keyspace) }
      }
    }
    return touched
  }

  /// The drops that are in `kept`, or that happened before the log `floor` existed.
  func keeping(_ kept: Set<UInt32>, before floor: FileNumber) -> DroppedKeyspaces {
    var rest = self
    rest.drops.removeAll { $0.before <= floor && !kept.contains($0.keyspace) }
    return rest
  }

  /// The shard that contains a keyspace's rows.
  static func shard(of keyspace: UInt32, in count: Int) -> Int { Int(keyspace >> 12) % count }

  /// The drops as changes from an empty state.
  var asChanges: [ManifestChange] {
    let byTime = Dictionary(grouping: drops, by: \.before)
    return byTime.keys.sorted().map { before in
      .dropKeyspaces((byTime[before] ?? []).map(\.keyspace), before: before)
    }
  }

  private static func keyspaces(_ segment: SegmentMetadata) -> (UInt32, UInt32) {
    let first = keyspace(of: segment.minKey.bytes)
    return (first, max(first, keyspace(of: segment.maxKey.bytes)))
  }

  private func between(_ first: UInt32, _ last: UInt32) -> ArraySlice<Drop> {
    let start = firstIndex(atOrAfter: first)
    return drops[start...].prefix { $0.keyspace <= last }
  }

  private func firstIndex(atOrAfter keyspace: UInt32) -> Int {
    var (low, high) = (0, drops.count)
    while low < high {
      let middle = (low + high) / 2
      if drops[middle].keyspace < keyspace { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
