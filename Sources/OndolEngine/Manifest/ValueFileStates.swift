// What the manifest knows of value files and of the garbage in them. Each segment says how many
// bytes of which file its pointers lead to, no two segments lead to one value, and so what no
// segment leads to is dead. An edit that replaces segments is all that it takes to keep that true:
// what is alive is added up as segments come and go, and can at any time be added up anew.

/// The value files of a shard, and what of each is alive. A plain value.
struct ValueFileStates: Sendable, Equatable {
  /// What segments lead to in a file.
  private struct Share: Sendable, Equatable {
    var bytes: UInt64 = 0
    /// How often segments name the file.
    var names = 0
  }

  /// By number.
  private(set) var files: [FileNumber: ValueFileMetadata] = [:]
  /// Those that some segment names.
  private var shares: [FileNumber: Share] = [:]
  /// Those that none names.
  private var unnamed: Set<FileNumber> = []

  // MARK: - Changes

  mutating func add(_ file: ValueFileMetadata) {
    files[file.number] = file
    if shares[file.number] == nil { unnamed.insert(file.number) }
  }

  /// Throws when there is none with that number, or a segment names it.
  mutating func drop(_ number: FileNumber) throws(MalformedBytes) {
    guard unnamed.remove(number) != nil else {
      let reason = files[number] == nil ? "which it lacks" : "which segments name"
      throw MalformedBytes(at: 0, "drops value file \(number.rawValue), \(reason)")
    }
    files[number] = nil
  }

  /// A segment has come.
  mutating func take(_ references: [ValueReference]) {
    for reference in references {
      var share = shares[reference.file] ?? Share()
      share.bytes &+= reference.bytes
      share.names += 1
      shares[reference.file] = share
      unnamed.remove(reference.file)
    }
  }

  /// A segment has gone.
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

  /// The files that no segment names.
  var unreferenced: [FileNumber] { unnamed.sorted() }

  /// Bytes of all files.
  ///
  /// - Complexity: O(files), as all that follows.
  var sizeBytes: UInt64 { files.values.reduce(0) { $0 + $1.sizeBytes } }

  /// Bytes that no row leads to.
  var deadBytes: UInt64 { files.values.reduce(0) { $0 + deadBytes(of: $1) } }

  /// The files of which more than so many tenths are dead.
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
  /// Bytes of value files that no row leads to.
  var deadValueBytes: UInt64 { values.deadBytes }

  /// The value files of which more than half is dead: worth a compaction.
  var mostlyDeadValueFiles: Set<FileNumber> { values.files(deadTenths: 5) }

  /// Throws when `segment` names a value file that there is not.
  func checkValueFiles(of segment: SegmentMetadata) throws(MalformedBytes) {
    for reference in segment.valueReferences where valueFiles[reference.file] == nil {
      throw MalformedBytes(
        at: 0, "segment \(segment.number.rawValue) names value file \(reference.file.rawValue)")
    }
  }
}

extension ValueFileMetadata {
  /// All but the group.
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
