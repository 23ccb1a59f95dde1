// A block on its way to and from the file: compressed when that pays, with a trailer whose checksum
// knows the block's place. The checksum is verified before anything else looks at the bytes.
//
// Trailer, 16 bytes
//    0   4  length before compression         6   1  cipher: 0 none, 1 allotted to encryption
//    4   1  codec: 0 none, 1 LZ4              7   1  eighths of the spare bytes at the stored end
//    5   1  kind                              8   8  checksum
//
// What is encrypted needs room for more than its bytes: the spare bytes, which count as stored
// ones. A block with a codec, kind or cipher that is unknown here, or with spare bytes, is a newer
// version's.

/// What stands behind a block's stored bytes, and the ways through it.
enum StoredBlock {
  static let trailerLength = 16
  private static let codecNone: UInt8 = 0
  private static let codecLZ4: UInt8 = 1

  /// Appends `raw` as it is stored at `offset` of the file, trailer included.
  /// - Returns: the stored length, without the trailer.
  static func seal(
    _ raw: RawSpan, kind: BlockKind, compress: Bool, salt: UInt64, offset: UInt64,
    appendingTo output: inout [UInt8]
  ) -> Int {
    let start = output.count
    let isCompressed = compress && Compression.compress(raw, appendingTo: &output)
    if !isCompressed { output.append(raw) }
    let storedLength = output.count - start
    output.appendLittleEndian(UInt32(raw.byteCount))
    output.append(isCompressed ? codecLZ4 : codecNone)
    output.append(kind.rawValue)
    output.appendLittleEndian(UInt16(0))
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), output.bytes.extracting(start..<output.count))
    output.appendLittleEndian(checksum)
    return storedLength
  }

  /// A stored block whose checksum was right.
  struct Opened: ~Escapable {
    let stored: RawSpan
    let rawLength: Int
    let isCompressed: Bool

    /// Verifies `bytes`, stored bytes and trailer, which were read from `offset` of the file.
    @_lifetime(copy bytes)
    init(
      _ bytes: RawSpan, kind: BlockKind, salt: UInt64, offset: UInt64
    ) throws(MalformedBytes) {
      let storedLength = bytes.byteCount - trailerLength
      guard storedLength >= 0 else { throw MalformedBytes(at: 0, "ends within a block") }
      var reader = ByteReader(bytes)
      stored = try reader.take(storedLength)
      let rawLength: UInt32 = try reader.littleEndian()
      let codec = try reader.byte()
      let storedKind = try reader.byte()
      let cipherAndSpare: UInt16 = try reader.littleEndian()
      let checksum: UInt64 = try reader.littleEndian()
      let seed = contextSeed(salt: salt, offset: offset)
      guard seededChecksum(seed, bytes.extracting(first: storedLength + 8)) == checksum else {
        throw MalformedBytes(at: 0, "the block's checksum does not match")
      }
      guard codec <= codecLZ4, cipherAndSpare == 0, BlockKind(rawValue: storedKind) != nil else {
        let reason =
          cipherAndSpare == 0
          ? "a block of codec \(codec) and kind \(storedKind)"
          : "a block with cipher \(cipherAndSpare & 0xff)"
        throw .newer(at: storedLength, reason)
      }
      guard storedKind == kind.rawValue else {
        throw MalformedBytes(at: storedLength, "a block of kind \(storedKind)")
      }
      self.rawLength = Int(rawLength)
      isCompressed = codec == codecLZ4
      let limit = min(
        BlockLayout.maximumRawLength,
        isCompressed ? Compression.largestRaw(fromStored: storedLength) : storedLength)
      guard self.rawLength <= limit, isCompressed || self.rawLength == storedLength else {
        throw MalformedBytes(at: storedLength, "\(rawLength) bytes from \(storedLength) stored")
      }
    }

    /// The block's bytes, for whoever does not know how many rows it has.
    func rawBytes() throws(MalformedBytes) -> [UInt8] {
      let whole = try SingleValueBlock(valueLength: rawLength).make { raw in
        if isCompressed { return Compression.decompress(stored, into: &raw) }
        raw.copy(stored)
        return true
      }
      defer { whole.free() }
      return whole.value(0).array
    }

    /// The block in memory.
    func decode(rowCount: Int) throws(MalformedBytes) -> Block {
      try Block.make(rowCount: rowCount, rawLength: rawLength) { raw in
        if isCompressed { return Compression.decompress(stored, into: &raw) }
        raw.copy(stored)
        return true
      }
    }
  }
}
