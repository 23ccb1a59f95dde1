// One shard's part of the manifest: its runs. Level 0 contains what was flushed or bulk-loaded,
// with one run each time, and these runs overlap. Each level below contains one run with disjoint
// segments, and every row in it is older than the rows of the same key above. It is a plain value,
// which the compaction picker also plans with.
//
// An open replays every edit, so each change must be cheap in a shard with very many segments.
// Segments are looked up by number, and the bytes that rows refer to in value files are counted as
// segments come and go.

/// A sorted run in the manifest.
struct RunState: Sendable, Equatable {
  /// 0 for a flushed memtable. From 1 on there is one run per level.
  var level: Int
  /// In level 0 the number of its first segment, otherwise 0.
  var id: UInt64
  /// Ascending and disjoint.
  private(set) var segments: ChunkedArray<SegmentMetadata>
  /// The last commit that any of its rows belongs to.
  private(set) var maxSequence: SequenceNumber

  /// - Parameter segments: ascending and disjoint.
  init(level: Int, id: UInt64, segments: some Sequence<SegmentMetadata>) {
    self.level = level
    self.id = id
    self.segments = ChunkedArray(segments)
    maxSequence = self.segments.map(\.maxSequence).max() ?? .zero
  }

  var sizeBytes: UInt64 { segments.reduce(0) { $0 + $1.sizeBytes } }

  /// The part of the run with the segments that satisfy `isKept`.
  func keeping(_ isKept: (SegmentMetadata) -> Bool) -> RunState {
    RunState(level: level, id: id, segments: segments.filter(isKept))
  }

  /// Adds a segment at its position. It must not overlap another.
  fileprivate mutating func add(_ segment: SegmentMetadata) throws(MalformedBytes) {
    let place = segments.partition { $0.maxKey.lexicographicallyPrecedes(segment.minKey) }
    if place < segments.count {
      let next = segments[place]
      guard segment.maxKey.lexicographicallyPrecedes(next.minKey) else {
        throw MalformedBytes(
          at: 0,
          "segments \(segment.number.rawValue) and \(next.number.rawValue) of a run overlap")
      }
    }
    segments.insert(segment, at: place)
    maxSequence = max(maxSequence, segment.maxSequence)
  }

  /// Removes the segment that contains the key.
  fileprivate mutating func remove(holding key: [UInt8]) -> SegmentMetadata {
    let place = segments.partition { $0.maxKey.lexicographicallyPrecedes(key) }
    let segment = segments.remove(at: place)
    // Usually all segments of a run belong to the same commits.
    if segment.maxSequence == maxSequence,
      !segments.contains(where: { $0.maxSequence == maxSequence })
    {
      maxSequence = segments.map(\.maxSequence).max() ?? .zero
    }
    return segment
  }
}

/// A segment of a keyed group whose key is missing. It is not read or merged, and stays unchanged
/// until the key is available again.
struct LockedSegment: Sendable, Equatable {
  var segment: SegmentMetadata
  var level: Int
  var run: UInt64
}

/// One shard's part.
struct ShardState: Sendable, Equatable {
  /// The deepest possible level.
  static let lowestLevel = 6

  /// The position of a segment.
  private struct Place: Sendable, Equatable {
    var level: Int
    var run: UInt64
    /// A key that no other segment of the run contains.
    var key: [UInt8]
  }

  /// Every row up to here is in the runs.
  var flushedThrough = SequenceNumber.zero
  /// Newest first: the runs of level 0 by age, then level after level.
  private(set) var runs: [RunState] = []
  private var places: [FileNumber: Place] = [:]
  /// Sorted by number.
  private(set) var locked: [LockedSegment] = []
  /// The value files that rows of the runs refer to, and the number of bytes they refer to in each.
  private(set) var values = ValueFileStates()

