// What the manifest knows of garbage in value files. Nothing counts it: each segment says how many
// bytes of which file its pointers lead to, no two segments lead to one value, and so what no
// segment leads to is dead. An edit that replaces segments is all that it takes to keep that true.

extension ManifestState {
  /// For each value file the bytes of records that rows still lead to.
  var liveValueBytes: [FileNumber: UInt64] {
    var live: [FileNumber: UInt64] = [:]
    for shard in shards {
      for run in shard.runs {
        for segment in run.segments {
          for reference in segment.valueReferences {
            live[reference.file, default: 0] &+= reference.bytes
          }
        }
      }
    }
    return live
  }

  /// The value files of which more than three tenths are dead: compactions that meet values in
  /// them take them along.
  var garbageValueFiles: Set<FileNumber> {
    if valueFiles.isEmpty { return [] }
    let live = liveValueBytes
    return Set(
      valueFiles.values.filter { file in
        let dead = file.recordBytes - min(file.recordBytes, live[file.number] ?? 0)
        return dead / 3 > file.recordBytes / 10
      }.map(\.number))
  }

  /// The value files that no segment names.
  var unreferencedValueFiles: [FileNumber] {
    if valueFiles.isEmpty { return [] }
    let live = liveValueBytes
    return valueFiles.keys.filter { live[$0] == nil }.sorted()
  }

  /// Throws when `segment` names a value file that there is not, or another shard's.
  func checkValueFiles(of segment: SegmentMetadata, _ shard: Int) throws(MalformedBytes) {
    for reference in segment.valueReferences {
      guard let file = valueFiles[reference.file], Int(file.shard) == shard else {
        throw MalformedBytes(
          at: 0, "segment \(segment.number.rawValue) names value file \(reference.file.rawValue)")
      }
    }
  }
}

extension ValueFileMetadata {
  func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(UInt64(shard))
    bytes.appendVarint(number.rawValue)
    bytes.appendLittleEndian(salt)
    bytes.appendVarint(sizeBytes)
    bytes.appendVarint(values)
  }

  init(_ reader: inout ByteReader) throws(MalformedBytes) {
    let shard = UInt32(try reader.count(atMost: 1023))
    let number = FileNumber(rawValue: try reader.varint())
    let salt: UInt64 = try reader.littleEndian()
    let start = reader.offset
    let size = try reader.varint()
    let values = try reader.varint()
    // Every record has a header, so a file has fewer values than bytes.
    guard size >= UInt64(ValueFileFormat.headerLength), values <= UInt64(UInt32.max),
      values <= size / UInt64(ValueFileFormat.recordHeaderLength)
    else { throw MalformedBytes(at: start, "a value file of \(size) bytes with \(values) values") }
    self.init(number: number, shard: shard, salt: salt, sizeBytes: size, values: values)
  }
}
