// Parses what SegmentFormat defines, from bytes that may be anything. Every error has its position,
// and nothing is trusted before its checksum.

/// Names the file in errors about bytes from it.
struct SegmentErrors: Sendable {
  var file: String

  func corrupt(at offset: UInt64, _ reason: String) -> EngineError {
    .corrupt(file: file, offset: offset, reason: reason)
  }

  /// The error for bytes at `offset`: damage, or a newer version.
  func corrupt(_ malformed: MalformedBytes, from offset: UInt64) -> EngineError {
    EngineError(malformed, in: file, from: offset)
  }
}

extension SegmentFooter {
  /// The footer in `bytes`, the last of the file.
  static func parse(
    _ bytes: RawSpan, at offset: UInt64, _ errors: SegmentErrors
  ) throws(EngineError) -> SegmentFooter {
    let kind = DataFileHeader.Kind.segment
    let magic = kind.magic
    guard bytes.byteCount == SegmentFormat.footerLength,
      bytes.extracting(first: 8).compare(magic.bytes) == 0
    else { throw errors.corrupt(at: offset, "no segment ends here") }
    let fields: Fields
    do throws(MalformedBytes) {
      fields = try Fields(bytes)
    } catch {
      throw errors.corrupt(error, from: offset)
    }
    let seed = contextSeed(salt: fields.footer.salt, offset: offset)
    guard seededChecksum(seed, bytes.extracting(first: 248)) == fields.checksum else {
      throw errors.corrupt(at: offset, "the footer's checksum does not match")
    }
    guard fields.major <= kind.major else {
      throw .needsNewerVersion(file: errors.file, reason: "format version \(fields.major)")
    }
    let known = SegmentFooter.encryption | SegmentFooter.filterApart
    let unknown = fields.incompatibleFeatures & ~known
    guard unknown == 0 else {
      throw .needsNewerVersion(
        file: errors.file, reason: "features 0x\(String(unknown, radix: 16))")
    }
    guard fields.major == kind.major,
      fields.length == SegmentFormat.footerLength,
      !fields.hasReserved || fields.minor > kind.minor
    else { throw errors.corrupt(at: offset, "the footer is not one of this version") }
    return fields.footer
  }

  /// The footer's fields before any of them is trusted.
  private struct Fields {
    var major: UInt16
    var minor: UInt16
    var length: UInt32
    var incompatibleFeatures: UInt64
    var footer: SegmentFooter
    var hasReserved: Bool
    var checksum: UInt64

    init(_ bytes: RawSpan) throws(MalformedBytes) {
      var reader = ByteReader(bytes)
      _ = try reader.take(8)
      major = try reader.littleEndian()
      minor = try reader.littleEndian()
      length = try reader.littleEndian()
      incompatibleFeatures = try reader.littleEndian()
      let compatible: UInt64 = try reader.littleEndian()
      let number = FileNumber(rawValue: try reader.littleEndian())
      let salt: UInt64 = try reader.littleEndian()
      let identity = DatabaseIdentity(
        low: try reader.littleEndian(), high: try reader.littleEndian())
      let shard: UInt32 = try reader.littleEndian()
      let firstReserved: UInt32 = try reader.littleEndian()
      footer = SegmentFooter(
        compatibleFeatures: compatible, number: number, salt: salt, identity: identity,
        shard: shard, entries: try reader.littleEndian(), tombstones: try reader.littleEndian(),
        minSequence: SequenceNumber(rawValue: try reader.littleEndian()),
        maxSequence: SequenceNumber(rawValue: try reader.littleEndian()),
        rawBytes: try reader.littleEndian(), blocksEnd: try reader.littleEndian(),
        dataBlocks: try reader.littleEndian(), indexBlocks: try reader.littleEndian(),
        sectionTableOffset: try reader.littleEndian(), sectionCount: try reader.littleEndian(),
        sectionTableChecksum: 0)
      footer.isSealed = incompatibleFeatures & SegmentFooter.encryption != 0
      let isApart = incompatibleFeatures & SegmentFooter.filterApart != 0
      footer.filterUnit = footer.isSealed && !isApart ? .section : .filter
      let secondReserved: UInt32 = try reader.littleEndian()
      footer.sectionTableChecksum = try reader.littleEndian()
      var reserved = firstReserved | secondReserved
      while reader.remaining > 8 { reserved |= UInt32(try reader.byte()) }
      hasReserved = reserved != 0
      checksum = try reader.littleEndian()
    }
  }
}

extension SegmentSection {
  static func parse(_ table: RawSpan) throws(MalformedBytes) -> [SegmentSection] {
    var reader = ByteReader(table)
    var sections: [SegmentSection] = []
    while !reader.isAtEnd { sections.append(try SegmentSection(&reader)) }
    return sections
  }

  private init(_ reader: inout ByteReader) throws(MalformedBytes) {
    kind = try reader.littleEndian()
    flags = try reader.littleEndian()
    offset = try reader.littleEndian()
    length = try reader.littleEndian()
    checksum = try reader.littleEndian()
  }

  func append(to bytes: inout [UInt8]) {
    bytes.appendLittleEndian(kind)
    bytes.appendLittleEndian(flags)
    bytes.appendLittleEndian(offset)
    bytes.appendLittleEndian(length)
    bytes.appendLittleEndian(checksum)
  }
}

extension BlockHandle {
  /// The handle in a row of an index block, which is after `offset` in the file.
  static func parse(
    _ value: RawSpan, _ errors: SegmentErrors, _ offset: UInt64
  ) throws(EngineError) -> BlockHandle {
    do throws(MalformedBytes) {
      return try BlockHandle(value)
    } catch {
      throw errors.corrupt(error, from: offset)
    }
  }
}
