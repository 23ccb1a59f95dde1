// What the manifest knows about value files and the garbage in them. Each segment records how many
// bytes of each file its pointers refer to. No two segments refer to the same value, so every value
// without a segment is dead. An edit that replaces segments is enough to keep this correct: the
// live bytes are added up as segments come and go, and can be recomputed at any time.

/// The value files of a shard and the live part of each. A plain value.
struct ValueFileStates: Sendable, Equatable {
  /// What segments refer to in a file.
  private struct Share: Sendable, Equatable {
    var bytes: UInt64 = 0
    /// The number of segments that refer to the file.
    var names = 0
  }

  /// By number.
  private(set) var files: [FileNumber: ValueFileMetadata] = [:]
  /// The files that some segment refers to.
  private var shares: [FileNumber: Share] = [:]
  /// The files that no segment refers to.
  private var unnamed: Set<FileNumber> = []

  // MARK: - Changes

  mutating func add(_ file: ValueFileMetadata) {
    files[file.number] = file
    if shares[file.number] == nil { unnamed.insert(file.number) }
  }

  /// Throws if there is none with that number, or a segment refers to it.
  mutating func drop(_ number: FileNumber) throws(MalformedBytes) {
    guard unnamed.remove(number) != nil else {
      let reason = files[number] == nil ? "which it lacks" : "which segments name"
      throw MalformedBytes(at: 0, "drops value file \(number.rawValue), \(reason)")
    }
    files[number] = nil
  }

  /// Adds the references of a new segment.
  mutating func take(_ references: [ValueReference]) {
    for reference in references {
      var share = shares[reference.file] ?? Share()
      share.bytes &+= reference.bytes
      share.names += 1
      shares[reference.file] = share
      unnamed.remove(reference.file)
    }
  }

  /// Removes the references of a dropped segment.
  mutating func giveBack(_ references: [ValueReference]) {
    for reference in references {
      guard var share = shares[reference.file] else { continue }
      share.bytes &-= reference.bytes
      share.names -= 1
      shares[reference.file] = share.names > 0 ? share : nil
      if share.names == 0, files[reference.file] != nil { unnamed.insert(reference.file) }
    }
  }

  // MARK: - Garbage

  /// The files that no segment refers to.
  var unreferenced: [FileNumber] { unnamed.sorted() }

  /// Bytes of all files.
  ///
  /// - Complexity: O(files), like everything below.
  var sizeBytes: UInt64 { files.values.reduce(0) { $0 + $1.sizeBytes } }

  /// Bytes that no row refers to.
  var deadBytes: UInt64 { files.values.reduce(0) { $0 + deadBytes(of: $1) } }

  /// The files of which more than this many tenths are dead.
  func files(deadTenths tenths: UInt64) -> Set<FileNumber> {
    let dead = files.values.filter { file in
      deadBytes(of: file) > file.recordBytes / 10 * tenths + file.recordBytes % 10 * tenths / 10
    }
    return Set(dead.map(\.number))
  }

  private func deadBytes(of file: ValueFileMetadata) -> UInt64 {
    file.recordBytes - min(file.recordBytes, shares[file.number]?.bytes ?? 0)
  }
}

extension ShardState {
  /// Bytes of value files that no row refers to.
  var deadValueBytes: UInt64 { values.deadBytes }

  /// The value files that are more than half dead, which justifies a compaction.
  var mostlyDeadValueFiles: Set<FileNumber> { values.files(deadTenths: 5) }

  /// Throws if `segment` refers to a value file that does not exist.
  func checkValueFiles(of segment: SegmentMetadata) throws(MalformedBytes) {
    for reference in segment.valueReferences where valueFiles[reference.file] == nil {
      throw MalformedBytes(
        at: 0, "segment \(segment.number.rawValue) names value file \(reference.file.rawValue)")
    }
  }
}

extension ValueFileMetadata {
  /// Everything except the group.
  func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(number.rawValue)
    bytes.appendLittleEndian(salt)
    bytes.appendVarint(sizeBytes)
    bytes.appendVarint(values)
  }

  init(_ reader: inout ByteReader) throws(MalformedBytes) {
    let number = FileNumber(rawValue: try reader.varint())
    let salt: UInt64 = try reader.littleEndian()
    let start = reader.offset
    let size = try reader.varint()
    let values = try reader.varint()
    // Every record has a header, so a file has fewer values than bytes.
    guard size >= UInt64(DataFileHeader.length), size <= Bounds.largestAmount,
      values <= UInt64(UInt32.max), values <= size / UInt64(ValueFileFormat.recordHeaderLength)
    else { throw MalformedBytes(at: start, "a value file of \(size) bytes with \(values) values") }
    self.init(number: number, salt: salt, sizeBytes: size, values: values)
  }
}
