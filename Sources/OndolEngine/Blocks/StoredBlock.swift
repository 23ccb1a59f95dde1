// A block in its file form: compressed when that saves space, with a trailer whose checksum
// includes the block's position. The checksum is verified before anything else reads the bytes.
//
// Trailer, 16 bytes
//    0   4  length before compression         6   1  cipher: 0 none, 1 AES-256-GCM
//    4   1  codec: 0 none, 1 LZ4              7   1  eighths of the spare bytes at the stored end
//    5   1  kind                              8   8  checksum
//
// Encryption needs room for more than the bytes: the spare bytes, which count as stored ones, and
// are the tag. In an encrypted file every block is encrypted. The first eight bytes of the trailer
// are authenticated with it, so that they belong to no other block. A block with an unknown codec,
// kind or cipher, or with spare bytes but without a cipher, is a newer version's.

/// The trailer after a block's stored bytes, and its reading and writing.
enum StoredBlock {
  static let trailerLength = 16
  /// A block of this many bytes has one long row, and its output grows at once.
  private static let longBlock = 1 << 20
  private static let codecNone: UInt8 = 0
  private static let codecLZ4: UInt8 = 1
  /// Cipher and spare bytes of sealed data, in the form of a trailer.
  static let sealedMark: UInt16 = 1 | UInt16(SealFormat.tagLength / 8) << 8

  /// Appends the stored form of `raw` at `offset` of the file, including the trailer.
  /// - Returns: the stored length, without the trailer.
  static func seal(
    _ raw: RawSpan, kind: BlockKind, compress: Bool, salt: UInt64, offset: UInt64,
    seal: FileSeal? = nil, appendingTo output: inout [UInt8]
  ) -> Int {
    let start = output.count
    if raw.byteCount > longBlock {
      output.reserveCapacity(start + raw.byteCount + trailerLength + SealFormat.tagLength)
    }
    let isCompressed = compress && Compression.compress(raw, appendingTo: &output)
    if !isCompressed { output.append(raw) }
    let codec = isCompressed ? codecLZ4 : codecNone
    if let seal {
      let context = trailer(raw.byteCount, codec, kind.rawValue, sealedMark)
      seal.seal(&output, from: start, .block, at: offset, context: context)
    }
    let storedLength = output.count - start
    output.appendLittleEndian(UInt32(raw.byteCount))
    output.append(codec)
    output.append(kind.rawValue)
    output.appendLittleEndian(seal == nil ? 0 : sealedMark)
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), output.bytes.extracting(start..<output.count))
    output.appendLittleEndian(checksum)
    return storedLength
  }

  /// The part of a trailer that its checksum covers.
  private static func trailer(
    _ rawLength: Int, _ codec: UInt8, _ kind: UInt8, _ cipherAndSpare: UInt16
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendLittleEndian(UInt32(truncatingIfNeeded: rawLength))
    bytes.append(codec)
    bytes.append(kind)
    bytes.appendLittleEndian(cipherAndSpare)
    return bytes
  }

  /// A block in its unencrypted form, with the checksum of the stored one: the form that `Opened`
  /// accepts as verified. `bytes`, stored bytes and trailer, were read from `offset` of the file.
  static func unsealed(
    _ bytes: RawSpan, salt: UInt64, offset: UInt64, by seal: FileSeal
  ) throws(MalformedBytes) -> [UInt8] {
    let storedLength = bytes.byteCount - trailerLength
    guard storedLength >= 0 else { throw MalformedBytes(at: 0, "ends within a block") }
    var reader = ByteReader(bytes.extracting(droppingFirst: storedLength))
    let trailer = try reader.take(8)
    let checksum: UInt64 = try reader.littleEndian()
    let seed = contextSeed(salt: salt, offset: offset)
    guard seededChecksum(seed, bytes.extracting(first: storedLength + 8)) == checksum else {
      throw MalformedBytes(at: 0, "the block's checksum does not match")
    }
    var mark = ByteReader(trailer.extracting(droppingFirst: 6))
    switch try mark.littleEndian(UInt16.self) {
    case sealedMark: break
    case 0: throw FileSeal.unsealed
    case let other: throw .newer(at: storedLength, "a block with cipher \(other & 0xff)")
    }
    var clear: [UInt8] = []
    clear.reserveCapacity(bytes.byteCount)
    try seal.open(
      bytes.extracting(first: storedLength), .block, at: offset, context: trailer.array,
      appendingTo: &clear)
    clear.append(trailer.extracting(first: 6))
    clear.append(contentsOf: repeatElement(0, count: 10))
    return clear
  }

  /// A stored block with a verified checksum.
  struct Opened: ~Escapable {
    let stored: RawSpan
    let rawLength: Int
    let isCompressed: Bool

    /// Verifies `bytes`, stored bytes and trailer, which were read from `offset` of the file.
    ///
    /// - Parameter isUnsealed: whether they come from `unsealed`, which has checked the checksum.
    @_lifetime(copy bytes)
    init(
      _ bytes: RawSpan, kind: BlockKind, salt: UInt64, offset: UInt64, isUnsealed: Bool = false
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
      guard
        isUnsealed
          || seededChecksum(seed, bytes.extracting(first: storedLength + 8)) == checksum
      else {
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

    /// The block's bytes, when the number of rows is unknown.
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
