// The manifest's bytes: a header of 64 bytes, then edits in frames like those of the log. An edit
// is one frame. An edit longer than a frame consists of parts and a last part, like a long commit.
// Versions of the format before parts did not know them, so a manifest records in its header
// whether it may contain any. Older versions reject such a manifest as newer.

/// The 64 bytes before the edits.
struct ManifestHeader: Equatable {
  static let length = 64
  private static let magic: UInt64 = 0x0A1A_0A0D_4E4D_4C89  // 89 'LMN' 0D 0A 1A 0A

  /// What may follow the header.
  enum Version: UInt32, Sendable {
    /// Only edits of one frame each.
    case wholeEdits = 1
    /// Edits in parts as well.
    case editsInParts = 2
  }

  var version: Version
  var number: FileNumber
  var identity: DatabaseIdentity
  var salt: UInt64

  func encode() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendLittleEndian(Self.magic)
    bytes.appendLittleEndian(version.rawValue)
    bytes.appendLittleEndian(UInt32(0))
    for field in [number.rawValue, identity.low, identity.high, salt, 0] {
      bytes.appendLittleEndian(field)
    }
    bytes.appendLittleEndian(seededChecksum(Self.magic, bytes.bytes))
    return bytes
  }

  /// The header at the start of `bytes`, for the manifest that `superblock` points to.
  static func read(_ bytes: RawSpan, of superblock: Superblock) throws(MalformedBytes) -> Self {
    guard bytes.byteCount >= length else {
      throw MalformedBytes(at: 0, "it ends within its header")
    }
    var reader = ByteReader(bytes)
    guard try reader.littleEndian(UInt64.self) == magic else {
      throw MalformedBytes(at: 0, "it does not begin as a manifest does")
    }
    let version: UInt32 = try reader.littleEndian()
    _ = try reader.littleEndian(UInt32.self)
    let number = FileNumber(rawValue: try reader.littleEndian())
    let identity = DatabaseIdentity(
      low: try reader.littleEndian(), high: try reader.littleEndian())
    let salt: UInt64 = try reader.littleEndian()
    _ = try reader.littleEndian(UInt64.self)
    let checksum: UInt64 = try reader.littleEndian()
    guard checksum == seededChecksum(magic, bytes.extracting(first: length - 8)) else {
      throw MalformedBytes(at: length - 8, "its header's checksum is wrong")
    }
    guard number == superblock.manifest, identity == superblock.identity else {
      throw MalformedBytes(at: 16, "it belongs to another database")
    }
    guard let version = Version(rawValue: version) else {
      throw .newer(at: 8, "the manifest's version \(version) is unknown")
    }
    return ManifestHeader(version: version, number: number, identity: identity, salt: salt)
  }
}

extension Keyring {
  /// What encrypts the edits of the manifest with this header.
  func seal(_ header: ManifestHeader) -> FileSeal? {
    seal(.manifest, number: header.number, salt: header.salt)
  }
}
