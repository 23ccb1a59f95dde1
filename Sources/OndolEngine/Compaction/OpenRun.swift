// The files that receive the rows of a run: one segment and one value file at a time. Each contains
// the rows of one keyed group, or of none.

/// A run, or part of one, that is being written.
struct OpenRun: ~Copyable {
  let files: SegmentFiles
  private let shard: Int
  /// The sequence numbers of all rows in the segment once it is finished.
  var sequences: ClosedRange<SequenceNumber>

  /// The keyed group of the last row.
  private(set) var group: UInt32?
  private var separator: ValueSeparator
  private var segment: (writer: SegmentWriter, file: any File)?
  private let made: Guarded<[String]>

  /// The finished and synced output.
  private(set) var output = RunOutput()

  init(_ files: SegmentFiles, shard: Int, sequences: ClosedRange<SequenceNumber>) {
    self.files = files
    self.shard = shard
    self.sequences = sequences
    let made = Guarded<[String]>([])
    self.made = made
    separator = Self.makeSeparator(files, shard, group: nil, made)
  }

  private static func makeSeparator(
    _ files: SegmentFiles, _ shard: Int, group: UInt32?, _ made: Guarded<[String]>
  ) -> ValueSeparator {
    files.makeSeparator(shard: shard, group: group) { name in
      made.withLock { $0.append(name.valueFileName) }
    }
  }

  /// The names of all created files, finished or not.
  var names: [String] { made.withLock { $0 } }

  /// Whether the segment has reached its full size.
  var isSegmentFull: Bool {
    segment.map { $0.writer.rawBytesWritten >= UInt64(files.options.segmentSize) } ?? false
  }

  /// Starts new files if the next row belongs to a different group than the last one.
  mutating func enter(_ next: UInt32?) throws(EngineError) {
    if next == group { return }
    try finish()
    group = next
    separator = Self.makeSeparator(files, shard, group: next, made)
  }

  /// Adds a row of the group. Returns the location of its value if the value is stored separately.
  @discardableResult
  mutating func add(
    _ kind: RowKind, key: RawSpan, value: RawSpan
  ) throws(EngineError) -> ValuePointer? {
    let writer = if let segment { segment.writer } else { try beginSegment() }
    guard let pointer = try separator.separate(kind, value) else {
      try writer.add(kind, key: key, value: value)
      return nil
    }
    let bytes = pointer.encode()
    try writer.add(.valuePointer, key: key, value: bytes.bytes)
    return pointer
  }

  private mutating func beginSegment() throws(EngineError) -> SegmentWriter {
    let number = files.numbers.allocate()
    made.withLock { $0.append(number.segmentName) }
    let made = try files.makeSegment(number, shard: shard, group: group)
    segment = made
    return made.writer
  }

  /// Makes the next row start another segment.
  mutating func finishSegment() throws(EngineError) {
    guard let (writer, file) = segment else { return }
    output.segments.append(try files.finish(writer, file, sequences, group: group))
    segment = nil
  }

  /// Finishes the segment and the value file.
  mutating func finish() throws(EngineError) {
    try finishSegment()
    output.valueFiles += try separator.finish()
  }
}
