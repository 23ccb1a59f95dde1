// What a block contains instead of a separated value: the location of the value, and enough of its
// record's fields to notice when another record is there. Only segments have rows with pointers:
// memtables and the log have whole values.
//
//    0   8  number of the value file         20   4  length before compression
//    8   8  offset of the record             24   4  the record's checksum
//   16   4  stored length                    28   4  ordinal of the record in its file

/// Leads to a value in a value file.
struct ValuePointer: Sendable, Equatable {
  static let length = 32

  var file: FileNumber
  var offset: UInt64
  /// Bytes in the file, without the record's header.
  var storedLength: UInt32
  var rawLength: UInt32
  var checksum: UInt32
  /// The number of records before this one: its slot when the value is in memory.
  var ordinal: UInt32

  func encode() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    bytes.appendLittleEndian(file.rawValue)
    bytes.appendLittleEndian(offset)
    for field in [storedLength, rawLength, checksum, ordinal] { bytes.appendLittleEndian(field) }
    return bytes
  }
}

extension ValuePointer {
  init(_ bytes: RawSpan) throws(MalformedBytes) {
    guard bytes.byteCount == Self.length else {
      throw MalformedBytes(at: 0, "a value pointer of \(bytes.byteCount) bytes")
    }
    var reader = ByteReader(bytes)
    file = FileNumber(rawValue: try reader.littleEndian())
    offset = try reader.littleEndian()
    storedLength = try reader.littleEndian()
    rawLength = try reader.littleEndian()
    checksum = try reader.littleEndian()
    ordinal = try reader.littleEndian()
  }
}
