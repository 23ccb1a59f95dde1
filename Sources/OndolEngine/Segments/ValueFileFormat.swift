// The bytes of a value file: the large values of some rows, in the order in which the flush or
// compaction that wrote them met their keys, so that a scan reads them sequentially.
//
//   header 64 | records
//
// A value is written once in addition to the log and then stays where it is: compactions move the
// pointers. Nothing at the end of the file describes it; its length is in the manifest.
//
// Integers are little-endian. `X(offset, bytes)` is the seeded checksum with the file's salt.
//
// Header
//    0   8  magic 89 'O' 'D' 'V' 0D 0A 1A 0A       32  16  database identity
//    8   2  major version, 10  2  minor            48   4  shard, 52  4  reserved
//   12   4  reserved                               56   8  X(0, bytes 0..<56)
//   16   8  file number
//   24   8  salt
//
// Record, at any offset
//    0   4  bytes before compression
//    4   4  stored bytes
//    8   1  codec: 0 none, 1 LZ4
//    9   1  cipher: 0 none, 1 AES-256-GCM
//   10   1  eighths of the spare bytes at the end of the stored ones: the tag, as in blocks
//   11   5  reserved
//   16   8  X(offset of the record, bytes 0..<16 ++ stored bytes)
//   24      stored bytes

extension DataFileHeader.Kind {
  static let values = Self(magic: [0x89, 0x4f, 0x44, 0x56, 0x0d, 0x0a, 0x1a, 0x0a])
}

/// Numbers of the format.
enum ValueFileFormat {
  static let recordHeaderLength = 24
  /// The part of a record's header that its checksum covers.
  static let checkedLength = 16
  static let codecNone: UInt8 = 0
  static let codecLZ4: UInt8 = 1
}

/// The manifest's entry of a value file.
struct ValueFileMetadata: Sendable, Equatable {
  var number: FileNumber
  var salt: UInt64
  var sizeBytes: UInt64
  /// Records in it.
  var values: UInt64
  /// The keyed group of its values; nil for values outside groups.
  var group: UInt32?

  /// Bytes of its records.
  var recordBytes: UInt64 { sizeBytes - min(sizeBytes, UInt64(DataFileHeader.length)) }
}

// MARK: - Records

/// A record's header and how a record is checked.
struct ValueRecord: Equatable {
  var rawLength: UInt32
  var storedLength: UInt32
  var codec: UInt8
  /// Cipher, spare bytes and reserved ones: zero in records that can be read here.
  private var extras: UInt64 = 0
  var checksum: UInt64

  /// A record found at `offset` of a file.
  struct Opened: ~Escapable {
    let stored: RawSpan
    let header: ValueRecord

    /// Verifies `bytes`: one record, from its header to its end.
    ///
    /// - Parameter isUnsealed: whether they come from `unsealed`, which has checked the checksum.
    @_lifetime(copy bytes)
    init(
      _ bytes: RawSpan, salt: UInt64, offset: UInt64, isUnsealed: Bool = false
    ) throws(MalformedBytes) {
      header = try ValueRecord(bytes)
      stored = bytes.extracting(droppingFirst: ValueFileFormat.recordHeaderLength)
      guard stored.byteCount == Int(header.storedLength) else {
        throw MalformedBytes(at: 4, "a value of \(header.storedLength) stored bytes")
      }
      if !isUnsealed { try header.check(bytes, stored, salt: salt, offset: offset) }
      try header.refuseNewer()
      try header.checkLengths()
    }

    /// Fills all of `raw`, which has the value's length; false when the stored bytes do not give
    /// such a value.
    func fill(_ raw: inout MutableRawSpan) -> Bool {
      if header.codec == ValueFileFormat.codecLZ4 {
        return Compression.decompress(stored, into: &raw)
      }
      guard stored.byteCount == raw.byteCount else { return false }
      raw.copy(stored)
      return true
    }
  }

