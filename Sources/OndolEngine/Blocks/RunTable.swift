// What a get needs of a run: the last keys of its segments, searched like a block, and access to
// each segment's table, so that the common case touches no segment object and counts no reference.

/// The parts of a run that reads use. A plain reference: its owner calls `free` at the end.
@safe struct RunTable: BitwiseCopyable, @unchecked Sendable {
  // Safe to share: not written after init.

  /// The last key of each segment, when there are several.
  private let lastKeys: Block?
  private let segments: UnsafeMutablePointer<PublishedOnce<SegmentTable>.Reader>
  let count: Int

  /// `lastKeys` has a row for each of `readers`.
  init(lastKeys: BlockBuilder, readers: [PublishedOnce<SegmentTable>.Reader]) {
    precondition(lastKeys.rowCount == readers.count, "a key for each segment")
    count = readers.count
    self.lastKeys = count > 1 ? Block.make(lastKeys) : nil
    unsafe segments = .allocate(capacity: max(1, count))
    unsafe segments.initialize(from: readers, count: count)
  }

  /// The first segment whose last key is `key` or above, or one too many. The only segment of a run
  /// counts as such for every key: it knows best what it does not hold.
  @inline(__always)
  func segmentIndex(atOrAfter key: RawSpan) -> Int {
    guard let lastKeys else { return 0 }
    return lastKeys.lowerBound(key)
  }

  /// The table of segment `index`; nil when its file has not been opened yet.
  @inline(__always)
  func table(_ index: Int) -> SegmentTable? {
    precondition(index < count, "no such segment")
    return unsafe segments[index].value
  }

  /// Searches for `key` in the blocks that are in memory, after checking the filter when there is a
  /// hash for it.
  @inline(__always)
  func find(_ key: RawSpan, hash: UInt64?) -> Lookup {
    let index = segmentIndex(atOrAfter: key)
    guard index < count else { return .absent }
    guard let segment = table(index) else { return .notInMemory }
    if let hash {
      if segment.filter.isToLoad { return .notInMemory }
      if !segment.filter.mayContain(hash) { return .absent }
    }
    return segment.find(key)
  }

  func free() {
    lastKeys?.free()
    unsafe segments.deallocate()
  }
}
