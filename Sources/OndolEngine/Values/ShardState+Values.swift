// What the manifest knows of garbage in value files. Nothing counts it: each segment says how many
// bytes of which file its pointers lead to, no two segments lead to one value, and so what no
// segment leads to is dead. An edit that replaces segments is all that it takes to keep that true.

extension ShardState {
  /// For each value file that rows lead into, the bytes of the records they lead to.
  private var liveValueBytes: [FileNumber: UInt64] {
    var live: [FileNumber: UInt64] = [:]
    for run in runs {
      for segment in run.segments {
        for reference in segment.valueReferences {
          live[reference.file, default: 0] &+= reference.bytes
        }
      }
    }
    return live
  }

  /// Bytes of value files that no row leads to.
  var deadValueBytes: UInt64 {
    let live = liveValueBytes
    return valueFiles.values.reduce(0) { sum, file in
      sum + file.recordBytes - min(file.recordBytes, live[file.number] ?? 0)
    }
  }

  /// The value files of which more than three tenths are dead: compactions that meet values in
  /// them take them along.
  var garbageValueFiles: Set<FileNumber> { valueFiles(deadTenths: 3) }

  /// The value files of which more than half is dead: worth a compaction.
  var mostlyDeadValueFiles: Set<FileNumber> { valueFiles(deadTenths: 5) }

  private func valueFiles(deadTenths tenths: UInt64) -> Set<FileNumber> {
    if valueFiles.isEmpty { return [] }
    let live = liveValueBytes
    let dead = valueFiles.values.filter { file in
      let dead = file.recordBytes - min(file.recordBytes, live[file.number] ?? 0)
      return dead > file.recordBytes / 10 * tenths + file.recordBytes % 10 * tenths / 10
    }
    return Set(dead.map(\.number))
  }

  /// The value files that no segment names.
  fileprivate var unreferencedValueFiles: [FileNumber] {
    if valueFiles.isEmpty { return [] }
    let live = liveValueBytes
    return valueFiles.keys.filter { live[$0] == nil }.sorted()
  }

  /// Takes a value file out. Throws when there is none with that number, or a segment names it.
  mutating func dropValueFile(_ number: FileNumber) throws(MalformedBytes) {
    let isNamed = runs.contains { run in
      run.segments.contains { $0.valueReferences.contains { $0.file == number } }
    }
    guard !isNamed, valueFiles.removeValue(forKey: number) != nil else {
      let reason = isNamed ? "which segments name" : "which it lacks"
      throw MalformedBytes(at: 0, "drops value file \(number.rawValue), \(reason)")
    }
  }

  /// Throws when `segment` names a value file that there is not.
  func checkValueFiles(of segment: SegmentMetadata) throws(MalformedBytes) {
    for reference in segment.valueReferences where valueFiles[reference.file] == nil {
      throw MalformedBytes(
        at: 0, "segment \(segment.number.rawValue) names value file \(reference.file.rawValue)")
    }
  }
}

extension ManifestState {
  /// The changes that drop value files which no segment names.
  var dropsOfUnreferencedValueFiles: [ManifestChange] {
    shards.enumerated().flatMap { index, shard in
      shard.unreferencedValueFiles.map { .dropValueFile(shard: index, number: $0) }
    }
  }
}

extension ValueFileMetadata {
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
    guard size >= UInt64(ValueFileFormat.headerLength), size <= ManifestState.largestAmount,
      values <= UInt64(UInt32.max), values <= size / UInt64(ValueFileFormat.recordHeaderLength)
    else { throw MalformedBytes(at: start, "a value file of \(size) bytes with \(values) values") }
    self.init(number: number, salt: salt, sizeBytes: size, values: values)
  }
}