  init(rawLength: UInt32, storedLength: UInt32, codec: UInt8, checksum: UInt64) {
    self.rawLength = rawLength
    self.storedLength = storedLength
    self.codec = codec
    self.checksum = checksum
  }

  /// The header at the beginning of `bytes`. Nothing in it is trusted yet.
  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    rawLength = try reader.littleEndian()
    storedLength = try reader.littleEndian()
    codec = try reader.byte()
    for shift in 0..<7 { extras |= UInt64(try reader.byte()) << (8 * shift) }
    checksum = try reader.littleEndian()
  }

  private func check(
    _ bytes: RawSpan, _ stored: RawSpan, salt: UInt64, offset: UInt64
  ) throws(MalformedBytes) {
    let found = seededChecksum(
      contextSeed(salt: salt, offset: offset),
      bytes.extracting(first: ValueFileFormat.checkedLength), stored)
    guard found == checksum else {
      throw MalformedBytes(at: 0, "the value's checksum does not match")
    }
  }

  /// A record in its unencrypted form, with the checksum of the stored one: the form that `Opened`
  /// accepts as verified.
  static func unsealed(
    _ bytes: RawSpan, salt: UInt64, offset: UInt64, by seal: FileSeal
  ) throws(MalformedBytes) -> [UInt8] {
    var header = try ValueRecord(bytes)
    let stored = bytes.extracting(droppingFirst: ValueFileFormat.recordHeaderLength)
    guard stored.byteCount == Int(header.storedLength) else {
      throw MalformedBytes(at: 4, "a value of \(header.storedLength) stored bytes")
    }
    try header.check(bytes, stored, salt: salt, offset: offset)
    if header.extras == 0 { throw FileSeal.unsealed }
    guard header.extras == UInt64(StoredBlock.sealedMark) else {
      throw .newer(at: 9, "a value with cipher \(header.extras & 0xff)")
    }
    let context = header.encodeChecked()
    var opened: [UInt8] = []
    opened.reserveCapacity(stored.byteCount)
    try seal.open(stored, .value, at: offset, context: context, appendingTo: &opened)
    header.extras = 0
    header.storedLength = UInt32(opened.count)
    var clear = header.encodeChecked()
    clear.reserveCapacity(clear.count + 8 + opened.count)
    clear.appendLittleEndian(header.checksum)
    return clear + opened
  }

  /// Seals the stored bytes of this record, which will be at `offset`.
  mutating func seal(_ stored: inout [UInt8], by seal: FileSeal, offset: UInt64) {
    extras = UInt64(StoredBlock.sealedMark)
    storedLength += UInt32(SealFormat.tagLength)
    seal.seal(&stored, from: 0, .value, at: offset, context: encodeChecked())
  }

  /// The part of the header that the checksum covers.
  func encodeChecked() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendLittleEndian(rawLength)
    bytes.appendLittleEndian(storedLength)
    bytes.appendLittleEndian(UInt64(codec) | extras << 8)
    return bytes
  }

  /// Throws when only a newer version can have written the record, whose checksum is right.
  private func refuseNewer() throws(MalformedBytes) {
    guard codec <= ValueFileFormat.codecLZ4 else {
      throw .newer(at: 8, "a value of codec \(codec)")
    }
    guard extras == 0 else {
      throw .newer(at: 9, "a value with cipher \(extras & 0xff)")
    }
  }

  private func checkLengths() throws(MalformedBytes) {
    let limit =
      codec == ValueFileFormat.codecLZ4
      ? Compression.largestRaw(fromStored: Int(storedLength)) : Int(storedLength)
    guard rawLength <= limit, rawLength <= BlockLayout.maximumRowLength,
      codec == ValueFileFormat.codecLZ4 || rawLength == storedLength
    else { throw MalformedBytes(at: 0, "\(rawLength) bytes from \(storedLength) stored") }
  }
}
