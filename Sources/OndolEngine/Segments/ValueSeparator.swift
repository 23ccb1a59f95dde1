// Moves large values out of the rows that a flush or a compaction writes, and empties files on the
// way: a pointer into a file that is mostly dead, or into one of too many small ones, is replaced
// with one to a copy of its value, so that the file soon becomes unnecessary.
//
// So a value over the threshold is written twice in its life, to the log and to a value file. It is
// written once or twice more in a shard with many value files, and whenever most of its neighbours
// have died.

/// How values are separated.
struct ValueSeparation: Sendable {
  /// Values of at least this many bytes are stored separately.
  var threshold: Int
  /// The size in bytes at which the next value goes to a new file.
  var fileSize: Int
}

/// The value files of one flush or compaction.
struct ValueSeparator: ~Copyable {
  /// Makes the writer of a new file.
  typealias MakeWriter = () throws(EngineError) -> ValueFileWriter

  private let separation: ValueSeparation
  /// Files whose values are copied. Held here, because they may become invalid while a merge, which
  /// is then discarded, still reads them.
  private let emptied: [FileNumber: ValueFile]
  private let makeWriter: MakeWriter
  private var writer: ValueFileWriter?
  private var finished: [ValueFileMetadata] = []

  init(
    _ separation: ValueSeparation, emptying emptied: [FileNumber: ValueFile],
    makeWriter: @escaping MakeWriter
  ) {
    self.separation = separation
    self.emptied = emptied
    self.makeWriter = makeWriter
  }

  /// The pointer to write for a row of `kind` with these bytes; nil when the row stays unchanged.
  mutating func separate(
    _ kind: RowKind, _ bytes: RawSpan
  ) throws(EngineError) -> ValuePointer? {
    switch kind {
    case .put:
      guard bytes.byteCount >= separation.threshold else { return nil }
      return try nextWriter().add(bytes)
    case .delete:
      return nil
    case .valuePointer:
      if emptied.isEmpty { return nil }
      let pointer = try ValuePointer(row: bytes)
      guard let file = emptied[pointer.file] else { return nil }
      return try copy(pointer, from: file)
    }
  }

  /// Copies a value in its stored form.
  private mutating func copy(
    _ pointer: ValuePointer, from file: ValueFile
  ) throws(EngineError) -> ValuePointer {
    let writer = try nextWriter()
    return try file.withRecord(pointer) { (record) throws(EngineError) in
      try writer.copy(record)
    }
  }

  private mutating func nextWriter() throws(EngineError) -> ValueFileWriter {
    if let writer, writer.hasRoom, writer.position < UInt64(separation.fileSize) { return writer }
    try finishFile()
    let next = try makeWriter()
    writer = next
    return next
  }

  private mutating func finishFile() throws(EngineError) {
    guard let writer else { return }
    finished.append(try writer.finish())
    self.writer = nil
  }

  /// Syncs all values and returns their files. The caller must sync the directory.
  mutating func finish() throws(EngineError) -> [ValueFileMetadata] {
    try finishFile()
    return finished
  }
}
