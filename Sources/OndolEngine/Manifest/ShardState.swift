// One shard's part of the manifest: its runs. Level 0 holds what was flushed, a run for each flush,
// and they overlap; each level below holds one run, whose segments are disjoint, and every row in
// it is older than the rows of the same key above. A plain value, which the compaction picker plans
// with too.

/// A sorted run as the manifest names it.
struct RunState: Sendable, Equatable {
  /// 0 for a flushed memtable; from 1 on there is one run a level.
  var level: Int
  /// In level 0 the number of its first segment, elsewhere 0.
  var id: UInt64
  /// Ascending and disjoint.
  var segments: [SegmentMetadata]

  var maxSequence: SequenceNumber { segments.map(\.maxSequence).max() ?? .zero }
  var sizeBytes: UInt64 { segments.reduce(0) { $0 + $1.sizeBytes } }
}

/// One shard's part.
struct ShardState: Sendable, Equatable {
  /// Runs of a level cannot be deeper than this.
  static let lowestLevel = 6

  /// Every row up to here is in the runs.
  var flushedThrough = SequenceNumber.zero
  /// Newest first: those of level 0 by age, then level after level.
  private(set) var runs: [RunState] = []
  /// The files that rows of the runs point into, by number.
  var valueFiles: [FileNumber: ValueFileMetadata] = [:]

  var segments: [SegmentMetadata] { runs.flatMap(\.segments) }
  var sizeBytes: UInt64 { runs.reduce(0) { $0 + $1.sizeBytes } }
  /// The flushed runs.
  var levelZero: ArraySlice<RunState> { runs.prefix { $0.level == 0 } }

  /// The run of a level below the flushed ones, if there is one.
  func run(atLevel level: Int) -> RunState? {
    runs.first { $0.level == level && level > 0 }
  }

  /// Adds a segment at its place.
  mutating func add(
    _ segment: SegmentMetadata, level: Int, run id: UInt64
  ) throws(MalformedBytes) {
    guard !segment.maxKey.lexicographicallyPrecedes(segment.minKey) else {
      throw MalformedBytes(at: 0, "segment \(segment.number.rawValue) ends before it begins")
    }
    guard segment.amounts.allSatisfy({ $0 <= ManifestState.largestAmount }) else {
      throw MalformedBytes(
        at: 0, "segment \(segment.number.rawValue) counts more than there can be")
    }
    let index = runs.firstIndex { $0.level == level && $0.id == (level == 0 ? id : 0) }
    guard let index else {
      runs.append(RunState(level: level, id: level == 0 ? id : 0, segments: [segment]))
      return sortRuns()
    }
    let run = runs[index].segments
    // Mostly segments come in order.
    let place = run.lastIndex { $0.minKey.lexicographicallyPrecedes(segment.minKey) }.map { $0 + 1 }
    let next = place ?? 0
    if next > 0, !run[next - 1].maxKey.lexicographicallyPrecedes(segment.minKey) {
      throw Self.overlap(segment, run[next - 1])
    }
    if next < run.count, !segment.maxKey.lexicographicallyPrecedes(run[next].minKey) {
      throw Self.overlap(segment, run[next])
    }
    runs[index].segments.insert(segment, at: next)
    if level == 0 { sortRuns() }
  }

  private static func overlap(_ one: SegmentMetadata, _ other: SegmentMetadata) -> MalformedBytes {
    MalformedBytes(
      at: 0, "segments \(one.number.rawValue) and \(other.number.rawValue) of a run overlap")
  }

  /// The order is the same whatever came first, even where a manifest says that two runs are of one
  /// age: it must not change when the state is written anew.
  private mutating func sortRuns() {
    runs.sort { left, right in
      if left.level != right.level { return left.level < right.level }
      let (newer, older) = (left.maxSequence, right.maxSequence)
      return newer != older ? newer > older : left.id > right.id
    }
  }

  /// Takes a segment out; false when there is none with that number.
  mutating func drop(_ number: FileNumber) -> Bool {
    for index in runs.indices {
      guard let place = runs[index].segments.firstIndex(where: { $0.number == number }) else {
        continue
      }
      runs[index].segments.remove(at: place)
      if runs[index].segments.isEmpty {
        runs.remove(at: index)
      } else if runs[index].level == 0 {
        sortRuns()
      }
      return true
    }
    return false
  }
}
