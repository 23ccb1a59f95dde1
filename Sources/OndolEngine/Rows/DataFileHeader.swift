// The first bytes of a file of rows, of values or of contents: which file of which database it is.
// Reads compare it with what the manifest says and never take anything from it, so that it is only
// ever encoded.

/// What the first 64 bytes of a segment or a value file say.
struct DataFileHeader: Equatable {
  static let length = 64

  /// What the file holds.
  enum Kind {
    case segment
    case values
    case pack
  }

  var kind: Kind
  var number: FileNumber
  var salt: UInt64
  var identity: DatabaseIdentity
  var shard: UInt32

  func encode() -> [UInt8] {
    var bytes = magic
    bytes.appendLittleEndian(version.major)
    bytes.appendLittleEndian(version.minor)
    bytes.appendLittleEndian(UInt32(0))
    for field in [number.rawValue, salt, identity.low, identity.high] {
      bytes.appendLittleEndian(field)
    }
    bytes.appendLittleEndian(shard)
    bytes.appendLittleEndian(UInt32(0))
    bytes.appendLittleEndian(seededChecksum(contextSeed(salt: salt, offset: 0), bytes.bytes))
    return bytes
  }

  private var magic: [UInt8] {
    switch kind {
    case .segment: SegmentFormat.magic
    case .values: ValueFileFormat.magic
    case .pack: PackFormat.magic
    }
  }

  private var version: (major: UInt16, minor: UInt16) {
    switch kind {
    case .segment: (SegmentFormat.majorVersion, SegmentFormat.minorVersion)
    case .values: (ValueFileFormat.majorVersion, ValueFileFormat.minorVersion)
    case .pack: (PackFormat.majorVersion, PackFormat.minorVersion)
    }
  }
}