  var segments: [SegmentMetadata] { runs.flatMap(\.segments) }
  var sizeBytes: UInt64 { runs.reduce(0) { $0 + $1.sizeBytes } }
  /// The flushed runs.
  var levelZero: ArraySlice<RunState> { runs.prefix { $0.level == 0 } }

  /// The run of a level below the flushed ones, if there is one.
  func run(atLevel level: Int) -> RunState? {
    runs.first { $0.level == level && level > 0 }
  }

  /// Whether a segment is in one of the runs, or is locked.
  func references(segment number: FileNumber) -> Bool {
    places[number] != nil || locked.contains { $0.segment.number == number }
  }

  /// Adds a segment at its position.
  ///
  /// - Complexity: O(log segments) key comparisons.
  mutating func add(
    _ segment: SegmentMetadata, level: Int, run id: UInt64
  ) throws(MalformedBytes) {
    try check(segment)
    let id = level == 0 ? id : 0
    if segment.isLocked {
      let place = locked.firstIndex { segment.number < $0.segment.number } ?? locked.count
      locked.insert(LockedSegment(segment: segment, level: level, run: id), at: place)
      values.take(segment.valueReferences)
      return
    }
    if let index = runs.firstIndex(where: { $0.level == level && $0.id == id }) {
      let age = runs[index].maxSequence
      try runs[index].add(segment)
      if level == 0, runs[index].maxSequence != age { sortRuns() }
    } else {
      runs.append(RunState(level: level, id: id, segments: CollectionOfOne(segment)))
      sortRuns()
    }
    places[segment.number] = Place(level: level, run: id, key: segment.minKey)
    values.take(segment.valueReferences)
  }

  private func check(_ segment: SegmentMetadata) throws(MalformedBytes) {
    guard !segment.maxKey.lexicographicallyPrecedes(segment.minKey) else {
      throw MalformedBytes(at: 0, "segment \(segment.number.rawValue) ends before it begins")
    }
    guard segment.amounts.allSatisfy({ $0 <= Bounds.largestAmount }),
      max(segment.minSequence.rawValue, segment.maxSequence.rawValue)
        <= Bounds.greatestCounter
    else {
      throw MalformedBytes(
        at: 0, "segment \(segment.number.rawValue) counts more than there can be")
    }
    guard !references(segment: segment.number) else {
      throw MalformedBytes(at: 0, "adds segment \(segment.number.rawValue), which is there")
    }
  }

  /// The order does not depend on the order of arrival, even if a manifest gives two runs the same
  /// age: it must not change when the state is rewritten.
  private mutating func sortRuns() {
    runs.sort { left, right in
      if left.level != right.level { return left.level < right.level }
      let (newer, older) = (left.maxSequence, right.maxSequence)
      return newer != older ? newer > older : left.id > right.id
    }
  }

  /// Removes a segment. Returns false if there is none with that number.
  ///
  /// - Complexity: O(log segments) key comparisons.
  mutating func drop(_ number: FileNumber) -> Bool {
    if let index = locked.firstIndex(where: { $0.segment.number == number }) {
      values.giveBack(locked.remove(at: index).segment.valueReferences)
      return true
    }
    guard let place = places.removeValue(forKey: number),
      let index = runs.firstIndex(where: { $0.level == place.level && $0.id == place.run })
    else { return false }
    let age = runs[index].maxSequence
    let segment = runs[index].remove(holding: place.key)
    values.giveBack(segment.valueReferences)
    if runs[index].segments.isEmpty {
      runs.remove(at: index)
    } else if place.level == 0, runs[index].maxSequence != age {
      sortRuns()
    }
    return true
  }

  // MARK: - Value files

  /// The files that rows of the runs refer to, by number.
  var valueFiles: [FileNumber: ValueFileMetadata] { values.files }

  mutating func add(_ file: ValueFileMetadata) { values.add(file) }

  /// Removes a value file. Throws if there is none with that number, or a segment refers to it.
  mutating func dropValueFile(_ number: FileNumber) throws(MalformedBytes) {
    try values.drop(number)
  }
}
