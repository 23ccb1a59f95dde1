// Key ranges for comparisons in compaction. They are closed, because segments know their first and
// last key.

/// All keys from `first` to `last`, inclusive.
struct KeySpan: Sendable, Equatable {
  var first: [UInt8]
  var last: [UInt8]

  init(_ segment: SegmentMetadata) {
    first = segment.minKey
    last = segment.maxKey
  }

  /// From the smallest to the greatest key of `segments`; nil if there are none.
  init?(_ segments: some Collection<SegmentMetadata>) {
    guard let one = segments.first else { return nil }
    self.init(one)
    for segment in segments.dropFirst() { formUnion(KeySpan(segment)) }
  }

  mutating func formUnion(_ other: KeySpan) {
    if other.first.lexicographicallyPrecedes(first) { first = other.first }
    if last.lexicographicallyPrecedes(other.last) { last = other.last }
  }

  func overlaps(_ segment: SegmentMetadata) -> Bool {
    !last.lexicographicallyPrecedes(segment.minKey)
      && !segment.maxKey.lexicographicallyPrecedes(first)
  }
}

extension RunState {
  /// The part of the run whose segments overlap `span`.
  func overlapping(_ span: KeySpan) -> RunState? {
    // The segments are ascending and disjoint, so the part is one slice.
    let start = segments.partition { $0.maxKey.lexicographicallyPrecedes(span.first) }
    let end = segments.partition { !span.last.lexicographicallyPrecedes($0.minKey) }
    guard start < end else { return nil }
    return RunState(level: level, id: id, segments: segments[start..<end])
  }
}
