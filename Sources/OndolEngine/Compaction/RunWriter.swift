// Writes rows into segments: the last stage of a flush, of a merge and of a bulk load. Rows arrive
// sorted, one per key. The writer omits tombstones that hide nothing and rows of dropped keyspaces.
// It finishes and syncs a full segment before it starts the next one. The caller makes the names
// durable and adds them to the manifest.

/// What is needed to create segment files.
struct SegmentFiles: Sendable {
  var directory: any Directory
  var numbers: FileNumbers
  var identity: DatabaseIdentity
  var options: EngineOptions
  /// Returns sixty-four random bits.
  var random: @Sendable () -> UInt64
  /// Value files that are mostly dead, or too small. A value in one of them is moved along with its
  /// row.
  var emptied: [FileNumber: ValueFile]

  /// The keyed group of a row, derived from its key, in an encrypted database.
  func group(of key: RawSpan) -> UInt32? {
    // Few rows belong to a group. The keys are consulted only for rows that appear to.
    guard let group = KeyedGroups.group(of: key) else { return nil }
    return directory.keyring == nil ? nil : group
  }

  /// Creates a segment file of `shard`.
  ///
  /// - Parameter group: the keyed group of its rows.
  func makeSegment(
    _ number: FileNumber, shard: Int, group: UInt32?
  ) throws(EngineError) -> (writer: SegmentWriter, file: any File) {
    let file = try directory.create(number.segmentName)
    var segmentOptions = SegmentOptions()
    segmentOptions.blockSize = options.blockSize
    segmentOptions.compress = options.compress
    let salt = random()
    let writer = SegmentWriter(
      file: file, number: number, salt: salt, identity: identity, shard: UInt32(shard),
      options: segmentOptions,
      seal: directory.keyring?.seal(.segment, number: number, salt: salt, group: group),
      group: group)
    return (writer, file)
  }

  /// Finishes a segment and syncs it to the device.
  func finish(
    _ writer: SegmentWriter, _ file: any File, _ sequences: ClosedRange<SequenceNumber>,
    group: UInt32?
  ) throws(EngineError) -> SegmentMetadata {
    var segment = try writer.finish(
      minSequence: sequences.lowerBound, maxSequence: sequences.upperBound)
    if let group, let keyring = directory.keyring {
      segment.bounds = SealedBounds(of: segment, in: group, by: keyring)
    }
    try file.sync()
    return segment
  }

  /// Separates values into new files of `shard`, and passes each of them to `note`.
  func makeSeparator(
    shard: Int, group: UInt32?, _ note: @escaping (FileNumber) -> Void
  ) -> ValueSeparator {
    let separation = ValueSeparation(
      threshold: options.valueThreshold, fileSize: options.valueFileSize)
    return ValueSeparator(
      separation, emptying: emptied
    ) { [self] () throws(EngineError) in
      let number = numbers.allocate()
      note(number)
      let salt = random()
      return ValueFileWriter(
        file: try directory.create(number.valueFileName), number: number, salt: salt,
        identity: identity, shard: UInt32(shard), compress: options.compress,
        seal: directory.keyring?.seal(.values, number: number, salt: salt, group: group),
        group: group)
    }
  }
}

/// The output of a flush or a merge.
struct RunOutput: Sendable {
  /// In ascending key order.
  var segments: [SegmentMetadata] = []
  /// Value files that rows of the segments point to.
  var valueFiles: [ValueFileMetadata] = []

  /// The changes that put the output into effect.
  func changes(shard: Int, level: Int, run: UInt64) -> [ManifestChange] {
    valueFiles.map { .addValueFile(shard: shard, $0) }
      + segments.map { .addSegment(shard: shard, level: level, run: run, $0) }
  }
}

/// Writes the segments of one run, or of part of one.
final class RunWriter {
  private let keepsTombstones: Bool
  private let dropped: DroppedKeyspaces
  /// Keys before which a segment ends, in ascending order, starting with the next one.
  private var cuts: ArraySlice<[UInt8]>

  /// The keyspace of the last row, and whether it was dropped.
  private var keyspace: UInt32?
  private var isKeyspaceDropped = false

  private var run: OpenRun
  /// The finished and synced output.
  var output: RunOutput { run.output }
  /// The names of all created files, finished or not.
  var made: [String] { run.names }
  /// Bytes of the processed keys and values, including omitted ones.
  private(set) var rawBytes: UInt64 = 0

  /// - Parameters:
  ///   - sequences: the sequence numbers of all rows that may arrive.
  ///   - cuts: keys that no segment spans, in ascending order.
  init(
    _ files: SegmentFiles, shard: Int, sequences: ClosedRange<SequenceNumber>,
    keepsTombstones: Bool, dropped: DroppedKeyspaces, cuts: [[UInt8]] = []
  ) {
    self.cuts = cuts[...]
    self.keepsTombstones = keepsTombstones
    self.dropped = dropped
    run = OpenRun(files, shard: shard, sequences: sequences)
  }

  /// Takes rows from the cursor, starting with its current row, until this many bytes are
  /// processed, a segment is finished, or the rows end (at `end`, if given). Returns false at their
  /// end, when all rows are in finished segments.
  func take(
    _ rows: inout MergeCursor, before end: [UInt8]?, atMost bytes: UInt64
  ) throws(EngineError) -> Bool {
    let limit = rawBytes + bytes
    while rows.isValid {
      if let end {
        let isBehind = rows.key.compare(end.bytes) >= 0
        if isBehind { break }
      }
      if !cuts.isEmpty { try cut(before: rows) }
      try add(rows)
      try rows.next()
      if run.isSegmentFull {
        try run.finishSegment()
        return true
      }
      if rawBytes >= limit { return true }
    }
    try run.finish()
    return false
  }

  /// Takes all rows.
  func takeAll(_ rows: inout MergeCursor) throws(EngineError) {
    while try take(&rows, before: nil, atMost: .max / 2) {}
  }

  /// Takes a row without a value. It must come after all others.
  func take(_ key: RawSpan) throws(EngineError) {
    rawBytes += UInt64(key.byteCount)
    try run.enter(run.files.group(of: key))
    try run.add(.put, key: key, value: RawSpan())
    if run.isSegmentFull { try run.finishSegment() }
  }

  /// Finishes the segment of the rows that were taken one by one.
  func finish() throws(EngineError) { try run.finish() }

  /// Ends the segment if the row does not belong in it.
  private func cut(before row: borrowing MergeCursor) throws(EngineError) {
    while let cut = cuts.first {
      let isBehind = row.key.compare(cut.bytes) >= 0
      guard isBehind else { return }
      cuts.removeFirst()
      try run.finishSegment()
    }
  }

  private func add(_ rows: borrowing MergeCursor) throws(EngineError) {
    rawBytes += UInt64(rows.key.byteCount + rows.value.byteCount)
    if rows.kind == .delete, !keepsTombstones { return }
    if !dropped.isEmpty {
      let current = DroppedKeyspaces.keyspace(of: rows.key)
      if current != keyspace {
        keyspace = current
        isKeyspaceDropped = dropped.contains(current)
      }
      if isKeyspaceDropped { return }
    }
    try run.enter(run.files.group(of: rows.key))
    let pointer = try run.add(rows.kind, key: rows.key, value: rows.value)
    // Copying a value counts as work as well.
    if let pointer, rows.kind == .valuePointer { rawBytes += pointer.recordLength }
  }
}
