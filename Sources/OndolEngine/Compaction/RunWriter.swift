// Writes rows into segments: the last stage of a flush, of a merge and of a pour. Rows come sorted,
// one a key; tombstones that hide nothing and rows of dropped keyspaces are left out, a full
// segment is finished and synced, and the next one begun. Whoever writes makes the names durable
// and the manifest name them.

/// What it takes to make segment files.
struct SegmentFiles: Sendable {
  var directory: any Directory
  var numbers: FileNumbers
  var identity: DatabaseIdentity
  var options: EngineOptions
  /// Sixty-four random bits.
  var random: @Sendable () -> UInt64
  /// Value files that are mostly dead, or too small: a value in one of them is taken along.
  var emptied: [FileNumber: ValueFile]

  /// The keyed group that a row is in by its key, in a database that is sealed.
  func group(of key: RawSpan) -> UInt32? {
    // Hardly any row is, and only of one that seems to be the keys are asked for.
    guard let group = KeyedGroups.group(of: key) else { return nil }
    return directory.keyring == nil ? nil : group
  }

  /// Makes a segment file of `shard`.
  ///
  /// - Parameter group: the keyed group that its rows are in.
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

  /// Finishes a segment, and has it be on the device.
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

  /// Values are separated into new files of `shard`, each of which `note` gets to know.
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

/// What a flush or a merge has written.
struct RunOutput: Sendable {
  /// In ascending order of their keys.
  var segments: [SegmentMetadata] = []
  /// Values that rows of the segments point to.
  var valueFiles: [ValueFileMetadata] = []

  /// The changes that make it count.
  func changes(shard: Int, level: Int, run: UInt64) -> [ManifestChange] {
    valueFiles.map { .addValueFile(shard: shard, $0) }
      + segments.map { .addSegment(shard: shard, level: level, run: run, $0) }
  }
}

/// Writes the segments of one run, or of a part of it.
final class RunWriter {
  private let keepsTombstones: Bool
  private let dropped: DroppedKeyspaces
  /// Keys before which a segment ends, ascending, from the next one on.
  private var cuts: ArraySlice<[UInt8]>

  /// The keyspace of the last row, and whether it is dropped.
  private var keyspace: UInt32?
  private var isKeyspaceDropped = false

  private var run: OpenRun
  /// Finished and synced.
  var output: RunOutput { run.output }
  /// The names of all files made, finished or not.
  var made: [String] { run.names }
  /// Bytes of keys and values that went through, left out or not.
  private(set) var rawBytes: UInt64 = 0

  /// - Parameters:
  ///   - sequences: those of all rows that may come.
  ///   - cuts: keys over which no segment reaches, ascending.
  init(
    _ files: SegmentFiles, shard: Int, sequences: ClosedRange<SequenceNumber>,
    keepsTombstones: Bool, dropped: DroppedKeyspaces, cuts: [[UInt8]] = []
  ) {
    self.cuts = cuts[...]
    self.keepsTombstones = keepsTombstones
    self.dropped = dropped
    run = OpenRun(files, shard: shard, sequences: sequences)
  }

  /// Takes rows from the cursor, which stands on the first, until so many bytes have gone through,
  /// a segment is finished, or the rows end: at `end`, when that is given. False at their end, when
  /// everything is in finished segments.
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

  /// Takes a row without a value, behind all others.
  func take(_ key: RawSpan) throws(EngineError) {
    rawBytes += UInt64(key.byteCount)
    try run.enter(run.files.group(of: key))
    try run.add(.put, key: key, value: RawSpan())
    if run.isSegmentFull { try run.finishSegment() }
  }

  /// Finishes the segment of the rows taken one by one.
  func finish() throws(EngineError) { try run.finish() }

  /// Ends the segment when the row does not belong into it.
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
    // A value that is copied is work too.
    if let pointer, rows.kind == .valuePointer { rawBytes += pointer.recordLength }
  }
}
