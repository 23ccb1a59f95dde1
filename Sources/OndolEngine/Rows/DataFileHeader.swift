// The first bytes of a file of rows, values or contents, which identify the file and its database.
// Reads compare the header with the manifest and never take anything from it, so it is only ever
// encoded.

/// The first 64 bytes of a segment or a value file.
struct DataFileHeader: Equatable {
  static let length = 64

  /// The type of file: its magic bytes and its format version. Each format adds its own.
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
  /// Whether the rest of the file is encrypted.
  var isSealed = false
  /// The keyed group whose key encrypts it, if any.
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
  /// The header of a file, or nil if it is damaged.
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
