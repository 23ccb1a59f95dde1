// The first bytes of a file of rows, of values or of contents: which file of which database it is.
// Reads compare it with what the manifest says and never take anything from it, so that it is only
// ever encoded.

/// What the first 64 bytes of a segment or a value file say.
struct DataFileHeader: Equatable {
  static let length = 64

  /// What the file holds: its first bytes and its format's version. Each format adds its own.
  struct Kind: Equatable {
    let magic: [UInt8]
    var major: UInt16 = 1
    var minor: UInt16 = 0
  }

  var kind: Kind
  var number: FileNumber
  var salt: UInt64
  var identity: DatabaseIdentity
  var shard: UInt32
  /// Whether what follows is sealed.
  var isSealed = false
  /// The keyed group under whose key it is, if it is one's.
  var group: UInt32?

  func encode() -> [UInt8] {
    var bytes = kind.magic
    bytes.appendLittleEndian(kind.major)
    bytes.appendLittleEndian(kind.minor)
    bytes.appendLittleEndian(UInt32(isSealed ? 1 : 0))
    for field in [number.rawValue, salt, identity.low, identity.high] {
      bytes.appendLittleEndian(field)
    }
    bytes.appendLittleEndian(shard)
    bytes.appendLittleEndian(group ?? 0)
    bytes.appendLittleEndian(seededChecksum(contextSeed(salt: salt, offset: 0), bytes.bytes))
    return bytes
  }
}

extension DataFileHeader {
  /// The header of a file, or nil when it is damaged.
  static func find(_ kind: Kind, in file: any File) throws(EngineError) -> DataFileHeader? {
    let bytes = try file.read(at: 0, count: length)
    var reader = ByteReader(bytes.bytes)
    do throws(MalformedBytes) {
      _ = try reader.take(12)
      let cipher: UInt32 = try reader.littleEndian()
      let header = DataFileHeader(
        kind: kind, number: FileNumber(rawValue: try reader.littleEndian()),
        salt: try reader.littleEndian(),
        identity: DatabaseIdentity(
          low: try reader.littleEndian(), high: try reader.littleEndian()),
        shard: try reader.littleEndian(), isSealed: cipher == 1,
        group: { $0 == 0 ? nil : $0 }(try reader.littleEndian(UInt32.self)))
      return header.encode() == bytes ? header : nil
    } catch {
      return nil
    }
  }
}
