// Writes a value file, from the values that a flush or a compaction meets to a finished file.
// Values are collected in a chunk of output, so that the file gets few and large writes. The caller
// syncs.

/// Writes one value file.
final class ValueFileWriter {
  let number: FileNumber
  private let file: any File
  private let salt: UInt64
  private let compress: Bool
  private let seal: FileSeal?
  private let group: UInt32?

  private var output: ChunkedOutput
  private var count: UInt32 = 0
  /// A compressed value to write.
  private var stored: [UInt8] = []

  /// The bytes of the file so far.
  var position: UInt64 { output.position }

  /// A writer to `file`, which is new and empty.
  init(
    file: any File, number: FileNumber, salt: UInt64, identity: DatabaseIdentity, shard: UInt32,
    compress: Bool, seal: FileSeal? = nil, group: UInt32? = nil
  ) {
    self.seal = seal
    self.group = group
    self.file = file
    self.number = number
    self.salt = salt
    self.compress = compress
    let header = DataFileHeader(
      kind: .values, number: number, salt: salt, identity: identity, shard: shard,
      isSealed: seal != nil, group: group)
    output = ChunkedOutput(file, header: header.encode())
  }

  /// Whether there is room for another value. A pointer has 32 bits for the ordinal.
  var hasRoom: Bool { count < .max }

  /// Adds a value, compressed when that saves an eighth.
  func add(_ value: RawSpan) throws(EngineError) -> ValuePointer {
    guard value.byteCount <= BlockLayout.maximumRowLength else {
      throw .invalid(reason: "a value of \(value.byteCount) bytes; at most 64 MiB are possible")
    }
    var record = ValueRecord(
      rawLength: UInt32(value.byteCount), storedLength: UInt32(value.byteCount),
      codec: ValueFileFormat.codecNone, checksum: 0)
    stored.removeAll(keepingCapacity: stored.count <= 1 << 20)
    guard compress, Compression.compress(value, appendingTo: &stored) else {
      return try append(&record, value)
    }
    record.storedLength = UInt32(stored.count)
    record.codec = ValueFileFormat.codecLZ4
    let stored = stored
    return try append(&record, stored.bytes)
  }

  /// Adds another file's value in its stored form.
  func copy(_ opened: borrowing ValueRecord.Opened) throws(EngineError) -> ValuePointer {
    var record = opened.header
    return try append(&record, opened.stored)
  }

  private func append(
    _ record: inout ValueRecord, _ stored: RawSpan
  ) throws(EngineError) -> ValuePointer {
    precondition(hasRoom, "a value file with too many values")
    let offset = position
    guard let seal else { return try append(&record, stored, at: offset) }
    var sealed = stored.array
    record.seal(&sealed, by: seal, offset: offset)
    return try append(&record, sealed.bytes, at: offset)
  }

  private func append(
    _ record: inout ValueRecord, _ stored: RawSpan, at offset: UInt64
  ) throws(EngineError) -> ValuePointer {
    let checked = record.encodeChecked()
    record.checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), checked.bytes, stored)
    output.bytes += checked
    output.bytes.appendLittleEndian(record.checksum)
    output.bytes.append(stored)
    defer { count += 1 }
    try output.flushChunk()
    return ValuePointer(
      file: number, offset: offset, storedLength: record.storedLength,
      rawLength: record.rawLength, checksum: UInt32(truncatingIfNeeded: record.checksum),
      ordinal: count)
  }

  /// Writes the rest and syncs it.
  func finish() throws(EngineError) -> ValueFileMetadata {
    try output.flush()
    try file.sync()
    return ValueFileMetadata(
      number: number, salt: salt, sizeBytes: output.written, values: UInt64(count), group: group)
  }
}
